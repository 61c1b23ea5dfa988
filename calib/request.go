package calib

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of a [Request].
var (
	// ErrRequest is returned for a request whose parts do not go together.
	ErrRequest = errors.New("calib: request")
	// ErrTrained is returned for runs that the model was trained on.
	ErrTrained = errors.New("calib: the model was trained on these runs")
)

// Request is what an operator asks of the levels. A bound of 0 is not asked
// for; at least one must be.
type Request struct {
	FalseAlarm float64 `json:"false_alarm,omitempty"` // P(HOLD or BLOCK) for a safe run
	Block      float64 `json:"block,omitempty"`       // P(BLOCK) for a safe run, a part of FalseAlarm; 0: BLOCK is off
	Miss       float64 `json:"miss,omitempty"`        // P(neither, up to the first hazard) for an unsafe run
	HoldBudget Budget  `json:"hold_budget,omitzero"`  // HOLDs among all traffic
	Confidence float64 `json:"confidence,omitempty"`  // over the draw of the conformal part; 0: the bounds hold on average over it
	Unit       Unit    `json:"unit,omitempty"`        // ByRun or ByGroup
	Method     Method  `json:"method,omitempty"`      // of Learn-Then-Test, where FalseAlarm, Miss and Confidence are asked for

	By []string `json:"by,omitempty"` // names of the fields in Scored.Path, coarse ones first: levels of their own per value

	AssumeSafe    bool    `json:"assume_safe,omitempty"`   // take unlabelled runs for safe ones
	Contamination float64 `json:"contamination,omitempty"` // the share of safe units that may be unsafe all the same, in [0, 0.5]

	Shift   *Shift              `json:"-"` // weights for other traffic than the runs at hand; nil is none
	Trained map[string]struct{} `json:"-"` // fingerprints of the runs that the model was trained on
}

// Validate checks ranges and what goes together. Errors wrap [ErrLevel] or
// [ErrRequest].
func (r *Request) Validate() error {
	inside := func(name string, v float64) error {
		if !(v >= 0 && v < 1) {
			return fmt.Errorf("calib: %w: %s is %v, want more than 0 and less than 1, or 0 for none", ErrLevel, name, v)
		}
		return nil
	}
	for _, l := range []struct {
		name string
		v    float64
	}{{"false alarm", r.FalseAlarm}, {"block", r.Block}, {"miss", r.Miss}, {"confidence", r.Confidence}, {"hold budget", r.HoldBudget.Rate}} {
		if err := inside(l.name, l.v); err != nil {
			return err
		}
	}
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", ErrRequest, fmt.Sprintf(format, a...))
	}
	budget, both := r.HoldBudget, r.FalseAlarm > 0 && r.Miss > 0
	switch {
	case r.FalseAlarm == 0 && r.Miss == 0 && budget.Rate == 0:
		return bad("nothing is asked for: want a bound on false alarms, on misses or on holds")
	case r.Block > 0 && r.Block >= r.FalseAlarm:
		return fmt.Errorf("calib: %w: block is %v, want less than the false alarms of %v, of which it is a part", ErrLevel, r.Block, r.FalseAlarm)
	case r.Unit != ByRun && r.Unit != ByGroup:
		return bad("unit is %.20q, want %q or %q", r.Unit, ByRun, ByGroup)
	case r.Method != Pareto && r.Method != Bonferroni:
		return bad("method is %.20q, want %q or %q", r.Method, Pareto, Bonferroni)
	case budget.MaxCalls < 0 || budget.MaxCalls > 1<<20:
		return bad("max_calls is %d, want 0 to %d", budget.MaxCalls, 1<<20)
	case budget.Rate == 0 && budget.PerCall:
		return bad("a hold budget per call has no rate")
	case r.Unit == ByGroup && budget.PerCall:
		return bad("a hold budget per call counts runs, not groups")
	case !(r.Contamination >= 0 && r.Contamination <= 0.5):
		return fmt.Errorf("calib: %w: contamination is %v, want 0 to 0.5", ErrLevel, r.Contamination)
	case r.Contamination > 0 && !r.AssumeSafe:
		return bad("contamination is allowed for runs that are assumed to be safe; these are labelled")
	case r.Contamination > 0 && both && r.Confidence > 0:
		return bad("contamination does not go together with bounds on false alarms and misses with confidence")
	case r.Shift != nil && r.Shift.Weight == nil:
		return bad("weights have no function")
	case r.Shift != nil && (r.Confidence > 0 || r.Miss > 0 || r.Unit != ByRun || r.Contamination > 0 || budget.Rate > 0 || len(r.By) > 0 || r.FalseAlarm == 0):
		return bad("weights go together with a bound on false alarms on average alone, by run and without groups")
	}
	return nil
}

