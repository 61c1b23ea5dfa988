package calib

import (
	"fmt"
	"math"
	"math/big"
)

// MissThreshold returns the highest threshold below which the score of an
// unsafe run, exchangeable with the given ones, lies with probability at most
// miss: conformal risk control of the loss "missed", which grows with the
// threshold,
//
//	k = floor((n+1) miss),   Value = M_(k)
//
// where M_(k) is the k-th smallest score on the grid: k-1 runs at most lie
// below it, and (k-1+1)/(n+1) <= miss. The guard acts at score >= Value, so the
// k-th run itself is caught, and ties with it are. Where M_(k) is 0 so is the
// threshold: only a guard that stops every run keeps the level.
//
// With a confidence above 0 it is the highest threshold of which that can be
// said with this confidence over the draw of the runs, by the exact binomial
// bound. Scores are those of unsafe runs up to their first hazard. Errors:
// [ErrLevel], [ErrScore] and [*TooFewError].
//
// Source: Angelopoulos et al., Conformal Risk Control (2022), section 2; with
// confidence Bates et al., Distribution-Free, Risk-Controlling Prediction Sets
// (2021).
func MissThreshold(unsafe []float64, miss, confidence float64) (Threshold, error) {
	if !(confidence >= 0 && confidence < 1) {
		return Threshold{}, fmt.Errorf("calib: %w: confidence is %v, want 0 or more and less than 1", ErrLevel, confidence)
	}
	m, err := level(miss)
	if err != nil {
		return Threshold{}, err
	}
	return missThreshold(evidence{n: len(unsafe), confidence: confidence}, unsafe, nil, m)
}

// missThreshold returns the highest threshold at which the costs of the scores
// below it stay within the budget of the level.
func missThreshold(e evidence, unsafe, costs []float64, miss *big.Rat) (Threshold, error) {
	t := Threshold{Value: Off, N: len(unsafe), Alpha: toFloat(miss)}
	budget := e.budget(miss)
	if budget < 0 {
		of := "scored unsafe runs"
		if e.byGroup {
			of = "groups of scored unsafe runs"
		}
		return t, &TooFewError{Of: of, N: e.n, Need: e.need(miss, 0), Alpha: t.Alpha, Confidence: e.confidence}
	}
	s, err := onGrid(unsafe)
	if err != nil {
		return t, err
	}
	// Mirrored, the misses are the scores that reach a threshold: the lowest one
	// that keeps the budget lies a grid point above the mirror of the run that
	// must be caught.
	mirrored := make([]float64, len(s))
	for i, x := range s {
		mirrored[i] = 1 - x
	}
	t.Value = 0
	if l := lowest(mirrored, costs, budget); !math.IsInf(l, 1) {
		t.Value = 1 + GridStep - l
	}
	t.K = countBelow(s, t.Value) + 1
	if costs == nil {
		t.K = int(budget) + 1 // the rank that was chosen, whatever ties with it
	}
	return t, nil
}
