package train

import (
	"fmt"
	"testing"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/data"
)

// benchConfig is the size of preset protocol-p1.
func benchConfig() (configs.Config, Dims) {
	c := testConfig()
	c.Model = configs.Model{Hidden: 256, Factors: 16, Classes: 16, Adapter: 256, HeadHidden: 128, UniformMix: 0.01, Latent: "probabilities"}
	c.Train.Batch, c.Train.MaxSteps, c.Train.Buckets = 8, 12, []int{12}
	return c, Dims{D: 256, F: 90}
}

func BenchmarkStep(b *testing.B) {
	for _, st := range []stage{1, 2} {
		b.Run(fmt.Sprintf("stage%d", st), func(b *testing.B) {
			cfg, dims := benchConfig()
			xs := testExamples(32, dims, func(x *Example) { x.Label, x.Hazard = data.Safe, -1 }, 12)
			f, err := newFitter(cfg, dims, xs, nil, Options{})
			if err != nil {
				b.Fatal(err)
			}
			if err := f.begin(st); err != nil {
				b.Fatal(err)
			}
			if _, err := f.step(); err != nil { // compiles
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := f.step(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}
