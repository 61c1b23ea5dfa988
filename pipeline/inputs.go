package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/dreamguard/dreamguard/embed/features"
)

// Versions of what the stages compute: raised whenever a stage would make other
// bytes from the same settings and files, so that old results are made again.
const (
	dataCode      = 6
	embedCode     = 6
	trainCode     = 3
	calibrateCode = 3
	evalCode      = 7
)

// inputs gathers what a stage depends on.
type inputs struct {
	settings map[string]any
	files    []string          // absolute or relative to the working folder
	digests  map[string]string // of things that have a digest already
}

// inputs returns what the named stage depends on, nil for data, whose source
// files need not be there any more once its sets are made.
func (r *Run) inputs(stage string) *inputs {
	cfg := r.Config
	sets := r.outputsOf("data")
	vocabulary := map[string]string{"features.json": r.outputsOf("embed")[vocabularyFile]}
	switch stage {
	case "embed":
		return &inputs{
			settings: map[string]any{"code": embedCode, "encoder": cfg.Encoder.Inputs(), "identity": r.identity(), "features": features.Digest()},
			digests:  sets,
		}
	case "train":
		return &inputs{
			settings: map[string]any{
				"code": trainCode, "model": cfg.Model, "train": cfg.Train, "seed": cfg.Seed, "weights": cfg.Data.Weights, "backend": cfg.Backend,
				"encoder": r.identity(), "features": features.Digest(),
			},
			digests: merged(sets, vocabulary),
		}
	case "export":
		return &inputs{
			settings: map[string]any{"encoder": r.identity(), "features": features.Digest(), "latent": cfg.Model.Latent},
			digests:  merged(vocabulary, r.outputsOf("train")),
		}
	case "calibrate":
		return &inputs{
			settings: map[string]any{"code": calibrateCode, "calibrate": cfg.Calib, "stage2": cfg.Train.Stage2},
			digests:  merged(sets, r.outputsOf("export")),
		}
	case "eval", "final":
		return &inputs{
			settings: map[string]any{"code": evalCode, "eval": cfg.Eval, "calibrate": cfg.Calib, "seed": cfg.Seed, "stage": stage},
			digests:  merged(sets, r.outputsOf("export"), r.outputsOf("calibrate")),
		}
	}
	return nil
}

func merged(ms ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range ms {
		maps.Copy(out, m)
	}
	return out
}

func (in *inputs) sum() (string, error) {
	h := sha256.New()
	b, err := json.Marshal(in.settings) // map keys are sorted
	if err != nil {
		return "", err
	}
	h.Write(b)
	for _, p := range in.files {
		d, err := fileDigest(p)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "\n%s %s", filepath.Base(p), d)
	}
	for _, k := range slices.Sorted(maps.Keys(in.digests)) {
		fmt.Fprintf(h, "\n%s=%s", k, in.digests[k])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
