package train

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/internal/backend"
)

// batcher turns examples into batches. Which runs, which windows and which noise
// step number n of a stage sees depends on the seed, the stage and n alone: a
// resumed training needs no other state than the step number.
type batcher struct {
	examples    []Example
	mean, scale []float32
	cfg         configs.Train
	sizes       sizes
	seed        uint64
	stage       stage
	world       bool // the world-model loss is on
	batch       int  // runs per batch
	pad         int  // length that every batch is padded to; 0 = that of its bucket

	perEpoch int     // batches
	epoch    int     // of plan
	plan     []batch // batches of that epoch

	// Of the batch being filled.
	tensors                      map[string][]float32
	valid, predicted, supervised int
}

// batch is a set of windows padded to the same length.
type batch struct {
	t       int // padded steps
	windows []window
}

// newBatcher prepares the batches of a stage. It fails if no example can be used.
func newBatcher(st stage, cfg configs.Config, w *Weights, examples []Example) (*batcher, error) {
	k := &batcher{
		examples: examples, mean: w.Value("feat.mean"), scale: w.Value("feat.scale"),
		cfg: cfg.Train, sizes: w.sizes(), seed: cfg.Seed, stage: st,
		world: st == 1 || cfg.Train.Stage2.World > 0, batch: cfg.Train.Batch, epoch: -1,
	}
	if backend.IsXLA(cfg.Backend) {
		// A graph that is compiled for 10 seconds costs more than the empty steps of
		// short runs.
		k.pad = cfg.Train.MaxSteps
	}
	k.load(0)
	k.perEpoch = len(k.plan)
	if k.perEpoch == 0 {
		return nil, fmt.Errorf("train: stage %d: none of the %d training runs can be used: %s", st, len(examples), map[stage]string{
			1: "all have weight 0",
			2: "it needs safe runs or unsafe runs with a located hazard, of a weight above 0",
		}[st])
	}
	return k, nil
}

// bucket returns the smallest padded length for n steps.
func (k *batcher) bucket(n int) int {
	for _, b := range k.cfg.Buckets {
		if n <= b {
			return b
		}
	}
	return k.cfg.MaxSteps
}

// load plans an epoch: every usable run once, runs of one bucket together. What
// does not fill a batch moves up to the next bucket, so that an epoch has at most
// one batch with empty rows; its number of batches is the same in every epoch.
func (k *batcher) load(epoch int) {
	if k.epoch == epoch {
		return
	}
	rng := stream(k.seed, "batches", k.stage, epoch)
	byBucket := map[int][]window{}
	for i := range k.examples {
		x := &k.examples[i]
		if !k.stage.uses(x) {
			continue
		}
		n := k.stage.length(x, k.cfg)
		w := window{run: i, steps: min(n, k.cfg.MaxSteps)}
		first, last := windowStarts(x, n, w.steps)
		w.start = first
		if last > first {
			w.start += rng.IntN(last - first + 1)
		}
		b := k.bucket(w.steps)
		byBucket[b] = append(byBucket[b], w)
	}
	k.epoch, k.plan = epoch, nil
	var left []window
	for i, t := range k.cfg.Buckets {
		ws := append(left, byBucket[t]...)
		rng.Shuffle(len(ws), func(i, j int) { ws[i], ws[j] = ws[j], ws[i] })
		for len(ws) >= k.batch {
			k.plan = append(k.plan, batch{t, ws[:k.batch]})
			ws = ws[k.batch:]
		}
		left = slices.Clone(ws)
		if i == len(k.cfg.Buckets)-1 && len(left) > 0 {
			k.plan = append(k.plan, batch{t, left})
		}
	}
	rng.Shuffle(len(k.plan), func(i, j int) { k.plan[i], k.plan[j] = k.plan[j], k.plan[i] })
}

// step returns the tensors of step n (from 0) and their padded length. They are
// valid until the next call. Up to a backend's rounding, what pad adds does not
// change a loss: padded steps have no weight, and rows being time-major, those
// before them get the same noise.
func (k *batcher) step(n int) (int, map[string][]float32) {
	k.load(n / k.perEpoch)
	b := k.plan[n%k.perEpoch]
	bucket := b.t
	b.t = max(b.t, k.pad)
	k.tensors = k.build(b)
	k.noise(stream(k.seed, "noise", k.stage, n), bucket)
	return b.t, k.tensors
}

// build fills the tensors of a batch, without noise.
func (k *batcher) build(b batch) map[string][]float32 {
	k.tensors = map[string][]float32{}
	for _, in := range k.stage.inputs(k.cfg, k.sizes, b.t, k.batch) {
		n := 1
		for _, d := range in.dims {
			n *= d
		}
		k.tensors[in.name] = make([]float32, n)
	}
	k.valid, k.predicted, k.supervised = 0, 0, 0
	for i, w := range b.windows {
		k.fill(w, i)
	}
	k.finish()
	return k.tensors
}

// uniformBits is the resolution of the uniform numbers: coarse enough that the
// largest is below any rounding error in a distribution function that should
// end at 1.
const uniformBits = 16

// noise draws the random inputs of the first t steps. Names in a fixed order,
// each from the same stream.
func (k *batcher) noise(rng *rand.Rand, t int) {
	rows := func(name string, n, width int) []float32 {
		v := k.tensors[name]
		return v[:min(len(v), n*k.batch*width)] // none where the stage has no such input
	}
	for _, u := range [][]float32{rows("u.post", t+1, k.sizes.G), rows("u.prior", t, k.sizes.G)} {
		for i := range u {
			u[i] = float32(rng.Uint64()>>(64-uniformBits)) / (1 << uniformBits)
		}
	}
	// Inverted dropout: what is kept is scaled up, so that the expected input is
	// that of the runtime. Features are few and exact: they are never dropped.
	drop := rows("drop", t, k.sizes.headIn())
	p := k.cfg.Stage2.Dropout
	limit, keep := uint64(p*(1<<16)), float32(1/(1-p))
	width, from := k.sizes.headIn(), k.sizes.H+k.sizes.Z()+k.sizes.P
	var bits uint64
	for i := range drop {
		if i%4 == 0 {
			bits = rng.Uint64()
		}
		if c := i % width; c >= from && c < from+k.sizes.F {
			drop[i] = 1
		} else if bits&0xffff >= limit {
			drop[i] = keep
		}
		bits >>= 16
	}
	state := rows("state", t, 1)
	for i := range state {
		if q := k.cfg.Stage2.DropState; rng.Float64() >= q {
			state[i] = float32(1 / (1 - q))
		}
	}
}
