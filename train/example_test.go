package train_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/train"
)

// toy makes runs of two steps; feature 0 of the second step is 1 in every other
// run, which is the unsafe one.
func toy(n int, d train.Dims) []train.Example {
	xs := make([]train.Example, n)
	for i := range xs {
		x := train.Example{
			ID: fmt.Sprint("run-", i), Dataset: "toy", Steps: 2,
			Task: make([]float32, d.D), Calls: make([]float32, 2*d.D), Results: make([]float32, 2*d.D),
			Features: make([]float32, 2*d.F), HasResult: []bool{true, true}, Judged: []bool{true, true},
			Label: data.Safe, Hazard: -1, Weight: 1,
		}
		x.Task[i%d.D], x.Calls[(i+1)%d.D], x.Results[(i+2)%d.D] = 1, 1, 1
		if i%2 == 1 {
			x.Label, x.Hazard, x.Exact = data.Unsafe, 1, true
			x.Features[d.F] = 1
		}
		xs[i] = x
	}
	return xs
}

func Example() {
	cfg := configs.Config{
		Seed:  1,
		Model: configs.Model{Hidden: 16, Factors: 2, Classes: 4, Adapter: 8, HeadHidden: 8, UniformMix: 0.01, Latent: "probabilities"},
		Train: configs.Train{
			Batch: 8, MaxSteps: 4, Buckets: []int{2, 4}, LR: 0.01, Clip: 10, WorldScale: 0.25, AdapterScale: 0.25,
			Stage1:        configs.Stage1{Steps: 20, Predict: 1.25, Dynamics: 0.03, Represent: 0.03, FreeBits: 0.2},
			Stage2:        configs.Stage2{Steps: 60, Horizon: 5, Decay: 2, Hazard: 1, Prefix: 1, WeakHazard: 0.5, PosWeight: 1},
			ValidateEvery: 20, CheckpointEvery: 20,
		},
	}
	dims := train.Dims{D: 4, F: 3}
	dir, err := os.MkdirTemp("", "train")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	result, err := train.Fit(ctx, cfg, dims, toy(32, dims), toy(16, dims), train.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	fmt.Println("steps", result.Steps, "AUROC", result.Best.AUROC)

	w, err := train.LoadWeights(filepath.Join(dir, "best", "model.safetensors"))
	if err != nil {
		panic(err)
	}
	ev, err := train.NewEvaluator(w)
	if err != nil {
		panic(err)
	}
	logits, err := ev.Logits(ctx, toy(2, dims))
	if err != nil {
		panic(err)
	}
	fmt.Println("hazard of the unsafe step above the safe one:", logits[1].Hazard[1] > logits[0].Hazard[1])
	// Output:
	// steps [20 60] AUROC 1
	// hazard of the unsafe step above the safe one: true
}
