package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/configs/splits"
	"github.com/dreamguard/dreamguard/eval"
)

// Siblings trains the other folds of injection goals, the models with one
// agentdyn suite left out, or both, each in a run folder beside this one, and
// writes their means into this run's report.
func (r *Run) Siblings(ctx context.Context, allFolds, loso bool) error {
	if err := r.needs("eval"); err != nil {
		return err
	}
	report, err := r.Report()
	if err != nil {
		return err
	}
	if allFolds {
		rows := []eval.SetResult{}
		for fold := range splits.Folds {
			cfg := r.Config
			cfg.Data.Fold = fold
			row, err := r.sibling(ctx, fmt.Sprintf("%s-fold%d", r.Dir, fold), cfg, "agentdyn", fold == r.Config.Data.Fold)
			if err != nil {
				return err
			}
			row.Name = fmt.Sprintf("agentdyn fold %d", fold)
			rows = append(rows, row)
		}
		report.Sets = replaceRows(report.Sets, "agentdyn folds", append(rows, eval.Mean("agentdyn mean of folds", rows)))
	}
	if loso {
		suites, err := r.suites()
		if err != nil {
			return err
		}
		rows := []eval.SetResult{}
		for _, suite := range suites {
			cfg := r.Config
			cfg.Data.LeaveOut = suite
			row, err := r.sibling(ctx, fmt.Sprintf("%s-loso-%s", r.Dir, suite), cfg, "agentdyn-loso", false)
			if err != nil {
				return err
			}
			row.Name = "agentdyn-loso " + suite
			rows = append(rows, row)
		}
		report.Sets = replaceRows(report.Sets, "agentdyn-loso", append(rows, eval.Mean("agentdyn-loso", rows)))
	}
	return report.Save(r.path("eval"))
}

// sibling runs cfg in dir and returns the row of one set.
func (r *Run) sibling(ctx context.Context, dir string, cfg configs.Config, set string, self bool) (eval.SetResult, error) {
	run := r
	if !self {
		r.opts.Log.Info("sibling run", "folder", dir)
		var err error
		if run, err = Open(dir, cfg, r.opts); err != nil {
			return eval.SetResult{}, err
		}
		if err := run.All(ctx); err != nil {
			return eval.SetResult{}, fmt.Errorf("%s: %w", dir, err)
		}
	}
	report, err := run.Report()
	if err != nil {
		return eval.SetResult{}, err
	}
	for _, row := range report.Sets {
		if row.Name == set {
			return row, nil
		}
	}
	return eval.SetResult{}, fmt.Errorf("%s: its report has no set %s", dir, set)
}

// suites lists the agentdyn suites of the training set.
func (r *Run) suites() ([]string, error) {
	ts, err := r.Set("train")
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, t := range ts {
		if t.Dataset == "agentdyn" {
			names[t.Suite] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// replaceRows puts rows where the set of the given name stands, or at the end.
func replaceRows(sets []eval.SetResult, name string, rows []eval.SetResult) []eval.SetResult {
	for i := range sets {
		if sets[i].Name == name {
			return slices.Concat(sets[:i], rows, sets[i+1:])
		}
	}
	return append(sets, rows...)
}
