package eval

import (
	"cmp"
	"fmt"
	"math"

	"github.com/dreamguard/dreamguard/data"
)

// Bounds of what [TrainTrees] takes.
const (
	maxTrees  = 2000
	maxLeaves = 256
	maxBins   = 255
)

// Boosting configures [TrainTrees]. Zero fields take the value in brackets.
type Boosting struct {
	Trees   int                            // largest number of trees, up to 2000 [100]
	Leaves  int                            // largest number of leaves of a tree, 2 to 256 [15]
	Depth   int                            // most splits between root and leaf, up to 255 [6]
	MinLeaf int                            // fewest training steps of a leaf [20]
	Bins    int                            // largest number of bins per feature, 2 to 255 [255]
	Rate    float64                        // shrinkage, in (0, 1] [0.1]
	L2      float64                        // penalty on a leaf's value; 0 is none
	Weight  func(*data.Trajectory) float64 // weight of a run; nil means 1 for all, 0 leaves it out

	// Validation are runs, with their features, that the trees are not grown on:
	// the trees up to the lowest mean loss on them are kept, and boosting ends after
	// Patience trees without a lower one [20]. Without steps to learn from among
	// them all trees are kept. They should be of other groups than the training runs.
	Validation         []*data.Trajectory
	ValidationFeatures [][][]float32
	Patience           int
}

func (o *Boosting) defaults() error {
	o.Trees, o.Leaves, o.Depth = cmp.Or(o.Trees, 100), cmp.Or(o.Leaves, 15), cmp.Or(o.Depth, 6)
	o.MinLeaf, o.Bins, o.Rate = cmp.Or(o.MinLeaf, 20), cmp.Or(o.Bins, maxBins), cmp.Or(o.Rate, 0.1)
	o.Patience = cmp.Or(o.Patience, 20)
	switch {
	case o.Trees < 1 || o.Trees > maxTrees:
		return fmt.Errorf("%w: %d trees: want 1 to %d", ErrTraining, o.Trees, maxTrees)
	case o.Leaves < 2 || o.Leaves > maxLeaves:
		return fmt.Errorf("%w: %d leaves: want 2 to %d", ErrTraining, o.Leaves, maxLeaves)
	case o.Depth < 1 || o.Depth >= maxLeaves:
		return fmt.Errorf("%w: depth %d: want 1 to %d", ErrTraining, o.Depth, maxLeaves-1)
	case o.MinLeaf < 1:
		return fmt.Errorf("%w: %d steps per leaf: want 1 or more", ErrTraining, o.MinLeaf)
	case o.Bins < 2 || o.Bins > maxBins:
		return fmt.Errorf("%w: %d bins: want 2 to %d", ErrTraining, o.Bins, maxBins)
	case !(o.Rate > 0 && o.Rate <= 1):
		return fmt.Errorf("%w: rate %v: want above 0, up to 1", ErrTraining, o.Rate)
	case !(o.L2 >= 0) || math.IsInf(o.L2, 1):
		return fmt.Errorf("%w: L2 penalty %v: want 0 or more", ErrTraining, o.L2)
	case o.Patience < 1:
		return fmt.Errorf("%w: patience of %d trees: want 1 or more", ErrTraining, o.Patience)
	}
	return nil
}

// TrainTrees fits gradient-boosted trees on the call features alone:
// second-order boosting of the logistic loss (Chen and Guestrin, "XGBoost: A
// Scalable Tree Boosting System", KDD 2016, section 2) over features in at most
// 255 bins, trees grown leaf by leaf where the gain is largest (Ke et al.,
// "LightGBM", NeurIPS 2017, section 2). Bins, gains and leaf values are those of
// scikit-learn's HistGradientBoostingClassifier, but for the ends of bins, which
// do not know of weights here. Nothing is drawn at random: same input, same model.
//
// features[r][i] is the vector of step i of run r, all of one length.
func TrainTrees(runs []*data.Trajectory, features [][][]float32, o Boosting) (StepModel, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	fit, err := newBoostRows(runs, features, o.Weight, -1)
	if err != nil {
		return nil, err
	}
	held, err := newBoostRows(o.Validation, o.ValidationFeatures, o.Weight, fit.width)
	if err != nil {
		return nil, fmt.Errorf("validation: %w", err)
	}
	b, _, err := boost(fit, held, o)
	if err != nil {
		return nil, err
	}
	return &treeModel{width: fit.width, boosted: b}, nil
}

// boostRows are the supervised steps of runs: a vector, a target and a weight each.
type boostRows struct {
	width  int
	x      [][]float32
	y      []bool
	weight []float64
}

// newBoostRows lists the supervised steps. Vectors have width values, or, where
// that is negative, as many as the first.
func newBoostRows(runs []*data.Trajectory, features [][][]float32, weight func(*data.Trajectory) float64, width int) (*boostRows, error) {
	steps, width, err := supervisedVectors(runs, features, weight, width)
	if err != nil {
		return nil, err
	}
	out := &boostRows{width: width}
	for _, s := range steps {
		out.x, out.y, out.weight = append(out.x, features[s.run][s.index]), append(out.y, s.hazard), append(out.weight, s.weight)
	}
	return out, nil
}

type treeModel struct {
	width int
	*boosted
}

func (m *treeModel) Name() string { return "features + boosted trees" }

func (m *treeModel) Steps(t *data.Trajectory, features [][]float32) ([]float64, error) {
	if len(features) != len(t.Steps) {
		return nil, fmt.Errorf("%w: %d vectors for %d steps", errFeatures, len(features), len(t.Steps))
	}
	out := make([]float64, len(features))
	for i, f := range features {
		if err := checkFeatures(f, m.width); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		out[i] = squash(m.logit(f))
	}
	return out, nil
}

// boosted is a sum of trees.
type boosted struct {
	start float64
	trees [][]treeNode
}

// treeNode is a split, or a leaf where left is 0: the root is nobody's child.
type treeNode struct {
	feature     int32
	left, right int32
	threshold   float32 // at most that: to the left
	value       float64 // of a leaf, shrunk
}

func (b *boosted) logit(f []float32) float64 {
	z := b.start
	for _, t := range b.trees {
		z += treeValue(t, f)
	}
	return z
}

// treeValue is the value of the leaf that f falls into.
func treeValue(t []treeNode, f []float32) float64 {
	n := &t[0]
	for n.left != 0 {
		if f[n.feature] <= n.threshold {
			n = &t[n.left]
		} else {
			n = &t[n.right]
		}
	}
	return n.value
}
