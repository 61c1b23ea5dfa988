package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
)

// The artifact in the program judges, shows itself, and becomes one of one's own.
func TestBuiltIn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "guard")
	if r := run(t, "export", "--artifact", "default", "--out", dir); r.code != 0 {
		t.Fatalf("export: %d, %s", r.code, r.stderr)
	}
	a, err := artifact.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, "export", "--artifact", "default", "--out", dir); r.code != exitFailure || !strings.Contains(r.stderr, "choose another folder") {
		t.Errorf("a second time: %d, %s", r.code, r.stderr)
	}
	trace := filepath.Join(t.TempDir(), "run.jsonl")
	const line = `{"id":"a","task":"Read notes.txt and tell me what it says.","label":0,"steps":[{"type":"tool_call","tool":"read_file","arguments":{"path":"notes.txt"},"result":"Milk, bread."}]}` + "\n"
	if err := os.WriteFile(trace, []byte(line), 0o666); err != nil {
		t.Fatal(err)
	}
	scores := func(path string) string {
		r := run(t, "judge", "-q", "--artifact", path, "--json", trace)
		if r.code != 0 {
			t.Fatalf("judge with %s: %d, %s", path, r.code, r.stderr)
		}
		if !strings.Contains(r.stdout, a.Digest) {
			t.Errorf("judge with %s does not name the model: %s", path, r.stdout)
		}
		return r.stdout
	}
	if builtIn, copied := scores("default"), scores(dir); builtIn != copied {
		t.Errorf("the copy judges otherwise:\n%s%s", builtIn, copied)
	}
	if r := run(t, "inspect", "default"); r.code != 0 || !strings.Contains(r.stdout, a.Digest) {
		t.Errorf("inspect: %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// What would change the artifact in the program says what to do instead.
func TestBuiltInIsNotChanged(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "run.jsonl")
	for _, args := range [][]string{
		{"recalibrate", "--artifact", "default", "--traces", trace, "--false-alarm", "5%"},
		{"recalibrate", "--artifact", "default", "--traces", trace, "--false-alarm", "5%", "--write"},
		{"calibration", "log", "--artifact", "default"},
		{"calibration", "revert", "--artifact", "default"},
	} {
		if r := run(t, args...); r.code == 0 || !strings.Contains(r.stderr, "dreamguard export --artifact default --out DIR") {
			t.Errorf("%v: %d, %s", args, r.code, r.stderr)
		}
	}
	for _, args := range [][]string{
		{"export", "--artifact", "other", "--out", "x"},
		{"export", "--artifact", "default"},
		{"export", "--out", "x"},
		{"export", "--artifact", "default", "--out", "x", "--run", "y"},
	} {
		if r := run(t, args...); r.code != exitUsage {
			t.Errorf("%v: %d, %s", args, r.code, r.stderr)
		}
	}
	if _, err := boundedfile.Read("x", 1); err == nil {
		t.Error("a refused export wrote something")
	}
}
