package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/dreamguard/dreamguard/embed"
)

// Format is the version of the artifact that this build writes. It reads this
// one only; should there be another, golden artifacts of all versions that are
// still read stay in the tests.
const Format = 1

// Names of the files.
const (
	ManifestFile    = "manifest.json"
	ModelFile       = "model.safetensors"
	FeaturesFile    = "features.json"
	EncoderFile     = "encoder.safetensors" // table of a static encoder; left out where the digest in the manifest has to do
	TrainedFile     = "trained.bin"         // fingerprints of the runs trained on; older artifacts have none
	CalibrationFile = "calibration.json"
	HistoryFolder   = "calibrations" // calibrations that were in force before; never read by a guard
	CardFile        = "README.md"
)

// StaticEncoder is the kind of encoder whose table an artifact may carry.
const StaticEncoder = "static"

// Values of Manifest.Latent: what z is at run time.
const (
	Probabilities = "probabilities" // the vector of class probabilities
	Mode          = "mode"          // one-hot, the likeliest class of each factor
)

// FeatureSet identifies the definition of the call features that the model was
// trained with.
type FeatureSet struct {
	Version int    `json:"version"`
	Digest  string `json:"digest"` // sha256 of names and ranges
}

// Fingerprint identifies a data set that took part in making the model.
type Fingerprint struct {
	Digest string `json:"digest"` // sha256 of the file
	N      int    `json:"n"`      // trajectories
}

// Manifest says what the model is. Its canonical JSON is manifest.json, and the
// sha256 of that is the model digest.
type Manifest struct {
	Format     int                    `json:"format"`
	Files      map[string]string      `json:"files"` // name -> sha256, all but calibration.json and README.md
	Dims       Dims                   `json:"dims"`
	UniformMix float64                `json:"uniform_mix"` // share of the uniform distribution in each categorical, in [0, 1)
	Latent     string                 `json:"latent"`      // Probabilities or Mode
	Encoder    embed.ID               `json:"encoder"`     // the encoder trained with
	Features   FeatureSet             `json:"features"`    // the feature set trained with
	Seed       uint64                 `json:"seed"`
	Data       map[string]Fingerprint `json:"data,omitempty"`   // set name -> what was read
	Config     json.RawMessage        `json:"config,omitempty"` // the resolved configuration of the run
	Tool       string                 `json:"tool,omitempty"`   // version of the program that wrote it
}

const maxFiles = 16

// Validate checks every field. The error names the field and wraps [ErrFormat],
// [ErrPath] or [ErrManifest].
func (m *Manifest) Validate() error {
	if m.Format != Format {
		return fmt.Errorf("%w %d: this build reads version %d, use the release that wrote the artifact or export it again", ErrFormat, m.Format, Format)
	}
	if err := m.Dims.Validate(); err != nil {
		return err
	}
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", ErrManifest, fmt.Sprintf(format, a...))
	}
	if len(m.Files) > maxFiles {
		return bad("files lists %d files: want at most %d", len(m.Files), maxFiles)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		switch {
		case !fs.ValidPath(name) || name == ".":
			return fmt.Errorf("%w: files lists %.60q: want names inside the folder", ErrPath, name)
		case name == ManifestFile || name == CalibrationFile || name == CardFile:
			return bad("files lists %s, which must stay changeable without a new model", name)
		case !isDigest(m.Files[name]):
			return bad("files[%q] is %.20q: want a sha256 in hex", name, m.Files[name])
		}
	}
	for _, name := range []string{ModelFile, FeaturesFile} {
		if m.Files[name] == "" {
			return bad("files does not list %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Data)) {
		if f := m.Data[name]; !isDigest(f.Digest) || f.N < 0 {
			return bad("data[%.40q] is not a sha256 and a number of trajectories", name)
		}
	}
	switch {
	case !(m.UniformMix >= 0 && m.UniformMix < 1):
		return bad("uniform_mix is %v: want 0 to below 1", m.UniformMix)
	case m.Latent != Probabilities && m.Latent != Mode:
		return bad("latent is %.20q: want %s or %s", m.Latent, Probabilities, Mode)
	case m.Encoder.Kind == "" || !isDigest(m.Encoder.Digest):
		return bad("encoder is not identified by kind and digest")
	case m.Files[EncoderFile] != "" && m.Encoder.Kind != StaticEncoder:
		return bad("files lists %s, which an encoder of kind %.20q does not have", EncoderFile, m.Encoder.Kind)
	case m.Encoder.Dims != m.Dims.D:
		return bad("encoder.dims is %d but dims.encoder is %d", m.Encoder.Dims, m.Dims.D)
	case m.Features.Version < 1 || !isDigest(m.Features.Digest):
		return bad("features is not identified by version and digest")
	}
	return nil
}

// Marshal validates m and returns its canonical JSON.
func (m *Manifest) Marshal() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return canonical(m)
}

// ParseManifest reads manifest.json and returns it with the model digest. Only
// the canonical form is accepted, so that one model has one digest and no
// reader can see other values than another.
func ParseManifest(b []byte) (*Manifest, string, error) {
	// The version first: a later format may have fields unknown here.
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &version); err != nil {
		return nil, "", fmt.Errorf("%s: %w: %w", ManifestFile, ErrManifest, err)
	}
	m := new(Manifest)
	if version.Format == Format {
		if err := strict(b, m); err != nil {
			return nil, "", fmt.Errorf("%s: %w: %w", ManifestFile, ErrManifest, err)
		}
	} else {
		m.Format = version.Format
	}
	if err := m.Validate(); err != nil {
		return nil, "", fmt.Errorf("%s: %w", ManifestFile, err)
	}
	if again, err := canonical(m); err != nil || !bytes.Equal(again, b) {
		return nil, "", fmt.Errorf("%s: %w: it was edited or reformatted: export the model again", ManifestFile, ErrManifest)
	}
	return m, Sum(b), nil
}

// Sum returns the sha256 of b in hex, the form of every digest here.
func Sum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func isDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && s == hex.EncodeToString(b)
}

// canonical is the one JSON form of v: indented, keys in the order of the type
// and maps sorted, a newline at the end.
func canonical(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

// strict decodes one JSON value without unknown fields.
func strict(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("text after the JSON value")
	}
	return nil
}
