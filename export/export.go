package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// ErrOccupied: the folder to write holds something that is not an artifact.
var ErrOccupied = errors.New("export: folder holds other files")

// Input is everything that an artifact is made of.
type Input struct {
	Weights    []safetensors.Tensor // all tensors of docs/reference/model.md; what only training uses is left out
	Dims       artifact.Dims
	UniformMix float64
	Latent     string               // artifact.Probabilities or artifact.Mode
	Encoder    embed.ID             // the encoder trained with
	Table      []byte               // encoder.safetensors of a static encoder; nil: the artifact names the encoder by digest only
	Trained    []byte               // trained.bin: artifact.PackFingerprints of the runs trained on; nil leaves it out
	Vocabulary *features.Vocabulary // the token weights trained with
	Seed       uint64
	Data       map[string]artifact.Fingerprint // set name -> what was read
	Config     any                             // the resolved configuration; written as JSON
	Tool       string                          // version of the program
}

// Write writes an uncalibrated artifact to dir and returns the model digest. An
// artifact that is there already is replaced as a whole, its calibration
// included, which would not fit any more; the folder of the calibrations before
// that one is carried over. A folder with other files is left alone: the error is
// then [ErrOccupied]. Other errors are those of guard/artifact, and of the file
// system.
func Write(dir string, in Input) (digest string, err error) {
	files, digest, err := in.files()
	if err != nil {
		return "", fmt.Errorf("export %s: %w", dir, err)
	}
	if err := replace(dir, files); err != nil {
		return "", fmt.Errorf("export %s: %w", dir, err)
	}
	return digest, nil
}

// files returns the content of the folder by name.
func (in *Input) files() (map[string][]byte, string, error) {
	if in.Dims.F != features.Count() {
		return nil, "", fmt.Errorf("the weights are for %d call features, this build has %d: train again", in.Dims.F, features.Count())
	}
	if in.Vocabulary == nil {
		return nil, "", errors.New("vocabulary is missing: pass the one the model was trained with")
	}
	model, err := in.model()
	if err != nil {
		return nil, "", err
	}
	vocabulary, err := json.Marshal(in.Vocabulary)
	if err != nil {
		return nil, "", err
	}
	var config json.RawMessage
	if in.Config != nil {
		if config, err = json.Marshal(in.Config); err != nil {
			return nil, "", fmt.Errorf("config: %w", err)
		}
	}
	m := &artifact.Manifest{
		Format:     artifact.Format,
		Files:      map[string]string{artifact.ModelFile: artifact.Sum(model), artifact.FeaturesFile: artifact.Sum(vocabulary)},
		Dims:       in.Dims,
		UniformMix: in.UniformMix,
		Latent:     in.Latent,
		Encoder:    in.Encoder,
		Features:   artifact.FeatureSet{Version: features.Version, Digest: features.Digest()},
		Seed:       in.Seed,
		Data:       in.Data,
		Config:     config,
		Tool:       in.Tool,
	}
	files := map[string][]byte{
		artifact.ModelFile:    model,
		artifact.FeaturesFile: vocabulary,
		artifact.CardFile:     []byte(unmeasured),
	}
	if in.Table != nil {
		enc, err := static.Parse(in.Table)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", artifact.EncoderFile, err)
		}
		if enc.ID() != in.Encoder {
			return nil, "", fmt.Errorf("%s is the table of %v (%.12s), the model was trained with %v (%.12s)", artifact.EncoderFile, enc.ID(), enc.ID().Digest, in.Encoder, in.Encoder.Digest)
		}
		files[artifact.EncoderFile] = in.Table
		m.Files[artifact.EncoderFile] = artifact.Sum(in.Table)
	}
	if in.Trained != nil {
		files[artifact.TrainedFile] = in.Trained
		m.Files[artifact.TrainedFile] = artifact.Sum(in.Trained)
	}
	manifest, err := m.Marshal()
	if err != nil {
		return nil, "", err
	}
	files[artifact.ManifestFile] = manifest
	return files, artifact.Sum(manifest), nil
}

// unmeasured is the model card until [WriteCard] replaces it.
const unmeasured = `# DreamGuard model card

This model is neither calibrated nor measured yet. The guard refuses it until "dreamguard calibrate" has set
thresholds; "dreamguard eval" measures it and writes this card.
`

