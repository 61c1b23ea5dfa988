package pipeline

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/guard"
)

// BenchmarkRecalibrate measures what comes after scoring, on 10,000 scored runs of
// ten calls in seven groups: thresholds, certificate, reference and diff.
func BenchmarkRecalibrate(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	fusion := guard.DefaultFusion()
	runs := make([]candidate, 10_000)
	for i := range runs {
		c := &runs[i]
		*c = candidate{label: calib.Safe, path: []string{fmt.Sprint("g", i%7)}, fingerprint: fmt.Sprint(i), tools: make([]string, 10), calls: make([]string, 10)}
		c.run = calib.Run{ID: fmt.Sprint(i), Hazard: -1}
		for range 10 {
			c.run.Haz, c.run.Pre, c.run.Judged = append(c.run.Haz, rng.NormFloat64()-3), append(c.run.Pre, rng.NormFloat64()-2), append(c.run.Judged, true)
		}
		c.before, _ = fusion.Score(c.run)
		c.before.Label, c.before.Path, c.before.Fingerprint = c.label, c.path, c.fingerprint
		c.after = c.before
	}
	o := &RecalibrateOptions{Seed: 1, Request: calib.Request{FalseAlarm: 0.05, Block: 0.01, Confidence: 0.95, By: []string{"suite"}}}
	for b.Loop() {
		rec := &Recalibration{Model: strings.Repeat("0", 64)}
		if err := rec.solve(o, nil, fusion, runs); err != nil {
			b.Fatal(err)
		}
		rec.compare(nil, fusion, fusion, runs)
		if rec.Stopped.After.All() == 0 {
			b.Fatal("nothing is stopped")
		}
	}
}
