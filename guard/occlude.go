package guard

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// occluder computes what the heads would answer to the proposed call without one
// of their inputs. The first layer of a head is linear, so that a call feature
// leaves it with one column of the weights; what comes after is computed anew.
type occluder struct {
	n        *network
	s        *state
	haz, pre split
	base     Logits // with everything
}

// split is a head with the shares of its inputs in the first layer.
type split struct {
	h           *head
	task        []float32 // [Q] with the bias
	state       []float32 // [Q] of h_{t+1} and zh
	action      []float32 // [Q] of a'
	feat        []float32 // [Q] of f'
	sum         []float32 // [Q] of all
	u           []float32 // [U] first layer over f' alone
	from        int       // column of f'
	skip        float32   // linear part
	trees       float32   // what the trees over f' add
	byTree      []float32 // [F] what each call feature does to that
	over, alone float32   // what the networks over everything and over f' alone add
	q, v        []float32 // working memory
}

// newOccluder needs the state as propose left it, with its working memory.
func newOccluder(n *network, s *state) *occluder {
	o := &occluder{n: n, s: s}
	o.haz.init(n, &n.haz, s, s.tHaz)
	o.pre.init(n, &n.pre, s, s.tPre)
	o.base = Logits{sane(o.haz.logit()), sane(o.pre.logit())}
	return o
}

func (p *split) init(n *network, h *head, s *state, task []float32) {
	d := n.dims
	p.h, p.task = h, task
	p.from = d.H + d.Z() + d.P
	p.state, p.action, p.feat, p.sum = floats(d.Q), floats(d.Q), floats(d.Q), floats(d.Q)
	p.q, p.u, p.v, p.byTree = floats(d.Q), floats(d.U), floats(d.U), floats(d.F)
	h.l1.add(p.state, s.in[:d.H+d.Z()], 0)
	h.l1.add(p.action, s.action, d.H+d.Z())
	h.l1.add(p.feat, s.feat, p.from)
	for i := range p.sum {
		p.sum[i] = task[i] + p.state[i] + p.action[i] + p.feat[i]
	}
	if d.U > 0 {
		h.feat.linear.apply(p.u, s.feat, 0)
	}
	for i, f := range s.feat {
		p.skip += h.skip[i] * f
	}
	p.trees = h.trees.Value(s.feat)
	h.trees.Effects(p.byTree, s.feat)
	p.over = p.all(p.sum)
	copy(p.v, p.u)
	p.alone = p.feats(p.v)
}

func (p *split) logit() float32 { return p.over + p.rest() }

// rest is what does not depend on the network over everything.
func (p *split) rest() float32 { return p.skip + p.alone + p.trees }

// all is the network over everything for the first layer's values pre, bias of the
// last layer included.
func (p *split) all(pre []float32) float32 {
	copy(p.q, pre)
	p.h.l1.finish(p.q)
	y := p.h.out.b[0]
	for i, v := range p.q {
		y += p.h.out.w.Data[i] * v
	}
	return y
}

// feats is the network over f' alone for the first layer's values u, which it
// overwrites.
func (p *split) feats(u []float32) (y float32) {
	if len(u) > 0 {
		p.h.feat.finish(u)
	}
	for i, v := range u {
		y += p.h.featOut[i] * v
	}
	return y
}

// column returns column j of w, one value per stride.
func column(w blas32.General, j int) []float32 { return w.Data[j:] }

// without is the logit with call feature j at its mean in training, f'_j = 0.
func (p *split) without(j int, f float32) float32 {
	w, stride := column(p.h.l1.w, p.from+j), p.h.l1.w.Stride
	for i, x := range p.sum {
		p.q[i] = x - w[i*stride]*f
	}
	y := p.all(p.q)
	if len(p.u) > 0 {
		w, stride := column(p.h.feat.w, j), p.h.feat.w.Stride
		for i, x := range p.u {
			p.v[i] = x - w[i*stride]*f
		}
	}
	return y + p.skip - p.h.skip[j]*f + p.feats(p.v) + p.trees - p.byTree[j]
}

// gradient writes d logit / d f' with the state held.
func (p *split) gradient(g []float32) {
	copy(g, p.h.skip)
	through := func(l *mlp, pre, out, scratch []float32, from int) {
		l.norm.gradient(scratch, pre, out)
		sub := blas32.General{Rows: l.w.Rows, Cols: len(g), Stride: l.w.Stride, Data: l.w.Data[from:]}
		blas32.Gemv(blas.Trans, 1, sub, blas32.Vector{N: len(scratch), Inc: 1, Data: scratch}, 1, blas32.Vector{N: len(g), Inc: 1, Data: g})
	}
	through(&p.h.l1, p.sum, p.h.out.w.Data, p.q, p.from)
	if len(p.u) > 0 {
		through(&p.h.feat, p.u, p.h.featOut, p.v, 0)
	}
}

