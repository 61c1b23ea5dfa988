package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/internal/backend"
)

// probe evaluates loss terms and gradients of chosen parameters on one batch.
type probe struct {
	*stepper
	w     *Weights
	batch map[string][]float32
}

// newProbe makes every group but constant learn. newTape may return nil.
func newProbe(t *testing.T, cfg configs.Config, st stage, sample func(p, u *Node) *Node, newTape func() *tape) *probe {
	t.Helper()
	dims := testDims()
	w, err := newWeights(cfg.Model, dims, 5)
	if err != nil {
		t.Fatal(err)
	}
	randomise(w)
	k, err := newBatcher(st, cfg, w, testExamples(9, dims, nil, 4, 3, 4, 2))
	if err != nil {
		t.Fatal(err)
	}
	var steps int
	var batch map[string][]float32
	for n := 0; steps != cfg.Train.MaxSteps || slices.Max(batch["predict.w"]) == 0; n++ {
		steps, batch = k.step(n)
	}
	be, err := backend.Open(backend.Go)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newStepper(be, cfg, dims, st, steps, cfg.Train.Batch)
	if err != nil {
		t.Fatal(err)
	}
	learns := map[Group]bool{Adapter: true, World: true, Core: true, Head: st == 2}
	s.trained = nil
	for i, p := range s.params {
		if learns[p.Group] && (st == 1 || cfg.Train.Stage2.World > 0 || !trainingOnly(p.Name)) {
			s.trained = append(s.trained, i)
		}
	}
	s.exec, err = NewExec(be, s.graph(cfg, dims, st, steps, learns, sample, newTape))
	if err != nil {
		t.Fatal(err)
	}
	return &probe{s, w, batch}
}

