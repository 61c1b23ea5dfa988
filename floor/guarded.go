package floor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/filelock"
)

// Errors of a guarded file.
var (
	// ErrRefused is wrapped by the error of a write that the floor refuses.
	ErrRefused = errors.New("refused by the floor")
	// ErrNotPlain is wrapped where the file is a link or has a second name, so
	// that a write through another path would go past the check.
	ErrNotPlain = errors.New("is not a plain file of one name")
)

// GuardOptions are the options of Guard.
type GuardOptions struct {
	// Format of the file; from its name when empty.
	Format Format
	// SealFile is where the seal lies, FILE.seal when empty. A seal that exists
	// is verified on every read and write.
	SealFile string
	// Key makes and checks keyed seals.
	Key []byte
	// RequireSeal refuses a file without a seal.
	RequireSeal bool

	forSealing bool // the seal is being made: the old one does not count
}

// Guarded is a configuration file that is written only through the check: whole,
// at once (the old content or the new one is there, never a part), with a backup
// beside it. Guard the file that the runtime reads, and give the agent no other
// way to it: layer.Layer stops the usual ones.
type Guarded struct {
	path   string
	floor  *Floor
	format Format
	opts   GuardOptions
}

// FormatOf returns the format of a file by its name.
func FormatOf(name string) (Format, bool) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return YAML, true
	case ".json":
		return JSON, true
	case ".jsonc", ".json5":
		return JSONC, true
	case ".toml":
		return TOML, true
	}
	return "", false
}

