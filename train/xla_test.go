//go:build xla && cgo

package train

import (
	"context"
	"math"
	"testing"

	"github.com/dreamguard/dreamguard/internal/backend"
)

// losses trains on a backend and returns the loss of every step.
func losses(t *testing.T, name string) []float64 {
	t.Helper()
	cfg, dims := testConfig(), testDims()
	cfg.Backend = name
	cfg.Model.Hidden = 32
	cfg.Train.Stage1.Steps, cfg.Train.Stage2.Steps = 20, 20
	cfg.Train.Stage2.World = 0.1
	xs := testExamples(14, dims, nil, 3, 2, 7, 4)
	val := testExamples(10, dims, nil, 5, 3)
	var out []float64
	_, err := Fit(context.Background(), cfg, dims, xs, val, Options{Dir: t.TempDir(), Progress: func(e Event) {
		if e.Validation == nil && e.World == nil {
			out = append(out, e.Loss)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestXLA(t *testing.T) {
	if s := backend.Check(backend.XLACPU); !s.Available {
		t.Skip(s.Reason)
	}
	want, got := losses(t, backend.Go), losses(t, backend.XLACPU)
	for i := range want {
		t.Log(i, want[i], got[i], math.Abs(got[i]-want[i]))
	}
}
