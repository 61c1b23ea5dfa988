package train

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/internal/forest"
)

// Group is a set of tensors that the optimizer treats alike
// (docs/reference/model.md).
type Group string

// The groups. Constant never learns; Core is frozen in stage 2.
const (
	Constant Group = "constant"
	Adapter  Group = "adapter"
	World    Group = "world"
	Core     Group = "core"
	Head     Group = "head"
)

// Groups lists all groups in the order of reports.
var Groups = []Group{Constant, Adapter, World, Core, Head}

// sizes are the dimensions of docs/reference/model.md.
type sizes struct {
	D, F       int // inputs
	P, H, G, C int // adapter, hidden, factors, classes
	Q, U       int // head hidden, feature hidden
	T, N       int // trees of a head, nodes of each
}

func sizesOf(m configs.Model, d Dims) sizes {
	return sizes{D: d.D, F: d.F, P: m.Adapter, H: m.Hidden, G: m.Factors, C: m.Classes, Q: m.HeadHidden, U: m.FeatureHidden, T: d.Trees, N: d.Nodes}
}

// Z is the width of the stochastic state, X that of the recurrent input.
func (s sizes) Z() int { return s.G * s.C }
func (s sizes) X() int { return s.Z() + s.P + s.F }

// headIn is the width of [h ; zh ; a' ; f' ; e'].
func (s sizes) headIn() int { return s.H + s.Z() + s.P + s.F + s.P }

// maxSize bounds every dimension, far above any sensible model, so that a slip
// in a config is an error rather than an allocation of terabytes.
const maxSize = 1 << 14

func (s sizes) check() error {
	for _, v := range []struct {
		name string
		n    int
	}{
		{"encoder.dims (D)", s.D}, {"number of call features (F)", s.F}, {"model.adapter", s.P},
		{"model.hidden", s.H}, {"model.factors", s.G}, {"model.classes", s.C}, {"model.head_hidden", s.Q},
	} {
		if v.n < 1 || v.n > maxSize {
			return fmt.Errorf("train: %s is %d: want 1 to %d", v.name, v.n, maxSize)
		}
	}
	if s.U < 0 || s.U > maxSize {
		return fmt.Errorf("train: model.feature_hidden is %d: want 0 to %d", s.U, maxSize)
	}
	if s.T < 0 || s.T > forest.MaxTrees || s.N < min(s.T, 1) || s.N > forest.MaxNodes {
		return fmt.Errorf("train: %d trees of %d nodes: want at most %d of 1 to %d", s.T, s.N, forest.MaxTrees, forest.MaxNodes)
	}
	if s.C < 2 {
		return fmt.Errorf("train: model.classes is %d: a categorical needs at least 2", s.C)
	}
	if s.Z() > maxSize {
		return fmt.Errorf("train: model.factors x model.classes is %d: want at most %d", s.Z(), maxSize)
	}
	return nil
}

// start says how a tensor is initialised.
type start int

const (
	zeros  start = iota
	ones         // gains of layer norms
	normal       // N(0, 1/fan-in): keeps the variance of a layer's input
)

// param describes one tensor of the model.
type param struct {
	Name  string
	Shape []int
	Group Group
	start start
	decay bool // takes part in decoupled weight decay
}

func (p *param) size() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// paramTable lists every tensor of docs/reference/model.md, sorted by name: the
// order of graph inputs, checkpoints and files.
func paramTable(s sizes) []param {
	var t []param
	add := func(g Group, st start, name string, shape ...int) {
		t = append(t, param{Name: name, Shape: shape, Group: g, start: st, decay: g == Head && len(shape) == 2})
	}
	linear := func(g Group, name string, out, in int) {
		add(g, normal, name+".w", out, in)
		add(g, zeros, name+".b", out)
	}
	mlp := func(g Group, name string, out, in int) {
		linear(g, name, out, in)
		add(g, ones, name+".ln.g", out)
		add(g, zeros, name+".ln.b", out)
	}
	add(Constant, zeros, "feat.mean", s.F)
	add(Constant, ones, "feat.scale", s.F)
	for _, name := range []string{"adapt.e", "adapt.o", "adapt.a"} {
		mlp(Adapter, name, s.P, s.D)
	}
	add(World, zeros, "obs.none", s.P)
	linear(World, "init", s.H, s.P)
	mlp(World, "post.l1", s.H, s.H+s.P)
	linear(World, "post.out", s.Z(), s.H)
	mlp(World, "prior.l1", s.H, s.H)
	linear(World, "prior.out", s.Z(), s.H)
	mlp(World, "obs.l1", s.H, s.H+s.Z())
	linear(World, "obs.out", s.D, s.H)
	add(Core, ones, "gru.ln.g", s.X())
	add(Core, zeros, "gru.ln.b", s.X())
	for _, gate := range []string{"r", "u", "n"} {
		add(Core, normal, "gru.w"+gate, s.H, s.X())
		add(Core, normal, "gru.u"+gate, s.H, s.H)
		add(Core, zeros, "gru.b"+gate, s.H)
	}
	add(Core, zeros, "gru.bm", s.H)
	for _, name := range []string{"head.haz", "head.pre"} {
		mlp(Head, name+".l1", s.Q, s.headIn())
		add(Head, zeros, name+".out.w", 1, s.Q)
		add(Head, zeros, name+".out.b", 1)
		add(Head, zeros, name+".skip.w", 1, s.F)
		if s.U > 0 {
			mlp(Head, name+".feat.l1", s.U, s.F)
			add(Head, zeros, name+".feat.out.w", 1, s.U)
		}
		if s.T > 0 {
			add(Constant, zeros, name+".trees", s.T, s.N, forest.Columns)
		}
	}
	slices.SortFunc(t, func(a, b param) int { return cmp.Compare(a.Name, b.Name) })
	return t
}

// initial returns the start value of p. Its stream depends on the seed and the
// name only, so that adding a tensor does not change the others.
func (p *param) initial(seed uint64) []float32 {
	v := make([]float32, p.size())
	switch p.start {
	case ones:
		for i := range v {
			v[i] = 1
		}
	case normal:
		rng := stream(seed, "init", p.Name)
		sd := 1 / math.Sqrt(float64(p.Shape[len(p.Shape)-1]))
		for i := range v {
			v[i] = float32(rng.NormFloat64() * sd)
		}
	}
	return v
}

// stream derives a random stream from the seed and a purpose. Streams of
// different purposes are independent, so that drawing more from one (a wider
// model, say) leaves the others as they were.
func stream(seed uint64, purpose ...any) *rand.Rand {
	h := fnv.New64a()
	for _, p := range purpose {
		fmt.Fprintf(h, "%v/", p)
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