// clean checks runs, drops copies and takes unlabelled runs for safe ones where
// that is asked for. seen holds the fingerprints met so far with their labels.
func (r *Request) clean(runs []Scored, seen map[string]Label, c *Calibration) ([]Scored, error) {
	var out []Scored
	var trained []string
	for i := range runs {
		s := runs[i]
		if err := s.check(); err != nil {
			return nil, err
		}
		if s.Label < Unlabelled || s.Label > Unsafe {
			return nil, fmt.Errorf("%w: run %q has the label %d", ErrRequest, s.ID, s.Label)
		}
		if len(s.Path) != len(r.By) {
			return nil, fmt.Errorf("%w: run %q has %d values to group by, want one for each of %q", ErrRequest, s.ID, len(s.Path), r.By)
		}
		if s.Fingerprint != "" {
			if _, ok := r.Trained[s.Fingerprint]; ok {
				trained = append(trained, s.ID)
				continue
			}
		}
		if s.Label == Unlabelled && r.AssumeSafe {
			s.Label = Safe
		}
		if s.Fingerprint != "" {
			if kept, copied := seen[s.Fingerprint]; copied {
				if c.Copies = append(c.Copies, s.ID); s.Label != kept && s.Label != Unlabelled && kept != Unlabelled {
					c.torn++
				}
				continue
			}
			seen[s.Fingerprint] = s.Label
		}
		out = append(out, s)
	}
	if n := len(trained); n > 0 {
		shown := trained[:min(n, 5)]
		return nil, fmt.Errorf("%w: %d of %d, %s: their scores are too good; leave them out", ErrTrained, n, len(runs), strings.Join(shown, ", "))
	}
	return out, nil
}

// evidence returns what a bound on these runs rests on, and what each costs.
func (r *Request) evidence(runs []Scored, safe bool) (evidence, []float64) {
	n, costs := units(runs, r.Unit)
	e := evidence{n: n, byGroup: r.Unit == ByGroup, confidence: r.Confidence}
	if safe {
		e.spoiled = spoil(n, r.Contamination)
		if r.Shift != nil {
			costs = r.Shift.costs(runs)
			e.weights, e.top = sum(costs), r.Shift.Top
		}
	}
	return e, costs
}

// needs returns the units that a node of the tree must have.
func (r *Request) needs() needs {
	one := func(bound, share float64) int {
		if bound == 0 {
			return 0
		}
		l, err := level(bound)
		if err != nil {
			return 0
		}
		return evidence{byGroup: r.Unit == ByGroup, confidence: r.Confidence}.need(l, share)
	}
	n := needs{safe: one(r.FalseAlarm, r.Contamination), unsafe: one(r.Miss, 0), all: 1}
	if !r.HoldBudget.PerCall {
		n.all = max(n.all, one(r.HoldBudget.Rate, 0))
	}
	return n
}

// describe names the runs of a path.
func (r *Request) describe(path []string) string {
	parts := make([]string, len(path))
	for i, v := range path {
		parts[i] = r.By[i] + "=" + v
	}
	return strings.Join(parts, ", ")
}
