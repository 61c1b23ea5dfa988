package transformer

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// net builds the graph of one model for sequences of one length.
type net struct {
	config
	w    map[string]*Node // weights by the names of params
	ids  *Node            // [B, T] int32, right-padded
	lens *Node            // [B] int32, at least 1
}

func (n *net) batch() int  { return n.ids.Shape().Dim(0) }
func (n *net) length() int { return n.ids.Shape().Dim(1) }

// params lists the weights that the first layers blocks need.
func (c config) params(layers int) []param {
	if c.Model == "bert" {
		return c.bertParams(layers)
	}
	return c.qwen3Params(layers)
}

// hidden returns hidden_states[layers] as [B*T, Hidden].
func (n *net) hidden(layers int) *Node {
	if n.Model == "bert" {
		return n.bertHidden(layers)
	}
	return n.qwen3Hidden(layers)
}

// embed looks the ids up in a table [rows, width] and returns [B*T, width].
func (n *net) embed(table *Node) *Node {
	flat := Reshape(n.ids, n.batch()*n.length(), 1)
	return Gather(table, flat)
}

// valid is 1 for the tokens of a sequence and 0 for its padding, [B, T].
func (n *net) valid() *Node {
	at := Iota(n.ids.Graph(), shapes.Make(dtypes.Int32, n.batch(), n.length()), 1)
	return ConvertDType(LessThan(at, InsertAxes(n.lens, -1)), dtypes.Float32)
}

// dense returns x w + b for x [n, in], w [in, out] and b [out], which may be nil.
func dense(x, w, b *Node) *Node {
	y := DotGeneral(x, []int{1}, nil, w, []int{0}, nil)
	if b != nil {
		y = Add(y, InsertAxes(b, 0))
	}
	return y
}

// hiddenMask is added to the scores of keys that must not be seen. It is finite,
// so that no difference of two of them is NaN, and exp of it is zero in float32.
const hiddenMask = -1e9

// mask returns what is added to scores [B, 1, T, T] or [B, 1, 1, T]: zero for a key
// that the query may see.
func (n *net) mask(causal bool) *Node {
	pad := Reshape(n.valid(), n.batch(), 1, 1, n.length())
	m := MulScalar(AddScalar(pad, -1), -hiddenMask)
	if !causal {
		return m
	}
	t := n.length()
	square := shapes.Make(dtypes.Int32, t, t)
	g := n.ids.Graph()
	future := ConvertDType(GreaterThan(Iota(g, square, 1), Iota(g, square, 0)), dtypes.Float32)
	return Add(m, Reshape(MulScalar(future, hiddenMask), 1, 1, t, t))
}

// attention returns softmax(q kᵀ / sqrt(d) + mask) v as [B*T, heads*d] for
// q [B, heads, T, d] and k, v [B, kv, T, d], each of whose heads serves
// heads / kv neighbouring query heads. The groups become rows of the product, so
// that keys and values are not repeated.
func (n *net) attention(q, k, v, mask *Node) *Node {
	b, t, d, group := n.batch(), n.length(), n.HeadDim, n.Heads/n.KVHeads
	q = MulScalar(q, 1/math.Sqrt(float64(d)))
	q = Reshape(q, b*n.KVHeads, group*t, d)
	// Turned keys: the Go backend sums the few products of a head's width one by
	// one otherwise, and the others turn them for themselves.
	k = Reshape(Transpose(k, 2, 3), b*n.KVHeads, d, t)
	v = Reshape(v, b*n.KVHeads, t, d)
	scores := DotGeneral(q, []int{2}, []int{0}, k, []int{1}, []int{0})
	scores = Add(Reshape(scores, b, n.Heads, t, t), mask)
	p := Reshape(Softmax(scores, -1), b*n.KVHeads, group*t, t)
	out := DotGeneral(p, []int{2}, []int{0}, v, []int{1}, []int{0})
	out = Transpose(Reshape(out, b, n.Heads, t, d), 1, 2)
	return Reshape(out, b*t, n.Heads*d)
}

// split cuts x [B*T, (heads+2 kv)*d] into q, k and v as attention wants them.
func (n *net) split(x *Node) (q, k, v *Node) {
	x = Reshape(x, n.batch(), n.length(), n.Heads+2*n.KVHeads, n.HeadDim)
	cut := func(from, to int) *Node {
		return Transpose(Slice(x, AxisRange(), AxisRange(), AxisRange(from, to)), 1, 2)
	}
	return cut(0, n.Heads), cut(n.Heads, n.Heads+n.KVHeads), cut(n.Heads+n.KVHeads, n.Heads+2*n.KVHeads)
}

// pooled reduces x [B*T, Hidden] to one vector per sequence, [B, Hidden].
func (n *net) pooled(x *Node, pooling Pooling) *Node {
	b, t := n.batch(), n.length()
	x = Reshape(x, b, t, n.Hidden)
	var w *Node // [B, T], sums to 1
	switch pooling {
	case Mean:
		w = Div(n.valid(), InsertAxes(ConvertDType(n.lens, dtypes.Float32), -1))
	case Last:
		w = OneHot(AddScalar(n.lens, -1), t, dtypes.Float32)
	default:
		return Reshape(Slice(x, AxisRange(), AxisRange(0, 1)), b, n.Hidden)
	}
	y := DotGeneral(Reshape(w, b, 1, t), []int{2}, []int{0}, x, []int{1}, []int{0})
	return Reshape(y, b, n.Hidden)
}
