package pipeline

import (
	"iter"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/simulate"
	"github.com/dreamguard/dreamguard/data/store"
)

func withoutErrors(runs iter.Seq[*data.Trajectory]) iter.Seq2[*data.Trajectory, error] {
	return func(yield func(*data.Trajectory, error) bool) {
		for t := range runs {
			if !yield(t, nil) {
				return
			}
		}
	}
}

type replayScale struct {
	Runs, Calls int
	Seconds     float64
	PeakMiB     float64
}

// Any number of runs is replayed in bounded memory: a process of its own replays
// simulated runs and reports its peak. 3,000 runs by default; with
// DREAMGUARD_SCALE set (make scale) the hundred thousand that the bound is promised
// for.
func TestReplayAtScale(t *testing.T) {
	if dir := measuredIn(); dir != "" {
		begun := time.Now()
		r, err := Replay(t.Context(), ReplayOptions{
			Artifact: filepath.Join("..", "guard", "testdata", "v1"), Files: []string{filepath.Join(dir, "runs.parquet")}, Log: filepath.Join(dir, "decisions.jsonl"),
		})
		if err != nil {
			t.Fatal(err)
		}
		report(t, dir, replayScale{r.Runs, r.Calls, time.Since(begun).Seconds(), highWaterMiB(t)})
		return
	}
	needsProcess(t)
	runs, most := 3000, 250.0
	if os.Getenv("DREAMGUARD_SCALE") != "" {
		runs, most = 100_000, 300
	}
	dir := t.TempDir()
	if _, err := store.Write(filepath.Join(dir, "runs.parquet"), withoutErrors(simulate.Generate(simulate.Options{Seed: 1, Runs: runs}))); err != nil {
		t.Fatal(err)
	}
	var r replayScale
	measure(t, dir, "60m", &r)
	t.Logf("%d runs with %d calls in %.0f s (%.2f ms a call), peak %.0f MiB", r.Runs, r.Calls, r.Seconds, 1000*r.Seconds/float64(r.Calls), r.PeakMiB)
	if r.Runs != runs || r.PeakMiB > most {
		t.Errorf("%d runs with a peak of %.0f MiB: want %d and at most %.0f", r.Runs, r.PeakMiB, runs, most)
	}
}
