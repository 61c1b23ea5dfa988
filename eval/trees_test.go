package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/dreamguard/dreamguard/data"
	"pgregory.net/rapid"
)

func boostRowsOf(x [][]float32, y []int, w []float64) *boostRows {
	r := &boostRows{x: x, weight: w}
	if len(x) > 0 {
		r.width = len(x[0])
	}
	for _, v := range y {
		r.y = append(r.y, v == 1)
	}
	if w == nil {
		r.weight = repeated(1, len(y))
	}
	return r
}

// TestTreesAgainstScikitLearn compares with testdata/trees.json, made by
// testdata/trees.py with the version it records.
func TestTreesAgainstScikitLearn(t *testing.T) {
	b, err := os.ReadFile("testdata/trees.json")
	if err != nil {
		t.Fatal(err)
	}
	var ref struct {
		X     [][]float32
		Y     []int
		W     []float64
		HeldY []int     `json:"held_y"`
		HeldW []float64 `json:"held_w"`
		Fits  []struct {
			Trees, Leaves, Depth, Bins int
			MinLeaf                    int `json:"min_leaf"`
			Rate, L2                   float64
			Weighted                   bool
			Logit                      []float64
			HeldLoss                   []float64 `json:"held_loss"`
		}
	}
	if err := json.Unmarshal(b, &ref); err != nil {
		t.Fatal(err)
	}
	if len(ref.Fits) != 5 || len(ref.X) != 240 {
		t.Fatal("testdata/trees.json is incomplete")
	}
	for _, f := range ref.Fits {
		t.Run(fmt.Sprintf("%d trees, %d bins", f.Trees, f.Bins), func(t *testing.T) {
			w, heldW := ref.W, ref.HeldW
			if !f.Weighted {
				w, heldW = nil, nil
			}
			fit, held := boostRowsOf(ref.X, ref.Y, w), boostRowsOf(ref.X[:len(ref.HeldY)], ref.HeldY, heldW)
			o := Boosting{Trees: f.Trees, Leaves: f.Leaves, Depth: f.Depth, MinLeaf: f.MinLeaf, Bins: f.Bins, Rate: f.Rate, L2: f.L2, Patience: f.Trees}
			if err := o.defaults(); err != nil {
				t.Fatal(err)
			}
			all, _, err := boost(fit, &boostRows{}, o)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range f.Logit {
				// scikit-learn keeps gradients in single precision.
				if got := all.logit(ref.X[i]); math.Abs(got-want) > 1e-4 {
					t.Fatalf("row %d: logit %v, want %v", i, got, want)
				}
			}
			kept, losses, err := boost(fit, held, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(losses) != len(f.HeldLoss) {
				t.Fatalf("%d losses, want %d", len(losses), len(f.HeldLoss))
			}
			for i, want := range f.HeldLoss {
				if math.Abs(losses[i]-want) > 1e-5 {
					t.Errorf("loss after %d trees: %v, want %v", i, losses[i], want)
				}
			}
			if want := slices.Index(losses, slices.Min(losses)); len(kept.trees) != want {
				t.Errorf("%d trees are kept, want %d", len(kept.trees), want)
			}
		})
	}
}

// noisy rows: the target depends on the first value, and is wrong for a quarter.
func noisyRows(n int, seed uint64) *boostRows {
	rng := rand.New(rand.NewPCG(seed, 1))
	r := &boostRows{width: 5, weight: repeated(1, n)}
	for range n {
		x := make([]float32, 5)
		for j := range x {
			x[j] = rng.Float32()
		}
		r.x, r.y = append(r.x, x), append(r.y, (x[0] > 0.5) != (rng.IntN(4) == 0))
	}
	return r
}

func TestTreesStopEarly(t *testing.T) {
	o := Boosting{Trees: 500, Rate: 0.3, Patience: 5}
	if err := o.defaults(); err != nil {
		t.Fatal(err)
	}
	b, losses, err := boost(noisyRows(500, 1), noisyRows(500, 2), o)
	if err != nil {
		t.Fatal(err)
	}
	best := slices.Index(losses, slices.Min(losses))
	if len(b.trees) != best || best == 0 || len(losses) != best+o.Patience+1 {
		t.Errorf("%d trees kept, lowest loss after %d, %d grown", len(b.trees), best, len(losses)-1)
	}
}

// TestTreesDoNotDependOnCores fits the same rows on one core and on many.
func TestTreesDoNotDependOnCores(t *testing.T) {
	o := Boosting{Trees: 20, MinLeaf: 5}
	if err := o.defaults(); err != nil {
		t.Fatal(err)
	}
	fit := noisyRows(400, 3)
	logits := func(cores int) []float64 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		b, _, err := boost(fit, &boostRows{}, o)
		if err != nil {
			t.Fatal(err)
		}
		var out []float64
		for _, x := range fit.x {
			out = append(out, b.logit(x))
		}
		return out
	}
	if one, many := logits(1), logits(4); !slices.Equal(one, many) {
		t.Error("the fit depends on the number of cores")
	}
}

func TestCuts(t *testing.T) {
	next := math.Nextafter32(1, 2)
	for _, c := range []struct {
		column []float32
		bins   int
		want   []float32
	}{
		{[]float32{3, 3, 3}, 255, nil},
		{[]float32{2, 0, 2, 1}, 255, []float32{0.5, 1.5}},
		{[]float32{1, next}, 255, []float32{1}},                                // nothing lies between them
		{[]float32{1, 2, 3, 4}, 2, []float32{2.5}},                             // between two values
		{[]float32{1, 2, 3, 4, 5}, 2, []float32{3}},                            // on one
		{[]float32{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}, 4, []float32{0, 1}}, // two of three ends are one
		{[]float32{-math.MaxFloat32, math.MaxFloat32}, 255, []float32{0}},
	} {
		if got := cuts(c.column, c.bins); !slices.Equal(got, c.want) {
			t.Errorf("%v in %d bins: %v, want %v", c.column, c.bins, got, c.want)
		}
	}
}

