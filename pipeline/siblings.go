package pipeline

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

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
	base, err := r.siblingBase()
	if err != nil {
		return err
	}
	if allFolds {
		rows := []eval.SetResult{}
		for fold := range splits.Folds {
			cfg := r.Config
			cfg.Data.Fold = fold
			row, err := r.sibling(ctx, fmt.Sprintf("%s-fold%d", base, fold), cfg, "agentdyn", fold == r.Config.Data.Fold)
			if err != nil {
				return err
			}
			row.Name = fmt.Sprintf("agentdyn fold %d", fold)
			rows = append(rows, row)
		}
		report.Sets = replaceRows(report.Sets, "agentdyn fold", append(rows, eval.Mean("agentdyn folds, mean", rows)))
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
			row, err := r.sibling(ctx, fmt.Sprintf("%s-loso-%s", base, suite), cfg, "agentdyn-loso", false)
			if err != nil {
				return err
			}
			row.Name = "agentdyn-loso " + suite
			rows = append(rows, row)
		}
		report.Sets = replaceRows(report.Sets, "agentdyn-loso", append(rows, eval.Mean("agentdyn-loso", rows)))
	}
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := report.Save(r.path("eval")); err != nil {
		return err
	}
	return r.reseal("eval")
}

// siblingBase is what the names of the folders beside this one begin with.
func (r *Run) siblingBase() (string, error) {
	if name := filepath.Base(r.Dir); name == "." || name == ".." { // no name to append to
		return filepath.Abs(r.Dir)
	}
	return r.Dir, nil
}

// sibling runs cfg in dir and returns the row of one set.
func (r *Run) sibling(ctx context.Context, dir string, cfg configs.Config, set string, self bool) (eval.SetResult, error) {
	run := r
	if !self {
		r.opts.Log.Info("sibling run", "folder", dir)
		opts := r.opts
		if slow(cfg.Encoder.Kind) { // most texts are the same
			opts.Vectors = append(slices.Clone(opts.Vectors), r.path("embed"))
		}
		var err error
		if run, err = Open(dir, cfg, opts); err != nil {
			return eval.SetResult{}, err
		}
		run.enc = r.enc
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

// replaceRows puts rows in the place of those whose name has the prefix, or at
// the end.
func replaceRows(sets []eval.SetResult, prefix string, rows []eval.SetResult) []eval.SetResult {
	at := slices.IndexFunc(sets, func(s eval.SetResult) bool { return strings.HasPrefix(s.Name, prefix) })
	kept := slices.DeleteFunc(slices.Clone(sets), func(s eval.SetResult) bool { return strings.HasPrefix(s.Name, prefix) })
	if at < 0 {
		at = len(kept)
	}
	return slices.Insert(kept, at, rows...)
}