func (p *probe) eval(t *testing.T) (loss float64, grads [][]float32) {
	t.Helper()
	be, err := backend.Open(backend.Go)
	if err != nil {
		t.Fatal(err)
	}
	params, err := onBackend(be, p.w)
	if err != nil {
		t.Fatal(err)
	}
	err = p.run(params, p.batch, func(terms []float32, g [][]float32) error {
		loss = float64(terms[0])
		for _, v := range g {
			grads = append(grads, slices.Clone(v))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return loss, grads
}

func gradientConfig() configs.Config {
	cfg := testConfig()
	cfg.Train.Stage1.Prior = 0.3
	cfg.Train.Stage1.FreeBits = 0.01 // below the KL, so that it has a gradient
	cfg.Train.Stage2.World = 0.5
	cfg.Train.Batch = 5 // enough steps with a result for the prediction loss
	return cfg
}

func TestTapeAgreesWithPlainGradient(t *testing.T) {
	for _, st := range []stage{1, 2} {
		taped := newProbe(t, gradientConfig(), st, sampled, func() *tape { return &tape{} })
		plain := newProbe(t, gradientConfig(), st, sampled, func() *tape { return nil })
		lossT, gotAll := taped.eval(t)
		lossP, wantAll := plain.eval(t)
		if lossT != lossP {
			t.Errorf("stage %d: loss %g with the tape, %g without", st, lossT, lossP)
		}
		for i, at := range taped.trained {
			got, want := gotAll[i], wantAll[i]
			var diff, norm float64
			for k := range want {
				diff += math.Pow(float64(got[k]-want[k]), 2)
				norm += math.Pow(float64(want[k]), 2)
			}
			if name := taped.params[at].Name; norm == 0 {
				t.Errorf("stage %d: %s has no gradient", st, name)
			} else if math.Sqrt(diff/norm) > 1e-4 {
				t.Errorf("stage %d: %s: relative difference %g", st, name, math.Sqrt(diff/norm))
			}
		}
	}
}

// The loss is smooth where z is the probabilities and the KL, whose stopped
// gradients differ from its slope by design, is off.
func TestGradientAgainstFiniteDifferences(t *testing.T) {
	cfg := gradientConfig()
	cfg.Train.Stage1.Dynamics, cfg.Train.Stage1.Represent = 0, 0
	p := newProbe(t, cfg, 2, latent("probabilities"), func() *tape { return &tape{} })
	_, grads := p.eval(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for i, at := range p.trained {
		v := p.w.values[at]
		old := slices.Clone(v)
		// A random direction that leans on the gradient, so that the slope stands out
		// against rounding.
		dir := make([]float64, len(v))
		var norm, gnorm float64
		for _, g := range grads[i] {
			gnorm += float64(g) * float64(g)
		}
		if gnorm = math.Sqrt(gnorm); gnorm == 0 {
			t.Errorf("%s has no gradient", p.params[at].Name)
			continue
		}
		for k := range dir {
			dir[k] = rng.NormFloat64()/math.Sqrt(float64(len(dir))) + float64(grads[i][k])/gnorm
			norm += dir[k] * dir[k]
		}
		var want float64
		const eps = 4e-3
		move := func(sign float64) float64 {
			for k := range v {
				v[k] = float32(float64(old[k]) + sign*eps*dir[k]/math.Sqrt(norm))
			}
			loss, _ := p.eval(t)
			return loss
		}
		want = (move(1) - move(-1)) / (2 * eps)
		copy(v, old)
		var got float64
		for k, g := range grads[i] {
			got += float64(g) * dir[k] / math.Sqrt(norm)
		}
		if math.Abs(got-want) > 2e-4+0.01*math.Abs(want) {
			t.Errorf("%s: slope %g, finite difference %g", p.params[at].Name, got, want)
		}
	}
}

// evalGraph runs a graph of float32 inputs once and returns its outputs flat.
func evalGraph(t *testing.T, build func(in []*Node) []*Node, inputs ...any) [][]float32 {
	t.Helper()
	be, err := backend.Open(backend.Go)
	if err != nil {
		t.Fatal(err)
	}
	exec, err := NewExec(be, build)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Call(inputs...)
	if err != nil {
		t.Fatal(err)
	}
	var flat [][]float32
	for _, x := range out {
		v, err := tensors.CopyFlatData[float32](x)
		if err != nil {
			t.Fatal(err)
		}
		flat = append(flat, v)
	}
	return flat
}

func near(t *testing.T, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(float64(got[i])-want[i]) <= tolerance*(1+math.Abs(want[i]))) {
			t.Errorf("%s[%d] = %g, want %g", what, i, got[i], want[i])
		}
	}
}

// The straight-through gradient of z is that of the probabilities: for
// L = sum(c z), dL/dlogits must equal the slope of sum(c p(logits)), whatever was
// drawn.
func TestStraightThroughGradient(t *testing.T) {
	s := sizes{G: 2, C: 3}
	const mix = 0.01
	logits := []float32{0.5, -1, 2, 0, 0.3, -0.7}
	c := []float32{1, -2, 3, 0.5, 4, -1}
	p := func(l []float64) (sum float64) {
		for g := range s.G {
			var total float64
			for k := range s.C {
				total += math.Exp(l[g*s.C+k])
			}
			for k := range s.C {
				sum += float64(c[g*s.C+k]) * ((1-mix)*math.Exp(l[g*s.C+k])/total + mix/float64(s.C))
			}
		}
		return sum
	}
	var want []float64
	for i := range logits {
		up, down := wide(logits), wide(logits)
		up[i] += 1e-5
		down[i] -= 1e-5
		want = append(want, (p(up)-p(down))/2e-5)
	}
	for _, u := range [][]float32{{0, 0}, {0.5, 0.999}, {0.3, 0.6}} {
		out := evalGraph(t, func(in []*Node) []*Node {
			z := sampled(mixed(in[0], s, mix), in[1])
			return append([]*Node{z}, Gradient(ReduceAllSum(Mul(z, in[2])), in[0])...)
		}, [][]float32{logits}, [][]float32{u}, [][]float32{c})
		near(t, fmt.Sprintf("gradient at u=%v", u), out[1], want, 1e-5)
		for g := range s.G { // and z is one-hot
			var ones int
			for _, v := range out[0][g*s.C : (g+1)*s.C] {
				switch {
				case math.Abs(float64(v)-1) < 1e-6:
					ones++
				case math.Abs(float64(v)) > 1e-6:
					t.Errorf("u=%v: z has the value %g", u, v)
				}
			}
			if ones != 1 {
				t.Errorf("u=%v: factor %d has %d ones", u, g, ones)
			}
		}
	}
}

// Over a grid of uniform numbers each class must come up with its probability.
func TestSampledFrequencies(t *testing.T) {
	const n = 1 << uniformBits / 16 // every 16th number that the host can draw
	s := sizes{G: 1, C: 4}
	p := [][]float32{make([]float32, s.C)}
	u := make([][]float32, n)
	logits := make([][]float32, n)
	for i := range u {
		u[i] = []float32{float32(i*16) / (1 << uniformBits)}
		logits[i] = []float32{1, 0, -2, 0.5}
	}
	u[n-1][0] = float32(1<<uniformBits-1) / (1 << uniformBits) // the largest
	out := evalGraph(t, func(in []*Node) []*Node {
		q := mixed(in[0], s, 0.01)
		return []*Node{sampled(q, in[1]), q}
	}, logits, u)
	copy(p[0], out[1][:s.C])
	for c := range s.C {
		var hits float64
		for i := range n {
			hits += float64(out[0][i*s.C+c])
		}
		if got := hits / n; math.Abs(got-float64(p[0][c])) > 2.0/n+1e-4 {
			t.Errorf("class %d drawn with frequency %g, probability %g", c, got, p[0][c])
		}
	}
}
