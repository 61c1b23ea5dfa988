package calib

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Risks are bounds on what a pair of levels does; 0 is no bound.
type Risks struct {
	FalseAlarm float64 // P(HOLD or BLOCK) for a safe run
	Block      float64 // P(BLOCK) for a safe run; without it BLOCK is off
	Miss       float64 // P(neither, up to the hazard) for an unsafe run
}

// Pair is a candidate for both levels, grid points; Block may be [Off].
type Pair struct {
	Hold, Block float64
}

// Tested is a pair with what it did and its p-values.
type Tested struct {
	Pair
	Alerted int     // safe runs held or blocked
	Blocked int     // safe runs blocked
	Missed  int     // unsafe runs neither held nor blocked up to the hazard
	P       float64 // largest p-value of the risks that are bounded
}

// MarshalJSON writes a level that is off as null.
func (t Tested) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Hold    float64  `json:"hold"`
		Block   *float64 `json:"block"`
		Alerted int      `json:"alerted"`
		Blocked int      `json:"blocked"`
		Missed  int      `json:"missed"`
		P       float64  `json:"p"`
	}{t.Hold, finiteOrNil(t.Block), t.Alerted, t.Blocked, t.Missed, t.P})
}

// finiteOrNil is how a level stands in JSON, which has no infinity.
func finiteOrNil(level float64) *float64 {
	if math.IsInf(level, 0) {
		return nil
	}
	return &level
}

// Method is how many pairs are tested at once.
type Method string

// The methods. Pareto is the default.
const (
	Pareto     Method = ""           // fixed sequence over the Pareto front of the tuning part
	Bonferroni Method = "bonferroni" // all pairs of the grid, each at delta over their number
)

// Selection is the answer of [LearnThenTest].
type Selection struct {
	Chosen   Tested   // of the accepted pairs, the one that stops the fewest runs
	Accepted []Tested // all pairs that keep every bound, with the confidence that was asked for
	Tests    int      // hypotheses that were tested
	Safe     int      // safe and unsafe runs of the conformal part
	Unsafe   int
}

// InfeasibleError says that no pair of levels keeps all bounds at once. It is
// an answer: Frontier shows what can be had instead.
type InfeasibleError struct {
	Risks
	Confidence   float64
	Safe, Unsafe int        // runs of the conformal part
	Budget       float64    // hold budget that the pairs had to keep too; 0 for none
	Best         Tested     // the pair that came nearest: smallest p-value, counts on the conformal part; zero if none was tested
	Need         int        // runs of each kind with which Best would be accepted if it went on like that; 0 if no number would do
	Frontier     []Tradeoff // of the conformal part, without BLOCK
}

func (e *InfeasibleError) Error() string {
	var bounds []string
	for _, b := range []struct {
		of    string
		level float64
	}{{"false alarms", e.FalseAlarm}, {"misses", e.Miss}, {"holds", e.Budget}} {
		if b.level > 0 {
			bounds = append(bounds, b.of+" to "+percent(b.level))
		}
	}
	s := "calib: no levels keep " + strings.Join(bounds, " and ")
	if e.Confidence > 0 {
		s += fmt.Sprintf(" with %s confidence", percent(e.Confidence))
	}
	s += fmt.Sprintf(" on %d safe and %d unsafe runs", e.Safe, e.Unsafe)
	if e.Need > max(e.Safe, e.Unsafe) {
		s += fmt.Sprintf("; about %d of each kind would do if the rates stayed as they are", e.Need)
	}
	return s
}

// LearnThenTest returns the pairs of levels of which it can be said, for all of
// them at once and with the given confidence over the draw of the conformal
// part, that they keep every bound.
//
// Candidates come from the tuning part: hold levels that alert up to twice
// FalseAlarm of its safe runs or miss up to twice Miss of its unsafe ones, and
// the top of the scale; block levels that block up to twice Block of the safe
// ones, and off. For each pair the hypothesis "some bound is exceeded" has the p-value
//
//	p = max( P(Bin(n_safe, FalseAlarm) <= alerted), P(Bin(n_safe, Block) <= blocked),
//	         P(Bin(n_unsafe, Miss) <= missed) )
//
// on the conformal part. With [Pareto] the pairs that no other one dominates on
// the tuning part are tested in the order of their p-values there, each at
// 1-confidence, until the first that is not rejected; with [Bonferroni] all
// pairs at (1-confidence) over their number.
//
// Both parts need safe and unsafe runs and may share none; unlabelled runs are
// left out. Errors: [ErrLevel]; [*TooFewError] where even a pair without a
// single error would be refused; [*InfeasibleError].
//
// Source: Angelopoulos et al., Learn then Test (2021); Laufer-Goren et al.,
// Efficiently Controlling Multiple Risks with Pareto Testing (2023).
func LearnThenTest(tuning, conformal []Scored, r Risks, confidence float64, method Method) (*Selection, error) {
	return learnThenTest(tuning, conformal, r, confidence, method, 0)
}

