package eval

import (
	"errors"
	"fmt"
	"math"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
)

// Runs are trajectories with their call features, for the baselines.
type Runs struct {
	Name     string
	Runs     []*data.Trajectory
	Features [][][]float32 // per run and step; nil leaves the feature baseline out
}

// Compare trains the baselines on train, sets the thresholds of the learned ones
// at level alpha on the safe runs of conformal, and measures them all on each
// set. A baseline that cannot be trained, and one whose threshold cannot be set
// for lack of runs, is reported as such and is no error: the former without
// figures, the latter without those that need a threshold.
func Compare(train, conformal Runs, sets []Runs, alpha float64, t Training, o Options) ([]BaselineResult, error) {
	type entry struct {
		name string
		make func() (StepModel, error)
	}
	entries := []entry{
		{InjectionSeen().Name(), func() (StepModel, error) { return InjectionSeen(), nil }},
		{Keywords().Name(), func() (StepModel, error) { return Keywords(), nil }},
		{(*textModel)(nil).Name(), func() (StepModel, error) { return TrainText(train.Runs, t) }},
	}
	if train.Features != nil {
		entries = append(entries, entry{(*featureModel)(nil).Name(), func() (StepModel, error) { return TrainFeatures(train.Runs, train.Features, t) }})
	}
	var out []BaselineResult
	for _, e := range entries {
		res := BaselineResult{Name: e.name}
		m, err := e.make()
		if err != nil && !errors.Is(err, ErrTraining) {
			return nil, err
		}
		if err != nil {
			for _, s := range sets {
				res.Sets = append(res.Sets, NotRun(s.Name, err.Error()))
			}
			out = append(out, res)
			continue
		}
		safe, err := Baseline(m, conformal.Runs, conformal.Features)
		if err != nil {
			return nil, fmt.Errorf("conformal runs: %w", err)
		}
		th, err := BaselineThresholds(m, safe, alpha)
		var few *calib.TooFewError
		if err != nil && !errors.As(err, &few) {
			return nil, err
		}
		for _, s := range sets {
			traces, err := Baseline(m, s.Runs, s.Features)
			if err != nil {
				return nil, fmt.Errorf("set %q: %w", s.Name, err)
			}
			opt := o
			opt.At = &th
			if few != nil {
				opt.At = nil
			}
			r := Measure(s.Name, traces, opt)
			if few != nil {
				r.dropDecisions()
			}
			res.Sets = append(res.Sets, r)
		}
		out = append(out, res)
	}
	return out, nil
}

// dropDecisions removes the figures that need a threshold.
func (s *SetResult) dropDecisions() {
	nan := Num(math.NaN())
	none := Interval{nan, nan}
	s.F1, s.SR, s.SRFull, s.FPR, s.PHIR, s.PHIROrAt, s.MAS, s.EarlyBeforeSeen = nan, nan, nan, nan, nan, nan, nan, nan
	s.CI.F1, s.CI.SR, s.CI.SRFull, s.CI.FPR, s.CI.PHIR, s.CI.PHIROrAt, s.CI.MAS, s.CI.EarlyBeforeSeen = none, none, none, none, none, none, none, none
	drop := func(p Slice) Slice {
		p.F1, p.SR, p.FPR, p.PHIR = nan, nan, nan, nan
		return p
	}
	s.AllRuns = drop(s.AllRuns)
	for _, m := range s.By {
		for k, p := range m {
			m[k] = drop(p)
		}
	}
}
