package train

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/internal/backend"
)

// reference is the forward pass of docs/reference/model.md written down term by
// term in float64, one row at a time, sharing no code with the graph.
type reference struct {
	w    *Weights
	s    sizes
	mode bool // z is the mode rather than the probabilities
}

func (r reference) v(name string) []float64 {
	raw := r.w.Value(name)
	if raw == nil {
		panic("no tensor " + name)
	}
	out := make([]float64, len(raw))
	for i, x := range raw {
		out[i] = float64(x)
	}
	return out
}

func wide(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func join(parts ...[]float64) []float64 {
	var out []float64
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// matvec is W x, W [out, in].
func matvec(w, x []float64) []float64 {
	out := make([]float64, len(w)/len(x))
	for i := range out {
		for j, v := range x {
			out[i] += w[i*len(x)+j] * v
		}
	}
	return out
}

func plus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] + b[i]
	}
	return out
}

func mapped(a []float64, f func(float64) float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = f(a[i])
	}
	return out
}

func sigmoid64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func layerNorm(x, g, b []float64) []float64 {
	var mean, variance float64
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = g[i]*(v-mean)/math.Sqrt(variance+1e-5) + b[i]
	}
	return out
}

func (r reference) linear(name string, x []float64) []float64 {
	return plus(matvec(r.v(name+".w"), x), r.v(name+".b"))
}

func (r reference) mlp(name string, x []float64) []float64 {
	y := layerNorm(r.linear(name, x), r.v(name+".ln.g"), r.v(name+".ln.b"))
	return mapped(y, func(v float64) float64 { return v * sigmoid64(v) })
}

// latent is the runtime's z: mixed probabilities, or the one-hot mode.
func (r reference) latent(logits []float64) []float64 {
	out := make([]float64, len(logits))
	for g := range r.s.G {
		l := logits[g*r.s.C : (g+1)*r.s.C]
		var sum float64
		best := 0
		for c, v := range l {
			sum += math.Exp(v)
			if v > l[best] {
				best = c
			}
		}
		for c, v := range l {
			out[g*r.s.C+c] = (1-r.w.Model.UniformMix)*math.Exp(v)/sum + r.w.Model.UniformMix/float64(r.s.C)
			if r.mode {
				out[g*r.s.C+c] = 0
			}
		}
		if r.mode {
			out[g*r.s.C+best] = 1
		}
	}
	return out
}

func (r reference) gru(h, x []float64) []float64 {
	x = layerNorm(x, r.v("gru.ln.g"), r.v("gru.ln.b"))
	in := func(gate string) []float64 { return plus(matvec(r.v("gru.w"+gate), x), r.v("gru.b"+gate)) }
	reset := mapped(plus(in("r"), matvec(r.v("gru.ur"), h)), sigmoid64)
	update := mapped(plus(in("u"), matvec(r.v("gru.uu"), h)), sigmoid64)
	recurrent := plus(matvec(r.v("gru.un"), h), r.v("gru.bm"))
	out := make([]float64, len(h))
	for i, n := range in("n") {
		n = math.Tanh(n + reset[i]*recurrent[i])
		out[i] = (1-update[i])*n + update[i]*h[i]
	}
	return out
}

// refStep is what the reference knows of one step.
type refStep struct {
	haz, pre float64
	predict  []float64 // g_obs([h ; z]) after the step's result
	kl       float64   // of posterior and prior after it
}

func (r reference) observation(x *Example, t int) []float64 {
	if t < 0 || !x.HasResult[t] {
		return r.v("obs.none")
	}
	return r.mlp("adapt.o", wide(x.Results[t*r.s.D:(t+1)*r.s.D]))
}

// trees reads the tensor as docs/reference/model.md describes it.
func (r reference) trees(name string, x []float32) (sum float64) {
	for t := range r.s.T {
		v := r.v(name)[4*r.s.N*t : 4*r.s.N*(t+1)]
		n := 0
		for v[4*n+2] != 0 {
			left := int(v[4*n+2])
			if x[int(v[4*n])] > float32(v[4*n+1]) {
				left++
			}
			n = left
		}
		sum += v[4*n+3]
	}
	return sum
}

func (r reference) posterior(h, obs []float64) []float64 {
	return r.linear("post.out", r.mlp("post.l1", join(h, obs)))
}

func (r reference) run(x *Example) (steps []refStep) {
	d, f := r.s.D, r.s.F
	task := r.mlp("adapt.e", wide(x.Task))
	h := mapped(r.linear("init", task), math.Tanh)
	mean, scale := r.v("feat.mean"), r.v("feat.scale")
	for t := range x.Steps {
		z := r.latent(r.posterior(h, r.observation(x, t-1)))
		call := r.mlp("adapt.a", wide(x.Calls[t*d:(t+1)*d]))
		feat := wide(x.Features[t*f : (t+1)*f])
		for i := range feat {
			feat[i] = min(max((feat[i]-mean[i])/scale[i], -8), 8)
		}
		// A threshold may be a value of the data to the last bit.
		single := make([]float32, f)
		normalise(single, x.Features[t*f:(t+1)*f], r.w.Value("feat.mean"), r.w.Value("feat.scale"))
		h = r.gru(h, join(z, call, feat))
		prior := r.linear("prior.out", r.mlp("prior.l1", h))
		zh := r.latent(prior)
		logit := func(name string) float64 {
			y := r.linear(name+".out", r.mlp(name+".l1", join(h, zh, call, feat, task)))
			if r.s.U > 0 {
				y[0] += matvec(r.v(name+".feat.out.w"), r.mlp(name+".feat.l1", feat))[0]
			}
			return y[0] + matvec(r.v(name+".skip.w"), feat)[0] + r.trees(name+".trees", single)
		}
		post := r.posterior(h, r.observation(x, t))
		s := refStep{haz: logit("head.haz"), pre: logit("head.pre")}
		s.predict = r.linear("obs.out", r.mlp("obs.l1", join(h, r.latent(post))))
		soft := r
		soft.mode = false
		p := soft.latent(prior)
		for i, q := range soft.latent(post) {
			s.kl += q * math.Log(q/p[i])
		}
		steps = append(steps, s)
	}
	return steps
}

