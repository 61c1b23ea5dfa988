package train

import (
	"github.com/dreamguard/dreamguard/configs"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
)

// net builds the forward pass of docs/reference/model.md in one graph.
type net struct {
	sizes
	mix    float64
	params map[string]*Node
	tape   *tape                  // nil in graphs without gradients
	learns map[Group]bool         // groups that get gradients
	sample func(p, u *Node) *Node // z from probabilities [n, G, C]
}

func newNet(m configs.Model, d Dims, t *tape, learns map[Group]bool, sample func(p, u *Node) *Node) *net {
	return &net{sizes: sizesOf(m, d), mix: m.UniformMix, params: map[string]*Node{}, tape: t, learns: learns, sample: sample}
}

// latent is the deterministic z of the runtime.
func latent(kind string) func(p, u *Node) *Node {
	if kind == "mode" {
		return func(p, _ *Node) *Node { return mode(p) }
	}
	return func(p, _ *Node) *Node { return Reshape(p, p.Shape().Dim(0), -1) }
}

// linear applies the named layer to rows x.
func (n *net) linear(name string, x *Node) *Node {
	return Add(dot(x, n.params[name+".w"]), row(n.params[name+".b"]))
}

// activate is the part of an MLP after its linear layer.
func (n *net) activate(name string, x *Node) *Node {
	x = standardise(x)
	return silu(Add(Mul(x, row(n.params[name+".ln.g"])), row(n.params[name+".ln.b"])))
}

// mlp is Linear, LN, SiLU.
func (n *net) mlp(name string, x *Node) *Node { return n.activate(name, n.linear(name, x)) }

// rolloutIn are the inputs of T steps of B runs, time-major: row t*B+b is step t
// of run b.
type rolloutIn struct {
	T     int
	h0    *Node // [B, H] state before step 0
	a     *Node // [T*B, D] calls
	f     *Node // [T*B, F] standardised features
	o     *Node // [(T+1)*B, D] o_0 ... o_T
	has   *Node // [(T+1)*B, 1] 1 where o exists
	u     *Node // [(T+1)*B, G] uniform numbers of the posterior; nil if z is deterministic
	after bool  // also draw z_T, which only prediction and KL read
}

// rolloutOut are the results, again time-major.
type rolloutOut struct {
	a  *Node // [T*B, P] a'
	h  *Node // [T*B, H] h_1 ... h_T
	q  *Node // [T*B, G, C] posterior of steps 1 ... T, if in.after
	z  *Node // [T*B, G*C] z_1 ... z_T, if in.after
	hT *Node // [B, H] the last state
}

// start returns e' and h_0.
func (n *net) start(e *Node) (task, h0 *Node) {
	task = n.mlp("adapt.e", e)
	return task, Tanh(n.linear("init", task))
}

// rollout runs the recurrent part. Whatever does not depend on the state is
// computed for all steps at once, outside the loop: the adapters, the products
// of the weights with o' and with [a' ; f'], and the statistics of the recurrent
// input's layer norm.
func (n *net) rollout(in rolloutIn) rolloutOut {
	s := n.sizes
	out := rolloutOut{a: n.mlp("adapt.a", in.a)}

	obs := n.mlp("adapt.o", in.o)
	obs = Add(Mul(obs, in.has), Mul(row(n.params["obs.none"]), OneMinus(in.has)))
	wPost := splitColumns(n.params["post.l1.w"], s.H, s.P)
	postO := n.tape.split(Add(dot(obs, wPost[1]), row(n.params["post.l1.b"])), in.T+1)
	postH := n.tape.linear(wPost[0], n.learns[World])
	postOut := n.tape.linear(n.params["post.out.w"], n.learns[World])

	gates := n.gates(out.a, in)

	h := in.h0
	var hs, qs, zs []*Node
	for t := range in.T + 1 {
		if t == in.T && !in.after {
			break
		}
		hidden := n.activate("post.l1", Add(postH.apply(h), postO[t]))
		logits := Add(postOut.apply(hidden), row(n.params["post.out.b"]))
		q := mixed(logits, s, n.mix)
		var u *Node
		if in.u != nil {
			b := h.Shape().Dim(0)
			u = SliceAxis(in.u, 0, AxisRange(t*b, (t+1)*b))
		}
		z := n.sample(q, u)
		if t > 0 && in.after {
			qs, zs = append(qs, q), append(zs, z)
		}
		if t < in.T {
			h = gates.step(h, z, t)
			hs = append(hs, h)
		}
	}
	out.h, out.hT = rows(hs), h
	if in.after {
		out.q, out.z = rows(qs), rows(zs)
	}
	return out
}

// gru holds the recurrent cell prepared for one rollout.
//
// The cell reads x = LN([z ; a' ; f']) = g (y - mu) r + b with y the raw
// concatenation and r = 1 / sqrt(variance + epsilon). So
// W x = r (Wz (gz z) + Wa (ga [a' ; f']) - mu W g) + W b: everything but Wz (gz z)
// and r is known before the loop. The entries of z sum to G whether z is a
// distribution or one-hot, so mu is known too, and the variance needs only the
// sum of squares of z from the loop.
type gru struct {
	*net
	gates [3]gate // r, u, n
	gz    *Node   // [1, G*C] the layer norm's gain for z
	sq    []*Node // [B, 1] per step: X times the variance, less sum(z²)
	bm    *Node
}

