package train

import (
	"fmt"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/internal/backend"
)

// BenchmarkStep trains the models of two presets on every backend that is there
// (docs/how-to/accelerators.md), on runs of the longest length:
//
//	GOEXPERIMENT=simd go test -tags xla -run '^$' -bench Step ./train
func BenchmarkStep(b *testing.B) {
	for _, preset := range []string{"protocol-p1", "paper"} {
		for _, name := range backend.Names {
			for _, st := range []stage{1, 2} {
				b.Run(fmt.Sprintf("%s/%s/stage%d", preset, name, st), func(b *testing.B) { benchmarkStep(b, preset, name, st) })
			}
		}
	}
}

func benchmarkStep(b *testing.B, preset, name string, st stage) {
	if s := backend.Check(name); !s.Available {
		b.Skip(s.Reason)
	}
	cfg, err := configs.Load(preset)
	if err != nil {
		b.Fatal(err)
	}
	cfg.Backend = name
	dims := Dims{D: cfg.Encoder.Dims, F: 90}
	f, err := newFitter(cfg, dims, noise(32, cfg.Train.MaxSteps, dims), nil, Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := f.begin(st); err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	if _, err := f.step(); err != nil {
		b.Fatal(err)
	}
	first := time.Since(begin)
	for b.Loop() {
		if _, err := f.step(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
	b.ReportMetric(first.Seconds(), "first-s")
}
