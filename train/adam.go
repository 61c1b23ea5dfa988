package train

import (
	"errors"
	"fmt"
	"math"

	"github.com/dreamguard/dreamguard/configs"
)

// Adam's constants (Kingma and Ba, 2015, algorithm 1).
const (
	adamBeta1   = 0.9
	adamBeta2   = 0.999
	adamEpsilon = 1e-8
)

// adam is the optimizer of one stage: Adam with a factor on the learning rate per
// group, decoupled weight decay on the matrices of the heads, and clipping by
// the global norm. It runs on the host, in a fixed order, so that its state can
// be saved exactly and no backend has a say in the update.
type adam struct {
	lr, clip, decay float64
	scale           map[Group]float64
	steps           int
	m, v            [][]float32 // per parameter; nil for one that never had a gradient
}

func newAdam(st stage, c configs.Train, params int) *adam {
	a := &adam{lr: c.LR, clip: c.Clip, scale: st.learns(c), m: make([][]float32, params), v: make([][]float32, params)}
	if st == 2 {
		a.decay = c.Stage2.WeightDecay
	}
	return a
}

// ErrNotFinite is wrapped by the error that ends training when a loss or a
// gradient is NaN or infinite.
var ErrNotFinite = errors.New("not finite")

// globalNorm returns the Euclidean norm of all gradients together. The error
// names the first tensor that holds a NaN or an infinite value.
func globalNorm(params []param, trained []int, grads [][]float32) (float64, error) {
	var sum float64
	for i, g := range grads {
		var s [4]float64 // four chains: one would wait for each addition
		n := len(g) &^ 3
		for k := 0; k < n; k += 4 {
			a, b, c, d := float64(g[k]), float64(g[k+1]), float64(g[k+2]), float64(g[k+3])
			s[0] += a * a
			s[1] += b * b
			s[2] += c * c
			s[3] += d * d
		}
		for _, x := range g[n:] {
			s[0] += float64(x) * float64(x)
		}
		t := (s[0] + s[1]) + (s[2] + s[3])
		if math.IsNaN(t) || math.IsInf(t, 0) {
			return 0, fmt.Errorf("gradient of %s is %w", params[trained[i]].Name, ErrNotFinite)
		}
		sum += t
	}
	return math.Sqrt(sum), nil
}

// update moves values[trained[i]] by the step for grads[i], whose global norm is
// norm.
func (a *adam) update(params []param, values [][]float32, trained []int, grads [][]float32, norm float64) {
	a.steps++
	factor := 1.0
	if a.clip > 0 && norm > a.clip {
		factor = a.clip / norm
	}
	// The corrections of the zero start go into the step size and epsilon, as in
	// section 2 of the paper, which saves two divisions per value.
	c1 := 1 - math.Pow(adamBeta1, float64(a.steps))
	c2 := math.Sqrt(1 - math.Pow(adamBeta2, float64(a.steps)))
	for i, at := range trained {
		p := &params[at]
		if a.m[at] == nil {
			a.m[at], a.v[at] = make([]float32, p.size()), make([]float32, p.size())
		}
		lr := a.lr * a.scale[p.Group]
		keep := float32(1)
		if p.decay {
			keep = float32(1 - lr*a.decay)
		}
		adamRange(values[at], grads[i], a.m[at], a.v[at], float32(factor), float32(lr*c2/c1), float32(adamEpsilon*c2), keep)
	}
}

// adamRange is the inner loop over one tensor.
func adamRange(w, g, m, v []float32, factor, rate, eps, keep float32) {
	m, v, g = m[:len(w)], v[:len(w)], g[:len(w)]
	for k := range w {
		x := g[k] * factor
		mk := m[k] + (1-adamBeta1)*(x-m[k])
		vk := v[k] + (1-adamBeta2)*(x*x-v[k])
		m[k], v[k] = mk, vk
		w[k] = w[k]*keep - rate*mk/(float32(math.Sqrt(float64(vk)))+eps)
	}
}
