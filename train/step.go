package train

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/dreamguard/dreamguard/configs"
)

// stage is 1 (world model) or 2 (risk).
type stage int

// learns returns the groups that learn in a stage and the factor on their
// learning rate. A group that is not named is frozen: no gradient is computed
// for it and no byte of it changes.
func (s stage) learns(c configs.Train) map[Group]float64 {
	if s == 1 {
		return map[Group]float64{Adapter: 1, World: 1, Core: 1}
	}
	return map[Group]float64{Adapter: c.AdapterScale, World: c.WorldScale, Head: 1}
}

// input describes one batch tensor of a step.
type input struct {
	name string
	dims []int
}

// inputs lists the batch tensors of a step over T steps of B runs. Rows are
// time-major: row t*B+b is step t of run b.
func (s stage) inputs(c configs.Train, z sizes, t, b int) []input {
	n := t * b
	in := []input{
		{"e", []int{b, z.D}},
		{"a", []int{n, z.D}},
		{"f", []int{n, z.F}},
		{"o", []int{n + b, z.D}},
		{"has", []int{n + b, 1}},
		{"u.post", []int{n + b, z.G}},
	}
	if s == 2 || c.Stage1.Prior > 0 {
		in = append(in, input{"u.prior", []int{n, z.G}})
	}
	if s == 1 || c.Stage2.World > 0 {
		in = append(in, input{"kl.w", []int{n}}, input{"predict.w", []int{n}}, input{"predict.centre", []int{n}})
	}
	if s == 2 {
		in = append(in, input{"haz.w", []int{n}}, input{"haz.y", []int{n}}, input{"pre.w", []int{n}}, input{"pre.y", []int{n}})
		if c.Stage2.Dropout > 0 {
			in = append(in, input{"drop", []int{n, z.headIn()}})
		}
		if c.Stage2.DropState > 0 {
			in = append(in, input{"state", []int{n, 1}})
		}
	}
	return in
}

// metricNames are the loss terms of a step, in the order of stepper.run.
func (s stage) metricNames(c configs.Train) []string {
	world := []string{"predict", "prior", "dyn", "rep", "kl"}
	switch {
	case s == 1:
		return append([]string{"loss"}, world...)
	case c.Stage2.World > 0:
		return append([]string{"loss", "hazard", "prefix"}, world...)
	}
	return []string{"loss", "hazard", "prefix"}
}

// stepper is the compiled loss and gradient of one stage for one (T, B).
type stepper struct {
	inputs  []input
	batch   []*tensors.Tensor // one per input, refilled every step
	trained []int             // params with a gradient, ascending
	params  []param
	pins    []pin
	exec    *Exec
}

// newStepper builds the graph; it is compiled by the first run.
func newStepper(be compute.Backend, cfg configs.Config, d Dims, st stage, t, b int) (*stepper, error) {
	z := sizesOf(cfg.Model, d)
	s := &stepper{inputs: st.inputs(cfg.Train, z, t, b), params: paramTable(z), pins: pins(cfg.Train.Without, z)}
	learns := map[Group]bool{}
	for g := range st.learns(cfg.Train) {
		learns[g] = true
	}
	predicts := st == 1 || cfg.Train.Stage2.World > 0
	for i, p := range s.params {
		if trainingOnly(p.Name) && !predicts {
			continue // the observation model has no gradient without a prediction loss
		}
		if pin, ok := pinned(s.pins, p.Name); ok && pin.columns == 0 {
			continue
		}
		if learns[p.Group] {
			s.trained = append(s.trained, i)
		}
	}
	for _, in := range s.inputs {
		x, err := tensors.FromShapeForBackend(be, 0, shapes.Make(floatType, in.dims...))
		if err != nil {
			return nil, fmt.Errorf("train: allocate %s: %w", in.name, err)
		}
		s.batch = append(s.batch, x)
	}
	exec, err := NewExec(be, s.graph(cfg, d, st, t, learns, sampled, func() *tape { return &tape{} }))
	if err != nil {
		return nil, fmt.Errorf("train: build the graph of stage %d: %w", st, err)
	}
	s.exec = exec
	return s, nil
}

