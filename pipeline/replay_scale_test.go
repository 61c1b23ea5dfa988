package pipeline

import (
	"encoding/json"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	if dir := os.Getenv("PIPELINE_REPLAY_DIR"); dir != "" { // the process that is measured
		begun := time.Now()
		r, err := Replay(t.Context(), ReplayOptions{
			Artifact: filepath.Join("..", "guard", "testdata", "v1"), Files: []string{filepath.Join(dir, "runs.parquet")}, Log: filepath.Join(dir, "decisions.jsonl"),
		})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(replayScale{r.Runs, r.Calls, time.Since(begun).Seconds(), highWaterMiB(t)})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "result.json"), b, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("the peak memory of a process is read from /proc")
	}
	if testing.Short() {
		t.Skip("-short: starts a process")
	}
	runs, most := 3000, 250.0
	if os.Getenv("DREAMGUARD_SCALE") != "" {
		runs, most = 100_000, 300
	}
	dir := t.TempDir()
	if _, err := store.Write(filepath.Join(dir, "runs.parquet"), withoutErrors(simulate.Generate(simulate.Options{Seed: 1, Runs: runs}))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReplayAtScale$", "-test.timeout=60m")
	cmd.Env = append(os.Environ(), "PIPELINE_REPLAY_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r replayScale
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs with %d calls in %.0f s (%.2f ms a call), peak %.0f MiB", r.Runs, r.Calls, r.Seconds, 1000*r.Seconds/float64(r.Calls), r.PeakMiB)
	if r.Runs != runs || r.PeakMiB > most {
		t.Errorf("%d runs with a peak of %.0f MiB: want %d and at most %.0f", r.Runs, r.PeakMiB, runs, most)
	}
}
