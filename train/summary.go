package train

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/configs"
)

// GroupSize counts the parameters of a group.
type GroupSize struct {
	Group   Group `json:"group"`
	Tensors int   `json:"tensors"`
	Values  int   `json:"values"`
}

// Shape is a named tensor of float32.
type Shape struct {
	Name string `json:"name"`
	Dims []int  `json:"shape"`
}

// Parameters is what [Summary] reports.
type Parameters struct {
	Groups  []GroupSize `json:"groups"`
	Total   int         `json:"total"`   // values in all groups
	Runtime int         `json:"runtime"` // values that judging needs
	Learned int         `json:"learned"` // of those, the ones that training moves and that can move a logit
	Memory  int64       `json:"memory"`  // bytes of weights (host, backend, best and average), gradients and moments
	list    []param
}

// Tensors lists the tensors of the model, sorted by name.
func (s Parameters) Tensors() []Shape {
	out := make([]Shape, len(s.list))
	for i, p := range s.list {
		out[i] = Shape{p.Name, slices.Clone(p.Shape)}
	}
	return out
}

// BatchShapes lists the tensors that a step of stage 1 or 2 reads at the longest
// padded length, batch times steps rows each, in the order of the graph.
func BatchShapes(cfg configs.Config, d Dims, st int) []Shape {
	var out []Shape
	for _, in := range stage(st).inputs(cfg.Train, sizesOf(cfg.Model, d), cfg.Train.MaxSteps, cfg.Train.Batch) {
		out = append(out, Shape{in.name, in.dims})
	}
	return out
}

// Check refuses a configuration that [Fit] would refuse.
func Check(cfg configs.Config, d Dims) error { return checkConfig(cfg, d) }

// Summary counts the parameters of a model of these sizes, per group.
func Summary(cfg configs.Config, d Dims) Parameters {
	s := Parameters{list: paramTable(sizesOf(cfg.Model, d))}
	for _, g := range Groups {
		gs := GroupSize{Group: g}
		for i := range s.list {
			if s.list[i].Group == g {
				gs.Tensors++
				gs.Values += s.list[i].size()
			}
		}
		s.Groups = append(s.Groups, gs)
		s.Total += gs.Values
	}
	for i := range s.list {
		if !trainingOnly(s.list[i].Name) {
			s.Runtime += s.list[i].size()
		}
	}
	s.Learned = learned(s.list, cfg.Train, sizesOf(cfg.Model, d))
	copies := int64(6)
	if cfg.Train.Stage2.Average > 0 {
		copies++
	}
	s.Memory = 4 * copies * int64(s.Total)
	return s
}

// String is the content of parameters.txt.
func (s Parameters) String() string {
	var b strings.Builder
	for _, g := range s.Groups {
		fmt.Fprintf(&b, "%-10s %4d tensors %10d values\n", g.Group, g.Tensors, g.Values)
	}
	fmt.Fprintf(&b, "%-10s %4d tensors %10d values, %d of them at run time\n", "total", len(s.list), s.Total, s.Runtime)
	fmt.Fprintf(&b, "weights, gradients and optimizer state: %.1f MB\n\n", float64(s.Memory)/1e6)
	for _, p := range s.list {
		fmt.Fprintf(&b, "%-18s %-10s %v\n", p.Name, p.Group, p.Shape)
	}
	return b.String()
}

// checkConfig refuses what would otherwise fail or mislead thousands of steps
// later. Messages name the config key.
func checkConfig(cfg configs.Config, d Dims) error {
	if err := sizesOf(cfg.Model, d).check(); err != nil {
		return err
	}
	t := cfg.Train
	if err := checkWithout(t.Without); err != nil {
		return err
	}
	bad := func(key string, v any, want string) error {
		return fmt.Errorf("train: %s is %v: want %s", key, v, want)
	}
	if !(cfg.Model.UniformMix > 0 && cfg.Model.UniformMix < 1) {
		return bad("model.uniform_mix", cfg.Model.UniformMix, "more than 0 (it bounds the KL) and less than 1")
	}
	if l := cfg.Model.Latent; l != "probabilities" && l != "mode" {
		return bad("model.latent", fmt.Sprintf("%q", l), "probabilities or mode")
	}
	if t.Batch < 1 || t.Batch > 1024 {
		return bad("train.batch", t.Batch, "1 to 1024")
	}
	if t.MaxSteps < 1 || t.MaxSteps > 64 {
		return bad("train.max_steps", t.MaxSteps, "1 to 64: the graph is unrolled over it")
	}
	if len(t.Buckets) == 0 || len(t.Buckets) > 16 || t.Buckets[len(t.Buckets)-1] != t.MaxSteps {
		return bad("train.buckets", t.Buckets, "1 to 16 lengths, the last equal to train.max_steps")
	}
	for i, b := range t.Buckets {
		if b < 1 || i > 0 && b <= t.Buckets[i-1] {
			return bad("train.buckets", t.Buckets, "ascending lengths from 1 up")
		}
	}
	if t.Stage1.Steps < 0 || t.Stage2.Steps < 0 {
		return bad("train.stage1.steps and train.stage2.steps", []int{t.Stage1.Steps, t.Stage2.Steps}, "0 or more")
	}
	for _, v := range []struct {
		key       string
		v, lo, hi float64
	}{
		{"train.lr", t.LR, 0, 1}, {"train.clip", t.Clip, 0, math.MaxFloat32},
		{"train.world_scale", t.WorldScale, 0, 100}, {"train.adapter_scale", t.AdapterScale, 0, 100},
		{"train.stage1.predict", t.Stage1.Predict, 0, 1e6}, {"train.stage1.prior", t.Stage1.Prior, 0, 1e6},
		{"train.stage1.dynamics", t.Stage1.Dynamics, 0, 1e6}, {"train.stage1.represent", t.Stage1.Represent, 0, 1e6},
		{"train.stage1.free_bits", t.Stage1.FreeBits, 0, 1e6},
		{"train.stage2.hazard", t.Stage2.Hazard, 0, 1e6}, {"train.stage2.prefix", t.Stage2.Prefix, 0, 1e6},
		{"train.stage2.world", t.Stage2.World, 0, 1e6}, {"train.stage2.weak_hazard", t.Stage2.WeakHazard, 0, 1e6},
		{"train.stage2.pos_weight", t.Stage2.PosWeight, 0, 1e6}, {"train.stage2.weight_decay", t.Stage2.WeightDecay, 0, 1e6},
		{"train.stage2.dropout", t.Stage2.Dropout, 0, 0.95}, {"train.stage2.drop_state", t.Stage2.DropState, 0, 0.95},
	} {
		if !(v.v >= v.lo && v.v <= v.hi) {
			return bad(v.key, v.v, fmt.Sprintf("%g to %g", v.lo, v.hi))
		}
	}
	if t.Stage2.Steps > 0 && (t.Stage2.Horizon < 0 || !(t.Stage2.Decay > 0)) {
		return bad("train.stage2.horizon and decay", []float64{float64(t.Stage2.Horizon), t.Stage2.Decay}, "0 or more, and more than 0")
	}
	return nil
}