// graph returns the function that builds the graph: parameters and batch in, the
// loss terms and one gradient per trained parameter out.
func (s *stepper) graph(cfg configs.Config, d Dims, st stage, t int, learns map[Group]bool,
	sample func(p, u *Node) *Node, newTape func() *tape) func([]*Node) []*Node {
	return func(nodes []*Node) []*Node {
		tp := newTape()
		n := newNet(cfg.Model, d, tp, learns, sample)
		for i, p := range s.params {
			n.params[p.Name] = nodes[i]
			if pin, ok := pinned(s.pins, p.Name); ok && pin.columns > 0 {
				n.params[p.Name] = Mul(nodes[i], BroadcastToDims(Const(nodes[i].Graph(), pin.mask(p.Shape)), p.Shape...))
			}
		}
		in := map[string]*Node{}
		for i, x := range s.inputs {
			in[x.name] = nodes[len(s.params)+i]
		}
		terms := n.loss(st, cfg.Train, in, t)
		wanted := make([]*Node, len(s.trained))
		for i, at := range s.trained {
			wanted[i] = nodes[at]
		}
		return append([]*Node{Stack(terms, 0)}, tp.gradients(terms[0], wanted)...)
	}
}

// loss returns the terms of stage.metricNames; the first is the loss.
func (n *net) loss(st stage, c configs.Train, in map[string]*Node, t int) []*Node {
	predicts := st == 1 || c.Stage2.World > 0
	task, h0 := n.start(in["e"])
	r := n.rollout(rolloutIn{T: t, h0: h0, a: in["a"], f: in["f"], o: in["o"], has: in["has"], u: in["u.post"], after: predicts})
	prior := n.prior(r.h)
	var world []*Node
	var total *Node
	if predicts {
		w := n.world(c.Stage1, in, r, prior)
		world, total = []*Node{w.predict, w.prior, w.dyn, w.rep, w.kl}, w.total
	}
	if st == 1 {
		return append([]*Node{total}, world...)
	}
	zh := n.sample(prior, in["u.prior"])
	haz, pre := n.heads(r.h, zh, r.a, in["f"], repeat(task, t), in["drop"], in["state"])
	hazard := weighted(in["haz.w"], bce(haz, in["haz.y"]))
	prefix := weighted(in["pre.w"], bce(pre, in["pre.y"]))
	risk := Add(MulScalar(hazard, c.Stage2.Hazard), MulScalar(prefix, c.Stage2.Prefix))
	if predicts {
		risk = Add(risk, MulScalar(total, c.Stage2.World))
	}
	return append([]*Node{risk, hazard, prefix}, world...)
}

// run evaluates the step. params are the values of all parameters on the
// backend, batch one slice per input. The gradients, one per trained parameter,
// are handed to use and are only valid during that call.
func (s *stepper) run(params []*tensors.Tensor, batch map[string][]float32, use func(terms []float32, grads [][]float32) error) error {
	args := make([]any, 0, len(params)+len(s.inputs))
	for _, p := range params {
		args = append(args, p)
	}
	for i, in := range s.inputs {
		if err := tensors.AssignFlatData(s.batch[i], batch[in.name]); err != nil {
			return fmt.Errorf("train: input %s: %w", in.name, err)
		}
		args = append(args, s.batch[i])
	}
	out, err := s.exec.Call(args...)
	if err != nil {
		return fmt.Errorf("train: run step: %w", err)
	}
	defer func() {
		for _, x := range out {
			x.FinalizeAll() // returns the buffer to the backend's pool
		}
	}()
	return views(out, func(v [][]float32) error { return use(v[0], v[1:]) })
}

// views calls f with the values of the tensors, without copying.
func views(xs []*tensors.Tensor, f func([][]float32) error) error {
	var err error
	var open func(i int, v [][]float32)
	open = func(i int, v [][]float32) {
		if i == len(xs) {
			err = f(v)
			return
		}
		if e := tensors.ConstFlatData(xs[i], func(flat []float32) { open(i+1, append(v, flat)) }); e != nil {
			err = e
		}
	}
	open(0, make([][]float32, 0, len(xs)))
	return err
}

// onBackend copies values to the backend, one tensor per parameter.
func onBackend(be compute.Backend, w *Weights) ([]*tensors.Tensor, error) {
	ts := make([]*tensors.Tensor, len(w.params))
	for i, p := range w.params {
		t, err := tensors.FromShapeForBackend(be, 0, shapes.Make(floatType, slices.Clone(p.Shape)...))
		if err == nil {
			err = tensors.AssignFlatData(t, w.values[i])
		}
		if err != nil {
			return nil, fmt.Errorf("train: load %s: %w", p.Name, err)
		}
		ts[i] = t
	}
	return ts, nil
}
