package guard

import (
	"math"
	"sync"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/forest"
)

// The forward pass of docs/reference/model.md in float32, one step at a time.
// Names follow that page. Nothing here allocates but newState and newWork.

const epsilon = 1e-5 // of layer normalisation

type linear struct {
	w blas32.General // [out, in]
	b []float32
}

// apply writes w x + b to y. Only columns from..from+len(x) of w take part.
func (l *linear) apply(y, x []float32, from int) {
	copy(y, l.b)
	l.add(y, x, from)
}

// add adds w x to y, for the columns from..from+len(x).
func (l *linear) add(y, x []float32, from int) {
	gemv(l.w, y, x, from)
}

func gemv(w blas32.General, y, x []float32, from int) {
	sub := blas32.General{Rows: w.Rows, Cols: len(x), Stride: w.Stride, Data: w.Data[from:]}
	blas32.Gemv(blas.NoTrans, 1, sub, blas32.Vector{N: len(x), Inc: 1, Data: x}, 1, blas32.Vector{N: w.Rows, Inc: 1, Data: y})
}

type norm struct{ g, b []float32 }

// apply normalises x in place.
func (n *norm) apply(x []float32) {
	var sum, squares float64
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / float64(len(x))
	for _, v := range x {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	m, inv := float32(mean), float32(1/math.Sqrt(squares/float64(len(x))+epsilon))
	for i, v := range x {
		x[i] = (v-m)*inv*n.g[i] + n.b[i]
	}
}

// mlp is Linear, LN, SiLU.
type mlp struct {
	linear
	norm
}

func (l *mlp) apply(y, x []float32) {
	l.linear.apply(y, x, 0)
	l.finish(y)
}

func (l *mlp) finish(y []float32) {
	l.norm.apply(y)
	for i, v := range y {
		y[i] = v * sigmoid(v)
	}
}

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

type head struct {
	l1      mlp
	out     linear
	skip    []float32
	feat    mlp // over f' alone, if featOut is not empty
	featOut []float32
	trees   *forest.Forest // over f'
}

// logit reads the head's input without e', whose share of the first layer,
// bias included, is task. q [Q] and u [U] are working memory.
func (h *head) logit(q, u, x, f, task []float32) float32 {
	copy(q, task)
	h.l1.add(q, x, 0)
	h.l1.finish(q)
	y := h.out.b[0]
	for i, v := range q {
		y += h.out.w.Data[i] * v
	}
	for i, v := range f {
		y += h.skip[i] * v
	}
	if len(u) > 0 {
		h.feat.apply(u, f)
	}
	for i, v := range u {
		y += h.featOut[i] * v
	}
	return y + h.trees.Value(f)
}

type network struct {
	dims        artifact.Dims
	mix         float32
	mode        bool // z is the one-hot mode
	mean, scale []float32
	e, o, a     mlp
	none        []float32
	start       linear
	post        mlp
	postOut     linear
	prior       mlp
	priorOut    linear
	ln          norm
	wr, wu, wn  linear // input weights and the biases br, bu, bn
	ur, uu, un  linear // recurrent weights; un's bias is bm
	haz, pre    head
	pool        sync.Pool // of *work
}

// newNetwork arranges the tensors, which artifact has checked.
func newNetwork(a *artifact.Artifact) *network {
	vec := func(name string) []float32 { return a.Tensors[name].Data }
	matrix := func(name string) blas32.General {
		t := a.Tensors[name]
		return blas32.General{Rows: t.Shape[0], Cols: t.Shape[1], Stride: t.Shape[1], Data: t.Data}
	}
	lin := func(w, b string) linear { return linear{matrix(w), vec(b)} }
	layer := func(name string) mlp {
		return mlp{lin(name+".w", name+".b"), norm{vec(name + ".ln.g"), vec(name + ".ln.b")}}
	}
	risk := func(name string) head {
		h := head{l1: layer(name + ".l1"), out: lin(name+".out.w", name+".out.b"), skip: vec(name + ".skip.w")}
		if a.Manifest.Dims.U > 0 {
			h.feat, h.featOut = layer(name+".feat.l1"), vec(name+".feat.out.w")
		}
		h.trees = new(forest.Forest)
		if d := a.Manifest.Dims; d.T > 0 {
			var err error
			if h.trees, err = forest.New(vec(name+".trees"), d.T, d.N, d.F); err != nil {
				panic(err) // artifact has checked it
			}
		}
		return h
	}
	m := &a.Manifest
	n := &network{
		dims: m.Dims, mix: float32(m.UniformMix), mode: m.Latent == artifact.Mode,
		mean: vec("feat.mean"), scale: vec("feat.scale"),
		e: layer("adapt.e"), o: layer("adapt.o"), a: layer("adapt.a"),
		none:  vec("obs.none"),
		start: lin("init.w", "init.b"),
		post:  layer("post.l1"), postOut: lin("post.out.w", "post.out.b"),
		prior: layer("prior.l1"), priorOut: lin("prior.out.w", "prior.out.b"),
		ln: norm{vec("gru.ln.g"), vec("gru.ln.b")},
		wr: lin("gru.wr", "gru.br"), wu: lin("gru.wu", "gru.bu"), wn: lin("gru.wn", "gru.bn"),
		ur: linear{w: matrix("gru.ur")}, uu: linear{w: matrix("gru.uu")}, un: lin("gru.un", "gru.bm"),
		haz: risk("head.haz"), pre: risk("head.pre"),
	}
	n.pool.New = func() any { return n.newWork() }
	return n
}

// state is the recurrent state of one run, and during a step its working memory.
// Inputs of a matrix product are aligned, see floats.
type state struct {
	// Kept between steps: h_t, z_t and e' determine all that follows.
	h, z, task []float32

	// Derived from task and h.
	tHaz, tPre []float32 // e' part of the heads' first layers, with bias
	hr, hu, hn []float32 // recurrent part of the gates

	// Results of propose, which Commit goes on from.
	next []float32 // h_{t+1}
	feat []float32 // [F] call features, normalised to f'

	*work // nil between the steps
}

// work is the memory that a step works in. Nothing in it outlives the step, so that
// the sessions of a model share what their concurrent steps need.
type work struct {
	text   []float32 // [D] vector of a text
	hp     []float32 // [H+P] input of the posterior
	x      []float32 // [X] input of the core
	in     []float32 // [H+X] [h_{t+1} ; zh ; a' ; f']
	hid    []float32 // [H]
	r, u   []float32 // [H]
	q      []float32 // [Q]
	fq     []float32 // [U]
	action []float32 // [P] a'
}

func (n *network) newState() *state {
	d := n.dims
	return &state{
		h: floats(d.H), z: floats(d.Z()), task: floats(d.P),
		tHaz: floats(d.Q), tPre: floats(d.Q),
		hr: floats(d.H), hu: floats(d.H), hn: floats(d.H), next: floats(d.H), feat: floats(d.F),
	}
}

func (n *network) newWork() *work {
	d := n.dims
	return &work{
		text: floats(d.D), hp: floats(d.H + d.P), x: floats(d.X()), in: floats(d.H + d.X()),
		hid: floats(d.H), r: floats(d.H), u: floats(d.H), q: floats(d.Q), fq: floats(d.U), action: floats(d.P),
	}
}

// borrow gives the state working memory until giveBack.
func (n *network) borrow(s *state) { s.work = n.pool.Get().(*work) }

func (n *network) giveBack(s *state) {
	n.pool.Put(s.work)
	s.work = nil
}

// floats returns a slice that starts at a multiple of 16 bytes. The assembly of
// gonum's dot product treats what precedes such an address apart, so that the
// order of summation, and the last bit, would otherwise depend on where the
// allocator put the vector.
func floats(n int) []float32 {
	s := make([]float32, n+3)
	skip := int(-uintptr(unsafe.Pointer(&s[0])) % 16 / 4)
	return s[skip : skip+n : skip+n]
}

// begin starts a run from the task vector in s.text.
func (n *network) begin(s *state) {
	n.e.apply(s.task, s.text)
	n.start.apply(s.h, s.task, 0)
	for i, v := range s.h {
		s.h[i] = float32(math.Tanh(float64(v)))
	}
	n.observe(s, n.none)
	n.derive(s)
}

// derive computes what depends on task and h alone.
func (n *network) derive(s *state) {
	from := n.dims.H + n.dims.X()
	n.haz.l1.linear.apply(s.tHaz, s.task, from)
	n.pre.l1.linear.apply(s.tPre, s.task, from)
	n.recur(s)
}

// recur computes the recurrent part of the gates.
func (n *network) recur(s *state) {
	clear(s.hr)
	clear(s.hu)
	n.ur.add(s.hr, s.h, 0)
	n.uu.add(s.hu, s.h, 0)
	n.un.apply(s.hn, s.h, 0)
}

// observe computes z_t, the posterior over [h_t ; o'].
func (n *network) observe(s *state, o []float32) {
	copy(s.hp, s.h)
	copy(s.hp[n.dims.H:], o)
	n.post.apply(s.hid, s.hp)
	n.postOut.apply(s.z, s.hid, 0)
	n.latent(s.z)
}

// propose computes h_{t+1} and both logits for the call vector in s.text and
// the raw features in s.feat. It changes working memory only.
func (n *network) propose(s *state) (haz, pre float32) {
	n.a.apply(s.action, s.text)
	for i, v := range s.feat {
		s.feat[i] = min(max((v-n.mean[i])/n.scale[i], -8), 8)
	}
	n.core(s)
	return n.haz.logit(s.q, s.fq, s.in, s.feat, s.tHaz), n.pre.logit(s.q, s.fq, s.in, s.feat, s.tPre)
}

// core computes h_{t+1} and the heads' input [h_{t+1} ; zh ; a' ; f'] from z_t, h_t,
// a' and f'.
func (n *network) core(s *state) {
	d := n.dims
	copy(s.x, s.z)
	copy(s.x[d.Z():], s.action)
	copy(s.x[d.Z()+d.P:], s.feat)
	n.ln.apply(s.x)

	n.wr.apply(s.r, s.x, 0)
	n.wu.apply(s.u, s.x, 0)
	n.wn.apply(s.next, s.x, 0)
	n.gates(s)

	zh := s.in[d.H : d.H+d.Z()]
	copy(s.in, s.next)
	n.prior.apply(s.hid, s.next)
	n.priorOut.apply(zh, s.hid, 0)
	n.latent(zh)
	copy(s.in[d.H+d.Z():], s.action)
	copy(s.in[d.H+d.Z()+d.P:], s.feat)
}

// gates turns the products of the input into h_{t+1}.
func (n *network) gates(s *state) {
	for i, h := range s.h {
		r, u := sigmoid(s.r[i]+s.hr[i]), sigmoid(s.u[i]+s.hu[i])
		c := float32(math.Tanh(float64(s.next[i] + r*s.hn[i])))
		s.next[i] = (1-u)*c + u*h
	}
}

// advance moves to h_{t+1} as propose left it, and observes the result whose
// vector is in s.text, or none.
func (n *network) advance(s *state, observed bool) {
	s.h, s.next = s.next, s.h
	o := n.none
	if observed {
		n.o.apply(s.action, s.text)
		o = s.action
	}
	n.observe(s, o)
	n.recur(s)
}

// latent turns the logits of each factor into class probabilities mixed with
// the uniform distribution, or into the one-hot mode.
func (n *network) latent(z []float32) {
	c := n.dims.C
	for ; len(z) > 0; z = z[c:] {
		factor, top := z[:c], 0
		for i, v := range factor {
			if v > factor[top] {
				top = i
			}
		}
		if n.mode {
			clear(factor)
			factor[top] = 1
			continue
		}
		var sum float32
		peak := factor[top]
		for i, v := range factor {
			factor[i] = float32(math.Exp(float64(v - peak)))
			sum += factor[i]
		}
		for i, v := range factor {
			factor[i] = (1-n.mix)*v/sum + n.mix/float32(c)
		}
	}
}
