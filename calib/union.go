package calib

import (
	"fmt"
	"math/big"
)

// Thresholds are the two levels of a guard and what they promise: on a safe run
// that is exchangeable with the calibration runs, P(HOLD or BLOCK) <= Alpha.
type Thresholds struct {
	Block Threshold `json:"block"` // BLOCK where p_haz >= Block.Value
	Hold  Threshold `json:"hold"`  // else HOLD where S >= Hold.Value

	Alpha       float64 `json:"alpha"`        // level of the promise
	N           int     `json:"n"`            // scored safe runs
	Alerted     int     `json:"alerted"`      // calibration runs that would be held or blocked
	NoGuarantee bool    `json:"no_guarantee"` // the paper's clamp min(k, n) was used: nothing is promised

	Confidence float64 `json:"confidence,omitempty"` // set by [UnionConfident]: Alpha holds with this confidence
}

// Union sets both levels on the maxima of n safe runs so that the promise holds
// for HOLD or BLOCK together: l_block at level alphaBlock on maxHazard, l_hold
// at level alpha-alphaBlock on maxRisk (same runs, same order). By the union
// bound the two shares add up to at most alpha, however the scores depend on
// each other.
//
// If n is too small for alphaBlock (n < 1/alphaBlock - 1, or alphaBlock = 0),
// BLOCK is off and all of alpha goes to HOLD; this depends on n alone, never on
// the scores, and therefore costs nothing.
// If n is too small even for that, the error is a [*TooFewError]; with
// paperClamp the ranks are min(k, n) instead, as in the paper, and the result
// is marked NoGuarantee.
func Union(maxHazard, maxRisk []float64, alpha, alphaBlock float64, paperClamp bool) (Thresholds, error) {
	if err := sameRuns(maxHazard, maxRisk); err != nil {
		return Thresholds{}, err
	}
	all, block, rest, err := splitLevels(alpha, alphaBlock)
	if err != nil {
		return Thresholds{}, err
	}
	n := len(maxRisk)
	t := Thresholds{Alpha: alpha, N: n, NoGuarantee: rank(n, all) > n}
	if t.NoGuarantee && (!paperClamp || n == 0) {
		return Thresholds{}, &TooFewError{N: n, Need: need(all), Alpha: alpha}
	}
	t.Block = Threshold{Value: Off, N: n}
	hold := all
	if block != nil {
		t.Block.Alpha = alphaBlock
		// HOLD may be out of reach at its own share and in reach at all of alpha.
		if fits := rank(n, block) <= n && rank(n, rest) <= n; fits || t.NoGuarantee {
			if t.Block, err = quantile(maxHazard, block, t.NoGuarantee); err != nil {
				return Thresholds{}, fmt.Errorf("hazard maxima: %w", err)
			}
			hold = rest
		}
	}
	if t.Hold, err = quantile(maxRisk, hold, t.NoGuarantee); err != nil {
		return Thresholds{}, fmt.Errorf("risk maxima: %w", err)
	}
	t.count(maxHazard, maxRisk)
	return t, nil
}

// sameRuns checks that both lists have one entry per run.
func sameRuns(maxHazard, maxRisk []float64) error {
	if len(maxHazard) != len(maxRisk) {
		return fmt.Errorf("calib: %d hazard maxima and %d risk maxima: want one of each per run", len(maxHazard), len(maxRisk))
	}
	return nil
}

// splitLevels reads alpha, the part of it for BLOCK and what is left for HOLD.
// block and rest are nil where alphaBlock is 0.
func splitLevels(alpha, alphaBlock float64) (all, block, rest *big.Rat, err error) {
	if all, err = level(alpha); err != nil {
		return nil, nil, nil, err
	}
	if !(alphaBlock >= 0 && alphaBlock < alpha) {
		return nil, nil, nil, fmt.Errorf("calib: %w: alpha_block is %v, want 0 or more and less than alpha = %v", ErrLevel, alphaBlock, alpha)
	}
	if alphaBlock == 0 {
		return all, nil, nil, nil
	}
	if block, err = level(alphaBlock); err != nil {
		return nil, nil, nil, err
	}
	return all, block, new(big.Rat).Sub(all, block), nil
}

