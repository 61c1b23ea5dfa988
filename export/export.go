// Package export freezes trained weights into the artifact that package guard
// loads (guard/artifact defines its format).
//
//	digest, err := export.Write("runs/p1/artifact", export.Input{Weights: w.Tensors(), ...})
//	err = export.WriteCalibration("runs/p1/artifact", calibration)
//
// Write leaves the artifact uncalibrated: calibration scores it with the runtime
// first. Only tensors that the runtime needs are written.
package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// Input is what an artifact is made of.
type Input struct {
	Weights    []safetensors.Tensor // of docs/reference/model.md; those that only training uses are left out
	Dims       artifact.Dims
	UniformMix float64
	Latent     string // artifact.Probabilities or artifact.Mode
	Encoder    embed.ID
	Vocabulary *features.Vocabulary
	Seed       uint64
	Data       map[string]artifact.Fingerprint // sets that took part
	Config     any                             // the resolved configuration, written as JSON
	Tool       string                          // version of the program
}

// Write makes the artifact folder dir and returns the model digest. An artifact
// that is there already is replaced as a whole: readers see the old or the new
// one. The same input gives the same bytes.
func Write(dir string, in Input) (digest string, err error) {
	model, err := weights(in)
	if err != nil {
		return "", err
	}
	vocabulary, err := in.Vocabulary.MarshalJSON()
	if err != nil {
		return "", err
	}
	config, err := json.Marshal(in.Config)
	if err != nil {
		return "", fmt.Errorf("export: config: %w", err)
	}
	m := artifact.Manifest{
		Format: artifact.Format,
		Files: map[string]string{
			artifact.ModelFile:    artifact.Sum(model),
			artifact.FeaturesFile: artifact.Sum(vocabulary),
		},
		Dims: in.Dims, UniformMix: in.UniformMix, Latent: in.Latent, Encoder: in.Encoder,
		Features: artifact.FeatureSet{Version: features.Version, Digest: features.Digest()},
		Seed:     in.Seed, Data: in.Data, Config: config, Tool: in.Tool,
	}
	manifest, err := m.Marshal()
	if err != nil {
		return "", err
	}

	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(parent, atomicfile.TempPrefix)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := os.Chmod(tmp, 0o755); err != nil { // MkdirTemp makes it private
		return "", err
	}
	for name, b := range map[string][]byte{
		artifact.ModelFile: model, artifact.FeaturesFile: vocabulary, artifact.ManifestFile: manifest,
	} {
		if err := atomicfile.WriteFile(filepath.Join(tmp, name), b); err != nil {
			return "", err
		}
	}
	// What was written must load: the checks of the reader are the definition.
	a, err := artifact.Open(tmp)
	if err != nil {
		return "", fmt.Errorf("export: the new artifact does not load: %w", err)
	}
	if err := replace(tmp, dir); err != nil {
		return "", err
	}
	return a.Digest, atomicfile.SyncDir(parent)
}

// replace puts the folder tmp in the place of dir.
func replace(tmp, dir string) error {
	old := tmp + ".old"
	switch err := os.Rename(dir, old); {
	case errors.Is(err, fs.ErrNotExist):
		return os.Rename(tmp, dir)
	case err != nil:
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir)) // put the old one back
	}
	return os.RemoveAll(old)
}

// weights writes the tensors that the runtime needs.
func weights(in Input) ([]byte, error) {
	have := map[string]safetensors.Tensor{}
	for _, t := range in.Weights {
		have[t.Name] = t
	}
	var out []safetensors.Tensor
	for _, spec := range artifact.Tensors(in.Dims) {
		if !spec.Export {
			continue
		}
		t, ok := have[spec.Name]
		if !ok {
			return nil, fmt.Errorf("export: the weights lack tensor %s", spec.Name)
		}
		out = append(out, t)
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, out, nil); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return b.Bytes(), nil
}

// WriteCalibration gives the artifact in dir a calibration, atomically. It must
// belong to the model there.
func WriteCalibration(dir string, c artifact.Calibration) error {
	b, err := c.Marshal()
	if err != nil {
		return err
	}
	manifest, err := os.ReadFile(filepath.Join(dir, artifact.ManifestFile))
	if err != nil {
		return err
	}
	_, digest, err := artifact.ParseManifest(manifest)
	if err != nil {
		return err
	}
	if _, err := artifact.ParseCalibration(b, digest); err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, artifact.CalibrationFile), b)
}
