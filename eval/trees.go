package eval

import (
	"context"
	"fmt"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/train/boost"
)

// Boosting configures [TrainTrees].
type Boosting struct {
	boost.Options
	Weight func(*data.Trajectory) float64 // weight of a run; nil means 1 for all, 0 leaves it out

	// Validation are runs, with their features, that the trees are not grown on:
	// the trees up to the lowest mean loss on them are kept. Without steps to learn
	// from among them all trees are kept. They should be of other groups than the
	// training runs.
	Validation         []*data.Trajectory
	ValidationFeatures [][][]float32
}

// TrainTrees fits gradient-boosted trees on the call features alone, see package
// train/boost. Nothing is drawn at random: same input, same model.
//
// features[r][i] is the vector of step i of run r, all of one length.
func TrainTrees(ctx context.Context, runs []*data.Trajectory, features [][][]float32, o Boosting) (StepModel, error) {
	fit, width, err := boostRows(runs, features, o.Weight, -1)
	if err != nil {
		return nil, err
	}
	held, _, err := boostRows(o.Validation, o.ValidationFeatures, o.Weight, width)
	if err != nil {
		return nil, fmt.Errorf("validation: %w", err)
	}
	f, _, err := boost.Grow(ctx, fit, held, o.Options)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTraining, err)
	}
	return &treeModel{width: width, forest: f}, nil
}

// boostRows lists the supervised steps. Vectors have width values, or, where that
// is negative, as many as the first.
func boostRows(runs []*data.Trajectory, features [][][]float32, weight func(*data.Trajectory) float64, width int) (boost.Rows, int, error) {
	steps, width, err := supervisedVectors(runs, features, weight, width)
	if err != nil {
		return boost.Rows{}, 0, err
	}
	var out boost.Rows
	for _, s := range steps {
		out.X, out.Y, out.Weight = append(out.X, features[s.run][s.index]), append(out.Y, b2f(s.hazard)), append(out.Weight, s.weight)
	}
	return out, width, nil
}

type treeModel struct {
	width  int
	forest *boost.Forest
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
		out[i] = squash(m.forest.Logit(f))
	}
	return out, nil
}
