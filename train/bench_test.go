//go:build unix

package train

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/internal/backend"
)

// BenchmarkStep trains the models of two presets on every backend that is there
// (docs/how-to/accelerators.md), on runs of the longest length:
//
//	GOEXPERIMENT=simd go test -tags xla -run '^$' -bench Step ./train
//
// Beside steps per second it gives the processor time, which depends less on what
// else the machine does: of a step, and of the first step, which compiles.
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
	start := processorSeconds(b)
	if _, err := f.step(); err != nil {
		b.Fatal(err)
	}
	compiled := processorSeconds(b)
	for b.Loop() {
		if _, err := f.step(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
	b.ReportMetric((processorSeconds(b)-compiled)/float64(b.N)*1e3, "cpu-ms/step")
	b.ReportMetric(compiled-start, "compile-cpu-s")
}

// processorSeconds is the time that all threads of the process have computed.
func processorSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