// gradient writes d/dx of out . SiLU(LN(x)) to dst.
func (n *norm) gradient(dst, x, out []float32) {
	size := float64(len(x))
	var sum, squares float64
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / size
	for _, v := range x {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	inv := 1 / math.Sqrt(squares/size+epsilon)
	var total, along float64 // of the gradient by the normalised values
	for i, v := range x {
		hat := (float64(v) - mean) * inv
		y := hat*float64(n.g[i]) + float64(n.b[i])
		s := float64(sigmoid(float32(y)))
		d := float64(out[i]) * s * (1 + y*(1-s)) * float64(n.g[i])
		dst[i] = float32(d)
		total += d / size
		along += d * hat / size
	}
	for i, v := range x {
		hat := (float64(v) - mean) * inv
		dst[i] = float32(inv * (float64(dst[i]) - total - hat*along))
	}
}

// feature is the logits with call feature j at its mean in training, all else held.
func (o *occluder) feature(j int) Logits {
	f := o.s.feat[j]
	return Logits{sane(o.haz.without(j, f)), sane(o.pre.without(j, f))}
}

// likely returns the n features whose share is largest in both heads, each divided
// by its temperature, largest first: to first order, and what the
// trees make of it.
// more adds to that.
func (o *occluder) likely(n int, hazard, prefix float64, more func(j int) float64) []int {
	haz, pre := make([]float32, o.n.dims.F), make([]float32, o.n.dims.F)
	o.haz.gradient(haz)
	o.pre.gradient(pre)
	size, order := make([]float64, len(haz)), make([]int, len(haz))
	for j := range haz {
		order[j] = j
		f := float64(o.s.feat[j])
		size[j] = math.Abs((f*float64(haz[j])+float64(o.haz.byTree[j]))/hazard + (f*float64(pre[j])+float64(o.pre.byTree[j]))/prefix + more(j))
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size[b], size[a]) })
	return order[:min(n, len(order))]
}

// task is the logits with nothing said about the task in the heads. What the state
// took from it at the start stays.
func (o *occluder) task() Logits {
	without := func(p *split) float64 {
		for i, x := range p.sum {
			p.q[i] = x - p.task[i] + p.h.l1.linear.b[i]
		}
		return sane(p.all(p.q) + p.rest())
	}
	return Logits{without(&o.haz), without(&o.pre)}
}

// texts is the logits with a' = 0, nothing said about the call but its features, and
// had there been no observation before the call, whose features stay.
func (o *occluder) texts() (call, result Logits) {
	d := o.n.dims
	a, b := o.twin(), o.twin()
	defer o.n.giveBack(a)
	defer o.n.giveBack(b)
	clear(a.action)
	b.z = floats(d.Z())
	o.n.observe(b, o.n.none)
	copy(b.action, o.s.action)
	for _, x := range []*state{a, b} {
		copy(x.x, x.z)
		copy(x.x[d.Z():], x.action)
		copy(x.x[d.Z()+d.P:], x.feat)
		o.n.ln.apply(x.x)
	}
	o.n.wr.two(a.r, b.r, a.x, b.x)
	o.n.wu.two(a.u, b.u, a.x, b.x)
	o.n.wn.two(a.next, b.next, a.x, b.x)
	o.n.gates(a)
	o.n.gates(b)
	copy(a.in, a.next)
	copy(b.in, b.next)
	o.n.prior.two(a.hid, b.hid, a.next, b.next)
	o.n.prior.finish(a.hid)
	o.n.prior.finish(b.hid)
	za, zb := a.in[d.H:d.H+d.Z()], b.in[d.H:d.H+d.Z()]
	o.n.priorOut.two(za, zb, a.hid, b.hid)
	o.n.latent(za)
	o.n.latent(zb)
	return o.heads(a, false), o.heads(b, true)
}

// two is apply for two inputs in one pass: reading a large matrix costs more than the
// arithmetic.
func (l *linear) two(ya, yb, xa, xb []float32) {
	n := len(xa)
	va, vb := blas32.Vector{N: n, Inc: 1, Data: xa}, blas32.Vector{N: n, Inc: 1, Data: xb}
	for i := range l.b {
		row := blas32.Vector{N: n, Inc: 1, Data: l.w.Data[i*l.w.Stride:]}
		ya[i], yb[i] = l.b[i]+blas32.Dot(row, va), l.b[i]+blas32.Dot(row, vb)
	}
}

// twin is the state at the proposed call with borrowed working memory of its own.
func (o *occluder) twin() *state {
	x := *o.s
	x.next = floats(o.n.dims.H)
	o.n.borrow(&x)
	return &x
}

// heads is the logits for the state that core left in x.
func (o *occluder) heads(x *state, action bool) Logits {
	d := o.n.dims
	read := func(p *split) float64 {
		for i := range p.q {
			p.q[i] = p.task[i] + p.feat[i]
			if action {
				p.q[i] += p.action[i]
			}
		}
		p.h.l1.add(p.q, x.in[:d.H+d.Z()], 0)
		return sane(p.all(p.q) + p.rest())
	}
	return Logits{read(&o.haz), read(&o.pre)}
}
