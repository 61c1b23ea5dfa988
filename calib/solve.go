package calib

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Calibration is the answer to a [Request].
type Calibration struct {
	Plans  []Plan     `json:"plans"`            // the default first, then the groups in the order of their paths
	Tree   Tree       `json:"tree"`             // which plan a run takes
	Groups []GroupRow `json:"groups,omitempty"` // every group of the conformal part
	Copies []string   `json:"copies,omitempty"` // runs left out because an earlier one has the same contents
	Notes  []string   `json:"notes,omitempty"`  // what a reader should know

	torn int // copies with another label than the run that was kept
}

// GroupRow says what became of one group.
type GroupRow struct {
	Path    []string `json:"path"`
	Runs    int      `json:"runs"` // conformal runs
	Safe    int      `json:"safe"`
	Backoff bool     `json:"backoff"`        // too few: it takes the levels of Plan, and has that one's guarantee only
	Plan    []string `json:"plan,omitempty"` // path of the plan it takes; empty is the default
}

// For returns the plan for runs with this path; nil if there are no plans at all.
func (c *Calibration) For(path []string) *Plan {
	if len(c.Plans) == 0 {
		return nil
	}
	node := c.Tree.Node(path)
	for i := range c.Plans {
		if slices.Equal(c.Plans[i].Path, node) {
			return &c.Plans[i]
		}
	}
	return &c.Plans[0]
}

// NoLevelError says that no level below the top of the scale keeps a bound, so
// that the guard would not act, or that calls which are held whatever their
// score break it.
type NoLevelError struct {
	Bound Bound
	Runs  int     // scored runs that it was to be set on
	AtTop int     // of these, runs whose S is 1: saturated, or with a call that is held whatever its score
	Alpha float64 // the bound
}

func (e *NoLevelError) Error() string {
	return fmt.Sprintf("calib: no level keeps the %s bound of %s: %d of %d runs reach the top of the scale", e.Bound, percent(e.Alpha), e.AtTop, e.Runs)
}

// atTop counts the runs whose S is 1 by the given score.
func atTop(runs []Scored, score func(*Scored) float64) (n int) {
	for i := range runs {
		if Grid(score(&runs[i])) == 1 {
			n++
		}
	}
	return n
}

// Solve sets the levels. tuning and conformal share no run ([Split] makes such
// parts). The tuning part may hold runs of any kind and is needed for groups,
// for Learn-Then-Test, and for a budget per call without MaxCalls; it may be
// empty otherwise.
//
//   - Without Confidence the levels are those of [Union]; a bound on misses is
//     conformal risk control ([MissThreshold]).
//   - With Confidence they are those of [UnionConfident]; with bounds on false
//     alarms and misses both, those that [LearnThenTest] accepts.
//   - A hold budget raises the hold level where the budget asks for more.
//   - Where a bound on misses leaves a choice, the highest hold level is taken:
//     the fewest runs are stopped.
//   - By gives levels of their own to the groups that have enough runs.
//
// Errors: [ErrLevel], [ErrRequest], [ErrScore], [ErrTrained], [ErrTuning];
// [*TooFewError], [*NoLevelError] and [*InfeasibleError], which are refusals for
// want of data or of a guarantee.
func (r Request) Solve(tuning, conformal []Scored) (*Calibration, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	c := &Calibration{}
	seen := map[string]Label{}
	var err error
	if tuning, err = r.clean(tuning, seen, c); err != nil {
		return nil, err
	}
	if conformal, err = r.clean(conformal, seen, c); err != nil {
		return nil, err
	}
	if r.HoldBudget.PerCall && r.HoldBudget.MaxCalls == 0 {
		for i := range tuning {
			r.HoldBudget.MaxCalls = max(r.HoldBudget.MaxCalls, len(tuning[i].Calls))
		}
		if r.HoldBudget.MaxCalls == 0 {
			return nil, fmt.Errorf("%w: a hold budget per call needs max_calls, or a tuning part to read it from", ErrRequest)
		}
	}
	need := r.needs()
	if len(r.By) > 0 {
		if len(tuning) == 0 {
			return nil, fmt.Errorf("%w: groups are chosen on the tuning part, and it is empty", ErrTuning)
		}
		factor := float64(len(conformal)) / float64(len(tuning))
		c.Tree = growTree(tuning, need, r.Unit, factor).prune(conformal, need, r.Unit)
	}
	for {
		failed, err := r.solve(c, tuning, conformal, need)
		var few *TooFewError
		if !errors.As(err, &few) || len(failed) == 0 {
			if n := len(c.Copies); err != nil && n > 0 {
				err = fmt.Errorf("%w (%d copies of other runs were left out)", err, n)
			}
			if err != nil {
				return nil, err
			}
			break
		}
		// What a budget per call needs shows only when it is set.
		c.Tree.Own = slices.DeleteFunc(c.Tree.Own, func(p []string) bool { return slices.Equal(p, failed) })
	}
	r.report(c, conformal)
	return c, nil
}

