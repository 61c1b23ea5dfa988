package transformer

import (
	"fmt"
	"math"

	. "github.com/gomlx/gomlx/core/graph"
)

// qwen3Params lists the weights of the Qwen3 technical report (arXiv 2505.09388)
// under the names that transformers.Qwen3Model gives them. The final norm is left
// out unless the chosen layer has it.
func (c config) qwen3Params(layers int) []param {
	h, q, kv := c.Hidden, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	name := func(format string, args ...any) string { return c.Prefix + fmt.Sprintf(format, args...) }
	ps := []param{table("words", name("embed_tokens.weight"), c.Vocab, h)}
	for i := range layers {
		in := func(s string) string { return fmt.Sprintf("%d.%s", i, s) }
		at := func(s string) string { return name("layers.%d.%s.weight", i, s) }
		ps = append(ps,
			vectors(in("norm1"), part{at("input_layernorm"), h}),
			linear(in("qkv"), h, part{at("self_attn.q_proj"), q}, part{at("self_attn.k_proj"), kv}, part{at("self_attn.v_proj"), kv}),
			vectors(in("qnorm"), part{at("self_attn.q_norm"), c.HeadDim}),
			vectors(in("knorm"), part{at("self_attn.k_norm"), c.HeadDim}),
			linear(in("out"), q, part{at("self_attn.o_proj"), h}),
			vectors(in("norm2"), part{at("post_attention_layernorm"), h}),
			linear(in("up"), h, part{at("mlp.gate_proj"), c.Inner}, part{at("mlp.up_proj"), c.Inner}),
			linear(in("down"), c.Inner, part{at("mlp.down_proj"), h}),
		)
	}
	if c.Norm {
		ps = append(ps, vectors("norm", part{name("norm.weight"), h}))
	}
	return ps
}

// qwen3Hidden is the decoder of Qwen3: the norm before attention and feed-forward,
// grouped-query attention with a norm on the heads of queries and keys, rotary
// positions, SwiGLU, causal.
func (n *net) qwen3Hidden(layers int) *Node {
	x := n.embed(n.w["words"])
	mask := n.mask(true)
	rotate := n.rotary()
	for i := range layers {
		w := func(s string) *Node { return n.w[fmt.Sprintf("%d.%s", i, s)] }
		q, k, v := n.split(dense(n.rmsNorm(x, w("norm1")), w("qkv"), nil))
		q, k = rotate(n.rmsNorm(q, w("qnorm"))), rotate(n.rmsNorm(k, w("knorm")))
		x = Add(x, dense(n.attention(q, k, v, mask), w("out"), nil))
		f := dense(n.rmsNorm(x, w("norm2")), w("up"), nil)
		gate, up := Slice(f, AxisRange(), AxisRange(0, n.Inner)), Slice(f, AxisRange(), AxisRange(n.Inner))
		x = Add(x, dense(Mul(Mul(gate, Sigmoid(gate)), up), w("down"), nil))
	}
	if n.Norm {
		x = n.rmsNorm(x, n.w["norm"])
	}
	return x
}

// rmsNorm returns x / sqrt(mean(x²) + epsilon) * w over the last axis.
func (n *net) rmsNorm(x, w *Node) *Node {
	mean := ReduceAndKeep(Square(x), ReduceMean, -1)
	x = Div(x, Sqrt(AddScalar(mean, n.Epsilon)))
	return Mul(x, ExpandLeftToRank(w, x.Rank()))
}

// rotary returns the function that turns the halves (x1, x2) of every head of
// x [B, heads, T, d] at position t by the angles t theta^(-2i/d):
// (x1 cos - x2 sin, x2 cos + x1 sin) (Su et al., RoFormer, arXiv 2104.09864, in
// the layout of transformers.rotate_half). Angles are rounded to float32 as in
// the reference.
func (n *net) rotary() func(x *Node) *Node {
	t, half := n.length(), n.HeadDim/2
	cos, sin := make([][]float32, t), make([][]float32, t)
	for p := range t {
		cos[p], sin[p] = make([]float32, half), make([]float32, half)
		for i := range half {
			frequency := 1 / float32(math.Pow(n.Theta, float64(2*i)/float64(n.HeadDim)))
			angle := float64(float32(p) * frequency)
			cos[p][i], sin[p][i] = float32(math.Cos(angle)), float32(math.Sin(angle))
		}
	}
	g := n.ids.Graph()
	c, s := ExpandLeftToRank(Const(g, cos), 4), ExpandLeftToRank(Const(g, sin), 4)
	return func(x *Node) *Node {
		x1 := Slice(x, AxisRange(), AxisRange(), AxisRange(), AxisRange(0, half))
		x2 := Slice(x, AxisRange(), AxisRange(), AxisRange(), AxisRange(half))
		return Concatenate([]*Node{Sub(Mul(x1, c), Mul(x2, s)), Add(Mul(x2, c), Mul(x1, s))}, -1)
	}
}
