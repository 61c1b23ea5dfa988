package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/pipeline"
)

func TestTrainDryRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if r := run(t, "run", "-q", "--config", "quickstart", "--out", dir, "--until", "embed", "--set", "data.simulator_runs=120"); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	r := run(t, "train", "-q", "--run", dir, "--dry-run")
	for _, want := range []string{"parameters ", "memory ", "batch of stage 2", "gru.wn"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q: exit %d, %s\n%s", want, r.code, r.stderr, r.stdout)
		}
	}
	var plan pipeline.TrainingPlan
	r = run(t, "train", "-q", "--run", dir, "--dry-run", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &plan); err != nil || plan.Parameters.Total == 0 || len(plan.Tensors) == 0 {
		t.Errorf("--json: %v, %s", err, r.stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "train")); err == nil {
		t.Error("a dry run left a train folder")
	}
	if r := run(t, "train", "-q", "--dry-run"); r.code != exitUsage {
		t.Errorf("without --run: exit %d", r.code)
	}
}
