package calib

import (
	"cmp"
	"fmt"
	"slices"
)

// UnionConfident sets both levels so that, with the given confidence over the
// draw of the calibration runs, at most alphaBlock of safe runs are blocked and
// at most alpha are held or blocked. Each of the two statements has half of
// 1-confidence to fail. Arguments and errors as for [Union].
//
// The second counts the runs that either rule alerts. l_block is cut first:
// with the runs ordered by (haz, risk), x_b of them lie above the run it is cut
// at. l_hold is cut among the runs below that one, so that x runs at most are
// alerted in all:
//
//	x_b = max x: P(Bin(n, alphaBlock) <= x) <= (1-confidence)/2
//	x   = max x: P(Bin(n, alpha)      <= x) <= (1-confidence)/2
//	l_hold just above the (x-x_b)-th largest risk of the n-x_b-1 runs below
//
// The alerted region consists of x+1 of the n+1 statistically equivalent blocks
// that the two cuts make, so its probability is at most Beta(x+1, n-x)
// distributed, whatever the dependence of the scores and with ties: the exact
// Clopper-Pearson bound of x alerts among n, although both cuts were chosen on
// the same runs.
//
// Where n is too small for both levels BLOCK is off, and HOLD has all of alpha
// and of the confidence; that depends on n alone.
//
// Source: Tukey, Nonparametric estimation II: statistically equivalent blocks
// and tolerance regions (1947) and, for ties, III (1948); Vovk (2012) as for
// [QuantileConfident].
func UnionConfident(maxHazard, maxRisk []float64, alpha, alphaBlock, confidence float64) (Thresholds, error) {
	if err := sameRuns(maxHazard, maxRisk); err != nil {
		return Thresholds{}, err
	}
	if !(confidence > 0 && confidence < 1) {
		return Thresholds{}, fmt.Errorf("calib: %w: confidence is %v, want more than 0 and less than 1", ErrLevel, confidence)
	}
	e := evidence{n: len(maxRisk), confidence: confidence}
	return e.both(maxHazard, maxRisk, nil, alpha, alphaBlock, 0)
}

// both sets the two levels for any kind of evidence.
func (e evidence) both(maxHazard, maxRisk, costs []float64, alpha, alphaBlock, share float64) (Thresholds, error) {
	all, block, rest, err := splitLevels(alpha, alphaBlock)
	if err != nil {
		return Thresholds{}, err
	}
	haz, err := onGrid(maxHazard)
	if err != nil {
		return Thresholds{}, fmt.Errorf("hazard maxima: %w", err)
	}
	risk, err := onGrid(maxRisk)
	if err != nil {
		return Thresholds{}, fmt.Errorf("risk maxima: %w", err)
	}
	t := Thresholds{Alpha: alpha, N: len(risk), Confidence: e.confidence, Block: Threshold{Value: Off, N: len(risk), Alpha: alphaBlock}}
	hold := all
	of := "scored safe runs"
	if e.byGroup {
		of = "groups of scored safe runs"
	}
	if block != nil {
		half := e
		if e.confidence > 0 {
			half.confidence = 1 - (1-e.confidence)/2
		}
		if e.confidence > 0 && !e.byGroup {
			if xb, x := half.budget(block), half.budget(all); xb >= 0 && x > xb {
				t.Block.Value, t.Hold.Value = cutTwice(haz, risk, int(xb), int(x))
				t.Block.K, t.Hold = countBelow(haz, t.Block.Value), Threshold{Value: t.Hold.Value, K: countBelow(risk, t.Hold.Value), N: len(risk), Alpha: alpha}
				t.count(haz, risk)
				return t, nil
			}
		} else if half.budget(block) >= 0 && half.budget(rest) >= 0 {
			if t.Block, err = half.threshold(haz, costs, block, of, share); err != nil {
				return Thresholds{}, err
			}
			e, hold = half, rest
		}
	}
	if t.Hold, err = e.threshold(risk, costs, hold, of, share); err != nil {
		return Thresholds{}, err
	}
	t.count(haz, risk)
	return t, nil
}

// cutTwice returns the levels of [UnionConfident] on the grid.
func cutTwice(haz, risk []float64, xb, x int) (block, hold float64) {
	order := make([]int, len(haz))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(haz[b], haz[a]), cmp.Compare(risk[b], risk[a]))
	})
	block = nextAbove(haz[order[xb]])
	below := make([]float64, 0, len(haz)-xb-1)
	for _, i := range order[xb+1:] {
		below = append(below, risk[i])
	}
	slices.Sort(below)
	return block, nextAbove(below[len(below)-(x-xb)])
}
