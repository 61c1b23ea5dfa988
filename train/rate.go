package train

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/data"
)

// Rate is how fast a backend trains.
type Rate struct {
	StepsPerSecond float64 `json:"steps_per_second"` // of the median step
	FirstSeconds   float64 `json:"first_seconds"`    // first step, which builds and compiles the graph
}

// MeasureRate takes steps of stage 1 on random data for about the given time, at
// least three, after one that compiles. The model is that of preset protocol-p1,
// over two time steps, so that XLA compiles it in seconds: a real training
// has more time steps and a lower rate, and backends compare alike.
func MeasureRate(ctx context.Context, backendName string, during time.Duration) (Rate, error) {
	cfg, err := configs.Load("protocol-p1")
	if err != nil {
		return Rate{}, err
	}
	const steps = 2
	cfg.Backend, cfg.Train.MaxSteps, cfg.Train.Buckets = backendName, steps, []int{steps}
	dims := Dims{D: cfg.Encoder.Dims, F: 90}
	f, err := newFitter(cfg, dims, noise(4*cfg.Train.Batch, steps, dims), nil, Options{})
	if err != nil {
		return Rate{}, err
	}
	if err := f.begin(1); err != nil {
		return Rate{}, err
	}
	one := func() (time.Duration, error) {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("train: measure the step rate: %w", err)
		}
		begin := time.Now()
		_, err := f.step()
		return time.Since(begin), err
	}
	first, err := one()
	if err != nil {
		return Rate{}, err
	}
	var times []time.Duration
	for begin := time.Now(); len(times) < 3 || time.Since(begin) < during; {
		t, err := one()
		if err != nil {
			return Rate{}, err
		}
		times = append(times, t)
	}
	slices.Sort(times)
	return Rate{StepsPerSecond: 1 / times[len(times)/2].Seconds(), FirstSeconds: first.Seconds()}, nil
}

// noise makes n safe runs of random content.
func noise(n, steps int, d Dims) []Example {
	rng := rand.New(rand.NewPCG(1, 1))
	vector := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	xs := make([]Example, n)
	for i := range xs {
		xs[i] = Example{
			ID: fmt.Sprint("noise-", i), Dataset: "noise", Steps: steps,
			Task: vector(d.D), Calls: vector(steps * d.D), Features: vector(steps * d.F), Results: vector(steps * d.D),
			HasResult: slices.Repeat([]bool{true}, steps), Judged: slices.Repeat([]bool{true}, steps),
			Label: data.Safe, Hazard: -1, Weight: 1,
		}
	}
	return xs
}
