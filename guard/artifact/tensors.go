package artifact

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/internal/forest"
)

// Group is a set of tensors that training treats alike (docs/reference/model.md).
type Group string

// The groups. Constant never learns; Core is frozen in the second stage.
const (
	Adapter  Group = "adapter"
	World    Group = "world"
	Core     Group = "core"
	Head     Group = "head"
	Constant Group = "constant"
)

// Dims are the sizes that determine every tensor's shape. Each is 1 to
// [MaxDim], but C is 2 or more, and U and T may be 0.
type Dims struct {
	D int `json:"encoder"`     // length of the encoder's vectors
	F int `json:"features"`    // number of call features
	P int `json:"adapter"`     // width of an adapted vector
	H int `json:"hidden"`      // width of the recurrent state
	G int `json:"factors"`     // categorical variables in z
	C int `json:"classes"`     // classes of each
	Q int `json:"head_hidden"` // width of a risk head's hidden layer
	// U is the width of a risk head's network over the features alone; 0 = none.
	U int `json:"feature_hidden,omitempty"`
	// T and N are the trees of a risk head and the nodes of each; T = 0: none.
	T int `json:"trees,omitempty"`
	N int `json:"tree_nodes,omitempty"`
}

// MaxDim bounds each size, and the product of G and C.
const MaxDim = 1 << 14

// Z is the length of the latent vector z.
func (d Dims) Z() int { return d.G * d.C }

// X is the length of the recurrent core's input [z ; a' ; f'].
func (d Dims) X() int { return d.Z() + d.P + d.F }

// In is the length of a head's input [h ; zh ; a' ; f' ; e'].
func (d Dims) In() int { return d.H + d.X() + d.P }

// Validate reports the first size out of range. The error wraps [ErrManifest].
func (d Dims) Validate() error {
	for _, v := range []struct {
		name   string
		n, min int
	}{
		{"encoder", d.D, 1}, {"features", d.F, 1}, {"adapter", d.P, 1}, {"hidden", d.H, 1},
		{"factors", d.G, 1}, {"classes", d.C, 2}, {"head_hidden", d.Q, 1}, {"feature_hidden", d.U, 0},
	} {
		if v.n < v.min || v.n > MaxDim {
			return fmt.Errorf("%w: dims.%s is %d: want %d to %d", ErrManifest, v.name, v.n, v.min, MaxDim)
		}
	}
	if d.T < 0 || d.T > forest.MaxTrees || d.N < min(d.T, 1) || d.N > forest.MaxNodes || d.T == 0 && d.N > 0 {
		return fmt.Errorf("%w: dims.trees is %d and dims.tree_nodes %d: want at most %d of 1 to %d nodes, or 0 and 0", ErrManifest, d.T, d.N, forest.MaxTrees, forest.MaxNodes)
	}
	if d.Z() > MaxDim {
		return fmt.Errorf("%w: dims.factors x dims.classes is %d: want at most %d", ErrManifest, d.Z(), MaxDim)
	}
	return nil
}

// Spec describes one tensor of the model.
type Spec struct {
	Name   string
	Shape  []int
	Group  Group
	Export bool // part of the artifact; false for what only training uses
}

// Tensors returns the tensors of docs/reference/model.md for the given sizes,
// sorted by name.
func Tensors(d Dims) []Spec {
	var specs []Spec
	add := func(g Group, name string, shape ...int) {
		training := strings.HasPrefix(name, "obs.l1.") || strings.HasPrefix(name, "obs.out.")
		specs = append(specs, Spec{Name: name, Shape: shape, Group: g, Export: !training})
	}
	linear := func(g Group, name string, out, in int) {
		add(g, name+".w", out, in)
		add(g, name+".b", out)
	}
	mlp := func(g Group, name string, out, in int) {
		linear(g, name, out, in)
		add(g, name+".ln.g", out)
		add(g, name+".ln.b", out)
	}
	add(Constant, "feat.mean", d.F)
	add(Constant, "feat.scale", d.F)
	for _, name := range []string{"adapt.e", "adapt.o", "adapt.a"} {
		mlp(Adapter, name, d.P, d.D)
	}
	add(World, "obs.none", d.P)
	linear(World, "init", d.H, d.P)
	mlp(World, "post.l1", d.H, d.H+d.P)
	linear(World, "post.out", d.Z(), d.H)
	mlp(World, "prior.l1", d.H, d.H)
	linear(World, "prior.out", d.Z(), d.H)
	mlp(World, "obs.l1", d.H, d.H+d.Z())
	linear(World, "obs.out", d.D, d.H)
	add(Core, "gru.ln.g", d.X())
	add(Core, "gru.ln.b", d.X())
	for _, gate := range []string{"r", "u", "n"} {
		add(Core, "gru.w"+gate, d.H, d.X())
		add(Core, "gru.u"+gate, d.H, d.H)
		add(Core, "gru.b"+gate, d.H)
	}
	add(Core, "gru.bm", d.H)
	for _, name := range []string{"head.haz", "head.pre"} {
		mlp(Head, name+".l1", d.Q, d.In())
		add(Head, name+".out.w", 1, d.Q)
		add(Head, name+".out.b", 1)
		add(Head, name+".skip.w", 1, d.F)
		if d.U > 0 {
			mlp(Head, name+".feat.l1", d.U, d.F)
			add(Head, name+".feat.out.w", 1, d.U)
		}
		if d.T > 0 {
			add(Constant, name+".trees", d.T, d.N, forest.Columns)
		}
	}
	slices.SortFunc(specs, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) })
	return specs
}