// solve sets the levels of every node; on an error it says at which one.
func (r *Request) solve(c *Calibration, tuning, conformal []Scored, need needs) (failed []string, err error) {
	c.Plans = nil
	at := byPrefix(tuning)
	for _, n := range c.Tree.nodes(conformal, need, r.Unit) {
		p := Plan{Path: n.path, Hold: Threshold{Value: Off}, Block: Threshold{Value: Off}}
		part := tuning
		if own := at.runs[key(n.path)]; len(of(own, Safe)) > 0 && len(of(own, Unsafe)) > 0 {
			part = own // else candidates of all traffic have to do
		}
		if err := r.set(&p, part, n); err != nil {
			if len(n.path) > 0 {
				err = fmt.Errorf("%s: %w", r.describe(n.path), err)
			}
			return n.path, err
		}
		p.fill(n.runs)
		c.Plans = append(c.Plans, p)
	}
	return nil, nil
}

// set sets the levels of one node.
func (r *Request) set(p *Plan, tuning []Scored, n node) error {
	safe, unsafe := of(n.runs, Safe), of(n.runs, Unsafe)
	promise := func(b Bound, level float64, runs []Scored) *Guarantee {
		groups, _ := units(runs, ByGroup)
		p.Guarantees = append(p.Guarantees, Guarantee{Bound: b, Level: level, Confidence: r.Confidence, Unit: r.Unit,
			Runs: len(runs), Groups: groups, For: r.describe(n.path), Pooled: n.pooled})
		return &p.Guarantees[len(p.Guarantees)-1]
	}

	var at95 float64
	var err error
	low := GridStep // the lowest hold level that the bounds so far allow
	if r.HoldBudget.Rate > 0 {
		e, _ := r.evidence(n.runs, false)
		t, err := r.HoldBudget.threshold(n.runs, e)
		if err != nil {
			return fmt.Errorf("hold budget: %w", err)
		}
		if t.IsOff() {
			return &NoLevelError{Bound: BoundHolds, Runs: len(n.runs), AtTop: atTop(n.runs, (*Scored).traffic), Alpha: r.HoldBudget.Rate}
		}
		p.Hold, low = t, t.Value
		g := promise(BoundHolds, r.HoldBudget.Rate, n.runs)
		g.PerCall, g.MaxCalls = r.HoldBudget.PerCall, r.HoldBudget.MaxCalls
		if !g.PerCall {
			g.MaxCalls = 0
		}
	}
	learn := r.Confidence > 0 && r.FalseAlarm > 0 && r.Miss > 0 && r.Unit == ByRun
	if learn {
		s, err := learnThenTest(tuning, n.runs, Risks{r.FalseAlarm, r.Block, r.Miss}, r.Confidence, r.Method, low)
		if err != nil {
			var no *InfeasibleError
			if errors.As(err, &no) {
				no.Budget = r.HoldBudget.Rate
			}
			return err
		}
		p.Hold = Threshold{Value: s.Chosen.Hold, N: s.Safe, K: s.Safe - s.Chosen.Alerted, Alpha: r.FalseAlarm}
		p.Block = Threshold{Value: s.Chosen.Block, N: s.Safe, Alpha: r.Block}
		if !p.Block.IsOff() {
			p.Block.K = s.Safe - s.Chosen.Blocked
		}
	} else if at95, err = r.window(p, safe, unsafe, low); err != nil {
		return err
	}
	if r.FalseAlarm > 0 {
		if !p.Block.IsOff() {
			r.declared(promise(BoundBlock, r.Block, safe), safe)
		}
		g := promise(BoundFalseAlarm, r.FalseAlarm, safe)
		g.At95 = at95
		r.declared(g, safe)
	}
	if r.Miss > 0 {
		promise(BoundMiss, r.Miss, unsafe)
	}
	// Sentences read best from the strongest to the widest.
	order := []Bound{BoundBlock, BoundFalseAlarm, BoundMiss, BoundHolds}
	slices.SortStableFunc(p.Guarantees, func(a, b Guarantee) int { return slices.Index(order, a.Bound) - slices.Index(order, b.Bound) })
	return nil
}

// declared notes that the safe runs were declared so, and how they were weighted.
func (r *Request) declared(g *Guarantee, safe []Scored) {
	e, weights := r.evidence(safe, true)
	g.Assumed, g.Spoiled = r.AssumeSafe, e.spoiled
	if r.Shift != nil {
		g.Effective = EffectiveSize(weights)
	}
}

