package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/internal/forest"
	"github.com/dreamguard/dreamguard/train/boost"
)

// The trees of a head are grown on the targets of stage 2, the call features as
// the networks read them alone in sight, and then take their share of the logit:
//
//	l = (1 - share) networks + share trees
//
// Networks, linear part and bias end in a linear layer, so that their share goes
// into its weights, and that of the trees into the values of the nodes.

// heads are the two risk heads, in the order of [Logits].
var heads = []string{"head.haz", "head.pre"}

// shares returns what part of each head's logit is the trees'.
func shares(t configs.Train) [2]float64 {
	if t.Trees.Count == 0 || t.Without == withoutFeatures {
		return [2]float64{}
	}
	out := [2]float64{t.Trees.Hazard, t.Trees.Prefix}
	for i, weight := range []float64{t.Stage2.Hazard, t.Stage2.Prefix} {
		if weight == 0 { // the head is not to say anything
			out[i] = 0
		}
	}
	return out
}

// withTrees returns w with trees in its heads, or w where cfg wants none or where a
// head has nothing to learn from.
func (f *fitter) withTrees(ctx context.Context, w *Weights) (*Weights, error) {
	share := shares(f.cfg.Train)
	if share == [2]float64{} {
		return w, nil
	}
	progress := func(done int) {
		if f.opts.Progress != nil {
			f.opts.Progress(Event{Stage: 3, Step: done, Steps: len(heads)})
		}
	}
	fit, held := f.treeRows(w, f.train), f.treeRows(w, f.validation)
	o := f.cfg.Train.Trees
	var grown [2]*boost.Forest
	d := w.Dims
	for i := range heads {
		progress(i)
		if share[i] == 0 {
			continue
		}
		g, _, err := boost.Grow(ctx, fit[i], held[i], boost.Options{Trees: o.Count, Leaves: o.Leaves, Depth: o.Depth, MinLeaf: o.MinLeaf, Rate: o.Rate, L2: o.L2})
		switch {
		case errors.Is(err, boost.ErrRows):
			f.opts.Log.Warn("a head gets no trees", "head", heads[i], "reason", err)
			continue
		case err != nil:
			return nil, fmt.Errorf("train: trees of %s: %w", heads[i], err)
		}
		if len(g.Trees) > 0 { // none lowers the loss on validation runs
			grown[i] = g
			d.Trees, d.Nodes = max(d.Trees, len(g.Trees)), max(d.Nodes, g.Nodes())
		}
	}
	progress(len(heads))
	if d.Trees == 0 {
		return w, nil
	}
	return w.mix(d, grown, share)
}

// treeRows returns the rows that the trees of each head learn from: the supervised
// steps with their targets, weighted as in stage 2 but for the positive ones.
func (f *fitter) treeRows(w *Weights, xs []Example) (out [2]boost.Rows) {
	mean, scale := w.Value("feat.mean"), w.Value("feat.scale")
	s, n := f.cfg.Train.Stage2, f.dims.F
	for i := range xs {
		x := &xs[i]
		weight := float64(x.Weight)
		if x.located() && !x.Exact {
			weight *= s.WeakHazard
		}
		if weight == 0 {
			continue
		}
		hazard := -1
		if x.located() {
			hazard = x.Hazard
		}
		features := make([]float32, x.supervised()*n)
		normalise(features, x.Features[:len(features)], mean, scale)
		for t := range x.supervised() {
			y := 0.0
			if x.Label == data.Unsafe && t == hazard {
				y = 1
			}
			for k, target := range []float64{y, prefixTarget(t, hazard, s.Horizon, s.Decay)} {
				r := &out[k]
				r.X, r.Y, r.Weight = append(r.X, features[t*n:(t+1)*n]), append(r.Y, target), append(r.Weight, weight)
			}
		}
	}
	return out
}

// mix returns the weights of sizes d with the grown trees at their shares.
func (w *Weights) mix(d Dims, grown [2]*boost.Forest, share [2]float64) (*Weights, error) {
	s := sizesOf(w.Model, d)
	if err := s.check(); err != nil {
		return nil, err
	}
	out := &Weights{Dims: d, Model: w.Model, params: paramTable(s)}
	out.values = make([][]float32, len(out.params))
	for i, p := range w.clone().values {
		out.values[out.index(w.params[i].Name)] = p
	}
	for i, name := range heads {
		trees := make([]float32, d.Trees*d.Nodes*forest.Columns)
		if g := grown[i]; g != nil {
			trees = forest.Pack(g.Trees, float32(share[i]), d.Trees, d.Nodes)
			for _, last := range []string{".out.w", ".out.b", ".skip.w", ".feat.out.w"} {
				v := out.Value(name + last)
				for k := range v {
					v[k] *= float32(1 - share[i])
				}
			}
			out.Value(name + ".out.b")[0] += float32(share[i] * g.Start)
		}
		out.values[out.index(name+".trees")] = trees
	}
	return out, nil
}

// networks returns w without its trees, sharing values, and the forests of the heads.
func (w *Weights) networks() (*Weights, [2]*forest.Forest, error) {
	forests := [2]*forest.Forest{new(forest.Forest), new(forest.Forest)}
	if w.Dims.Trees == 0 {
		return w, forests, nil
	}
	d := w.Dims
	d.Trees, d.Nodes = 0, 0
	out := &Weights{Dims: d, Model: w.Model, params: paramTable(sizesOf(w.Model, d))}
	for _, p := range out.params {
		out.values = append(out.values, w.Value(p.Name))
	}
	for i, name := range heads {
		var err error
		if forests[i], err = forest.New(w.Value(name+".trees"), w.Dims.Trees, w.Dims.Nodes, d.F); err != nil {
			return nil, forests, fmt.Errorf("%w: %s.trees: %w", ErrWeights, name, err)
		}
	}
	return out, forests, nil
}