// learnThenTest accepts only pairs whose hold level is at least floor, which
// may depend on the conformal part since all accepted pairs hold at once.
func learnThenTest(tuning, conformal []Scored, r Risks, confidence float64, method Method, floor float64) (*Selection, error) {
	for _, l := range []struct {
		name string
		v    float64
	}{{"false alarm", r.FalseAlarm}, {"miss", r.Miss}, {"confidence", confidence}} {
		if !(l.v > 0 && l.v < 1) {
			return nil, fmt.Errorf("calib: %w: %s is %v, want more than 0 and less than 1", ErrLevel, l.name, l.v)
		}
	}
	if !(r.Block >= 0 && r.Block < r.FalseAlarm) {
		return nil, fmt.Errorf("calib: %w: block is %v, want 0 or more and less than the false alarms of %v", ErrLevel, r.Block, r.FalseAlarm)
	}
	for _, runs := range [][]Scored{tuning, conformal} {
		for i := range runs {
			if err := runs[i].check(); err != nil {
				return nil, err
			}
		}
	}
	s := &Selection{Safe: len(of(conformal, Safe)), Unsafe: len(of(conformal, Unsafe))}
	delta := 1 - confidence
	for _, c := range []struct {
		of    string
		n     int
		level float64
	}{{"scored safe runs", s.Safe, r.FalseAlarm}, {"scored unsafe runs", s.Unsafe, r.Miss}} {
		if BinomialP(0, c.n, c.level) > delta {
			return nil, &TooFewError{Of: c.of, N: c.n, Need: NeedConfident(c.level, confidence), Alpha: c.level, Confidence: confidence}
		}
	}
	if safe, unsafe := len(of(tuning, Safe)), len(of(tuning, Unsafe)); safe == 0 || unsafe == 0 {
		return nil, fmt.Errorf("%w: the tuning part has %d safe and %d unsafe runs: both kinds are needed to choose what is tested", ErrTuning, safe, unsafe)
	}

	candidates := count(tuning, candidates(tuning, r), r)
	level := delta
	if method == Bonferroni {
		level /= float64(len(candidates))
	} else {
		candidates = pareto(candidates)
		slices.SortStableFunc(candidates, func(a, b Tested) int { return cmp.Compare(a.P, b.P) })
	}
	pairs := make([]Pair, len(candidates))
	for i := range pairs {
		pairs[i] = candidates[i].Pair
	}
	var best Tested
	tested := count(conformal, pairs, r)
	for i, c := range tested {
		if i == 0 || c.P < best.P {
			best = c
		}
	}
	for _, c := range tested {
		s.Tests++
		if c.P <= level {
			s.Accepted = append(s.Accepted, c)
		} else if method == Pareto {
			break
		}
	}
	var usable []Tested
	for _, c := range s.Accepted {
		if c.Hold >= floor {
			usable = append(usable, c)
		}
	}
	if len(usable) == 0 {
		return nil, &InfeasibleError{Risks: r, Confidence: confidence, Safe: s.Safe, Unsafe: s.Unsafe, Best: best,
			Need: needLike(best, s.Safe, s.Unsafe, r, level), Frontier: Frontier(conformal, Off)}
	}
	s.Chosen = slices.MinFunc(usable, func(a, b Tested) int {
		return cmp.Or(cmp.Compare(stopped(conformal, a.Pair), stopped(conformal, b.Pair)), cmp.Compare(a.Blocked, b.Blocked),
			cmp.Compare(b.Hold, a.Hold), cmp.Compare(b.Block, a.Block))
	})
	return s, nil
}

// stopped counts the runs of any label that are held or blocked.
func stopped(runs []Scored, p Pair) (n int) {
	for i := range runs {
		if runs[i].Alerted(p.Hold, p.Block) {
			n++
		}
	}
	return n
}

// How many levels are tried: enough to come within a few runs of any optimum on
// tuning parts of thousands, few enough for a fraction of a second.
const (
	holdLevels  = 64 // per side, safe and unsafe
	blockLevels = 15 // and off
)

