package pipeline

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/store"
)

// short yields runs of 41 short texts each, all different.
func short(texts int) iter.Seq2[*data.Trajectory, error] {
	const steps = 20
	return func(yield func(*data.Trajectory, error) bool) {
		for i := range texts / (2*steps + 1) {
			t := &data.Trajectory{ID: fmt.Sprint("scale/", i), Dataset: "scale", Group: fmt.Sprint(i), Task: fmt.Sprintf("Sort out ticket %d for the team.", i)}
			for k := range steps {
				t.Steps = append(t.Steps, data.Step{
					Type: data.ToolCall, Tool: "read_file", Args: fmt.Sprintf(`{"path": "tickets/%d/part-%d.txt"}`, i, k),
					Result: fmt.Sprintf("Part %d of ticket %d: the customer asks again, number %d.", k, i, i*steps+k),
				})
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

// A corpus of any size is embedded in bounded memory: a process of its own reads
// Parquet, embeds and reports its peak. 60,000 texts by default; with
// DREAMGUARD_SCALE set (make scale) the million that the bound is promised for.
func TestEmbedAtScale(t *testing.T) {
	if dir := measuredIn(); dir != "" {
		stats, err := EmbedFiles(t.Context(), EmbedOptions{
			Encoder: configs.Encoder{Kind: "hash", Dims: 256}, Files: []string{filepath.Join(dir, "runs.parquet")}, Out: filepath.Join(dir, "vectors"),
		})
		if err != nil {
			t.Fatal(err)
		}
		report(t, dir, scaleResult{stats, highWaterMiB(t)})
		return
	}
	needsProcess(t)
	// Measured: 83 MiB for 60,000 texts, 144 MiB for a million.
	texts, most := 60_000, 200.0
	if os.Getenv("DREAMGUARD_SCALE") != "" {
		texts, most = 1_000_000, 476 // 500 MB
	}
	dir := t.TempDir()
	if _, err := store.Write(filepath.Join(dir, "runs.parquet"), short(texts)); err != nil {
		t.Fatal(err)
	}
	// First all, then again with everything known: both are within the bound.
	for _, again := range []bool{false, true} {
		var r scaleResult
		measure(t, dir, "30m", &r)
		t.Logf("%d texts, %d embedded in %d segments, peak %.0f MiB", r.Stats.Texts, r.Stats.Embedded, r.Stats.Segments, r.PeakMiB)
		if want := texts / 41 * 41; r.Stats.Vectors != want || !again && r.Stats.Embedded != want || again && r.Stats.Embedded != 0 {
			t.Errorf("%+v, want %d texts", r.Stats, want)
		}
		if r.PeakMiB > most {
			t.Errorf("peak memory %.0f MiB, at most %.0f are allowed", r.PeakMiB, most)
		}
	}
}

type scaleResult struct {
	Stats   EmbedStats
	PeakMiB float64
}

// scaleDir names, in the environment of a process that is measured, the folder of
// its inputs and of its report.
const scaleDir = "PIPELINE_SCALE_DIR"

// measuredIn returns that folder if this is the process that is measured.
func measuredIn() string { return os.Getenv(scaleDir) }

func needsProcess(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the peak memory of a process is read from /proc")
	}
	if testing.Short() {
		t.Skip("-short: starts a process")
	}
}

// measure runs this test again in a process of its own and reads what it reports.
func measure(t *testing.T, dir, timeout string, result any) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout="+timeout)
	cmd.Env = append(os.Environ(), scaleDir+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, result); err != nil {
		t.Fatal(err)
	}
}

// report tells the process that measures this one.
func report(t *testing.T, dir string, result any) {
	t.Helper()
	b, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "result.json"), b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// highWaterMiB is the largest resident memory of this process. Getrusage would
// count what the parent had when it started this one.
func highWaterMiB(t *testing.T) float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kib); n == 1 {
			return kib / 1024
		}
	}
	t.Fatal("/proc/self/status has no VmHWM")
	return 0
}
