package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/guard"
)

// ErrLocked is wrapped by the error about a locked test set that was asked for
// without a file to record the look in.
var ErrLocked = errors.New("the test set is locked")

// ScoredSet is a test set of a run with what its artifact said.
type ScoredSet struct {
	Name   string // as in the report: test-asb is asb, dev-asb is asb-dev
	Runs   []*data.Trajectory
	Traces []eval.Trace

	Features [][][]float32 // call features of every step of every run as the guard normalises them, if asked for
}

// ScoreSets scores the named test sets of the run with its calibrated artifact, and
// calls do for each. A locked set needs looks, the file in which the look is
// recorded before the first of them is scored; without it the error is [ErrLocked].
// With features it also gives the call features.
func (r *Run) ScoreSets(ctx context.Context, names []string, looks string, features bool, do func(*guard.Model, ScoredSet) error) error {
	if err := r.needs("calibrate"); err != nil {
		return err
	}
	files := map[string]string{}
	for _, file := range r.testSets() {
		files[setName(file)] = file
	}
	for _, name := range names {
		if files[name] == "" {
			return fmt.Errorf("%s has no test set %q", r.Dir, name)
		}
		if looks == "" && slices.Contains(locked, name) {
			return fmt.Errorf("%s: %w: looks at it are recorded", name, ErrLocked)
		}
	}
	m, ahead, done, err := r.openModel(ctx)
	if err != nil {
		return err
	}
	defer done()
	if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(locked, name) }) {
		if err := r.recordLook(looks, m); err != nil {
			return err
		}
	}
	for _, name := range names {
		s := ScoredSet{Name: name}
		if s.Runs, err = r.Set(files[name]); err != nil {
			return err
		}
		if s.Traces, err = r.scoreAll(ctx, m, ahead, name, s.Runs); err != nil {
			return err
		}
		if features {
			if s.Features, err = callFeatures(ctx, m, s.Runs); err != nil {
				return err
			}
		}
		if err := do(m, s); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}
