//go:build xla && cgo

package train

import (
	"context"
	"math"
	"os"
	"testing"

	"github.com/dreamguard/dreamguard/internal/backend"
)

// 20 steps of each stage give the same losses on XLA's CPU backend as on Go's,
// where batches keep the length of their bucket, and so do the validations. Noise
// and initial weights come from the host, so they are the same on both.
//
// It compiles four graphs: XLA_FLAGS=--xla_backend_optimization_level=0 halves
// the time of that.
func TestXLASameLosses(t *testing.T) {
	if os.Getenv("PJRT_PLUGIN_LIBRARY_PATH") == "" {
		t.Skip("PJRT_PLUGIN_LIBRARY_PATH is not set: scripts/xla-cpu.sh installs a plugin and says how to set it")
	}
	cfg, dims := testConfig(), testDims()
	cfg.Model.Hidden = 32
	cfg.Train.Batch = 6
	cfg.Train.Stage1.Steps, cfg.Train.Stage2.Steps = 20, 20
	cfg.Train.Stage1.Prior, cfg.Train.Stage2.World = 0.5, 0.1 // every term of the loss
	cfg.Train.ValidateEvery = 10
	xs := testExamples(40, dims, nil, 3, 2, 7, 4)
	val := testExamples(10, dims, nil, 5, 3)
	type event struct {
		name  string
		value float64
	}
	events := func(name string) (out []event) {
		cfg.Backend = name
		result, err := Fit(context.Background(), cfg, dims, xs, val, Options{Progress: func(e Event) {
			switch {
			case e.World != nil:
				out = append(out, event{"validation KL", e.World.KL}, event{"validation prediction", e.World.Predict})
			case e.Validation != nil:
				out = append(out, event{"validation AUROC", e.Validation.AUROC})
			default:
				out = append(out, event{"loss", e.Loss})
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range result.Weights.params {
			for _, v := range result.Weights.values[i] {
				if v-v != 0 {
					t.Fatalf("%s: %s holds %g", name, p.Name, v)
				}
			}
		}
		return out
	}
	want, got := events(backend.Go), events(backend.XLACPU)
	if len(got) != len(want) || len(got) < 40 {
		t.Fatalf("%d losses and validations on XLA, %d on Go", len(got), len(want))
	}
	worst := 0.0
	for i, g := range got {
		d := math.Abs(g.value - want[i].value)
		worst = max(worst, d)
		if g.name != want[i].name || !(d <= 1e-4) {
			t.Errorf("%d: %s %g on XLA, %s %g on Go", i, g.name, g.value, want[i].name, want[i].value)
		}
	}
	t.Logf("%d values, largest difference %.1e", len(got), worst)
}
