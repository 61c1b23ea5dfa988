package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/guard"
)

func TestExplain(t *testing.T) {
	dir := testArtifact(t)
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	lines := strings.SplitAfter(string(read(t, simulated(t, "--runs", "20"))), "\n")
	if err := os.WriteFile(file, []byte(lines[0]), 0o666); err != nil {
		t.Fatal(err)
	}
	// The same verdict as judge, with more to it.
	for _, step := range []string{"0", "2", "-1"} {
		judged, explained := run(t, "judge", "--artifact", dir, "--step", step, "--json", file), run(t, "explain", "--artifact", dir, "--trace", file, "--step", step, "--json")
		var want, got guard.Verdict
		if err := json.Unmarshal([]byte(judged.stdout), &want); err != nil {
			t.Fatal(err, judged.stderr)
		}
		if err := json.Unmarshal([]byte(explained.stdout), &got); err != nil || explained.code != exitDone {
			t.Fatal(err, explained.stderr)
		}
		if got.Decision != want.Decision || got.Scores != want.Scores || got.Step != want.Step || len(got.Evidence) < 10 || len(want.Evidence) != 0 {
			t.Errorf("step %s: %+v, want %+v with evidence", step, got, want)
		}
		if (got.Decision == guard.Pass) != (len(got.Suggestions) == 0) {
			t.Errorf("step %s: %v with suggestions %v", step, got.Decision, got.Suggestions)
		}
		r := run(t, "explain", "--artifact", dir, "--trace", file, "--step", step)
		if r.code != exitDone {
			t.Fatal(r.stderr)
		}
		for _, e := range got.Evidence {
			if !strings.Contains(r.stdout, e.Text) {
				t.Errorf("step %s: %q is not printed:\n%s", step, e.Text, r.stdout)
			}
		}
		for _, s := range got.Suggestions {
			if !strings.Contains(r.stdout, string(s.Kind)+": "+s.Text) {
				t.Errorf("step %s: %q is not printed:\n%s", step, s.Text, r.stdout)
			}
		}
	}
	wantUsage(t, "explain --trace x", "--artifact DIR")
	wantUsage(t, "explain --artifact x", "--trace FILE")
	wantUsage(t, "explain --artifact x --trace y --step -2", "numbered from 0")
	if r := run(t, "explain", "--artifact", dir, "--trace", file, "--step", "999"); r.code != exitFailure || !strings.Contains(r.stderr, "there is no step 999") {
		t.Errorf("a step that is not there: %+v", r)
	}
}
