package calib

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ErrFit is returned for data that nothing can be fitted to.
var ErrFit = errors.New("calib: cannot fit")

// Isotonic maps a score to a probability by a rising function, linear between
// the points (X[i], Y[i]) and constant beyond the ends. X rises strictly, Y
// rises or stays. Like a temperature it is fitted on the tuning part alone.
type Isotonic struct {
	X []float64 `json:"x"`
	Y []float64 `json:"y"`
}

// FitIsotonic returns the rising function with the least weighted squares
//
//	sum_i w_i (f(x_i) - y_i)^2
//
// by pooling adjacent violators. y is in [0, 1]; weights may be nil for all
// ones and are above 0 otherwise. Observations with the same x are averaged
// first. Errors: [ErrFit] for no data, lengths that differ, numbers that are not
// finite.
//
// Source: Zadrozny, Elkan, Transforming classifier scores into accurate
// multiclass probability estimates (2002); Barlow et al., Statistical Inference
// under Order Restrictions (1972).
func FitIsotonic(x, y, weights []float64) (Isotonic, error) {
	if len(x) == 0 || len(y) != len(x) || weights != nil && len(weights) != len(x) {
		return Isotonic{}, fmt.Errorf("%w: %d scores, %d outcomes, %d weights: want at least one, and one of each", ErrFit, len(x), len(y), len(weights))
	}
	points := make([]weighted, len(x))
	for i := range x {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		if !finite(x[i]) || !(y[i] >= 0 && y[i] <= 1) || !(w > 0) || !finite(w) {
			return Isotonic{}, fmt.Errorf("%w: observation %d is (%v, %v) with weight %v: want a finite score, an outcome in [0, 1] and a weight above 0", ErrFit, i, x[i], y[i], w)
		}
		points[i] = weighted{x[i], x[i], w * y[i], w}
	}
	var f Isotonic
	for _, b := range pool(average(points)) {
		f.X, f.Y = append(f.X, b.lo), append(f.Y, b.mean())
		if b.hi > b.lo {
			f.X, f.Y = append(f.X, b.hi), append(f.Y, b.mean())
		}
	}
	return f, nil
}

// At returns f(x); 0 for a function without points.
func (f Isotonic) At(x float64) float64 {
	n := len(f.X)
	if n == 0 || n != len(f.Y) {
		return 0
	}
	i, found := slices.BinarySearch(f.X, x)
	switch {
	case found:
		return f.Y[i]
	case i == 0:
		return f.Y[0]
	case i == n:
		return f.Y[n-1]
	}
	return f.Y[i-1] + (f.Y[i]-f.Y[i-1])*(x-f.X[i-1])/(f.X[i]-f.X[i-1])
}

// weighted is a block of observations from lo to hi: the weighted sum of their
// outcomes, which is exact where outcomes are 0 and 1, and their weight.
type weighted struct {
	lo, hi, sum, w float64
}

func (b weighted) mean() float64 { return b.sum / b.w }

// average sorts by x and merges equal x.
func average(points []weighted) []weighted {
	// Equal x in a fixed order, so that the sums do not depend on the caller's.
	slices.SortFunc(points, func(a, b weighted) int {
		return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.sum, b.sum), cmp.Compare(a.w, b.w))
	})
	out := points[:0]
	for _, p := range points {
		if n := len(out); n > 0 && out[n-1].lo == p.lo {
			out[n-1] = merge(out[n-1], p)
		} else {
			out = append(out, p)
		}
	}
	return out
}

func merge(a, b weighted) weighted {
	return weighted{a.lo, b.hi, a.sum + b.sum, a.w + b.w}
}

// pool merges neighbouring blocks until the means rise strictly, in place.
func pool(points []weighted) []weighted {
	n := 0
	for _, p := range points {
		points[n] = p
		for n++; n > 1 && points[n-2].mean() >= points[n-1].mean(); n-- {
			points[n-2] = merge(points[n-2], points[n-1])
		}
	}
	return points[:n]
}

// VennAbers gives a score two probabilities, one of which is calibrated: the
// interval between them says how sure a probability in a report is. It takes
// labelled runs that nothing was fitted on.
type VennAbers struct {
	points []weighted // averaged over equal scores, sorted
}

// NewVennAbers takes scores with outcomes (true where it happened). Errors:
// [ErrFit] for no data, lengths that differ, a score that is not finite.
func NewVennAbers(scores []float64, outcomes []bool) (*VennAbers, error) {
	if len(scores) == 0 || len(outcomes) != len(scores) {
		return nil, fmt.Errorf("%w: %d scores and %d outcomes: want at least one, and one of each", ErrFit, len(scores), len(outcomes))
	}
	points := make([]weighted, len(scores))
	for i, s := range scores {
		if !finite(s) {
			return nil, fmt.Errorf("%w: score %d is %v", ErrFit, i, s)
		}
		points[i] = weighted{s, s, 0, 1}
		if outcomes[i] {
			points[i].sum = 1
		}
	}
	return &VennAbers{average(points)}, nil
}

// Interval returns p0 <= p1: the isotonic fits at score when the new run is
// added with the outcome false and with true. Where a single number is wanted,
// p1/(1-p0+p1) has the least worst-case log loss. It takes time linear in the
// number of distinct scores.
//
// Source: Vovk, Petej, Venn-Abers predictors (2014), section 3; Vovk, Petej,
// Fedorova, Large-scale probabilistic predictors with and without guarantees of
// validity (2015), section 4 for the single number.
func (v *VennAbers) Interval(score float64) (p0, p1 float64) {
	return v.with(score, 0), v.with(score, 1)
}

func (v *VennAbers) with(score, outcome float64) float64 {
	i, found := slices.BinarySearchFunc(v.points, score, func(p weighted, s float64) int { return cmp.Compare(p.lo, s) })
	points := make([]weighted, 0, len(v.points)+1)
	points = append(points, v.points[:i]...)
	p := weighted{score, score, outcome, 1}
	if found {
		p = merge(v.points[i], p)
		i++
	}
	points = append(append(points, p), v.points[i:]...)
	for _, b := range pool(points) {
		if b.lo <= score && score <= b.hi {
			return b.mean()
		}
	}
	return outcome // not reached for a finite score
}