// TestTreesReduceTheLoss: each tree of a step within the trust of the quadratic
// approximation lowers the training loss, whatever the rows.
func TestTreesReduceTheLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 60).Draw(t, "n")
		r := &boostRows{width: 2}
		for i := range n {
			r.x = append(r.x, []float32{rapid.Float32Range(-1, 1).Draw(t, "a"), float32(rapid.IntRange(0, 2).Draw(t, "b"))})
			r.y = append(r.y, i == 0 || i > 1 && rapid.Bool().Draw(t, "y"))
			r.weight = append(r.weight, rapid.Float64Range(0.1, 3).Draw(t, "w"))
		}
		o := Boosting{Trees: 10, MinLeaf: 1, L2: 1}
		if err := o.defaults(); err != nil {
			t.Fatal(err)
		}
		_, losses, err := boost(r, r, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(losses); i++ {
			if losses[i] > losses[i-1]+1e-12 {
				t.Fatalf("tree %d raises the training loss from %v to %v", i, losses[i-1], losses[i])
			}
		}
	})
}

// oneStep makes safe and unsafe runs of one step, with the target as their feature.
func oneStep(n int) (runs []*data.Trajectory, features [][][]float32) {
	for i := range n {
		t := &data.Trajectory{ID: fmt.Sprint(i), Label: data.Safe, Steps: []data.Step{{Type: data.ToolCall, Tool: "x"}}}
		if i%2 == 1 {
			at := 0
			t.Label, t.FirstHazard = data.Unsafe, &at
		}
		runs, features = append(runs, t), append(features, [][]float32{{float32(i % 2), 1}})
	}
	return runs, features
}

func TestTrainTrees(t *testing.T) {
	runs, features := oneStep(100)
	m, err := TrainTrees(runs, features, Boosting{Validation: runs[:10], ValidationFeatures: features[:10]})
	if err != nil {
		t.Fatal(err)
	}
	safe, err := m.Steps(runs[0], features[0])
	if err != nil {
		t.Fatal(err)
	}
	unsafe, err := m.Steps(runs[1], features[1])
	if err != nil {
		t.Fatal(err)
	}
	if !(safe[0] < 0.4 && unsafe[0] > 0.6) {
		t.Errorf("scores %v and %v", safe, unsafe)
	}
	for _, f := range [][][]float32{nil, {{1}}, {{1, float32(math.NaN())}}} {
		if _, err := m.Steps(runs[0], f); !errors.Is(err, errFeatures) {
			t.Errorf("features %v: %v", f, err)
		}
	}
}

func TestTrainTreesRefuses(t *testing.T) {
	runs, features := oneStep(10)
	infinite := func(*data.Trajectory) float64 { return math.Inf(1) }
	huge := func(*data.Trajectory) float64 { return math.MaxFloat64 }
	for name, f := range map[string]func() error{
		"no runs":               func() error { _, err := TrainTrees(nil, nil, Boosting{}); return err },
		"features of other":     func() error { _, err := TrainTrees(runs, features[:9], Boosting{}); return err },
		"no hazard":             func() error { _, err := TrainTrees(runs[:1], features[:1], Boosting{}); return err },
		"steps without vectors": func() error { _, err := TrainTrees(runs[:2], [][][]float32{{}, {}}, Boosting{}); return err },
		"ragged":                func() error { _, err := TrainTrees(runs[:2], [][][]float32{{{1}}, {{1, 2}}}, Boosting{}); return err },
		"infinite weight":       func() error { _, err := TrainTrees(runs, features, Boosting{Weight: infinite}); return err },
		"weights too large":     func() error { _, err := TrainTrees(runs, features, Boosting{Weight: huge}); return err },
		"validation ragged": func() error {
			_, err := TrainTrees(runs, features, Boosting{Validation: runs[:1], ValidationFeatures: [][][]float32{{{1}}}})
			return err
		},
		"trees":    func() error { _, err := TrainTrees(runs, features, Boosting{Trees: maxTrees + 1}); return err },
		"leaves":   func() error { _, err := TrainTrees(runs, features, Boosting{Leaves: 1}); return err },
		"depth":    func() error { _, err := TrainTrees(runs, features, Boosting{Depth: -1}); return err },
		"min leaf": func() error { _, err := TrainTrees(runs, features, Boosting{MinLeaf: -1}); return err },
		"bins":     func() error { _, err := TrainTrees(runs, features, Boosting{Bins: 256}); return err },
		"rate":     func() error { _, err := TrainTrees(runs, features, Boosting{Rate: math.NaN()}); return err },
		"penalty":  func() error { _, err := TrainTrees(runs, features, Boosting{L2: -1}); return err },
		"patience": func() error { _, err := TrainTrees(runs, features, Boosting{Patience: -1}); return err },
	} {
		if err := f(); !errors.Is(err, ErrTraining) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkTrees fits as many rows and trees as protocol P1 has.
func BenchmarkTrees(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	fit := &boostRows{width: 112, weight: repeated(1, 50_000)}
	for range fit.weight {
		x := make([]float32, fit.width)
		for j := range x {
			x[j] = max(rng.Float32()-0.5, 0) // half of them 0, as call features
		}
		fit.x, fit.y = append(fit.x, x), append(fit.y, x[0]+x[1] > 0.6 != (rng.IntN(10) == 0))
	}
	o := Boosting{Trees: 150}
	if err := o.defaults(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := boost(fit, &boostRows{}, o); err != nil {
			b.Fatal(err)
		}
	}
}
