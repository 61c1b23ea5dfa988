package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/dreamguard/dreamguard/pipeline"
)

// TestCommaInAFileName: a flag that names a file takes its value as it stands.
func TestCommaInAFileName(t *testing.T) {
	dir := t.TempDir()
	traces := filepath.Join(dir, "a,b.jsonl")
	if err := os.WriteFile(traces, read(t, simulated(t)), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, line := range [][]string{
		{"replay", "-q", "--artifact", testArtifact(t), "--traces", traces},
		{"recalibrate", "-q", "--artifact", testArtifact(t), "--traces", traces, "--false-alarm", "20%", "--dry-run"},
	} {
		if r := run(t, line...); r.code != exitDone {
			t.Errorf("%s: exit %d, %s", line[0], r.code, r.stderr)
		}
	}
	vectors := filepath.Join(dir, "old,vectors")
	if r := run(t, "embed", "-q", "--set", "encoder.kind=hash", "--set", "encoder.dims=16", "--out", vectors, traces); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	r := run(t, "embed", "-q", "--set", "encoder.kind=hash", "--set", "encoder.dims=16", "--from", vectors, "--out", filepath.Join(dir, "new"), "--json", traces)
	var s pipeline.EmbedStats
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil || r.code != exitDone || s.Embedded != 0 || s.Vectors == 0 {
		t.Errorf("embed --from: exit %d, %v, %+v, %s", r.code, err, s, r.stderr)
	}
}
