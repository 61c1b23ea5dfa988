package boost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/dreamguard/dreamguard/internal/forest"
	"pgregory.net/rapid"
)

func rowsOf(x [][]float32, y []int, w []float64) Rows {
	r := Rows{X: x, Weight: w}
	for _, v := range y {
		r.Y = append(r.Y, float64(v))
	}
	if w == nil {
		r.Weight = ones(len(y))
	}
	return r
}

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
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
			fit, held := rowsOf(ref.X, ref.Y, w), rowsOf(ref.X[:len(ref.HeldY)], ref.HeldY, heldW)
			o := Options{Trees: f.Trees, Leaves: f.Leaves, Depth: f.Depth, MinLeaf: f.MinLeaf, Bins: f.Bins, Rate: f.Rate, L2: f.L2, Patience: f.Trees}
			all, _, err := Grow(t.Context(), fit, Rows{}, o)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range f.Logit {
				// scikit-learn keeps gradients in single precision.
				if got := all.Logit(ref.X[i]); math.Abs(got-want) > 1e-4 {
					t.Fatalf("row %d: logit %v, want %v", i, got, want)
				}
			}
			kept, losses, err := Grow(t.Context(), fit, held, o)
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
			if want := slices.Index(losses, slices.Min(losses)); len(kept.Trees) != want {
				t.Errorf("%d trees are kept, want %d", len(kept.Trees), want)
			}
		})
	}
}

// noisy rows: the target depends on the first value, and is wrong for a quarter.
func noisyRows(n int, seed uint64) Rows {
	rng := rand.New(rand.NewPCG(seed, 1))
	r := Rows{Weight: ones(n)}
	for range n {
		x := make([]float32, 5)
		for j := range x {
			x[j] = rng.Float32()
		}
		r.X, r.Y = append(r.X, x), append(r.Y, b2f((x[0] > 0.5) != (rng.IntN(4) == 0)))
	}
	return r
}

func TestTreesStopEarly(t *testing.T) {
	o := Options{Trees: 500, Rate: 0.3, Patience: 5}
	b, losses, err := Grow(t.Context(), noisyRows(500, 1), noisyRows(500, 2), o)
	if err != nil {
		t.Fatal(err)
	}
	best := slices.Index(losses, slices.Min(losses))
	if len(b.Trees) != best || best == 0 || len(losses) != best+o.Patience+1 {
		t.Errorf("%d trees kept, lowest loss after %d, %d grown", len(b.Trees), best, len(losses)-1)
	}
}

// TestTreesDoNotDependOnCores fits the same rows on one core and on many.
func TestTreesDoNotDependOnCores(t *testing.T) {
	o := Options{Trees: 20, MinLeaf: 5}
	fit := noisyRows(400, 3)
	logits := func(cores int) []float64 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		b, _, err := Grow(t.Context(), fit, Rows{}, o)
		if err != nil {
			t.Fatal(err)
		}
		var out []float64
		for _, x := range fit.X {
			out = append(out, b.Logit(x))
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
		var r Rows
		for i := range n {
			r.X = append(r.X, []float32{rapid.Float32Range(-1, 1).Draw(t, "a"), float32(rapid.IntRange(0, 2).Draw(t, "b"))})
			y := b2f(i == 0)
			if i > 1 {
				y = rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(t, "y")
			}
			r.Y = append(r.Y, y)
			r.Weight = append(r.Weight, rapid.Float64Range(0.1, 3).Draw(t, "w"))
		}
		o := Options{Trees: 10, MinLeaf: 1, L2: 1}
		_, losses, err := Grow(context.Background(), r, r, o)
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

// BenchmarkTrees fits as many rows and trees as protocol P1 has.
func BenchmarkTrees(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	const width = 112
	fit := Rows{Weight: ones(50_000)}
	for range fit.Weight {
		x := make([]float32, width)
		for j := range x {
			x[j] = max(rng.Float32()-0.5, 0) // half of them 0, as call features
		}
		fit.X, fit.Y = append(fit.X, x), append(fit.Y, b2f(x[0]+x[1] > 0.6 != (rng.IntN(10) == 0)))
	}
	o := Options{Trees: 150}
	for b.Loop() {
		if _, _, err := Grow(b.Context(), fit, Rows{}, o); err != nil {
			b.Fatal(err)
		}
	}
}

func TestGrowRefuses(t *testing.T) {
	x := [][]float32{{0}, {1}}
	good := Rows{X: x, Y: []float64{0, 1}, Weight: ones(2)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Grow(ctx, good, Rows{}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	for name, c := range map[string]struct {
		fit, held Rows
		o         Options
		want      error
	}{
		"none":             {want: ErrRows},
		"no values":        {fit: Rows{X: [][]float32{{}}, Y: []float64{1}, Weight: ones(1)}, want: ErrRows},
		"targets missing":  {fit: Rows{X: x, Y: []float64{0}, Weight: ones(2)}, want: ErrRows},
		"target above 1":   {fit: Rows{X: x, Y: []float64{0, 2}, Weight: ones(2)}, want: ErrRows},
		"negative weight":  {fit: Rows{X: x, Y: []float64{0, 1}, Weight: []float64{1, -1}}, want: ErrRows},
		"NaN":              {fit: Rows{X: [][]float32{{float32(math.NaN())}, {1}}, Y: []float64{0, 1}, Weight: ones(2)}, want: ErrRows},
		"one target":       {fit: Rows{X: x, Y: []float64{1, 1}, Weight: ones(2)}, want: ErrRows},
		"ragged":           {fit: Rows{X: [][]float32{{0}, {1, 2}}, Y: []float64{0, 1}, Weight: ones(2)}, want: ErrRows},
		"wider validation": {fit: good, held: Rows{X: [][]float32{{0, 1}}, Y: []float64{0}, Weight: ones(1)}, want: ErrRows},
		"trees":            {fit: good, o: Options{Trees: forest.MaxTrees + 1}, want: ErrOptions},
		"patience":         {fit: good, o: Options{Patience: -1}, want: ErrOptions},
	} {
		if _, _, err := Grow(t.Context(), c.fit, c.held, c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
