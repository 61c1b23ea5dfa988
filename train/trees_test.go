package train

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/train/boost"
)

// TestLogitsWithTrees: a head is the sum of its networks and its trees at their
// shares, the trees as they were grown.
func TestLogitsWithTrees(t *testing.T) {
	cfg, dims := testConfig(), testDims()
	xs := testExamples(40, dims, nil, 3, 5, 2, 7)
	var last Event
	f, err := newFitter(cfg, dims, xs, xs[:10], Options{Progress: func(e Event) { last = e }})
	if err != nil {
		t.Fatal(err)
	}
	randomise(f.w)
	w, err := f.withTrees(t.Context(), f.w)
	if err != nil {
		t.Fatal(err)
	}
	if last != (Event{Stage: 3, Step: 2, Steps: 2}) {
		t.Errorf("the last sign of progress is %+v", last)
	}
	if w.Dims.Trees == 0 || w.Dims.Trees > 8 || w.Dims.Nodes > 7 {
		t.Fatalf("%d trees of %d nodes", w.Dims.Trees, w.Dims.Nodes)
	}
	logits := func(w *Weights) []Logits {
		ev, err := NewEvaluator(w)
		if err != nil {
			t.Fatal(err)
		}
		out, err := ev.Logits(t.Context(), xs)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	alone, mixed := logits(f.w), logits(w)
	fit, held := f.treeRows(f.w, xs), f.treeRows(f.w, xs[:10])
	for i, share := range []float64{0.7, 0.4} {
		o := cfg.Train.Trees
		trees, _, err := boost.Grow(t.Context(), fit[i], held[i], boost.Options{Trees: o.Count, Leaves: o.Leaves, Depth: o.Depth, MinLeaf: o.MinLeaf, Rate: o.Rate})
		if err != nil {
			t.Fatal(err)
		}
		row := make([]float32, dims.F)
		for r := range xs {
			for s := range xs[r].Steps {
				normalise(row, xs[r].Features[s*dims.F:(s+1)*dims.F], f.w.Value("feat.mean"), f.w.Value("feat.scale"))
				net, got := float64(alone[r].Hazard[s]), float64(mixed[r].Hazard[s])
				if i == 1 {
					net, got = float64(alone[r].Prefix[s]), float64(mixed[r].Prefix[s])
				}
				if want := (1-share)*net + share*trees.Logit(row); math.Abs(got-want) > 1e-5 {
					t.Fatalf("%s, run %d step %d: %v, want %v", heads[i], r, s, got, want)
				}
			}
		}
	}
}

// TestTreeRows reads targets and weights off a safe run, a run with a hazard that a
// rule located, and one whose hazard nobody located.
func TestTreeRows(t *testing.T) {
	cfg, dims := testConfig(), testDims()
	xs := testExamples(4, dims, nil, 3)
	safe, weak, lost := xs[0], xs[3], xs[1]
	safe.Weight, weak.Hazard, lost.Hazard = 2, 1, -1
	f, err := newFitter(cfg, dims, xs, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := f.treeRows(f.w, []Example{safe, weak, lost})
	wantY := [2][]float64{{0, 0, 0, 0, 1}, {0, 0, 0, 1, 1}}
	wantWeight := []float64{2, 2, 2, 0.5, 0.5}
	for i, r := range rows {
		if len(r.X) != 5 || len(r.Y) != 5 || len(r.Weight) != 5 {
			t.Fatalf("%d vectors, %d targets and %d weights, want 5 of each", len(r.X), len(r.Y), len(r.Weight))
		}
		for k := range r.Y {
			if r.Y[k] != wantY[i][k] || r.Weight[k] != wantWeight[k] {
				t.Errorf("%s, row %d: target %v at %v, want %v at %v", heads[i], k, r.Y[k], r.Weight[k], wantY[i][k], wantWeight[k])
			}
		}
	}
}

func TestWithoutTrees(t *testing.T) {
	dims := testDims()
	xs := testExamples(40, dims, nil, 3, 5)
	for name, edit := range map[string]func(*configs.Config){
		"none":         func(c *configs.Config) { c.Train.Trees.Count = 0 },
		"no features":  func(c *configs.Config) { c.Train.Without = withoutFeatures },
		"no share":     func(c *configs.Config) { c.Train.Trees.Hazard, c.Train.Trees.Prefix = 0, 0 },
		"no such head": func(c *configs.Config) { c.Train.Stage2.Hazard, c.Train.Trees.Prefix = 0, 0 },
	} {
		cfg := testConfig()
		edit(&cfg)
		f, err := newFitter(cfg, dims, xs, nil, Options{Progress: func(e Event) { t.Errorf("%s: progress %+v", name, e) }})
		if err != nil {
			t.Fatal(err)
		}
		if w, err := f.withTrees(t.Context(), f.w); err != nil || w != f.w {
			t.Errorf("%s: %d trees, error %v", name, w.Dims.Trees, err)
		}
	}
	// Without a hazard in sight there is nothing to grow, and a training goes on.
	safe := xs[:0:0]
	for _, x := range xs {
		if !x.located() {
			safe = append(safe, x)
		}
	}
	f, err := newFitter(testConfig(), dims, safe, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w, err := f.withTrees(t.Context(), f.w); err != nil || w.Dims.Trees != 0 {
		t.Errorf("safe runs alone: %v", err)
	}
}

func TestTreesEndWithTheContext(t *testing.T) {
	dims := testDims()
	f, err := newFitter(testConfig(), dims, testExamples(40, dims, nil, 3, 5), nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.withTrees(ctx, f.w); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
