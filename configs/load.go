package configs

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/suggest"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

//go:embed presets/*.yaml
var presetFS embed.FS

// rootPreset is complete; every other preset and every file starts from it,
// directly or through "base: NAME".
const rootPreset = "paper"

// presetNames in the order in which help texts list them: from the quickest to
// the longest.
var presetNames = []string{"debug", "quickstart", "protocol-p1", "protocol-p2", "paper"}

// Presets lists the names of the embedded presets.
func Presets() []string { return slices.Clone(presetNames) }

// Load returns the preset of that name, or else reads the YAML file at that
// path, and validates it. A file starts from the preset that it names with
// "base: NAME", or from paper: keys that it does not name keep the value
// they have there. Without a "name" of its own it is called after the file.
//
// Mistakes in the file are reported all together, as one or several [*Error].
func Load(nameOrPath string) (Config, error) {
	if slices.Contains(presetNames, nameOrPath) {
		c, err := preset(nameOrPath)
		if err != nil {
			return Config{}, err
		}
		return c, c.Validate()
	}
	src, err := boundedfile.Read(nameOrPath, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Config{}, notFound(nameOrPath)
	case errors.Is(err, boundedfile.ErrNotRegular), errors.Is(err, boundedfile.ErrTooLarge):
		return Config{}, &Error{Reason: err.Error() + ": want a configuration in YAML"}
	case err != nil:
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(nameOrPath, src)
}

// Parse is [Load] for the content of a file; name is its path, which is used in
// messages and which paths in the content are relative to.
func Parse(name string, src []byte) (Config, error) {
	c, err := decodeOver(name, src, strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
	if err != nil {
		return Config{}, err
	}
	if err := c.resolve(filepath.Dir(name)); err != nil {
		return Config{}, err
	}
	if err := c.Validate(); err != nil {
		return Config{}, inFile(name, err)
	}
	return c, nil
}

// resolve makes the paths in c absolute, those that are not taken from dir: a run
// may be gone on with from another folder. No preset names a path.
func (c *Config) resolve(dir string) error {
	if c.Encoder.Path == "" {
		return nil
	}
	path := c.Encoder.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("encoder.path: %w", err)
	}
	c.Encoder.Path = abs
	return nil
}

func notFound(name string) error {
	reason := fmt.Sprintf("no preset and no file is called %q", name)
	if near, ok := suggest.Nearest(name, presetNames); ok {
		reason += fmt.Sprintf(": did you mean %s?", near)
	} else {
		reason += ": the presets are " + strings.Join(presetNames, ", ")
	}
	return &Error{Reason: reason}
}

func preset(name string) (Config, error) {
	file := "presets/" + name + ".yaml"
	src, err := presetFS.ReadFile(file)
	if err != nil {
		return Config{}, err
	}
	return decodeOver(file, src, name)
}

// decodeOver decodes src over the preset that it starts from.
func decodeOver(file string, src []byte, name string) (Config, error) {
	node, err := parse(file, src)
	if err != nil {
		return Config{}, err
	}
	d := decoder{file: file}
	base, err := d.base(node)
	if err != nil {
		return Config{}, err
	}
	var c Config
	switch {
	case base != "":
		if c, err = preset(base); err != nil {
			return Config{}, err
		}
	case file != "presets/"+rootPreset+".yaml":
		if c, err = preset(rootPreset); err != nil {
			return Config{}, err
		}
	}
	c.Name = name
	if node == nil {
		return c, nil
	}
	if err := d.decode(node, reflect.ValueOf(&c).Elem(), ""); err != nil {
		return Config{}, err
	}
	return c, nil
}

// base returns the preset named by the top-level key "base". A preset itself
// may only start from the root, so there are no chains and no cycles.
func (d decoder) base(n ast.Node) (string, error) {
	if n == nil {
		return "", nil
	}
	values, err := d.entries(n, "")
	if err != nil {
		return "", err
	}
	for _, e := range values {
		if keyName(e) != baseKey {
			continue
		}
		s, ok := e.Value.(*ast.StringNode)
		if !ok || !slices.Contains(presetNames, s.Value) {
			return "", d.errorf(e.Value, baseKey, "want one of the presets %s, not %s", strings.Join(presetNames, ", "), describe(e.Value))
		}
		return s.Value, nil
	}
	return "", nil
}

// inFile adds the file to each of several errors.
func inFile(file string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var out []error
	for _, e := range joined.Unwrap() {
		var ce *Error
		if errors.As(e, &ce) {
			withFile := *ce
			withFile.File = file
			e = &withFile
		}
		out = append(out, e)
	}
	return errors.Join(out...)
}

// Marshal writes the complete configuration as YAML that [Load] reads back to
// an equal value. Equal configurations give equal bytes.
func (c Config) Marshal() ([]byte, error) {
	if c.Data.Weights == nil {
		c.Data.Weights = map[string]float64{}
	}
	b, err := yaml.MarshalWithOptions(c, yaml.Indent(2), yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return b, nil
}

// Digest returns the hexadecimal sha256 of what [Config.Marshal] writes.
func (c Config) Digest() (string, error) {
	b, err := c.Marshal()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
