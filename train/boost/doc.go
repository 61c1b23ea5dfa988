// Package boost grows gradient-boosted trees.
//
//	f, losses, err := boost.Grow(ctx, boost.Rows{X: x, Y: y, Weight: w}, held, boost.Options{Trees: 300})
//	p := 1 / (1 + math.Exp(-f.Logit(x[0])))
//
// It is second-order boosting of the logistic loss (Chen and Guestrin, "XGBoost: A
// Scalable Tree Boosting System", KDD 2016, section 2) over features in at most 255
// bins, trees grown leaf by leaf where the gain is largest (Ke et al., "LightGBM",
// NeurIPS 2017, section 2). Bins, gains and leaf values are those of scikit-learn's
// HistGradientBoostingClassifier, but for the ends of bins, which do not know of
// weights here, and for values, which are rounded to single precision.
package boost

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/dreamguard/dreamguard/internal/forest"
)

// Bounds of [Options].
const (
	maxLeaves = (forest.MaxNodes + 1) / 2
	maxBins   = 255
)

// Errors of [Grow].
var (
	ErrOptions = errors.New("boost: option out of range")
	ErrRows    = errors.New("boost: rows cannot be learned from")
)

// Options configures [Grow]. Zero fields take the value in brackets.
type Options struct {
	Trees    int     // largest number of trees, up to 2000 [100]
	Leaves   int     // largest number of leaves of a tree, 2 to 256 [15]
	Depth    int     // most splits between root and leaf, up to 255 [6]
	MinLeaf  int     // fewest training rows of a leaf [20]
	Bins     int     // largest number of bins per feature, 2 to 255 [255]
	Rate     float64 // shrinkage, in (0, 1] [0.1]
	L2       float64 // penalty on a leaf's value; 0 is none
	Patience int     // growth ends after so many trees without a lower loss on the validation rows [20]
}

// filled puts in the defaults and checks the rest.
func (o Options) filled() (Options, error) {
	o.Trees, o.Leaves, o.Depth = cmp.Or(o.Trees, 100), cmp.Or(o.Leaves, 15), cmp.Or(o.Depth, 6)
	o.MinLeaf, o.Bins, o.Rate = cmp.Or(o.MinLeaf, 20), cmp.Or(o.Bins, maxBins), cmp.Or(o.Rate, 0.1)
	o.Patience = cmp.Or(o.Patience, 20)
	var err error
	switch {
	case o.Trees < 1 || o.Trees > forest.MaxTrees:
		err = fmt.Errorf("%d trees: want 1 to %d", o.Trees, forest.MaxTrees)
	case o.Leaves < 2 || o.Leaves > maxLeaves:
		err = fmt.Errorf("%d leaves: want 2 to %d", o.Leaves, maxLeaves)
	case o.Depth < 1 || o.Depth >= maxLeaves:
		err = fmt.Errorf("depth %d: want 1 to %d", o.Depth, maxLeaves-1)
	case o.MinLeaf < 1:
		err = fmt.Errorf("%d rows per leaf: want 1 or more", o.MinLeaf)
	case o.Bins < 2 || o.Bins > maxBins:
		err = fmt.Errorf("%d bins: want 2 to %d", o.Bins, maxBins)
	case !(o.Rate > 0 && o.Rate <= 1):
		err = fmt.Errorf("rate %v: want above 0, up to 1", o.Rate)
	case !(o.L2 >= 0) || math.IsInf(o.L2, 1):
		err = fmt.Errorf("L2 penalty %v: want 0 or more", o.L2)
	case o.Patience < 1:
		err = fmt.Errorf("patience of %d trees: want 1 or more", o.Patience)
	}
	if err != nil {
		return Options{}, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return o, nil
}

// Rows are what is learned from: a vector, a target and a weight each.
type Rows struct {
	X      [][]float32
	Y      []float64 // in [0, 1]
	Weight []float64 // 0 or more
}

// width is the length of the vectors, 0 without rows.
func (r Rows) width() int {
	if len(r.X) == 0 {
		return 0
	}
	return len(r.X[0])
}

// check refuses rows that do not fit together, or whose vectors do not have width
// values; a negative width is that of the first.
func (r Rows) check(width int) error {
	if len(r.Y) != len(r.X) || len(r.Weight) != len(r.X) {
		return fmt.Errorf("%w: %d vectors, %d targets and %d weights: want one of each per row", ErrRows, len(r.X), len(r.Y), len(r.Weight))
	}
	if width < 0 {
		if width = r.width(); width == 0 {
			return fmt.Errorf("%w: there are none, or they have no values", ErrRows)
		}
	}
	for i, x := range r.X {
		if len(x) != width {
			return fmt.Errorf("%w: row %d has %d values, want %d", ErrRows, i, len(x), width)
		}
		for j, v := range x {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fmt.Errorf("%w: row %d, value %d is %v: want a finite number", ErrRows, i, j, v)
			}
		}
		if y, w := r.Y[i], r.Weight[i]; !(y >= 0 && y <= 1) || !(w >= 0) || math.IsInf(w, 1) {
			return fmt.Errorf("%w: row %d has target %v and weight %v: want 0 to 1, and 0 or more", ErrRows, i, y, w)
		}
	}
	return nil
}

// loss is the mean logistic loss at logits z; 0 without rows.
func (r Rows) loss(z []float64) float64 {
	var sum, total float64
	for i, w := range r.Weight {
		sum += w * (max(z[i], 0) + math.Log1p(math.Exp(-math.Abs(z[i]))) - r.Y[i]*z[i])
		total += w
	}
	if total == 0 {
		return 0
	}
	return sum / total
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Forest is a logit: a constant and a sum of trees.
type Forest struct {
	Start float64
	Trees []forest.Tree
}

// Logit is the forest's value at x, which must be as long as the rows that it was
// grown on.
func (f *Forest) Logit(x []float32) float64 {
	z := f.Start
	for _, t := range f.Trees {
		z += float64(t.Value(x))
	}
	return z
}

// Nodes is the largest number of nodes of a tree.
func (f *Forest) Nodes() int {
	n := 0
	for _, t := range f.Trees {
		n = max(n, len(t))
	}
	return n
}
