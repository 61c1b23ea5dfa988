package calib

import (
	"cmp"
	"math"
	"math/big"
	"slices"
)

// Unit is what a promise counts, and what must be exchangeable.
type Unit string

// The units. By group, a bound is on the mean over groups of the share of the
// group's runs that err: what a run of a new task may expect. It holds where
// runs of a task resemble each other, which the bound by run does not.
const (
	ByRun   Unit = ""
	ByGroup Unit = "group"
)

// evidence is what a bound rests on, and how it is to be read.
type evidence struct {
	n          int  // units
	spoiled    int  // units among them that may not be what they are taken for
	byGroup    bool // errors are shares of a group, no whole numbers
	confidence float64

	weights, top float64 // weighted runs: the sum of the weights, and the largest of a live run; top 0 is no weights
}

// budget returns the errors among the n units that keep the level, a whole
// number where units are runs without weights; negative if not even none do. It is
//
//	marginal, runs     floor(level (m+1)) - 1     split conformal
//	marginal, groups   level (m+1) - 1            conformal risk control
//	confident, runs    max x: P(Bin(m, level) <= x) <= 1-confidence
//	confident, groups  the same by the Hoeffding-Bentkus bound
//	weighted           level (sum of weights + top) - top
//
// with m = n - spoiled: at most budget of the m sound units lie above the
// threshold, wherever the spoiled ones lie.
func (e evidence) budget(level *big.Rat) float64 {
	m := e.n - e.spoiled
	switch {
	case m <= 0:
		return -1
	case e.top > 0:
		return toFloat(level)*(e.weights+e.top) - e.top
	case e.confidence > 0 && e.byGroup:
		return maxSum(m, toFloat(level), 1-e.confidence)
	case e.confidence > 0:
		return float64(maxErrors(m, toFloat(level), 1-e.confidence))
	}
	r := new(big.Rat).Mul(big.NewRat(int64(m)+1, 1), level)
	if e.byGroup {
		return toFloat(r) - 1
	}
	return float64(floor(r) - 1)
}

// need returns the smallest number of units with a budget, when share of them
// may be spoiled.
func (e evidence) need(level *big.Rat, share float64) int {
	sound := need(level)
	if e.confidence > 0 {
		sound = NeedConfident(toFloat(level), e.confidence)
	}
	n := int(min(float64(sound)/(1-share), math.MaxInt32))
	for n < math.MaxInt32 && n-spoil(n, share) < sound {
		n++
	}
	return n
}

// spoil is the number of units among n that a share amounts to.
func spoil(n int, share float64) int { return int(math.Ceil(share*float64(n) - 1e-9)) }

// threshold sets one level on scores with the given costs (nil for one each).
func (e evidence) threshold(scores, costs []float64, level *big.Rat, of string, share float64) (Threshold, error) {
	t := Threshold{Value: Off, N: len(scores), Alpha: toFloat(level)}
	budget := e.budget(level)
	if budget < 0 {
		n := e.n
		if e.top > 0 {
			n = int(e.weights / e.top) // counted in the heaviest live run
		}
		return t, &TooFewError{Of: of, N: n, Need: e.need(level, share), Alpha: t.Alpha, Confidence: e.confidence}
	}
	s, err := onGrid(scores)
	if err != nil {
		return t, err
	}
	t.Value = lowest(s, costs, budget)
	t.K = countBelow(s, t.Value)
	if costs == nil {
		t.K = len(s) - int(budget) // the rank that was chosen, whatever ties with it
	}
	return t, nil
}

// lowest returns the lowest threshold, a grid point just above a score, at
// which the costs of the scores that reach it stay within the budget. Scores
// are on the grid; costs are 0 or more, nil for one each. Without any score to
// stop at, it is the grid point above 0: everything may be stopped.
//
// Since costs only grow as the threshold falls, this is
//
//	inf{ l : sum_i cost_i [score_i >= l] <= budget }
//
// the form that split conformal prediction and conformal risk control share.
//
// Source: Angelopoulos et al., Conformal Risk Control (2022), section 2.
func lowest(scores, costs []float64, budget float64) float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	var spent float64
	for i := 0; i < len(order); {
		v, j := scores[order[i]], i
		for ; j < len(order) && scores[order[j]] == v; j++ {
			if costs == nil {
				spent++
			} else {
				spent += costs[order[j]]
			}
		}
		if spent > budget {
			return nextAbove(v)
		}
		i = j
	}
	return GridStep
}

// countBelow returns how many scores lie below v.
func countBelow(scores []float64, v float64) int {
	var k int
	for _, s := range scores {
		if s < v {
			k++
		}
	}
	return k
}

// units returns the number of units that runs are, and what each run costs when
// it errs: nil by run, one over the size of its group by group.
func units(runs []Scored, unit Unit) (n int, costs []float64) {
	if unit != ByGroup {
		return len(runs), nil
	}
	size := map[string]int{}
	for i := range runs {
		size[runs[i].group()]++
	}
	costs = make([]float64, len(runs))
	for i := range runs {
		costs[i] = 1 / float64(size[runs[i].group()])
	}
	return len(size), costs
}
