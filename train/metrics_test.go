package train

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/data"
)

func TestAUROCAndRecall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		score := rapid.Map(rapid.IntRange(0, 12), func(i int) float64 { return float64(i) / 8 }) // with ties
		safe := rapid.SliceOfN(score, 1, 60).Draw(t, "safe")
		unsafe := rapid.SliceOfN(score, 1, 40).Draw(t, "unsafe")
		var pairs float64
		for _, u := range unsafe {
			for _, s := range safe {
				switch {
				case u > s:
					pairs++
				case u == s:
					pairs += 0.5
				}
			}
		}
		if got, want := auroc(safe, unsafe), pairs/float64(len(safe)*len(unsafe)); math.Abs(got-want) > 1e-12 {
			t.Fatalf("auroc %g, counted %g", got, want)
		}
		// The best recall over all thresholds that keep to the rate.
		share := func(xs []float64, threshold float64) float64 {
			var n float64
			for _, x := range xs {
				if x > threshold {
					n++
				}
			}
			return n / float64(len(xs))
		}
		var want float64
		for _, threshold := range safe {
			if share(safe, threshold) <= 0.05 {
				want = max(want, share(unsafe, threshold))
			}
		}
		if got := recallAtFPR(safe, unsafe, 0.05); got != want {
			t.Fatalf("recall %g, by search %g", got, want)
		}
	})
}

func TestValidateScoresJudgedStepsUpToTheHazard(t *testing.T) {
	on := []bool{true, true, true}
	run := func(label data.Label, hazard int, judged []bool) Example {
		return Example{Steps: 3, Label: label, Hazard: hazard, Judged: judged}
	}
	xs := []Example{
		run(data.Safe, -1, []bool{true, false, true}), // the peak at step 1 is a message
		run(data.Unsafe, 0, on),                       // the peak at step 1 comes too late
		run(data.Unsafe, -1, on),                      // not located: the whole run counts
		run(data.Unknown, -1, on),
		run(data.Safe, -1, make([]bool, 3)),
	}
	logits := make([]Logits, len(xs))
	for i := range logits {
		logits[i] = Logits{Hazard: []float32{0, 9, -1}, Prefix: []float32{0, 9, -1}}
	}
	got := validate(xs, logits)
	// The located unsafe run ties with the safe one, the other is above it.
	want := &Validation{Recall: 0.5, AUROC: 0.75, Safe: 1, Unsafe: 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if v := validate(xs[:1], logits[:1]); v != nil {
		t.Errorf("validation without unsafe runs: %+v", v)
	}
	if got, want := fuse(0, 0), 0.75; got != want {
		t.Errorf("fuse(0, 0) = %g, want %g", got, want)
	}
}

func TestBetterValidation(t *testing.T) {
	a, b, c := &Validation{Recall: 0.5, AUROC: 0.9}, &Validation{Recall: 0.5, AUROC: 0.8}, &Validation{Recall: 0.4, AUROC: 1}
	for _, x := range []struct {
		v, w *Validation
		want bool
	}{{a, nil, true}, {a, b, true}, {b, a, false}, {a, a, false}, {a, c, true}, {c, b, false}} {
		if got := x.v.better(x.w); got != x.want {
			t.Errorf("%+v better than %+v: %v", x.v, x.w, got)
		}
	}
}

func TestMetricsLogDropsWhatNoCheckpointKnows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	l, err := openMetrics(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	records := []Record{
		{Stage: 1, Step: 1, Terms: map[string]float32{"loss": 0.1, "kl": 2}, Norm: 3, LR: 2e-4},
		{Stage: 2, Step: 4, Validation: &Validation{Recall: 0.5, AUROC: 0.75, Safe: 3, Unsafe: 4}},
	}
	if err := l.write(records[0]); err != nil {
		t.Fatal(err)
	}
	size := l.size
	if err := l.write(Record{Stage: 1, Step: 2}); err != nil {
		t.Fatal(err)
	}
	l.close()
	if l, err = openMetrics(path, size); err != nil {
		t.Fatal(err)
	}
	if err := l.write(records[1]); err != nil {
		t.Fatal(err)
	}
	l.close()
	got, err := ReadMetrics(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(records, got); diff != "" {
		t.Error(diff)
	}
	if _, err := openMetrics(path, 1<<20); err == nil {
		t.Error("a file shorter than the checkpoint says was accepted")
	}
	if err := os.WriteFile(path, []byte("{\"stage\":1}\n{\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadMetrics(path); err == nil || !strings.Contains(err.Error(), "metrics.jsonl:2:") {
		t.Errorf("error %v, want one that names line 2", err)
	}
}