// candidates lists the pairs to test, from the tuning part alone.
func candidates(tuning []Scored, r Risks) []Pair {
	risk := func(s *Scored) float64 { return Grid(s.Risk) }
	safe, unsafe := column(of(tuning, Safe), risk), column(of(tuning, Unsafe), risk)
	hazard := column(of(tuning, Safe), func(s *Scored) float64 { return Grid(s.Hazard) })
	for _, s := range [][]float64{safe, unsafe, hazard} {
		slices.Sort(s)
	}
	// HOLD is never off: a call that is held whatever its score has an S of 1.
	holds := []float64{1}
	for _, v := range justAbove(safe, 2*r.FalseAlarm, holdLevels) {
		holds = append(holds, min(v, 1))
	}
	most := min(int(2*r.Miss*float64(len(unsafe))), len(unsafe)-1)
	for _, i := range spread(most, holdLevels) {
		if v := unsafe[i]; v >= GridStep {
			holds = append(holds, v)
		}
	}
	blocks := []float64{Off}
	if r.Block > 0 {
		blocks = append(blocks, justAbove(hazard, 2*r.Block, blockLevels)...)
	}
	slices.Sort(holds)
	slices.Sort(blocks)
	var pairs []Pair
	for _, b := range slices.Compact(blocks) {
		for _, h := range slices.Compact(holds) {
			pairs = append(pairs, Pair{Hold: h, Block: b})
		}
	}
	return pairs
}

// justAbove returns levels just above sorted scores, which from none to a share
// of the scores reach.
func justAbove(sorted []float64, share float64, levels int) []float64 {
	var out []float64
	most := min(int(share*float64(len(sorted))), len(sorted)-1)
	for _, i := range spread(most, levels) {
		out = append(out, nextAbove(sorted[len(sorted)-1-i]))
	}
	return out
}

// spread returns at most n whole numbers from 0 to most, evenly apart.
func spread(most, n int) []int {
	if most < n {
		n = most + 1
	}
	out := make([]int, n)
	for i := range out {
		if n > 1 {
			out[i] = i * most / (n - 1)
		}
	}
	return out
}

// count counts the errors of each pair on labelled runs, and the p-value.
func count(runs []Scored, pairs []Pair, r Risks) []Tested {
	safe, unsafe := of(runs, Safe), of(runs, Unsafe)
	type scores struct{ safe, unsafe []float64 }
	alerts := map[float64]scores{} // sorted alert scores per block level
	reach := func(sorted []float64, v float64) int {
		i, _ := slices.BinarySearch(sorted, v)
		return len(sorted) - i
	}
	out := make([]Tested, len(pairs))
	for i, p := range pairs {
		c, ok := alerts[p.Block]
		if !ok {
			alert := func(s *Scored) float64 {
				if Grid(s.Hazard) >= p.Block {
					return Off // blocked: above every hold level
				}
				return Grid(s.Risk)
			}
			c = scores{column(safe, alert), column(unsafe, alert)}
			slices.Sort(c.safe)
			slices.Sort(c.unsafe)
			alerts[p.Block] = c
		}
		t := Tested{Pair: p, Alerted: reach(c.safe, p.Hold), Blocked: reach(c.safe, Off)}
		t.Missed = len(unsafe) - reach(c.unsafe, p.Hold)
		t.P = max(BinomialP(t.Alerted, len(safe), r.FalseAlarm), BinomialP(t.Missed, len(unsafe), r.Miss))
		if r.Block > 0 && !math.IsInf(p.Block, 1) { // a level that is off blocks nobody, whatever n
			t.P = max(t.P, BinomialP(t.Blocked, len(safe), r.Block))
		}
		out[i] = t
	}
	return out
}

// pareto keeps the candidates that no other one dominates in all risks.
func pareto(all []Tested) []Tested {
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b Tested) int {
		return cmp.Or(cmp.Compare(a.Alerted, b.Alerted), cmp.Compare(a.Missed, b.Missed), cmp.Compare(a.Blocked, b.Blocked),
			cmp.Compare(b.Hold, a.Hold), cmp.Compare(b.Block, a.Block))
	})
	var front []Tested
	for _, c := range order {
		if !slices.ContainsFunc(front, func(f Tested) bool {
			return f.Alerted <= c.Alerted && f.Missed <= c.Missed && f.Blocked <= c.Blocked
		}) {
			front = append(front, c)
		}
	}
	return front
}

// needLike returns the number of runs of each kind with which a pair would be
// accepted if it went on to err as often as it did, or 0.
func needLike(t Tested, safe, unsafe int, r Risks, delta float64) int {
	share := func(x, n int) float64 { return float64(x) / float64(max(n, 1)) }
	fa, bl, ms := share(t.Alerted, safe), share(t.Blocked, safe), share(t.Missed, unsafe)
	if fa >= r.FalseAlarm || ms >= r.Miss || r.Block > 0 && bl >= r.Block {
		return 0
	}
	accepted := func(n int) bool {
		x := func(rate float64) int { return int(rate*float64(n) + 0.5) }
		return BinomialP(x(fa), n, r.FalseAlarm) <= delta && BinomialP(x(ms), n, r.Miss) <= delta &&
			(r.Block == 0 || BinomialP(x(bl), n, r.Block) <= delta)
	}
	lo, hi := 0, 1
	for !accepted(hi) {
		if lo, hi = hi, 2*hi; hi > 1<<28 {
			return 0
		}
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; accepted(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}