type gate struct {
	wz, wu *linear
	known  []*Node // [B, H] per step: Wa (ga af) - mu W g
	bias   *Node   // [1, H]: W b + bias
}

// gates prepares the cell for the calls a' and the features of a rollout.
func (n *net) gates(a *Node, in rolloutIn) *gru {
	s := n.sizes
	x := float64(s.X())
	af := Concatenate([]*Node{a, in.f}, 1)
	mu := MulScalar(AddScalar(ReduceAndKeep(af, ReduceSum, -1), float64(s.G)), 1/x)
	sq := ReduceAndKeep(Square(Sub(af, mu)), ReduceSum, -1)
	sq = Add(sq, MulScalar(mu, -2*float64(s.G)))
	sq = Add(sq, MulScalar(Square(mu), float64(s.Z())))
	gain, shift := row(n.params["gru.ln.g"]), row(n.params["gru.ln.b"])
	gains := splitColumns(gain, s.Z(), s.P+s.F)
	af = Mul(af, gains[1])
	c := &gru{net: n, gz: gains[0], sq: n.tape.split(sq, in.T), bm: row(n.params["gru.bm"])}
	for i, name := range []string{"r", "u", "n"} {
		w := n.params["gru.w"+name]
		part := splitColumns(w, s.Z(), s.P+s.F)
		known := Sub(dot(af, part[1]), Mul(mu, dot(gain, w)))
		c.gates[i] = gate{
			wz:    n.tape.linear(part[0], n.learns[Core]),
			wu:    n.tape.linear(n.params["gru.u"+name], n.learns[Core]),
			known: n.tape.split(known, in.T),
			bias:  Add(dot(shift, w), row(n.params["gru.b"+name])),
		}
	}
	return c
}

// step returns h_{t+1}.
func (c *gru) step(h, z *Node, t int) *Node {
	variance := MulScalar(Add(c.sq[t], ReduceAndKeep(Square(z), ReduceSum, -1)), 1/float64(c.X()))
	scale := Reciprocal(Sqrt(AddScalar(variance, lnEpsilon)))
	z = Mul(z, c.gz)
	input := func(i int) *Node {
		g := &c.gates[i]
		return Add(Mul(Add(g.wz.apply(z), g.known[t]), scale), g.bias)
	}
	r := Sigmoid(Add(input(0), c.gates[0].wu.apply(h)))
	u := Sigmoid(Add(input(1), c.gates[1].wu.apply(h)))
	cand := Tanh(Add(input(2), Mul(r, Add(c.gates[2].wu.apply(h), c.bm))))
	return Add(cand, Mul(u, Sub(h, cand)))
}

// prior returns the prior probabilities [n, G, C] over states h [n, H].
func (n *net) prior(h *Node) *Node {
	return mixed(n.linear("prior.out", n.mlp("prior.l1", h)), n.sizes, n.mix)
}

// predict is g_obs([h ; z]): the predicted observation [n, D].
func (n *net) predict(h, z *Node) *Node {
	return n.linear("obs.out", n.mlp("obs.l1", Concatenate([]*Node{h, z}, 1)))
}

// heads returns the two logits [n] for rows [h_{t+1} ; zh_{t+1} ; a' ; f' ; e'].
// A logit is a sum of three: linear in f', a network over f' alone, and a
// network over everything. The first two carry over to formats and domains that
// training did not see, the third knows what only state and texts tell
// (docs/decisions/heads-in-parts.md).
//
// drop, if not nil, is the dropout mask over the columns, 1 on those of f', and
// dropState that over the third part as a whole but for the bias, which is the
// logit's, [n, 1].
func (n *net) heads(h, zh, a, f, e, drop, dropState *Node) (haz, pre *Node) {
	x := Concatenate([]*Node{h, zh, a, f, e}, 1)
	if drop != nil {
		x = Mul(x, drop)
	}
	logit := func(name string) *Node {
		y := dot(n.mlp(name+".l1", x), n.params[name+".out.w"])
		if dropState != nil {
			y = Mul(y, dropState)
		}
		y = Add(y, row(n.params[name+".out.b"]))
		if n.U > 0 {
			y = Add(y, dot(n.mlp(name+".feat.l1", f), n.params[name+".feat.out.w"]))
		}
		return Reshape(Add(y, dot(f, n.params[name+".skip.w"])), x.Shape().Dim(0))
	}
	return logit("head.haz"), logit("head.pre")
}

// repeat stacks x [B, d] t times: the same row for every step of a run.
func repeat(x *Node, t int) *Node {
	b, d := x.Shape().Dim(0), x.Shape().Dim(1)
	return Reshape(BroadcastToDims(InsertAxes(x, 0), t, b, d), t*b, d)
}

// floatType is the type of every tensor.
const floatType = dtypes.Float32
