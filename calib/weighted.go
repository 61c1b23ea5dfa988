package calib

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Shift describes live traffic that differs from the calibration runs in what
// kinds of runs it has, while runs of a kind behave the same (covariate shift).
type Shift struct {
	// Weight is the ratio of the density of a kind in live traffic to that
	// among the calibration runs: finite, 0 or more. It may look at everything
	// but scores and labels, and must be fixed without the conformal part.
	Weight func(*Scored) float64
	// Top is the largest weight that a live run can have.
	Top float64
}

// EffectiveSize returns the number of equally weighted runs that weighted ones
// are worth (Kish): (sum w)^2 / sum w^2; 0 without weight.
func EffectiveSize(weights []float64) float64 {
	var s, q float64
	for _, w := range weights {
		s, q = s+w, q+w*w
	}
	if q == 0 {
		return 0
	}
	return s * s / q
}

// WeightedQuantile returns the threshold that a run of the shifted traffic
// reaches with probability at most alpha:
//
//	Value = lowest l with sum_i w_i [score_i >= l] + top <= alpha (sum_i w_i + top)
//
// weights belong to the scores, top is the largest that a live run can have: the
// exact method weighs the live run itself, and the top weight is on the safe
// side of any. With equal weights it is [Quantile].
//
// The promise is as good as the weights: it is exact if they are the true
// density ratios. Few heavy runs carry little evidence, so fewer than [Need]
// effective runs ([EffectiveSize]) are refused with a [*TooFewError], which is
// a rule of thumb, beside a budget that is exceeded by the weights themselves.
//
// Source: Tibshirani et al., Conformal Prediction Under Covariate Shift (2019),
// corollary 1.
func WeightedQuantile(scores, weights []float64, top, alpha float64) (Threshold, error) {
	a, err := level(alpha)
	if err != nil {
		return Threshold{}, err
	}
	if len(weights) != len(scores) {
		return Threshold{}, fmt.Errorf("calib: %d scores and %d weights: want one of each per run", len(scores), len(weights))
	}
	if err := checkWeights(weights, top); err != nil {
		return Threshold{}, err
	}
	if err := enoughWeight(weights, alpha); err != nil {
		return Threshold{}, err
	}
	e := evidence{n: len(scores), weights: sum(weights), top: top}
	return e.threshold(scores, weights, a, "scored safe runs with these weights", 0)
}

func checkWeights(weights []float64, top float64) error {
	if !(top > 0) || math.IsInf(top, 1) {
		return fmt.Errorf("%w: the top weight is %v, want a finite number above 0", ErrRequest, top)
	}
	for i, w := range weights {
		if !(w >= 0 && w <= top*(1+1e-9)) {
			return fmt.Errorf("%w: weight %d is %v, want 0 to the top weight of %v", ErrRequest, i, w, top)
		}
	}
	return nil
}

func enoughWeight(weights []float64, alpha float64) error {
	if size := EffectiveSize(weights); size < float64(Need(alpha)) {
		return &TooFewError{Of: fmt.Sprintf("effective safe runs (%d weighted ones)", len(weights)), N: int(size), Need: Need(alpha), Alpha: alpha}
	}
	return nil
}

// ShareShift returns the weights for live traffic in which kinds of runs have
// other shares than among the given ones: live share over share here. source
// is the tuning part or other runs of the same origin, not the conformal part;
// live maps kinds to shares, which are scaled to sum to 1. Every live kind must
// occur in source: nothing is known of the others. Kinds without a live share
// weigh nothing.
func ShareShift(source []Scored, kind func(*Scored) string, live map[string]float64) (*Shift, error) {
	count, total := map[string]int{}, 0.0
	for i := range source {
		count[kind(&source[i])]++
	}
	for _, k := range slices.Sorted(maps.Keys(live)) {
		share := live[k]
		if !(share >= 0) || math.IsInf(share, 1) {
			return nil, fmt.Errorf("%w: the live share of %q is %v, want a finite number, 0 or more", ErrRequest, k, share)
		}
		if share > 0 && count[k] == 0 {
			return nil, fmt.Errorf("%w: live traffic has runs of kind %q and the runs at hand have none: collect some", ErrRequest, k)
		}
		total += share
	}
	if total == 0 {
		return nil, fmt.Errorf("%w: no kind has a live share", ErrRequest)
	}
	weights := map[string]float64{}
	s := &Shift{}
	for k, share := range live {
		if share > 0 {
			weights[k] = share / total / (float64(count[k]) / float64(len(source)))
			s.Top = max(s.Top, weights[k])
		}
	}
	s.Weight = func(r *Scored) float64 { return weights[kind(r)] }
	return s, nil
}

func (s *Shift) costs(runs []Scored) []float64 {
	w := make([]float64, len(runs))
	for i := range runs {
		w[i] = s.Weight(&runs[i])
	}
	return w
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}
