package transformer

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/nn"
)

// bertParams lists the weights of Devlin et al., BERT, NAACL 2019, under the names
// that transformers.BertModel gives them.
func (c config) bertParams(layers int) []param {
	h := c.Hidden
	name := func(format string, args ...any) string { return c.Prefix + fmt.Sprintf(format, args...) }
	ps := []param{
		table("words", name("embeddings.word_embeddings.weight"), c.Vocab, h),
		table("positions", name("embeddings.position_embeddings.weight"), c.Positions, h),
		table("types", name("embeddings.token_type_embeddings.weight"), c.Types, h),
		vectors("norm.w", part{name("embeddings.LayerNorm.weight"), h}),
		vectors("norm.b", part{name("embeddings.LayerNorm.bias"), h}),
	}
	for i := range layers {
		in := func(s string) string { return fmt.Sprintf("%d.%s", i, s) }
		at := func(s string) string { return name("encoder.layer.%d.%s", i, s) }
		ps = append(ps,
			linear(in("qkv.w"), h, part{at("attention.self.query.weight"), h}, part{at("attention.self.key.weight"), h}, part{at("attention.self.value.weight"), h}),
			vectors(in("qkv.b"), part{at("attention.self.query.bias"), h}, part{at("attention.self.key.bias"), h}, part{at("attention.self.value.bias"), h}),
			linear(in("out.w"), h, part{at("attention.output.dense.weight"), h}),
			vectors(in("out.b"), part{at("attention.output.dense.bias"), h}),
			vectors(in("norm1.w"), part{at("attention.output.LayerNorm.weight"), h}),
			vectors(in("norm1.b"), part{at("attention.output.LayerNorm.bias"), h}),
			linear(in("up.w"), h, part{at("intermediate.dense.weight"), c.Inner}),
			vectors(in("up.b"), part{at("intermediate.dense.bias"), c.Inner}),
			linear(in("down.w"), c.Inner, part{at("output.dense.weight"), h}),
			vectors(in("down.b"), part{at("output.dense.bias"), h}),
			vectors(in("norm2.w"), part{at("output.LayerNorm.weight"), h}),
			vectors(in("norm2.b"), part{at("output.LayerNorm.bias"), h}),
		)
	}
	return ps
}

// bertHidden is the encoder of BERT: learned positions, the norm after the
// residual, GELU with the error function. All tokens are of type 0.
func (n *net) bertHidden(layers int) *Node {
	b, t, h := n.batch(), n.length(), n.Hidden
	offset := Add(Slice(n.w["positions"], AxisRange(0, t)), Slice(n.w["types"], AxisRange(0, 1)))
	x := Add(Reshape(n.embed(n.w["words"]), b, t, h), Reshape(offset, 1, t, h))
	x = n.layerNorm(Reshape(x, b*t, h), "norm")
	mask := n.mask(false)
	for i := range layers {
		w := func(s string) *Node { return n.w[fmt.Sprintf("%d.%s", i, s)] }
		q, k, v := n.split(dense(x, w("qkv.w"), w("qkv.b")))
		a := dense(n.attention(q, k, v, mask), w("out.w"), w("out.b"))
		x = n.layerNorm(Add(x, a), fmt.Sprintf("%d.norm1", i))
		f := activation.Gelu(dense(x, w("up.w"), w("up.b")))
		x = n.layerNorm(Add(x, dense(f, w("down.w"), w("down.b"))), fmt.Sprintf("%d.norm2", i))
	}
	return x
}

// layerNorm returns (x - mean) / sqrt(variance + epsilon) * w + b over the last
// axis.
func (n *net) layerNorm(x *Node, name string) *Node {
	return nn.LayerNorm(x, []int{-1}, n.Epsilon, n.w[name+".w"], n.w[name+".b"], nil)
}
