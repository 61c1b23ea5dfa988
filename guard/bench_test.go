package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/guard/artifact"
)

// full has the sizes of the presets.
var full = artifact.Dims{D: 256, F: features.Count(), P: 256, H: 256, G: 16, C: 16, Q: 128, U: 64}

// benchmarkJudge measures one step of a run (commit of the previous result and
// the verdict on the next call) after the given number of steps.
func benchmarkJudge(b *testing.B, before, callBytes, resultBytes int) {
	m, err := OpenFS(testFiles(b, full, nil, artifact.Thresholds{Hold: at(0.5)}), ScoresOnly())
	if err != nil {
		b.Fatal(err)
	}
	words := strings.Fields("transfer the invoice to landlord account AT6854532054 before march and send ann@example.com a report about meeting")
	text := func(n, seed int) string {
		var t strings.Builder
		for i := 0; t.Len() < n; i++ {
			fmt.Fprintf(&t, "%s%d ", words[(i*7+seed)%len(words)], (i+seed)%97)
		}
		return t.String()[:n]
	}
	steps := make([]step, 64)
	for i := range steps {
		steps[i].call = Call{Tool: "send_message", Arguments: `{"body": "` + text(callBytes, i) + `"}`}
		steps[i].result = Result{Output: text(resultBytes, i+11)}
	}
	s := m.Start(testTask)
	for i := range before {
		x := steps[i%len(steps)]
		s.Judge(context.Background(), x.call)
		if err := s.Commit(x.call, x.result); err != nil {
			b.Fatal(err)
		}
	}
	start, err := s.MarshalBinary()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var times []time.Duration
	for i := 0; b.Loop(); i++ {
		if i%8 == 0 && i > 0 { // stay near the step in question
			b.StopTimer()
			if s, err = m.Resume(start); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		x := steps[(before+i)%len(steps)]
		begin := time.Now()
		s.Judge(context.Background(), x.call)
		if err := s.Commit(x.call, x.result); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	quantile := func(q float64) float64 { return float64(times[int(q*float64(len(times)-1))].Microseconds()) }
	b.ReportMetric(quantile(0.5), "p50-us")
	b.ReportMetric(quantile(0.99), "p99-us")
}

func BenchmarkJudge500(b *testing.B)      { benchmarkJudge(b, 3, 500, 500) }
func BenchmarkJudgeStep10(b *testing.B)   { benchmarkJudge(b, 10, 500, 500) }
func BenchmarkJudgeStep1000(b *testing.B) { benchmarkJudge(b, 1000, 500, 500) }
func BenchmarkLongResult(b *testing.B)    { benchmarkJudge(b, 3, 500, 3_000) }
func BenchmarkHugeResult(b *testing.B)    { benchmarkJudge(b, 3, 500, 100_000) }

// BenchmarkStep is the model alone, without text work.
func BenchmarkStep(b *testing.B) {
	m, err := OpenFS(testFiles(b, full, nil, artifact.Thresholds{}), ScoresOnly())
	if err != nil {
		b.Fatal(err)
	}
	s := m.net.newState()
	m.net.begin(s)
	b.ReportAllocs()
	for b.Loop() {
		m.net.propose(s)
		m.net.advance(s, true)
	}
}
