package guard

import (
	"context"
	"math"
	"testing"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// reference is docs/reference/model.md written down naively in float64, by
// tensor name, sharing no arithmetic with the fast path.
type reference struct {
	d    artifact.Dims
	mix  float64
	mode bool
	t    map[string]safetensors.Tensor
}

type vec = []float64

func (r *reference) v(name string) vec {
	out := vec{}
	for _, x := range r.t[name].Data {
		out = append(out, float64(x))
	}
	return out
}

func (r *reference) mul(name string, x vec) vec {
	w, y := r.v(name), vec{}
	for i := 0; i < len(w); i += len(x) {
		var sum float64
		for j := range x {
			sum += w[i+j] * x[j]
		}
		y = append(y, sum)
	}
	return y
}

func add(a, b vec) vec {
	y := vec{}
	for i := range a {
		y = append(y, a[i]+b[i])
	}
	return y
}

func cat(parts ...vec) vec {
	y := vec{}
	for _, p := range parts {
		y = append(y, p...)
	}
	return y
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func (r *reference) ln(name string, x vec) vec {
	n := float64(len(x))
	var mean, variance float64
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / n
	}
	g, b, y := r.v(name+".g"), r.v(name+".b"), vec{}
	for i, v := range x {
		y = append(y, (v-mean)/math.Sqrt(variance+1e-5)*g[i]+b[i])
	}
	return y
}

func (r *reference) linear(name string, x vec) vec { return add(r.mul(name+".w", x), r.v(name+".b")) }

func (r *reference) mlp(name string, x vec) vec {
	y := r.ln(name+".ln", r.linear(name, x))
	for i := range y {
		y[i] *= logistic(y[i])
	}
	return y
}

func (r *reference) latent(logits vec) vec {
	out := vec{}
	for f := range r.d.G {
		l := logits[f*r.d.C : (f+1)*r.d.C]
		var sum float64
		top := 0
		for i, v := range l {
			sum += math.Exp(v)
			if v > l[top] {
				top = i
			}
		}
		for i, v := range l {
			p := (1-r.mix)*math.Exp(v)/sum + r.mix/float64(r.d.C)
			if r.mode {
				p = 0
				if i == top {
					p = 1
				}
			}
			out = append(out, p)
		}
	}
	return out
}

// step returns h_{t+1} and both logits.
func (r *reference) step(h, e, o, a, f vec) (next vec, haz, pre float64) {
	if o == nil {
		o = r.v("obs.none")
	} else {
		o = r.mlp("adapt.o", o)
	}
	mean, scale, fn := r.v("feat.mean"), r.v("feat.scale"), vec{}
	for i := range f {
		fn = append(fn, math.Max(-8, math.Min(8, (f[i]-mean[i])/scale[i])))
	}
	act := r.mlp("adapt.a", a)
	z := r.latent(r.linear("post.out", r.mlp("post.l1", cat(h, o))))
	x := r.ln("gru.ln", cat(z, act, fn))
	gate := func(w string) vec { return add(add(r.mul("gru.w"+w, x), r.mul("gru.u"+w, h)), r.v("gru.b"+w)) }
	gr, gu := gate("r"), gate("u")
	wn, un := add(r.mul("gru.wn", x), r.v("gru.bn")), add(r.mul("gru.un", h), r.v("gru.bm"))
	for i := range h {
		u := logistic(gu[i])
		next = append(next, (1-u)*math.Tanh(wn[i]+logistic(gr[i])*un[i])+u*h[i])
	}
	zh := r.latent(r.linear("prior.out", r.mlp("prior.l1", next)))
	haz, pre = r.readHeads(next, zh, act, fn, e)
	return next, haz, pre
}

// readHeads is the end of reference.step for a given input of the heads, with
// f' for the parts that read it alone.
func (r *reference) readHeads(next, zh, act, fn, e vec) (haz, pre float64) {
	in := cat(next, zh, act, fn, e)
	head := func(name string) float64 {
		y := r.linear(name+".out", r.mlp(name+".l1", in))[0] + r.mul(name+".skip.w", fn)[0]
		if r.d.U > 0 {
			y += r.mul(name+".feat.out.w", r.mlp(name+".feat.l1", fn))[0]
		}
		for t := range r.d.T {
			tree := r.v(name + ".trees")[4*r.d.N*t : 4*r.d.N*(t+1)]
			n := 0
			for tree[4*n+2] != 0 {
				left := int(tree[4*n+2])
				if fn[int(tree[4*n])] > tree[4*n+1] {
					left++
				}
				n = left
			}
			y += tree[4*n+3]
		}
		return y
	}
	return head("head.haz"), head("head.pre")
}

func TestForwardMatchesReference(t *testing.T) {
	for _, latent := range []string{artifact.Probabilities, artifact.Mode} {
		t.Run(latent, func(t *testing.T) {
			files := testFiles(t, tiny, func(m *artifact.Manifest) { m.Latent = latent }, artifact.Thresholds{})
			a, err := artifact.OpenFS(files)
			if err != nil {
				t.Fatal(err)
			}
			m, err := OpenFS(files)
			if err != nil {
				t.Fatal(err)
			}
			r := &reference{d: tiny, mix: 0.01, mode: latent == artifact.Mode, t: a.Tensors}
			text := func(s string) vec {
				dst := make([]float32, tiny.D)
				if err := m.encoder.Encode(context.Background(), []string{s}, dst); err != nil {
					t.Fatal(err)
				}
				out := vec{}
				for _, x := range dst {
					out = append(out, float64(x))
				}
				return out
			}
			e := r.mlp("adapt.e", text(embed.TaskText(testTask)))
			h := r.linear("init", e)
			for i := range h {
				h[i] = math.Tanh(h[i])
			}
			tracker := features.NewTracker(m.vocab, testTask)
			s := m.Start(testTask)
			var o vec
			raw := make([]float32, tiny.F)
			for i, x := range randomRun(3, 40) {
				tracker.Compute(raw, x.call)
				f := vec{}
				for _, y := range raw {
					f = append(f, float64(y))
				}
				next, haz, pre := r.step(h, e, o, text(embed.CallText(x.call)), f)
				v := s.Judge(context.Background(), x.call)
				if math.Abs(v.Logits.Hazard-haz) > 1e-5 || math.Abs(v.Logits.Prefix-pre) > 1e-5 {
					t.Fatalf("step %d: logits %v, want %v and %v", i, v.Logits, haz, pre)
				}
				if err := s.Commit(x.call, x.result); err != nil {
					t.Fatal(err)
				}
				tracker.Commit(x.call, x.result)
				h, o = next, nil
				if back := embed.ResultText(x.result); back != "" {
					o = text(back)
				}
				for j := range h {
					if math.Abs(float64(s.net.h[j])-h[j]) > 1e-5 {
						t.Fatalf("step %d: h[%d] is %v, want %v", i, j, s.net.h[j], h[j])
					}
				}
			}
		})
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	m := testModel(t)
	s := m.net.newState()
	m.net.borrow(s)
	m.net.begin(s)
	if n := testing.AllocsPerRun(50, func() {
		m.net.propose(s)
		m.net.advance(s, true)
	}); n != 0 {
		t.Errorf("%v allocations per step", n)
	}
}

// A vector's place in memory must not show in a sum.
func TestAligned(t *testing.T) {
	for n := 1; n < 70; n++ {
		if s := floats(n); len(s) != n || cap(s) != n {
			t.Fatalf("floats(%d) has length %d, capacity %d", n, len(s), cap(s))
		}
	}
	m := testModel(t)
	run := randomRun(5, 6)
	want := play(t, m.Start(testTask), run)
	var keep [][]float32
	for i := range 20 {
		keep = append(keep, make([]float32, 1+i%3)) // shifts what the allocator returns next
		got := play(t, m.Start(testTask), run)
		for j := range want {
			if got[j].Logits != want[j].Logits {
				t.Fatalf("repeat %d, step %d: %v, want %v", i, j, got[j].Logits, want[j].Logits)
			}
		}
	}
	if len(keep) != 20 {
		t.Fatal("unreachable")
	}
}

func TestSane(t *testing.T) {
	tests := []struct {
		in   float32
		want float64
	}{{0.5, 0.5}, {float32(math.NaN()), 1e4}, {float32(math.Inf(1)), 1e4}, {float32(math.Inf(-1)), -1e4}}
	for _, tt := range tests {
		if got := sane(tt.in); got != tt.want {
			t.Errorf("sane(%v) = %v, want %v", tt.in, got, tt.want)
		}
	}
}
