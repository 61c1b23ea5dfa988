package pipeline

import (
	"context"
	"os"
	"path/filepath"

	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/export"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/train"
)

// Export freezes the trained weights into the artifact, without a calibration.
func (r *Run) Export(ctx context.Context) error {
	if err := r.needs("train"); err != nil {
		return err
	}
	return r.stage(ctx, "export", r.inputs("export"), func(ctx context.Context, _ *StageRecord) ([]string, error) {
		w, err := train.LoadWeights(r.path(weightsFile))
		if err != nil {
			return nil, err
		}
		v, err := r.vocabulary()
		if err != nil {
			return nil, err
		}
		fingerprints, err := r.fingerprints("train", "validation")
		if err != nil {
			return nil, err
		}
		out := []string{
			filepath.Join("artifact", artifact.ManifestFile),
			filepath.Join("artifact", artifact.ModelFile),
			filepath.Join("artifact", artifact.FeaturesFile),
		}
		var table []byte
		if r.Config.Encoder.Kind == artifact.StaticEncoder {
			enc, err := r.encoder(ctx)
			if err != nil {
				return nil, err
			}
			table = enc.(*static.Encoder).File()
			out = append(out, filepath.Join("artifact", artifact.EncoderFile))
		}
		trained, err := r.trainedOn("train", "validation")
		if err != nil {
			return nil, err
		}
		out = append(out, filepath.Join("artifact", artifact.TrainedFile))
		m := w.Model
		in := export.Input{
			Weights:    w.Tensors(),
			Dims:       artifact.Dims{D: w.Dims.D, F: w.Dims.F, P: m.Adapter, H: m.Hidden, G: m.Factors, C: m.Classes, Q: m.HeadHidden, U: m.FeatureHidden, T: w.Dims.Trees, N: w.Dims.Nodes},
			UniformMix: m.UniformMix,
			Latent:     m.Latent,
			Encoder:    r.identity(),
			Table:      table,
			Trained:    trained,
			Vocabulary: v,
			Seed:       r.Config.Seed,
			Data:       fingerprints,
			Config:     r.Config.Portable(),
			Tool:       r.opts.Version,
		}
		return out, r.replacingCalibration(func() error {
			_, err := export.Write(r.path("artifact"), in)
			return err
		})
	})
}

// fingerprints identifies sets of the run by the digest of their file.
func (r *Run) fingerprints(names ...string) (map[string]artifact.Fingerprint, error) {
	out := map[string]artifact.Fingerprint{}
	rec := r.ledger.Stages["data"]
	for _, name := range names {
		out[name] = artifact.Fingerprint{Digest: rec.Outputs[filepath.Join("data", name+".jsonl.gz")], N: rec.Counts[name]}
	}
	return out, nil
}

// trainedOn returns trained.bin for the named sets, by which calibration refuses
// runs that the model knows. Of more runs than it can list, it lists the first.
func (r *Run) trainedOn(names ...string) ([]byte, error) {
	var list []string
	for _, name := range names {
		for t, err := range r.stream(name) {
			if err != nil {
				return nil, err
			}
			if len(list) == artifact.MaxFingerprints {
				r.opts.Log.Warn("the artifact lists a part of the training runs only", "runs", len(list))
				return artifact.PackFingerprints(list), nil
			}
			list = append(list, artifact.RunDigest(t))
		}
	}
	return artifact.PackFingerprints(list), nil
}

// ArtifactDir is where the run's frozen artifact lies.
func (r *Run) ArtifactDir() string { return r.path("artifact") }

// removeIfThere removes a file that may not exist.
func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
