package train

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/internal/backend"
	"github.com/dreamguard/dreamguard/internal/forest"
)

// Logits are the outputs of the two heads for every step of one run.
type Logits struct {
	Hazard []float32 // [Steps]
	Prefix []float32 // [Steps]
}

// Evaluator runs the training graph the way the runtime runs the model: from the
// first step, without noise, z the probabilities or the mode as configured. It
// is not safe for concurrent use.
type Evaluator struct {
	world   bool // evaluates the world model rather than the heads
	be      compute.Backend
	dims    Dims
	model   configs.Model
	params  []param
	mean    []float32
	scale   []float32
	weights []*tensors.Tensor
	exec    *Exec
	forests [2]*forest.Forest
	tensors map[string][]float32 // reused
}

// Shape of the evaluation graph: runs are carried through it in chunks, so that
// their length is not bounded and one executable serves all.
const (
	evalBatch = 32
	evalSteps = 8
)

// NewEvaluator compiles the evaluation of weights w.
func NewEvaluator(w *Weights) (*Evaluator, error) {
	be, err := backend.Open(backend.Go)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return newEvaluator(be, w, false)
}

func newEvaluator(be compute.Backend, w *Weights, world bool) (*Evaluator, error) {
	if err := w.sizes().check(); err != nil {
		return nil, err
	}
	nets, forests, err := w.networks()
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	w = nets
	ev := &Evaluator{world: world, be: be, dims: w.Dims, model: w.Model, params: w.params, forests: forests}
	if err := ev.setWeights(w); err != nil {
		return nil, err
	}
	exec, err := NewExec(be, func(nodes []*Node) []*Node {
		n := newNet(w.Model, w.Dims, nil, nil, latent(w.Model.Latent))
		for i, p := range ev.params {
			n.params[p.Name] = nodes[i]
		}
		in := map[string]*Node{}
		for i, x := range ev.inputs() {
			in[x.name] = nodes[len(ev.params)+i]
		}
		task, h0 := n.start(in["e"])
		h0 = Add(Mul(h0, in["first"]), Mul(in["h"], OneMinus(in["first"])))
		r := n.rollout(rolloutIn{T: evalSteps, h0: h0, a: in["a"], f: in["f"], o: in["o"], has: in["has"], after: world})
		prior := n.prior(r.h)
		if world {
			return []*Node{r.hT, n.predict(r.h, r.z), kl(r.q, prior)}
		}
		zh := n.sample(prior, nil)
		haz, pre := n.heads(r.h, zh, r.a, in["f"], repeat(task, evalSteps), nil, nil)
		return []*Node{r.hT, haz, pre}
	})
	if err != nil {
		return nil, fmt.Errorf("train: build the evaluation graph: %w", err)
	}
	ev.exec = exec
	return ev, nil
}

// setWeights replaces the weights by others of the same sizes.
func (ev *Evaluator) setWeights(w *Weights) error {
	ts, err := onBackend(ev.be, w)
	if err != nil {
		return err
	}
	for _, t := range ev.weights {
		t.FinalizeAll()
	}
	ev.weights, ev.mean, ev.scale = ts, slices.Clone(w.Value("feat.mean")), slices.Clone(w.Value("feat.scale"))
	return nil
}

func (ev *Evaluator) inputs() []input {
	z, n := sizesOf(ev.model, ev.dims), evalBatch*evalSteps
	return []input{
		{"e", []int{evalBatch, z.D}},
		{"h", []int{evalBatch, z.H}},     // state at the start of the chunk
		{"first", []int{evalBatch, 1}},   // 1 in the first chunk of a run: the state comes from e
		{"a", []int{n, z.D}},             //
		{"f", []int{n, z.F}},             //
		{"o", []int{n + evalBatch, z.D}}, // o_t; only the world model reads the last block
		{"has", []int{n + evalBatch, 1}},
	}
}

