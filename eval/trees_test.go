package eval

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/internal/forest"
	"github.com/dreamguard/dreamguard/train/boost"
)

// oneStep makes safe and unsafe runs of one step, with the target as their feature.
func oneStep(n int) (runs []*data.Trajectory, features [][][]float32) {
	for i := range n {
		t := &data.Trajectory{ID: fmt.Sprint(i), Label: data.Safe, Steps: []data.Step{{Type: data.ToolCall, Tool: "x"}}}
		if i%2 == 1 {
			at := 0
			t.Label, t.FirstHazard = data.Unsafe, &at
		}
		runs, features = append(runs, t), append(features, [][]float32{{float32(i % 2), 1}})
	}
	return runs, features
}

func TestTrainTrees(t *testing.T) {
	runs, features := oneStep(100)
	m, err := TrainTrees(t.Context(), runs, features, Boosting{Validation: runs[:10], ValidationFeatures: features[:10]})
	if err != nil {
		t.Fatal(err)
	}
	safe, err := m.Steps(runs[0], features[0])
	if err != nil {
		t.Fatal(err)
	}
	unsafe, err := m.Steps(runs[1], features[1])
	if err != nil {
		t.Fatal(err)
	}
	if !(safe[0] < 0.4 && unsafe[0] > 0.6) {
		t.Errorf("scores %v and %v", safe, unsafe)
	}
	for _, f := range [][][]float32{nil, {{1}}, {{1, float32(math.NaN())}}} {
		if _, err := m.Steps(runs[0], f); !errors.Is(err, errFeatures) {
			t.Errorf("features %v: %v", f, err)
		}
	}
}

func TestTrainTreesRefuses(t *testing.T) {
	runs, features := oneStep(10)
	infinite := func(*data.Trajectory) float64 { return math.Inf(1) }
	huge := func(*data.Trajectory) float64 { return math.MaxFloat64 }
	for name, f := range map[string]func() error{
		"no runs":           func() error { _, err := TrainTrees(t.Context(), nil, nil, Boosting{}); return err },
		"features of other": func() error { _, err := TrainTrees(t.Context(), runs, features[:9], Boosting{}); return err },
		"no hazard":         func() error { _, err := TrainTrees(t.Context(), runs[:1], features[:1], Boosting{}); return err },
		"steps without vectors": func() error {
			_, err := TrainTrees(t.Context(), runs[:2], [][][]float32{{}, {}}, Boosting{})
			return err
		},
		"ragged": func() error {
			_, err := TrainTrees(t.Context(), runs[:2], [][][]float32{{{1}}, {{1, 2}}}, Boosting{})
			return err
		},
		"infinite weight": func() error {
			_, err := TrainTrees(t.Context(), runs, features, Boosting{Weight: infinite})
			return err
		},
		"weights too large": func() error { _, err := TrainTrees(t.Context(), runs, features, Boosting{Weight: huge}); return err },
		"validation ragged": func() error {
			_, err := TrainTrees(t.Context(), runs, features, Boosting{Validation: runs[:1], ValidationFeatures: [][][]float32{{{1}}}})
			return err
		},
		"trees": func() error {
			_, err := TrainTrees(t.Context(), runs, features, Boosting{Options: boost.Options{Trees: forest.MaxTrees + 1}})
			return err
		},
		"leaves": func() error {
			_, err := TrainTrees(t.Context(), runs, features, Boosting{Options: boost.Options{Leaves: 1}})
			return err
		},
		"depth": func() error {
			_, err := TrainTrees(t.Context(), runs, features, Boosting{Options: boost.Options{Depth: -1}})
			return err
		},
		"min leaf": func() error {
			_, err := TrainTrees(t.Context(), runs, features, Boosting{Options: boost.Options{MinLeaf: -1}})
			return err
		},
		"bins": func() error {
			_, err := TrainTrees(t.Context(), runs, features, Boosting{Options: boost.Options{Bins: 256}})
			return err
		},
		"rate": func() error {
			_, err := TrainTrees(t.Context(), runs, features, Boosting{Options: boost.Options{Rate: math.NaN()}})
			return err
		},
		"penalty": func() error {
			_, err := TrainTrees(t.Context(), runs, features, Boosting{Options: boost.Options{L2: -1}})
			return err
		},
		"patience": func() error {
			_, err := TrainTrees(t.Context(), runs, features, Boosting{Options: boost.Options{Patience: -1}})
			return err
		},
	} {
		if err := f(); !errors.Is(err, ErrTraining) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