// randomise gives every tensor values, so that no term hides behind a zero.
func randomise(w *Weights) {
	rng := rand.New(rand.NewPCG(7, 7))
	for i, p := range w.params {
		sd := 0.3
		if len(p.Shape) == 2 {
			sd = 1 / math.Sqrt(float64(p.Shape[1]))
		}
		for k := range w.values[i] {
			w.values[i][k] += float32(rng.NormFloat64() * sd)
		}
		if p.Name == "feat.scale" {
			for k, v := range w.values[i] {
				w.values[i][k] = float32(math.Abs(float64(v))) + 0.1
			}
		}
	}
}

func TestLogitsAgreeWithReference(t *testing.T) {
	for _, latent := range []string{"probabilities", "mode"} {
		cfg, dims := testConfig(), testDims()
		cfg.Model.Latent = latent
		// More runs than one evaluation batch and lengths over several chunks.
		xs := testExamples(evalBatch+9, dims, nil, 1, 8, 9, 30, 4)
		f, err := newFitter(cfg, dims, xs, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		randomise(f.w)
		w, err := f.withTrees(t.Context(), f.w)
		if err != nil {
			t.Fatal(err)
		}
		if w.Dims.Trees == 0 {
			t.Fatal("no trees")
		}
		ev, err := NewEvaluator(w)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ev.Logits(context.Background(), xs)
		if err != nil {
			t.Fatal(err)
		}
		ref := reference{w, w.sizes(), latent == "mode"}
		var spread float64
		for i := range xs {
			want := ref.run(&xs[i])
			for step, r := range want {
				spread = max(spread, math.Abs(r.haz-want[0].haz))
				for _, c := range []struct {
					name string
					got  float32
					want float64
				}{{"hazard", got[i].Hazard[step], r.haz}, {"prefix", got[i].Prefix[step], r.pre}} {
					if math.Abs(float64(c.got)-c.want) > 1e-5*(1+math.Abs(c.want)) {
						t.Errorf("%s: %s step %d: %s logit %g, reference %g", latent, xs[i].ID, step, c.name, c.got, c.want)
					}
				}
			}
		}
		if spread < 0.1 {
			t.Errorf("%s: logits vary by %g only: the test compares nothing", latent, spread)
		}
	}
}

func TestWorldModelAgreesWithReference(t *testing.T) {
	cfg, dims := testConfig(), testDims()
	w, err := newWeights(cfg.Model, dims, 3)
	if err != nil {
		t.Fatal(err)
	}
	randomise(w)
	be, err := backend.Open(backend.Go)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := newEvaluator(be, w, true)
	if err != nil {
		t.Fatal(err)
	}
	xs := testExamples(5, dims, nil, 9, 3)
	ref := reference{w: w, s: w.sizes()}
	visited := 0
	err = ev.each(context.Background(), xs, func(run, step, row int, v [][]float32) {
		visited++
		want := ref.run(&xs[run])[step]
		near(t, "prediction", v[0][row*dims.D:(row+1)*dims.D], want.predict, 1e-5)
		near(t, "kl", v[1][row:row+1], []float64{want.kl}, 1e-5)
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := 9 + 3 + 9 + 3 + 9; visited != want {
		t.Errorf("%d steps were visited, want %d", visited, want)
	}
}

// Nothing that comes back after a call may change its logits.
func TestLogitsIgnoreTheFuture(t *testing.T) {
	cfg, dims := testConfig(), testDims()
	w, err := newWeights(cfg.Model, dims, 3)
	if err != nil {
		t.Fatal(err)
	}
	randomise(w)
	ev, err := NewEvaluator(w)
	if err != nil {
		t.Fatal(err)
	}
	xs := testExamples(1, dims, func(x *Example) { x.Label, x.Hazard = data.Safe, -1 }, 12)
	before, err := ev.Logits(context.Background(), xs)
	if err != nil {
		t.Fatal(err)
	}
	const now = 6
	for i := now * dims.D; i < len(xs[0].Results); i++ {
		xs[0].Results[i] = 9
	}
	for i := (now + 1) * dims.D; i < len(xs[0].Calls); i++ {
		xs[0].Calls[i] = -9
	}
	after, err := ev.Logits(context.Background(), xs)
	if err != nil {
		t.Fatal(err)
	}
	for step := range 12 {
		same := before[0].Hazard[step] == after[0].Hazard[step] && before[0].Prefix[step] == after[0].Prefix[step]
		if same != (step <= now) {
			t.Errorf("step %d: unchanged is %v after changing what follows step %d", step, same, now)
		}
	}
}
