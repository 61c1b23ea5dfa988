package train

import (
	"fmt"
	"math/rand/v2"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/data"
)

// testConfig is a model small enough that a step takes milliseconds.
func testConfig() configs.Config {
	return configs.Config{
		Name: "test", Seed: 20260701, Backend: "go",
		Model: configs.Model{Hidden: 16, Factors: 3, Classes: 4, Adapter: 12, HeadHidden: 10, FeatureHidden: 6, UniformMix: 0.01, Latent: "probabilities"},
		Train: configs.Train{
			Batch: 3, MaxSteps: 4, Buckets: []int{2, 4}, LR: 2e-3, Clip: 10, WorldScale: 0.25, AdapterScale: 0.25,
			Stage1:          configs.Stage1{Steps: 6, Predict: 1.25, Dynamics: 0.03, Represent: 0.03, FreeBits: 0.2},
			Stage2:          configs.Stage2{Steps: 8, Horizon: 5, Decay: 2, Hazard: 1, Prefix: 1, WeakHazard: 0.5, PosWeight: 2, Dropout: 0.1, DropState: 0.3, WeightDecay: 0.01, Average: 0.9},
			Trees:           configs.Trees{Count: 8, Leaves: 4, Depth: 3, MinLeaf: 3, Rate: 0.3, Hazard: 0.7, Prefix: 0.4},
			CheckpointEvery: 3, ValidateEvery: 4, Patience: 0,
		},
	}
}

func testDims() Dims { return Dims{D: 8, F: 5} }

// testExamples makes n runs of random content with the given lengths in turn.
// Feature 0 is raised at the hazard, so that there is something to learn.
func testExamples(n int, d Dims, edit func(*Example), lengths ...int) []Example {
	rng := rand.New(rand.NewPCG(1, 2))
	vector := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	xs := make([]Example, n)
	for i := range xs {
		steps := lengths[i%len(lengths)]
		x := Example{
			ID: fmt.Sprintf("run-%d", i), Dataset: "test", Steps: steps,
			Task: vector(d.D), Calls: vector(steps * d.D), Features: vector(steps * d.F), Results: vector(steps * d.D),
			HasResult: make([]bool, steps), Judged: make([]bool, steps), Label: data.Safe, Hazard: -1, Weight: 1,
		}
		for t := range steps {
			x.HasResult[t], x.Judged[t] = rng.IntN(5) > 0, true
		}
		if i%2 == 1 {
			x.Label, x.Hazard, x.Exact = data.Unsafe, rng.IntN(steps), i%4 == 1
			x.Features[x.Hazard*d.F] += 4
		}
		if edit != nil {
			edit(&x)
		}
		xs[i] = x
	}
	return xs
}
