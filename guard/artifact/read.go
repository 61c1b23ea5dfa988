package artifact

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/internal/forest"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// Bounds on what is read, in bytes.
const (
	maxJSON    = 1 << 20  // manifest.json
	maxTable   = 64 << 20 // features.json
	maxTrained = 16 << 20 // trained.bin
	maxWeights = 1 << 30  // any other file
)

// MaxCalibration bounds calibration.json in bytes.
const MaxCalibration = 8 << 20

// Artifact is a checked artifact in memory.
type Artifact struct {
	Manifest    Manifest
	Digest      string // the model digest
	Tensors     map[string]safetensors.Tensor
	Features    []byte       // features.json; package features parses it
	Encoder     []byte       // encoder.safetensors; nil if the artifact has none; package embed/static parses it
	Trained     []byte       // trained.bin; nil if the artifact has none; see TrainedOn
	Calibration *Calibration // nil if not calibrated
}

// Open reads and checks the artifact at path, a folder or an uncompressed tar
// of one. Symbolic links may not lead out of the folder.
func Open(path string) (*Artifact, error) {
	var a *Artifact
	err := at(path, func(src source) (err error) {
		a, err = read(src)
		return err
	})
	return a, err
}

// OpenManifest reads and checks manifest.json alone of the artifact at path, and
// returns it with the model digest.
func OpenManifest(path string) (*Manifest, string, error) {
	var (
		m      *Manifest
		digest string
	)
	err := at(path, func(src source) (err error) {
		m, digest, err = readManifest(src)
		return err
	})
	return m, digest, err
}

// at calls do with the files of the artifact at path, and adds the path to errors.
func at(path string, do func(source) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("open artifact: %w", err)
	}
	var src source
	if info.IsDir() {
		root, err := os.OpenRoot(path)
		if err != nil {
			return fmt.Errorf("open artifact: %w", err)
		}
		defer root.Close() // read only
		src = folder{root.FS()}
	} else if src, err = openTar(path); err != nil {
		return fmt.Errorf("open artifact %s: %w", path, err)
	}
	if err := do(src); err != nil {
		return fmt.Errorf("open artifact %s: %w", path, err)
	}
	return nil
}

// OpenFS reads and checks the artifact at the root of fsys. Hashing takes a third
// of that. Who keeps the digests of files that have not changed may give an fsys
// whose open files have a method SHA256() string: it is called after the file was
// read, by Bytes() []byte where there is such a method, and returns the digest of
// what was read, or "" to have it taken.
func OpenFS(fsys fs.FS) (*Artifact, error) { return read(folder{fsys}) }

// source is where the files come from.
type source interface {
	// file returns the named file and, where the source knows it already, its
	// sha256 in hex. The error wraps ErrMissing, ErrPath or ErrTooLarge and names
	// the file.
	file(name string, max int64) (b []byte, sum string, err error)
}

func readManifest(src source) (*Manifest, string, error) {
	b, _, err := src.file(ManifestFile, maxJSON)
	if err != nil {
		return nil, "", err
	}
	return ParseManifest(b)
}

func read(src source) (*Artifact, error) {
	m, digest, err := readManifest(src)
	if err != nil {
		return nil, err
	}
	a := &Artifact{Manifest: *m, Digest: digest}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		limit := int64(maxWeights)
		switch name {
		case FeaturesFile:
			limit = maxTable
		case TrainedFile:
			limit = maxTrained
		}
		b, got, err := src.file(name, limit)
		if err != nil {
			return nil, err
		}
		if got == "" {
			got = Sum(b)
		}
		if got != m.Files[name] {
			return nil, fmt.Errorf("%s: %w: sha256 is %.12s, the manifest says %.12s: the file is damaged or belongs to another model, copy the folder again", name, ErrDigest, got, m.Files[name])
		}
		switch name {
		case ModelFile:
			if a.Tensors, err = parseTensors(b, m.Dims); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		case FeaturesFile:
			a.Features = b
		case EncoderFile:
			a.Encoder = b
		case TrainedFile:
			if len(b)%FingerprintSize != 0 {
				return nil, fmt.Errorf("%s: %w: %d bytes, want a multiple of %d", name, ErrManifest, len(b), FingerprintSize)
			}
			a.Trained = b
		}
	}
	b, _, err := src.file(CalibrationFile, MaxCalibration)
	if errors.Is(err, ErrMissing) {
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	if a.Calibration, err = ParseCalibration(b, digest); err != nil {
		return nil, err
	}
	return a, nil
}

