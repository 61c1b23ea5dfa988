package forest

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawForest draws trees in the form that growing leaves: children side by side after
// their parent.
func drawForest(t *rapid.T, features int) []Tree {
	list := make([]Tree, rapid.IntRange(0, 5).Draw(t, "trees"))
	for i := range list {
		tree := Tree{{}}
		for range rapid.IntRange(0, 10).Draw(t, "splits") {
			var leaves []int
			for n := range tree {
				if tree[n].Left == 0 {
					leaves = append(leaves, n)
				}
			}
			n := rapid.SampledFrom(leaves).Draw(t, "leaf")
			tree[n].Left = int32(len(tree))
			tree[n].Feature = int32(rapid.IntRange(0, features-1).Draw(t, "feature"))
			tree[n].Threshold = float32(rapid.IntRange(-3, 3).Draw(t, "threshold"))
			tree = append(tree, Node{}, Node{})
		}
		for n := range tree {
			if tree[n].Left == 0 {
				tree[n].Value = float32(rapid.IntRange(-100, 100).Draw(t, "value")) // sums are exact
			}
		}
		list[i] = tree
	}
	return list
}

func nodesOf(list []Tree) int {
	n := 0
	for _, t := range list {
		n = max(n, len(t))
	}
	return n
}

func TestForest(t *testing.T) {
	const features = 4
	rapid.Check(t, func(t *rapid.T) {
		list := drawForest(t, features)
		nodes := nodesOf(list) + rapid.IntRange(0, 2).Draw(t, "spare")
		f, err := New(Pack(list, 2, len(list), nodes), len(list), nodes, features)
		if err != nil {
			t.Fatal(err)
		}
		x := make([]float32, features)
		for i := range x {
			x[i] = float32(rapid.IntRange(-4, 4).Draw(t, "x"))
		}
		before := slices.Clone(x)
		var want float32
		for _, tree := range list {
			want += 2 * tree.Value(x)
		}
		if got := f.Value(x); got != want {
			t.Fatalf("value %v, want %v", got, want)
		}
		effects := make([]float32, features)
		f.Effects(effects, x)
		if !slices.Equal(x, before) {
			t.Fatalf("Effects left %v, it was given %v", x, before)
		}
		for i, got := range effects {
			without := slices.Clone(x)
			without[i] = 0
			if want := f.Value(x) - f.Value(without); got != want {
				t.Fatalf("effect of feature %d: %v, want %v", i, got, want)
			}
		}
	})
}

func TestZeroForest(t *testing.T) {
	var f Forest
	if v := f.Value([]float32{1}); v != 0 {
		t.Errorf("value %v, want 0", v)
	}
}

func TestNewRefuses(t *testing.T) {
	nan := float32(math.NaN())
	good := func() []float32 { // one split of feature 1 at 0.5
		return []float32{1, 0.5, 1, 0, 0, 0, 0, -1, 0, 0, 0, 1}
	}
	if _, err := New(good(), 1, 3, 2); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(v []float32) (tensor []float32, trees, nodes, features int){
		"shorter":              func(v []float32) ([]float32, int, int, int) { return v[:11], 1, 3, 2 },
		"no features":          func(v []float32) ([]float32, int, int, int) { return v, 1, 3, 0 },
		"too many trees":       func(v []float32) ([]float32, int, int, int) { return nil, MaxTrees + 1, 0, 2 },
		"nodes that overflow":  func(v []float32) ([]float32, int, int, int) { return v, 2, math.MaxInt, 2 },
		"fewer than no trees":  func(v []float32) ([]float32, int, int, int) { return nil, -1, -1, 2 },
		"feature out of range": func(v []float32) ([]float32, int, int, int) { return v, 1, 3, 1 },
		"feature between":      func(v []float32) ([]float32, int, int, int) { v[0] = 0.5; return v, 1, 3, 2 },
		"NaN":                  func(v []float32) ([]float32, int, int, int) { v[7] = nan; return v, 1, 3, 2 },
		"child that is itself": func(v []float32) ([]float32, int, int, int) { v[4+2] = 1; return v, 1, 3, 2 },
		"child outside":        func(v []float32) ([]float32, int, int, int) { v[2] = 2; return v, 1, 3, 2 },
		"child far outside":    func(v []float32) ([]float32, int, int, int) { v[2] = 1e30; return v, 1, 3, 2 },
		"child before":         func(v []float32) ([]float32, int, int, int) { v[2] = -1; return v, 1, 3, 2 },
		"child between":        func(v []float32) ([]float32, int, int, int) { v[2] = 0.5; return v, 1, 3, 2 },
	} {
		if _, err := New(edit(good())); !errors.Is(err, ErrForest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzNew: what is read can be walked, whatever it says.
func FuzzNew(f *testing.F) {
	f.Add([]byte{1, 0, 1, 0, 0, 0, 0, 9, 0, 0, 0, 7}, uint8(3))
	f.Add([]byte{1, 0, 2, 0, 0, 0, 0, 9, 0, 0, 0, 7}, uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, nodes uint8) {
		n := max(int(nodes), 1)
		trees := len(b) / (n * Columns)
		tensor := make([]float32, trees*n*Columns)
		for i := range tensor {
			tensor[i] = float32(int8(b[i]))
		}
		forest, err := New(tensor, trees, n, 3)
		if err != nil {
			return
		}
		x := []float32{1, -1, 0}
		forest.Value(x)
		forest.Effects(make([]float32, 3), x)
	})
}