// Logits returns the logits of every step of every run.
func (ev *Evaluator) Logits(ctx context.Context, xs []Example) ([]Logits, error) {
	out := make([]Logits, len(xs))
	for i := range xs {
		n := max(xs[i].Steps, 0) // each refuses what is below 1
		out[i] = Logits{Hazard: make([]float32, n), Prefix: make([]float32, n)}
	}
	f := make([]float32, ev.dims.F)
	err := ev.each(ctx, xs, func(run, t, row int, v [][]float32) {
		normalise(f, xs[run].Features[t*len(f):(t+1)*len(f)], ev.mean, ev.scale)
		out[run].Hazard[t], out[run].Prefix[t] = v[0][row]+ev.forests[0].Value(f), v[1][row]+ev.forests[1].Value(f)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// each calls visit for every step of every run with the outputs of the graph, in
// whose rows the step is number row. Steps of a run come in order.
func (ev *Evaluator) each(ctx context.Context, xs []Example, visit func(run, t, row int, v [][]float32)) error {
	if err := checkAll("examples", xs, ev.dims); err != nil {
		return fmt.Errorf("train: evaluate: %w", err)
	}
	// Runs of similar length together, so that few rows are padding.
	order := make([]int, len(xs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return xs[a].Steps - xs[b].Steps })
	for part := range slices.Chunk(order, evalBatch) {
		h := make([]float32, evalBatch*ev.model.Hidden)
		longest := xs[part[len(part)-1]].Steps
		for start := 0; start < longest; start += evalSteps {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("train: evaluate: %w", err)
			}
			if err := ev.chunk(xs, part, start, h, visit); err != nil {
				return fmt.Errorf("train: evaluate: %w", err)
			}
		}
	}
	return nil
}

// chunk evaluates steps start to start+evalSteps of the runs part and leaves the
// state after them in h.
func (ev *Evaluator) chunk(xs []Example, part []int, start int, h []float32, visit func(run, t, row int, v [][]float32)) error {
	args := make([]any, 0, len(ev.weights)+8)
	for _, w := range ev.weights {
		args = append(args, w)
	}
	ev.fill(xs, part, start, h)
	for _, in := range ev.inputs() {
		t := tensors.FromShape(shapes.Make(floatType, in.dims...))
		if err := tensors.AssignFlatData(t, ev.tensors[in.name]); err != nil {
			return err
		}
		defer t.FinalizeAll()
		args = append(args, t)
	}
	res, err := ev.exec.Call(args...)
	if err != nil {
		return err
	}
	defer func() {
		for _, t := range res {
			t.FinalizeAll()
		}
	}()
	return views(res, func(v [][]float32) error {
		copy(h, v[0])
		for b, run := range part {
			for i := 0; i < evalSteps && start+i < xs[run].Steps; i++ {
				visit(run, start+i, i*evalBatch+b, v[1:])
			}
		}
		return nil
	})
}

// fill writes the inputs of a chunk.
func (ev *Evaluator) fill(xs []Example, part []int, start int, h []float32) {
	d, f := ev.dims.D, ev.dims.F
	if ev.tensors == nil {
		ev.tensors = map[string][]float32{}
		for _, in := range ev.inputs() {
			n := 1
			for _, dim := range in.dims {
				n *= dim
			}
			ev.tensors[in.name] = make([]float32, n)
		}
	}
	for _, v := range ev.tensors {
		clear(v)
	}
	at := func(name string, row, width int) []float32 { return ev.tensors[name][row*width : (row+1)*width] }
	copy(ev.tensors["h"], h)
	for b, run := range part {
		x := &xs[run]
		copy(at("e", b, d), x.Task)
		if start == 0 {
			at("first", b, 1)[0] = 1
		}
		for i := range evalSteps + 1 {
			t, row := start+i, i*evalBatch+b
			if t > 0 && t <= x.Steps && x.HasResult[t-1] {
				copy(at("o", row, d), x.Results[(t-1)*d:t*d])
				at("has", row, 1)[0] = 1
			}
			if i < evalSteps && t < x.Steps {
				copy(at("a", row, d), x.Calls[t*d:(t+1)*d])
				normalise(at("f", row, f), x.Features[t*f:(t+1)*f], ev.mean, ev.scale)
			}
		}
	}
}
