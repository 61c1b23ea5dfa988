package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dreamguard/dreamguard/checkpoints/shipped"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
)

// BuiltIn names the artifact in the program (checkpoints/shipped) wherever the path
// of one is asked for. A folder of that name is ./default.
const BuiltIn = "default"

// ErrBuiltIn: the artifact in the program was to be changed.
var ErrBuiltIn = errors.New("the artifact in the program cannot be changed: copy it with `dreamguard export --artifact default --out DIR`, or write with --out FILE and use that with --calibration")

// OpenGuard opens the artifact at path, or the built-in one.
func OpenGuard(path string, opts ...guard.Option) (*guard.Model, error) {
	if path != BuiltIn {
		return guard.Open(path, opts...)
	}
	enc, err := builtInEncoder()
	if err != nil {
		return nil, err
	}
	return guard.OpenFS(shipped.FS, append([]guard.Option{guard.WithEncoder(enc)}, opts...)...)
}

// builtInEncoder makes the shipped encoder without taking the digest of its table,
// which a test of checkpoints/shipped has done.
func builtInEncoder() (*static.Encoder, error) {
	f, err := shipped.FS.Open(static.FileName)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	held := f.(interface {
		Bytes() []byte
		SHA256() string
	})
	sum, err := hex.DecodeString(held.SHA256())
	if err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("the artifact in the program does not know the digest of %s", static.FileName)
	}
	return static.ParseKnown(held.Bytes(), [sha256.Size]byte(sum))
}

// OpenArtifact reads the artifact at path, or the built-in one.
func OpenArtifact(path string) (*artifact.Artifact, error) {
	if path == BuiltIn {
		return artifact.OpenFS(shipped.FS)
	}
	return artifact.Open(path)
}

// openManifest reads the manifest of the artifact at path, or of the built-in one.
func openManifest(path string) (*artifact.Manifest, error) {
	if path == BuiltIn {
		a, err := artifact.OpenFS(shipped.FS)
		if err != nil {
			return nil, err
		}
		return &a.Manifest, nil
	}
	m, _, err := artifact.OpenManifest(path)
	return m, err
}

// CopyBuiltIn writes the built-in artifact to a folder that is not there yet, where it
// can be recalibrated. The folder appears complete or not at all.
func CopyBuiltIn(dir string) (err error) {
	dir = filepath.Clean(dir)
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s: %w: choose another folder", dir, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(parent, atomicfile.TempPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	whole := filepath.Join(temp, "artifact")
	if err := os.Mkdir(whole, 0o777); err != nil { // not private, as a temporary folder is
		return err
	}
	entries, err := fs.ReadDir(shipped.FS, ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		b, err := fs.ReadFile(shipped.FS, e.Name())
		if err != nil {
			return err
		}
		if err := atomicfile.WriteFile(filepath.Join(whole, e.Name()), b); err != nil {
			return err
		}
	}
	if _, err := artifact.Open(whole); err != nil {
		return fmt.Errorf("the written artifact does not load: %w", err)
	}
	if err := os.Rename(whole, dir); err != nil {
		return err
	}
	return atomicfile.SyncDir(parent)
}