// model returns model.safetensors.
func (in *Input) model() ([]byte, error) {
	if err := in.Dims.Validate(); err != nil {
		return nil, err
	}
	training := map[string]bool{}
	for _, s := range artifact.Tensors(in.Dims) {
		training[s.Name] = !s.Export
	}
	list := slices.DeleteFunc(slices.Clone(in.Weights), func(t safetensors.Tensor) bool { return training[t.Name] })
	byName := make(map[string]safetensors.Tensor, len(list))
	for _, t := range list {
		byName[t.Name] = t
	}
	if err := artifact.CheckTensors(byName, in.Dims); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, list, nil); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// replace puts a folder with the given files in the place of dir.
func replace(dir string, files map[string][]byte) (err error) {
	dir = filepath.Clean(dir)
	occupied, err := ours(dir)
	if err != nil {
		return err
	}
	parent, base := filepath.Split(dir)
	if parent == "" {
		parent = "."
	}
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	// A sibling, so that a rename does it; of one name per target, so that what a
	// kill left behind goes with the next export.
	temp := filepath.Join(parent, "."+base+".export")
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	if err := os.Mkdir(temp, 0o777); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }() // the new folder after a failure, the old one after success
	for name, b := range files {
		if err := atomicfile.WriteFile(filepath.Join(temp, name), b); err != nil {
			return err
		}
	}
	if occupied {
		if err := copyHistory(dir, temp); err != nil {
			return err
		}
	}
	if _, err := artifact.Open(temp); err != nil {
		return fmt.Errorf("the written artifact does not load: %w", err)
	}
	if occupied {
		err = exchange(temp, dir)
	} else {
		err = os.Rename(temp, dir)
	}
	if err != nil {
		return err
	}
	return atomicfile.SyncDir(parent)
}

// copyHistory carries the kept calibrations over from one artifact to another.
// Whether one of them fits the model is checked when it is put in force.
func copyHistory(from, to string) error {
	from, to = filepath.Join(from, artifact.HistoryFolder), filepath.Join(to, artifact.HistoryFolder)
	entries, err := os.ReadDir(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o777); err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") { // a lock, or what a kill left
			continue
		}
		b, err := boundedfile.Read(filepath.Join(from, e.Name()), artifact.MaxCalibration)
		if err != nil {
			return err
		}
		if err := atomicfile.WriteFile(filepath.Join(to, e.Name()), b); err != nil {
			return err
		}
	}
	return nil
}

// ours reports whether dir is there. It is an error if dir holds anything that
// an artifact does not: replacing it would delete that.
func ours(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	known := []string{artifact.ManifestFile, artifact.ModelFile, artifact.FeaturesFile, artifact.EncoderFile, artifact.TrainedFile, artifact.CalibrationFile, artifact.HistoryFolder, artifact.CardFile}
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) && !isTemp(e.Name()) {
			return false, fmt.Errorf("%w: %q is not part of an artifact: choose another folder or move it away", ErrOccupied, e.Name())
		}
	}
	return true, nil
}

func isTemp(name string) bool {
	return len(name) > len(atomicfile.TempPrefix) && name[:len(atomicfile.TempPrefix)] == atomicfile.TempPrefix
}

// WriteCalibration writes calibration.json into the artifact at dir, atomically.
// An empty ModelDigest is filled in; one of another model is refused with
// artifact.ErrCalibrationModel.
func WriteCalibration(dir string, c artifact.Calibration) error {
	fail := func(err error) error { return fmt.Errorf("write calibration of %s: %w", dir, err) }
	_, digest, err := artifact.OpenManifest(dir)
	if err != nil {
		return fail(err)
	}
	if c.ModelDigest == "" {
		c.ModelDigest = digest
	}
	if c.ModelDigest != digest {
		return fail(fmt.Errorf("%w: it is for model %.12s, the folder holds %.12s: calibrate on this artifact", artifact.ErrCalibrationModel, c.ModelDigest, digest))
	}
	b, err := c.Marshal()
	if err != nil {
		return fail(err)
	}
	return atomicfile.WriteFile(filepath.Join(dir, artifact.CalibrationFile), b)
}
