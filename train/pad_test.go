package train

import (
	"math"
	"testing"
)

// What XLA's backends do, one padded length for all batches, must not change
// what is learnt. Here on the Go backend, which every build has.
func TestOneLengthForAllBatches(t *testing.T) {
	for _, st := range []stage{1, 2} {
		cfg, dims := testConfig(), testDims()
		cfg.Train.Batch, cfg.Train.MaxSteps, cfg.Train.Buckets = 5, 6, []int{2, 4, 6}
		cfg.Train.Stage2.World = 0.1
		xs := testExamples(30, dims, nil, 2, 4, 3, 6, 7)
		losses := func(pad int) (lengths []int, out []float64) {
			f, err := newFitter(cfg, dims, xs, nil, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := f.begin(st); err != nil {
				t.Fatal(err)
			}
			f.batches.pad = pad
			for range 12 {
				length, _ := f.batches.step(f.state.Step)
				terms, err := f.step()
				if err != nil {
					t.Fatal(err)
				}
				lengths, out = append(lengths, length), append(out, float64(terms["loss"]))
			}
			return lengths, out
		}
		lengths, want := losses(0)
		padded, got := losses(6)
		short := 0
		for i := range want {
			if padded[i] != 6 {
				t.Fatalf("stage %d step %d is padded to %d steps, want 6", st, i, padded[i])
			}
			if lengths[i] < 6 {
				short++
			}
			if d := math.Abs(got[i] - want[i]); d > 1e-5 {
				t.Errorf("stage %d step %d: loss %g padded, %g not", st, i, got[i], want[i])
			}
		}
		if short == 0 {
			t.Errorf("stage %d: no batch was shorter than the longest", st)
		}
	}
}