// parseTensors accepts exactly the exported tensors of the given sizes.
func parseTensors(b []byte, d Dims) (map[string]safetensors.Tensor, error) {
	list, _, err := safetensors.Read(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWeights, err)
	}
	got := make(map[string]safetensors.Tensor, len(list))
	for _, t := range list {
		got[t.Name] = t
	}
	if err := CheckTensors(got, d); err != nil {
		return nil, err
	}
	return got, nil
}

// CheckTensors reports whether got holds exactly the exported tensors of the
// given sizes, with usable values. The error names the tensor.
func CheckTensors(got map[string]safetensors.Tensor, d Dims) error {
	known := 0
	for _, spec := range Tensors(d) {
		if !spec.Export {
			continue
		}
		t, ok := got[spec.Name]
		if !ok {
			return fmt.Errorf("%w: %s", ErrTensorMissing, spec.Name)
		}
		known++
		if !slices.Equal(t.Shape, spec.Shape) {
			return fmt.Errorf("%w: %s is %v, want %v", ErrTensorShape, spec.Name, t.Shape, spec.Shape)
		}
		if err := safetensors.Finite(t); err != nil {
			return fmt.Errorf("%w: %w", ErrTensorValue, err)
		}
		if spec.Name == "feat.scale" {
			for i, x := range t.Data {
				if x <= 0 {
					return fmt.Errorf("%w: feat.scale[%d] is %v, want more than 0", ErrTensorValue, i, x)
				}
			}
		}
		if strings.HasSuffix(spec.Name, ".trees") {
			if _, err := forest.New(t.Data, d.T, d.N, d.F); err != nil {
				return fmt.Errorf("%w: %s: %w", ErrTensorValue, spec.Name, err)
			}
		}
	}
	if known == len(got) {
		return nil
	}
	specs := Tensors(d)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if !slices.ContainsFunc(specs, func(s Spec) bool { return s.Export && s.Name == name }) {
			return fmt.Errorf("%w: %.40q", ErrTensorExtra, name)
		}
	}
	return nil
}

// folder reads from a file system.
type folder struct{ fsys fs.FS }

func (d folder) file(name string, max int64) ([]byte, string, error) {
	// Stat before Open: opening a named pipe would wait for a writer.
	info, err := fs.Stat(d.fsys, name)
	switch {
	case err == nil:
	case isLink(d.fsys, name):
		return nil, "", fmt.Errorf("%s: %w: a symbolic link that leads out of the folder or nowhere (%w)", name, ErrPath, err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("%s: %w", name, ErrMissing)
	default:
		return nil, "", err
	}
	if !info.Mode().IsRegular() {
		return nil, "", fmt.Errorf("%s: %w: it is %v", name, ErrPath, info.Mode().Type())
	}
	if info.Size() > max {
		return nil, "", fmt.Errorf("%s: %w: %d bytes, at most %d", name, ErrTooLarge, info.Size(), max)
	}
	f, err := d.fsys.Open(name)
	if err != nil {
		return nil, "", err
	}
	defer f.Close() // read only
	// Files embedded in the program (checkpoints/shipped) are used in place.
	known, isKnown := f.(interface{ SHA256() string })
	if held, ok := f.(interface{ Bytes() []byte }); ok {
		b, sum := held.Bytes(), ""
		if isKnown {
			sum = known.SHA256()
		}
		if int64(len(b)) <= max {
			return b, sum, nil
		}
		return nil, "", fmt.Errorf("%s: %w: at most %d bytes", name, ErrTooLarge, max)
	}
	// One byte more than was announced shows a file that grows meanwhile.
	b := make([]byte, info.Size()+1)
	n, err := io.ReadFull(f, b)
	if err == nil {
		return nil, "", fmt.Errorf("%s: %w: it grows while it is read", name, ErrTooLarge)
	}
	if err != io.ErrUnexpectedEOF && err != io.EOF {
		return nil, "", err
	}
	if isKnown {
		return b[:n], known.SHA256(), nil
	}
	return b[:n], "", nil
}

func isLink(fsys fs.FS, name string) bool {
	info, err := fs.Lstat(fsys, name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