// window sets the block level and the lowest hold level that false alarms and
// the budget allow, and where misses are bounded the highest that these allow.
// Both sides see different runs, so with confidence each has half of it. at95
// bounds the false alarms with 95 % confidence where the levels are ranks.
func (r *Request) window(p *Plan, safe, unsafe []Scored, low float64) (at95 float64, err error) {
	confidence := r.Confidence
	if confidence > 0 && r.FalseAlarm > 0 && r.Miss > 0 {
		confidence = 1 - (1-confidence)/2
	}
	if r.FalseAlarm > 0 {
		e, costs := r.evidence(safe, true)
		e.confidence = confidence
		if r.Shift != nil {
			if err := checkWeights(costs, r.Shift.Top); err != nil {
				return 0, err
			}
			if err := enoughWeight(costs, r.FalseAlarm); err != nil {
				return 0, err
			}
		}
		t, err := e.both(column(safe, func(s *Scored) float64 { return s.Hazard }), column(safe, func(s *Scored) float64 { return s.Risk }),
			costs, r.FalseAlarm, r.Block, r.Contamination)
		if err != nil {
			return 0, err
		}
		// Calls that are held whatever their score go on being held.
		top := atTop(safe, func(s *Scored) float64 { return s.Risk })
		if t.Silent() || t.Hold.IsOff() && top > 0 {
			return 0, &NoLevelError{Bound: BoundFalseAlarm, Runs: len(safe), AtTop: top, Alpha: r.FalseAlarm}
		}
		if r.Confidence == 0 && r.Unit == ByRun && r.Shift == nil {
			if at95 = t.bound(0.95, e.spoiled); at95 == 1 {
				at95 = 0 // nothing is known
			}
		}
		p.Block = t.Block
		if p.Hold.N == 0 || t.Hold.Value > low {
			p.Hold = t.Hold
		}
		low = max(low, t.Hold.Value)
	}
	if r.Miss == 0 {
		return at95, nil
	}
	m, err := level(r.Miss)
	if err != nil {
		return 0, err
	}
	e, costs := r.evidence(unsafe, false)
	e.confidence = confidence
	t, err := missThreshold(e, column(unsafe, func(s *Scored) float64 { return s.alert(p.Block.Value) }), costs, m)
	if err != nil {
		return 0, err
	}
	if t.Value < low {
		all := slices.Concat(safe, unsafe)
		return 0, &InfeasibleError{Risks: Risks{r.FalseAlarm, r.Block, r.Miss}, Confidence: r.Confidence, Safe: len(safe), Unsafe: len(unsafe),
			Budget: r.HoldBudget.Rate, Frontier: Frontier(all, p.Block.Value)}
	}
	p.Hold = t
	return at95, nil
}

// report fills the table of groups and the notes.
func (r *Request) report(c *Calibration, conformal []Scored) {
	at := byPrefix(conformal)
	for _, path := range at.paths {
		if len(path) < len(r.By) {
			continue
		}
		runs, node := at.runs[key(path)], c.Tree.Node(path)
		c.Groups = append(c.Groups, GroupRow{Path: path, Runs: len(runs), Safe: len(of(runs, Safe)),
			Backoff: len(node) < len(path), Plan: node})
	}
	note := func(format string, a ...any) { c.Notes = append(c.Notes, fmt.Sprintf(format, a...)) }
	if n := len(c.Copies); n > 0 {
		note("%d runs are copies of others and were left out: a copy is no new evidence.", n)
	}
	if c.torn > 0 {
		note("%d of the copies have another label than the run they copy, of which the first in the traces counts: one of the two labels is wrong.", c.torn)
	}
	safe := of(conformal, Safe)
	if len(safe) > 1 {
		lo, hi := math.Inf(1), math.Inf(-1)
		for i := range safe {
			lo, hi = min(lo, Grid(safe[i].Risk)), max(hi, Grid(safe[i].Risk))
		}
		if lo == hi {
			note("All %d safe runs have the same risk of %v: the level separates them from nothing.", len(safe), lo)
		}
	}
	groups, _ := units(safe, ByGroup)
	if r.Unit == ByRun && r.FalseAlarm > 0 && groups > 1 && 2*groups < len(safe) {
		note("The %d safe runs are of %d groups. The bounds speak of further runs of such traffic; for runs of new groups ask for the unit %q.", len(safe), groups, ByGroup)
	}
	if p := &c.Plans[0]; r.Block > 0 && p.Block.IsOff() {
		switch {
		case p.Block.K > 0:
			note("BLOCK is off: the hazard scores of safe runs reach the top of the scale.")
		case r.Confidence > 0 && r.Miss > 0:
			note("BLOCK is off: no accepted pair with it stops fewer runs.")
		default:
			note("BLOCK is off: %d safe runs are too few for bounds of %s and %s; all of it went to HOLD.", p.Safe, percent(r.Block), percent(r.FalseAlarm))
		}
	}
}
