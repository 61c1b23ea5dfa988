package train

import (
	"math"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
)

func TestKLClosedForm(t *testing.T) {
	// Two runs of two factors of two classes.
	p := [][][]float32{{{0.5, 0.5}, {0.9, 0.1}}, {{0.2, 0.8}, {0.3, 0.7}}}
	q := [][][]float32{{{0.25, 0.75}, {0.9, 0.1}}, {{0.2, 0.8}, {0.6, 0.4}}}
	want := []float64{
		0.5*math.Log(0.5/0.25) + 0.5*math.Log(0.5/0.75),
		0.3*math.Log(0.3/0.6) + 0.7*math.Log(0.7/0.4),
	}
	out := evalGraph(t, func(in []*Node) []*Node { return []*Node{kl(in[0], in[1])} }, p, q)
	near(t, "kl", out[0], want, 1e-6)
}

// Two factors of 0.15 nats each are 0.3 together, above kappa = 0.2: the maximum
// must be taken of the sum. Taken per factor it would be 0.4, and without gradient.
func TestFreeBitsAfterTheSum(t *testing.T) {
	a := make([]float32, 2) // class 0 of p such that KL[p || uniform] = 0.15
	lo, hi := 0.5, 1.0
	for range 60 {
		x := (lo + hi) / 2
		if x*math.Log(2*x)+(1-x)*math.Log(2*(1-x)) < 0.15 {
			lo = x
		} else {
			hi = x
		}
	}
	a[0], a[1] = float32(lo), float32(1-lo)
	half := []float32{0.5, 0.5}
	q, p := [][][]float32{{a, a}}, [][][]float32{{half, half}}
	for _, c := range []struct {
		kappa, want float64
		learns      bool
	}{{0.2, 0.3, true}, {0.31, 0.31, false}} {
		out := evalGraph(t, func(in []*Node) []*Node {
			dyn, rep := balancedKL(in[0], in[1], c.kappa)
			d := Gradient(ReduceAllSum(dyn), in[0], in[1])
			r := Gradient(ReduceAllSum(rep), in[0], in[1])
			return []*Node{dyn, rep, d[0], d[1], r[0], r[1]}
		}, q, p)
		near(t, "dyn", out[0], []float64{c.want}, 1e-5)
		near(t, "rep", out[1], []float64{c.want}, 1e-5)
		moves := func(g []float32) bool { return g[0] != 0 }
		if moves(out[2]) || moves(out[3]) != c.learns {
			t.Errorf("kappa %g: the dynamics loss moves the posterior: %v, the prior: %v", c.kappa, moves(out[2]), moves(out[3]))
		}
		if moves(out[4]) != c.learns || moves(out[5]) {
			t.Errorf("kappa %g: the representation loss moves the posterior: %v, the prior: %v", c.kappa, moves(out[4]), moves(out[5]))
		}
	}
}

func TestCentredCosine(t *testing.T) {
	// Row 3 has weight 0: it must not move the means.
	x := [][]float32{{1, 2}, {3, 4}, {5, 0}, {100, -100}}
	y := [][]float32{{11, 12}, {13, 14}, {15, 10}, {-7, 7}}
	third := float32(1) / 3
	w := []float32{third, third, third, 0}
	out := evalGraph(t, func(in []*Node) []*Node { return []*Node{centredCosine(in[0], in[1], in[2])} }, x, y, w)
	// y is x shifted: centred they are equal, so the loss of the first three is 0.
	near(t, "shifted", out[0][:3], []float64{0, 0, 0}, 1e-5)

	// Against the formula, with unequal directions.
	y = [][]float32{{0, 1}, {2, -1}, {1, 3}, {9, 9}}
	out = evalGraph(t, func(in []*Node) []*Node { return []*Node{centredCosine(in[0], in[1], in[2])} }, x, y, w)
	mx, my := [2]float64{3, 2}, [2]float64{1, 1}
	for i := range 3 {
		var dot, nx, ny float64
		for k := range 2 {
			a, b := float64(x[i][k])-mx[k], float64(y[i][k])-my[k]
			dot, nx, ny = dot+a*b, nx+a*a, ny+b*b
		}
		near(t, "cosine", out[0][i:i+1], []float64{1 - dot/math.Sqrt(nx*ny)}, 1e-5)
	}
}

func TestBCE(t *testing.T) {
	logits := []float32{0, 2, -2, 80, -80}
	targets := []float32{1, 1, 0.25, 0, 0.5}
	want := []float64{
		math.Log(2), math.Log1p(math.Exp(-2)),
		0.25*math.Log1p(math.Exp(2)) + 0.75*math.Log1p(math.Exp(-2)),
		80, 40,
	}
	out := evalGraph(t, func(in []*Node) []*Node {
		l := bce(in[0], in[1])
		return append([]*Node{l}, Gradient(ReduceAllSum(l), in[0])...)
	}, logits, targets)
	near(t, "bce", out[0], want, 1e-6)
	for i, l := range logits { // d/dl = sigmoid(l) - target
		if l != 0 { // max and abs have a kink there
			near(t, "gradient", out[1][i:i+1], []float64{1/(1+math.Exp(-float64(l))) - float64(targets[i])}, 1e-5)
		}
	}
}

func TestStandardise(t *testing.T) {
	x := [][]float32{{1, 2, 4}, {-3, 0, 0.5}}
	ones := []float64{1, 1, 1}
	want := join(layerNorm(wide(x[0]), ones, make([]float64, 3)), layerNorm(wide(x[1]), ones, make([]float64, 3)))
	out := evalGraph(t, func(in []*Node) []*Node { return []*Node{standardise(in[0])} }, x)
	near(t, "standardise", out[0], want, 1e-6)
}
