package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/train/boost"
)

// baseline is a trained baseline with its thresholds.
type baseline struct {
	model      eval.StepModel
	thresholds calib.Thresholds
}

// trainBaselines fits the baselines of docs/reference/report.md on the training set and
// sets their thresholds on the conformal set.
func (r *Run) trainBaselines(ctx context.Context, v *features.Vocabulary) ([]*baseline, error) {
	runs, err := r.Set("train")
	if err != nil {
		return nil, err
	}
	conformal, err := r.Set("conformal")
	if err != nil {
		return nil, err
	}
	validation, err := r.Set("validation")
	if err != nil {
		return nil, err
	}
	task := r.opts.Progress.Start("baselines", 5)
	defer task.Done()
	options := eval.Training{C: baselineC, Weight: r.weight}
	rows := runFeatures(v, runs)
	onFeatures, err := eval.TrainFeatures(runs, rows, options)
	if err != nil {
		return nil, err
	}
	task.Add(1)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	onText, err := eval.TrainText(runs, eval.Training{C: 1, Weight: r.weight})
	if err != nil {
		return nil, err
	}
	task.Add(1)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	trees, err := eval.TrainTrees(ctx, runs, rows, eval.Boosting{
		Options: boost.Options{Trees: baselineTrees}, Weight: r.weight, Validation: validation, ValidationFeatures: runFeatures(v, validation),
	})
	if err != nil {
		return nil, err
	}
	task.Add(1)
	markov := eval.Markov{Bins: riskStates(), Horizon: r.Config.Train.Stage2.Horizon + 1, Weight: r.weight}
	chain, err := eval.TrainMarkov(runs, rows, markov)
	if err != nil {
		return nil, err
	}
	markov.PerDomain = true
	chains, err := eval.TrainMarkov(runs, rows, markov)
	if err != nil {
		return nil, err
	}
	task.Add(1)
	models := []eval.StepModel{eval.InjectionSeen(), eval.Keywords(), onText, onFeatures}
	// Mixing sources costs a linear model: trained on one alone it tells what the
	// features can do.
	const alone = "agentdyn"
	if slices.ContainsFunc(runs, func(t *data.Trajectory) bool { return t.Dataset == alone && t.Located() }) {
		options.On = alone
		options.Weight = func(t *data.Trajectory) float64 {
			if t.Dataset == alone {
				return r.weight(t)
			}
			return 0
		}
		m, err := eval.TrainFeatures(runs, rows, options)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	models = append(models, trees, chain, chains)
	task.Add(1)
	rows = runFeatures(v, conformal)
	var out []*baseline
	for _, m := range models {
		b := &baseline{model: m}
		traces, err := eval.Baseline(m, conformal, rows)
		if err != nil {
			return nil, err
		}
		if b.thresholds, err = eval.BaselineThresholds(m, traces, r.Config.Calib.Alpha); err != nil {
			return nil, fmt.Errorf("baseline %s: %w", m.Name(), err)
		}
		out = append(out, b)
	}
	return out, nil
}

// Chosen on validation goals of agentdyn and on asb-dev.
const (
	baselineC     = 0.01 // inverse L2 strength of the logistic regression on features
	baselineTrees = 300  // most trees; the loss on validation runs is lowest after some 150
)

// riskStates are the 48 states of the Markov chains: whether any order was seen in a
// result, whether the call has an effect, how much of an order off the task stands in
// it, and how much of it comes from orders. Chosen as the constants above.
func riskStates() []eval.StateBin {
	bins := map[string][]float32{
		"max_score": {1}, "is_effect": {0.5}, "match_reach": {0.1, 0.3, 0.6}, "call_untrusted": {0.1, 0.3},
	}
	var out []eval.StateBin
	for i, d := range features.Definitions() {
		if cuts, ok := bins[d.Name]; ok {
			out = append(out, eval.StateBin{Feature: i, Cuts: cuts})
		}
	}
	return out
}

func (b *baseline) traces(ts []*data.Trajectory, rows [][][]float32) ([]eval.Trace, error) {
	traces, err := eval.Baseline(b.model, ts, rows)
	if err != nil {
		return nil, err
	}
	return eval.At(traces, b.thresholds), nil
}

// runFeatures computes the call features of every step of every run.
func runFeatures(v *features.Vocabulary, ts []*data.Trajectory) [][][]float32 {
	out := make([][][]float32, len(ts))
	parallel(len(ts), func(i int) {
		t := ts[i]
		tracker := features.NewTracker(v, t.StartTask())
		flat := make([]float32, features.Count()*len(t.Steps))
		out[i] = make([][]float32, len(t.Steps))
		for k := range t.Steps {
			out[i][k] = flat[k*features.Count() : (k+1)*features.Count()]
			tracker.Compute(out[i][k], t.Call(k))
			tracker.Commit(t.Call(k), t.Result(k))
		}
	})
	return out
}
