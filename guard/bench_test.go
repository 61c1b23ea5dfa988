package guard

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/guard/artifact"
)

// full has the sizes of the presets.
var full = artifact.Dims{D: 256, F: features.Count(), P: 256, H: 256, G: 16, C: 16, Q: 128, U: 64, T: 200, N: 29}

// benchmarkRun returns steps with arguments and results of the given lengths.
func benchmarkRun(n, callBytes, resultBytes int) []step {
	words := strings.Fields("transfer the invoice to landlord account AT6854532054 before march and send ann@example.com a report about meeting")
	text := func(n, seed int) string {
		var t strings.Builder
		for i := 0; t.Len() < n; i++ {
			fmt.Fprintf(&t, "%s%d ", words[(i*7+seed)%len(words)], (i+seed)%97)
		}
		return t.String()[:n]
	}
	steps := make([]step, n)
	for i := range steps {
		steps[i].call = Call{Tool: "send_message", Arguments: `{"body": "` + text(callBytes, i) + `"}`}
		steps[i].result = Result{Output: text(resultBytes, i+11)}
	}
	return steps
}

// benchmarkJudge measures one step of a run (commit of the previous result and
// the verdict on the next call) after the given number of steps.
func benchmarkJudge(b *testing.B, before, callBytes, resultBytes int, judge func(*Session, context.Context, Call) Verdict) {
	m, err := OpenFS(testFiles(b, full, nil, artifact.Thresholds{Hold: at(0.5)}), ScoresOnly())
	if err != nil {
		b.Fatal(err)
	}
	steps := benchmarkRun(64, callBytes, resultBytes)
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
		judge(s, context.Background(), x.call)
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

func BenchmarkJudge500(b *testing.B)       { benchmarkJudge(b, 3, 500, 500, (*Session).Judge) }
func BenchmarkJudgeStep10(b *testing.B)    { benchmarkJudge(b, 10, 500, 500, (*Session).Judge) }
func BenchmarkJudgeStep1000(b *testing.B)  { benchmarkJudge(b, 1000, 500, 500, (*Session).Judge) }
func BenchmarkJudgeStep10000(b *testing.B) { benchmarkJudge(b, 10000, 500, 500, (*Session).Judge) }
func BenchmarkLongResult(b *testing.B)     { benchmarkJudge(b, 3, 500, 3_000, (*Session).Judge) }

// BenchmarkExplain500 is BenchmarkJudge500 with evidence: at most twice its cost.
func BenchmarkExplain500(b *testing.B) { benchmarkJudge(b, 3, 500, 500, (*Session).Explain) }
func BenchmarkHugeResult(b *testing.B) { benchmarkJudge(b, 3, 500, 100_000, (*Session).Judge) }

// BenchmarkStep is the model alone, without text work.
func BenchmarkStep(b *testing.B) {
	m, err := OpenFS(testFiles(b, full, nil, artifact.Thresholds{}), ScoresOnly())
	if err != nil {
		b.Fatal(err)
	}
	s := m.net.newState()
	m.net.borrow(s)
	m.net.begin(s)
	b.ReportAllocs()
	for b.Loop() {
		m.net.propose(s)
		m.net.advance(s, true)
	}
}

// BenchmarkSessions reports the memory of 10,000 live sessions that are eight
// steps old, with texts of 500 characters.
func BenchmarkSessions(b *testing.B) {
	const sessions = 10_000
	m, err := OpenFS(testFiles(b, full, nil, artifact.Thresholds{Hold: at(0.5)}), ScoresOnly())
	if err != nil {
		b.Fatal(err)
	}
	s := m.Start(testTask)
	play(b, s, benchmarkRun(8, 500, 500))
	start, err := s.MarshalBinary()
	if err != nil {
		b.Fatal(err)
	}
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	for b.Loop() {
		live, before := make([]*Session, sessions), heap()
		next := benchmarkRun(1, 500, 500)[0]
		for i := range live {
			if live[i], err = m.Resume(start); err != nil {
				b.Fatal(err)
			}
			live[i].Judge(context.Background(), next.call) // what a verdict leaves behind counts
			if err := live[i].Commit(next.call, next.result); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heap()-before)/1e6, "MB/10k-sessions")
		runtime.KeepAlive(live)
	}
	b.ReportMetric(float64(len(start))/1e3, "kB-serialised")
}