// Guard opens path for guarded writes and verifies its seal, if it has one.
func Guard(path string, f *Floor, opts GuardOptions) (*Guarded, error) {
	if opts.Format == "" {
		var ok bool
		if opts.Format, ok = FormatOf(path); !ok {
			return nil, fmt.Errorf("floor: %s: the name says no format: want .yaml, .yml, .json, .jsonc or .toml, or name one", path)
		}
	}
	if !opts.Format.IsDocument() {
		return nil, fmt.Errorf("floor: %s: %s is no format of a file", path, opts.Format)
	}
	// The folder may be reached through links; the name in it may not be one.
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	g := &Guarded{path: filepath.Join(dir, filepath.Base(path)), floor: f, format: opts.Format, opts: opts}
	if g.opts.SealFile == "" {
		g.opts.SealFile = g.path + ".seal"
	}
	if opts.forSealing {
		_, err = g.read()
	} else {
		_, err = g.Read()
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// SealFile takes the seal of a file and writes it, over a seal that is there
// already. It is for a person: an agent that may call it can seal what it likes.
func SealFile(path string, f *Floor, opts GuardOptions) (Seal, error) {
	opts.forSealing = true
	g, err := Guard(path, f, opts)
	if err != nil {
		return Seal{}, err
	}
	return g.seal()
}

// Path is the full path of the file.
func (g *Guarded) Path() string { return g.path }

// Format is the format of the file.
func (g *Guarded) Format() Format { return g.format }

// Read returns the content of the file after its seal was verified.
func (g *Guarded) Read() ([]byte, error) {
	text, err := g.read()
	if err != nil {
		return nil, err
	}
	return text, g.verify(text)
}

func (g *Guarded) read() ([]byte, error) {
	f, err := os.Open(g.path)
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	// What was opened must be what the name stands for, itself no link.
	named, err := os.Lstat(g.path)
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	if !named.Mode().IsRegular() || !os.SameFile(opened, named) || linkCount(opened) > 1 {
		return nil, fmt.Errorf("floor: %s %w", g.path, ErrNotPlain)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	if len(text) > maxDocument {
		return nil, fmt.Errorf("floor: %s: %w", g.path, unreadable("it is larger than %d MiB", maxDocument>>20))
	}
	return text, nil
}

func (g *Guarded) verify(text []byte) error {
	b, err := boundedfile.Read(g.opts.SealFile, maxDocument)
	if errors.Is(err, os.ErrNotExist) {
		if g.opts.RequireSeal {
			return fmt.Errorf("floor: %s: %w: there is no seal %s", g.path, ErrSealBroken, g.opts.SealFile)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	s, err := ReadSeal(b)
	if err == nil {
		err = g.floor.Verify(s, g.format, text, g.opts.Key)
	}
	if err != nil {
		return fmt.Errorf("floor: %s: %w", g.path, err)
	}
	return nil
}

func (g *Guarded) seal() (Seal, error) {
	text, err := g.read()
	if err != nil {
		return Seal{}, err
	}
	s, err := g.floor.Seal(g.format, text, g.opts.Key)
	if err != nil {
		return Seal{}, fmt.Errorf("floor: %s: %w", g.path, err)
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return Seal{}, err
	}
	return s, atomicfile.WriteFile(g.opts.SealFile, append(b, '\n'))
}

// Replace writes a whole new document, if the floor permits it. The decision is
// that of the check; the error wraps ErrRefused where it was not permitted.
func (g *Guarded) Replace(text []byte) (Decision, error) {
	return g.write(func([]byte) (Change, []byte, error) {
		return Change{}, text, nil
	})
}

// Apply writes a change of any format, if the floor permits it: both the change by
// what it writes, and the document that comes of it.
func (g *Guarded) Apply(c Change) (Decision, error) {
	if c.Format.IsDocument() {
		if c.Format != g.format {
			return Decision{}, fmt.Errorf("floor: %s holds %s, and the change is %s", g.path, g.format, c.Format)
		}
		return g.Replace(c.Text)
	}
	return g.write(func(before []byte) (Change, []byte, error) {
		c.Before, c.BeforeFormat = before, g.format
		if d := g.floor.Check(c); d.Outcome != Permit {
			return c, nil, nil
		}
		after, err := Edit(g.format, before, c)
		return c, after, err
	})
}

// write makes the new text from the present one and puts it in its place, one
// writer at a time.
func (g *Guarded) write(make func(before []byte) (Change, []byte, error)) (Decision, error) {
	unlock, err := filelock.Lock(g.path+".lock", filelock.Exclusive)
	if err != nil {
		return Decision{}, fmt.Errorf("floor: %w", err)
	}
	defer unlock()
	before, err := g.Read()
	if err != nil {
		return Decision{}, err
	}
	c, after, err := make(before)
	if err != nil {
		return Decision{}, fmt.Errorf("floor: %s: %w", g.path, err)
	}
	refused := func(d Decision) (Decision, error) {
		return d, fmt.Errorf("floor: %s: %w: %s", g.path, ErrRefused, d.Reason)
	}
	if c.Format != "" {
		if d := g.floor.Check(c); d.Outcome != Permit {
			return refused(d)
		}
	}
	if d := g.floor.Check(Document(g.format, before, after)); d.Outcome != Permit {
		return refused(d)
	}
	if err := atomicfile.WriteFile(g.path+".bak", before); err != nil {
		return Decision{}, err
	}
	if err := atomicfile.WriteFile(g.path, after); err != nil {
		return Decision{}, err
	}
	return Decision{}, g.reseal(after)
}

// reseal renews the seal after a permitted change of a sealed field, such as a
// stricter value of the check on untrusted content.
func (g *Guarded) reseal(text []byte) error {
	b, err := boundedfile.Read(g.opts.SealFile, maxDocument)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	old, err := ReadSeal(b)
	if err != nil {
		return err
	}
	s, err := g.floor.Seal(g.format, text, g.opts.Key)
	if err != nil {
		return err
	}
	if s.Digest == old.Digest {
		return nil
	}
	if b, err = json.MarshalIndent(s, "", "  "); err != nil {
		return err
	}
	return atomicfile.WriteFile(g.opts.SealFile, append(b, '\n'))
}