// count sets Alerted.
func (t *Thresholds) count(maxHazard, maxRisk []float64) {
	t.Alerted = 0
	for i := range maxRisk {
		if Grid(maxHazard[i]) >= t.Block.Value || Grid(maxRisk[i]) >= t.Hold.Value {
			t.Alerted++
		}
	}
}

// Silent reports whether both levels are off, so that the guard would never
// act: the scores of safe runs reach the top of the scale.
func (t Thresholds) Silent() bool { return t.Block.IsOff() && t.Hold.IsOff() }

// calibrated reports whether safe runs and a level stand behind the thresholds:
// levels that were set by hand, or for a bound on misses or holds alone, say
// nothing of safe runs.
func (t Thresholds) calibrated() bool { return t.N > 0 && t.Alpha > 0 }

// ConfidentBound returns a bound on the share of safe runs that are held or
// blocked which holds with the given confidence over the draw of the
// calibration runs: the sum of the exact Clopper-Pearson bounds of the levels
// that are on, the confidence split evenly over them. It is 1 where nothing is
// promised. It counts n-K alerts per level, not the alerts seen, since the
// thresholds were chosen on the same runs. Thresholds of [UnionConfident] keep
// Alpha at their own confidence and below; more than that is not known of them.
func (t Thresholds) ConfidentBound(confidence float64) float64 {
	if t.NoGuarantee || !t.calibrated() {
		return 1
	}
	switch {
	case t.Confidence > 0 && confidence <= t.Confidence:
		return t.Alpha
	case t.Confidence > 0: // both cuts were made together: their ranks say nothing one by one
		return 1
	}
	return t.bound(confidence, 0)
}

// bound is ConfidentBound of ranks, when some of the runs may not be safe.
func (t Thresholds) bound(confidence float64, spoiled int) float64 {
	set := []Threshold{t.Hold}
	if t.Block.K > 0 {
		set = append(set, t.Block)
	}
	each := 1 - (1-confidence)/float64(len(set))
	var sum float64
	for _, s := range set {
		if !s.IsOff() { // that a level is off depends on the scores: it adds nothing, and frees no confidence either
			sum += ClopperPearsonUpper(s.N-s.K, s.N-spoiled, each)
		}
	}
	return min(sum, 1)
}

// Marginal states the promise in a sentence, for reports.
func (t Thresholds) Marginal() string {
	if t.NoGuarantee {
		return fmt.Sprintf("No guarantee: %d safe runs are fewer than the %d that alpha %v needs, and the rank was clamped to the largest score.", t.N, Need(t.Alpha), t.Alpha)
	}
	if !t.calibrated() {
		return "No guarantee: the levels were not set on safe runs."
	}
	if t.Silent() {
		return fmt.Sprintf("Both levels are off: among %d safe runs the scores reach the top of the scale, and the guard never acts.", t.N)
	}
	return fmt.Sprintf("A safe run like the %d calibration runs is held or blocked with probability at most %s (averaged over the draw of the calibration runs).%s", t.N, percent(t.Alpha), t.blockOff())
}

// Confident states the promise with confidence in a sentence, for reports.
func (t Thresholds) Confident(confidence float64) string {
	if t.NoGuarantee || !t.calibrated() {
		return "No statement with confidence: the thresholds carry no guarantee."
	}
	return fmt.Sprintf("With %s confidence at most %s of safe runs are held or blocked (exact Clopper-Pearson, %d runs).", percent(confidence), percent(t.ConfidentBound(confidence)), t.N)
}

func (t Thresholds) blockOff() string {
	switch {
	case t.Block.K > 0 && t.Block.IsOff():
		return " BLOCK is off: the hazard scores of safe runs reach the top of the scale."
	case t.Block.K == 0 && t.Block.Alpha > 0:
		return fmt.Sprintf(" BLOCK is off: with alpha_block %v both levels need %d runs; all of alpha went to HOLD.", t.Block.Alpha, t.needBoth())
	}
	return ""
}

// needBoth returns the number of runs from which both levels are set.
func (t Thresholds) needBoth() int {
	all, errA := level(t.Alpha)
	block, errB := level(t.Block.Alpha)
	if errA != nil || errB != nil || all.Cmp(block) <= 0 {
		return 0
	}
	return max(need(block), need(new(big.Rat).Sub(all, block)))
}
