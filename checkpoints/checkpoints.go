package checkpoints

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// Checkpoint is everything needed to continue a run.
type Checkpoint struct {
	Step    uint64               // orders the checkpoints of a run
	Config  string               // digest of what determines the run
	Data    string               // digest of what it learns from
	State   json.RawMessage      // counters and the like, as the trainer defines them
	Tensors []safetensors.Tensor // any number, names unique; sorted by Save
}

// Keep is how many checkpoints [Save] leaves in a folder: the new one, and the
// one before in case the disk loses the new one.
const Keep = 2

// MaxBytes bounds the size of a checkpoint that [Load] reads.
const MaxBytes = 4 << 30

// Errors of this package. They come wrapped in a message that names the file.
var (
	ErrNone     = errors.New("no checkpoint")
	ErrMismatch = errors.New("checkpoint of another run")
	ErrDamaged  = errors.New("checkpoint is damaged")
)

// Keys of the metadata.
const (
	metaFormat = "dreamguard.checkpoint"
	metaStep   = "dreamguard.step"
	metaConfig = "dreamguard.config"
	metaData   = "dreamguard.data"
	metaState  = "dreamguard.state"
)

// format is the version of the layout.
const format = "1"

// Save writes c into dir, which it creates, and removes all but the newest
// [Keep] checkpoints. The write is atomic: a kill leaves the former checkpoints.
func Save(dir string, c *Checkpoint) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("save checkpoint: %w", err)
	}
	var b bytes.Buffer
	err := safetensors.Write(&b, c.Tensors, map[string]string{
		metaFormat: format,
		metaStep:   strconv.FormatUint(c.Step, 10),
		metaConfig: c.Config,
		metaData:   c.Data,
		metaState:  string(c.State),
	})
	if err != nil {
		return fmt.Errorf("save checkpoint of step %d: %w", c.Step, err)
	}
	path := filepath.Join(dir, fileName(c.Step, b.Bytes()))
	if err := atomicfile.WriteFile(path, b.Bytes()); err != nil {
		return fmt.Errorf("save checkpoint: %w", err)
	}
	return prune(dir, path)
}

func fileName(step uint64, content []byte) string {
	return fmt.Sprintf("step-%010d.%x.safetensors", step, sha256.Sum256(content))
}

var namePattern = regexp.MustCompile(`^step-(\d{10,20})\.([0-9a-f]{64})\.safetensors$`)

// file is a checkpoint by name.
type file struct {
	path   string
	step   uint64
	digest string
}

// list returns the checkpoints of dir, newest first. Other files are none of its
// business.
func list(dir string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var fs []file
	for _, e := range entries {
		m := namePattern.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		step, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil {
			continue // more than 2^64 steps: not ours
		}
		fs = append(fs, file{filepath.Join(dir, e.Name()), step, m[2]})
	}
	slices.SortFunc(fs, func(a, b file) int {
		return cmp.Or(cmp.Compare(b.step, a.step), cmp.Compare(a.path, b.path))
	})
	return fs, nil
}

// prune removes what Save no longer needs: old checkpoints, checkpoints beyond
// the step just written (left by a run that went further and was damaged), and
// temporary files of a killed writer.
func prune(dir, written string) error {
	fs, err := list(dir)
	if err != nil {
		return fmt.Errorf("remove old checkpoints: %w", err)
	}
	var kept int
	for _, f := range fs {
		newer := kept == 0 && f.path != written
		if !newer && kept < Keep {
			kept++
			continue
		}
		if err := os.Remove(f.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove old checkpoints: %w", err)
		}
	}
	if err := atomicfile.Clean(dir); err != nil {
		return fmt.Errorf("remove temporary files: %w", err)
	}
	return nil
}

// Load returns the newest whole checkpoint of dir. A damaged file is passed over
// and reported in skipped; if all are damaged, err wraps [ErrDamaged]. A folder
// without checkpoints, or no folder, is [ErrNone]. A checkpoint whose digests are
// not config and data is [ErrMismatch], and the error names both.
func Load(dir, config, data string) (c *Checkpoint, skipped []error, err error) {
	fs, err := list(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("load checkpoint: %w", err)
	}
	for _, f := range fs {
		c, err := f.read()
		if err != nil {
			skipped = append(skipped, err)
			continue
		}
		for _, d := range []struct{ what, has, want string }{
			{"config", c.Config, config}, {"data", c.Data, data},
		} {
			if d.has != d.want {
				return nil, skipped, fmt.Errorf("load checkpoint %s: %w: its %s digest is %s, this run's is %s; continue with the former %s, or remove the folder to start over",
					f.path, ErrMismatch, d.what, d.has, d.want, d.what)
			}
		}
		return c, skipped, nil
	}
	if len(skipped) > 0 {
		return nil, skipped, fmt.Errorf("load checkpoint: every one in %s is unusable; remove the folder to start over: %w", dir, errors.Join(skipped...))
	}
	return nil, nil, fmt.Errorf("load checkpoint: %w in %s", ErrNone, dir)
}

// Open reads one checkpoint file, for tools that show it. Errors wrap
// [ErrDamaged] if the content is at fault.
func Open(path string) (*Checkpoint, error) {
	m := namePattern.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return nil, fmt.Errorf("open checkpoint %s: %w: the name is not step-STEP.SHA256.safetensors", path, ErrDamaged)
	}
	step, err := strconv.ParseUint(m[1], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint %s: %w: %w", path, ErrDamaged, err)
	}
	return file{path, step, m[2]}.read()
}

func (f file) read() (*Checkpoint, error) {
	damaged := func(format string, a ...any) error {
		return fmt.Errorf("%s: %w: %w", f.path, ErrDamaged, fmt.Errorf(format, a...))
	}
	b, err := boundedfile.Read(f.path, MaxBytes)
	if errors.Is(err, boundedfile.ErrTooLarge) || errors.Is(err, boundedfile.ErrNotRegular) {
		return nil, damaged("%w", err)
	}
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != f.digest {
		return nil, damaged("the digest of its %d bytes is %x, its name says %s", len(b), sum, f.digest)
	}
	tensors, meta, err := safetensors.Read(b)
	if err != nil {
		return nil, damaged("%w", err)
	}
	if meta[metaFormat] != format {
		return nil, damaged("format %q, want %q", meta[metaFormat], format)
	}
	if meta[metaStep] != strconv.FormatUint(f.step, 10) {
		return nil, damaged("step %s, its name says %d", meta[metaStep], f.step)
	}
	if !json.Valid([]byte(meta[metaState])) {
		return nil, damaged("state is not JSON")
	}
	return &Checkpoint{
		Step: f.step, Config: meta[metaConfig], Data: meta[metaData],
		State: json.RawMessage(meta[metaState]), Tensors: tensors,
	}, nil
}
