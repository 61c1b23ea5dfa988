package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/pipeline"
)

func TestAblate(t *testing.T) {
	dir := t.TempDir()
	line := []string{"ablate", "-q", "--config", "debug", "--out", dir, "--seeds", "1", "--only", "no-aggregation",
		"--set", "data.protocol=simulator", "--set", "train.stage1.steps=5", "--set", "train.stage2.steps=10"}
	r := run(t, line...)
	if r.code != exitDone {
		t.Fatal(r.stderr)
	}
	for _, want := range []string{"AUROC, mean ± standard deviation", "no-aggregation", "simulator", "ablate.json"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	if r := run(t, line...); r.code != exitUsage || !strings.Contains(r.stderr, "--resume") {
		t.Errorf("again without --resume: exit %d, %s", r.code, r.stderr)
	}
	r = run(t, append(line, "--resume", "--json")...)
	var report pipeline.AblateReport
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || r.code != exitDone || len(report.Rows) != 2 {
		t.Errorf("--json: exit %d, %v, %d rows, %s", r.code, err, len(report.Rows), r.stderr)
	}
	if report.Config.Eval.LockedSmoke {
		t.Error("an ablation may look at the locked sets")
	}
	for _, wrong := range [][]string{
		{"ablate"},
		{"ablate", "--out", t.TempDir(), "--only", "no-sense"},
		{"ablate", "--out", t.TempDir(), "--seeds", "0"},
		{"ablate", "--out", t.TempDir(), "--config", "protocol-p1"},
	} {
		if r := run(t, append(wrong, "-q")...); r.code != exitUsage {
			t.Errorf("%v: exit %d, %s", wrong, r.code, r.stderr)
		}
	}
}

// TestAblateInterrupted: the same command alone would be refused.
func TestAblateInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
	err := a.execute(ctx, []string{"ablate", "-q", "--config", "debug", "--out", t.TempDir(), "--set", "data.protocol=simulator"})
	if !errors.Is(err, errAblateInterrupted) {
		t.Errorf("%v, want %v", err, errAblateInterrupted)
	}
}
