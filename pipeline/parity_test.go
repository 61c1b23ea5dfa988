package pipeline

import (
	"bytes"
	"math"
	"os"
	"testing"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/embed/cache"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/train"
)

// lastCall is the last step of t that is a tool call.
func lastCall(t *data.Trajectory) int {
	for i := len(t.Steps) - 1; i > 0; i-- {
		if !t.Call(i).IsMessage() {
			return i
		}
	}
	return 0
}

// parity compares the runtime's logits with those of the training graph.
func parity(t *testing.T, r *Run, set string, limit int) {
	t.Helper()
	ts, err := r.Set(set)
	if err != nil {
		t.Fatal(err)
	}
	ts = ts[:min(limit, len(ts))]
	enc, err := r.encoder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := cache.Open(t.TempDir(), enc.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Fill(t.Context(), enc, texts(sliceSeq(ts)), cache.Options{}); err != nil {
		t.Fatal(err)
	}
	v, err := r.vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	examples, err := r.examples(ts, c, v)
	if err != nil {
		t.Fatal(err)
	}
	w, err := train.LoadWeights(r.path(weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	ev, err := train.NewEvaluator(w)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ev.Logits(t.Context(), examples)
	if err != nil {
		t.Fatal(err)
	}
	m, err := guard.Open(r.ArtifactDir(), guard.ScoresOnly())
	if err != nil {
		t.Fatal(err)
	}
	got, err := eval.Score(t.Context(), m, ts, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	worst, steps := 0.0, 0
	for i := range ts {
		for k := range ts[i].Steps {
			steps++
			for _, pair := range [][2]float64{{got[i].LogitHazard[k], float64(want[i].Hazard[k])}, {got[i].LogitPrefix[k], float64(want[i].Prefix[k])}} {
				// Relative beyond 1, since float32 has about seven digits.
				d := math.Abs(pair[0]-pair[1]) / max(1, math.Abs(pair[1]))
				if !(d <= 1e-5) {
					t.Fatalf("run %s step %d: runtime %v, training graph %v", ts[i].ID, k, pair[0], pair[1])
				}
				worst = max(worst, d)
			}
		}
	}
	t.Logf("%d runs, %d steps: largest difference %.1e", len(ts), steps, worst)
}

func TestParity(t *testing.T) {
	r := runAll(t, t.TempDir(), tiny(t), fixed)
	parity(t, r, "test-simulator", 60)
}

func TestParityOnRealRuns(t *testing.T) {
	dir := os.Getenv("DREAMGUARD_DATA")
	if dir == "" {
		t.Skip("DREAMGUARD_DATA does not name a folder of real trajectories")
	}
	cfg, err := configs.Load("debug")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Eval.Bootstrap = 20
	opts := fixed
	opts.DataDir = dir
	r, err := Open(t.TempDir(), cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Until(t.Context(), "export"); err != nil {
		t.Fatal(err)
	}
	parity(t, r, "train", 200)
	parity(t, r, "dev-asb", 80)
}

func TestRunFeaturesMatchesExamples(t *testing.T) {
	r := runAll(t, t.TempDir(), tiny(t), fixed)
	ts, err := r.Set("validation")
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	enc, _ := r.encoder(t.Context())
	c, err := cache.Open(r.path("embed"), enc.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	examples, err := r.examples(ts[:5], c, v)
	if err != nil {
		t.Fatal(err)
	}
	rows := runFeatures(v, ts[:5])
	for i := range rows {
		if examples[i].Label == data.Unsafe && examples[i].Hazard < 0 {
			t.Errorf("%s lost its hazard", examples[i].ID)
		}
		for k := range rows[i] {
			if !bytes.Equal(floatBytes(rows[i][k]), floatBytes(examples[i].Features[k*len(rows[i][k]):(k+1)*len(rows[i][k])])) {
				t.Fatalf("run %d step %d: features differ", i, k)
			}
		}
	}
}

func floatBytes(xs []float32) []byte {
	var b []byte
	for _, x := range xs {
		u := math.Float32bits(x)
		b = append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
	}
	return b
}
