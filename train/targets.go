package train

import (
	"math"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/data"
)

// prefixTarget is the target of the prefix head at step t of a run whose first
// hazard is at step hazard (-1 if none): 1 at the hazard,
// exp(-(hazard-t-1)/decay) for 1 <= hazard-t <= horizon, else 0.
func prefixTarget(t, hazard, horizon int, decay float64) float64 {
	d := hazard - t
	switch {
	case hazard < 0 || d < 0 || d > horizon:
		return 0
	case d == 0:
		return 1
	}
	return math.Exp(-float64(d-1) / decay)
}

// window is the part of a run that one batch row shows.
type window struct {
	run   int // index into the examples
	start int // first step
	steps int
}

// length is how many steps of x stage st can use, before the cut to max_steps.
func (s stage) length(x *Example, c configs.Train) int {
	if s == 2 && c.Stage2.World == 0 {
		return x.supervised()
	}
	return x.Steps
}

// uses reports whether x has anything to learn from in the stage.
func (s stage) uses(x *Example) bool {
	return x.Weight > 0 && (s == 1 || x.supervised() > 0)
}

// windowStarts bounds where the window of a long run may begin: a
// located hazard is the last step of its window, since nothing after it is
// supervised; elsewhere any part of the run may be shown.
func windowStarts(x *Example, length, steps int) (first, last int) {
	if x.located() {
		s := max(0, min(x.Hazard+1, length)-steps)
		return s, s
	}
	return 0, length - steps
}

// fill writes the window of x as column b of a batch of t by n rows. World
// weights are counts here and are divided by finish.
func (k *batcher) fill(w window, b int) {
	x, z := &k.examples[w.run], k.sizes
	at := func(name string, row, width int) []float32 {
		return k.tensors[name][row*width : (row+1)*width]
	}
	copy(at("e", b, z.D), x.Task)
	if w.start > 0 && x.HasResult[w.start-1] {
		copy(at("o", b, z.D), x.Results[(w.start-1)*z.D:])
		at("has", b, 1)[0] = 1
	}
	risk := x.Weight
	if x.located() && !x.Exact {
		risk *= float32(k.cfg.Stage2.WeakHazard)
	}
	for i := range w.steps {
		t, row := w.start+i, i*k.batch+b
		copy(at("a", row, z.D), x.Calls[t*z.D:(t+1)*z.D])
		normalise(at("f", row, z.F), x.Features[t*z.F:(t+1)*z.F], k.mean, k.scale)
		if x.HasResult[t] {
			copy(at("o", row+k.batch, z.D), x.Results[t*z.D:(t+1)*z.D])
			at("has", row+k.batch, 1)[0] = 1
		}
		if k.world {
			k.tensors["kl.w"][row] = x.Weight
			k.valid++
			if x.HasResult[t] {
				k.tensors["predict.w"][row] = x.Weight
				k.tensors["predict.centre"][row] = 1
				k.predicted++
			}
		}
		if k.stage == 2 && t < x.supervised() {
			k.supervised++
			weight := risk
			if x.Label == data.Unsafe && t == x.Hazard {
				k.tensors["haz.y"][row] = 1
				weight *= float32(k.cfg.Stage2.PosWeight)
			}
			k.tensors["haz.w"][row] = weight
			k.tensors["pre.w"][row] = risk
			k.tensors["pre.y"][row] = float32(prefixTarget(t, x.Hazard, k.cfg.Stage2.Horizon, k.cfg.Stage2.Decay))
		}
	}
}

// minPredicted is how many steps with a result a batch needs for the prediction
// loss: below it the batch mean, by which the loss centres, says little.
const minPredicted = 8

// finish turns counts into means. A weight of a source scales what its steps
// contribute, it does not change the divisor: a batch of down-weighted runs only
// moves the model less.
func (k *batcher) finish() {
	if k.world {
		divide(k.tensors["kl.w"], k.valid)
		if k.predicted < minPredicted {
			clear(k.tensors["predict.w"])
			clear(k.tensors["predict.centre"])
		}
		divide(k.tensors["predict.w"], k.predicted)
		divide(k.tensors["predict.centre"], k.predicted)
	}
	if k.stage == 2 {
		divide(k.tensors["haz.w"], k.supervised)
		divide(k.tensors["pre.w"], k.supervised)
	}
}

func divide(v []float32, n int) {
	for i := range v {
		v[i] /= float32(max(n, 1))
	}
}
