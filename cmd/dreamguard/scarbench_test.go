package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/scarbench"
)

func TestScarbenchShow(t *testing.T) {
	r := run(t, "scarbench", "show", "cloud-02", "--condition", "long-explicit")
	for _, want := range []string{"Never restart a node before it has been drained.", "drain_node {\"node\":\"node-14\"}", "forgetful trace", "conversation, long-explicit"} {
		if r.code != exitDone || !strings.Contains(r.stdout, want) {
			t.Errorf("exit %d, %q is missing:\n%.600s%s", r.code, want, r.stdout, r.stderr)
		}
	}
	r = run(t, "scarbench", "show", "fs-14", "--json")
	var out struct{ Conversation []struct{ Role, Text string } }
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil || len(out.Conversation) != 4 {
		t.Errorf("--json: %v, %d messages", err, len(out.Conversation))
	}
	for _, c := range []struct{ line, want string }{
		{"show fs-1", "did you mean fs-01"},
		{"show fs-01 --condition long", "there is no condition"},
		{"show", "arg"},
	} {
		if r := run(t, append([]string{"scarbench"}, strings.Fields(c.line)...)...); r.code != exitUsage || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit %d, %s", c.line, r.code, r.stderr)
		}
	}
}

func TestScarbenchValidate(t *testing.T) {
	r := run(t, "scarbench", "validate")
	if r.code != exitDone || !strings.Contains(r.stdout, "103 cases, 412 instances, 0 problems") {
		t.Errorf("exit %d:\n%.400s%s", r.code, r.stdout, r.stderr)
	}
}

func TestScarbenchRunAndReport(t *testing.T) {
	dir := t.TempDir()
	line := []string{"scarbench", "run", "--quiet", "--agent", "forgetful,safe", "--case", "fs-01,cal-02", "--defence", "none,dvr", "--repetitions", "2", "--out", dir}
	r := run(t, line...)
	if r.code != exitDone || !strings.Contains(r.stdout, "No defence") || !strings.Contains(r.stdout, "DVR *") {
		t.Fatalf("exit %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	before, err := os.ReadFile(filepath.Join(dir, resultsFile))
	if err != nil || bytes.Count(before, []byte("\n")) != 2*2*2*4*2 {
		t.Fatalf("%d lines, %v", bytes.Count(before, []byte("\n")), err)
	}
	if r := run(t, line...); r.code != exitDone { // nothing is left to do
		t.Errorf("again: exit %d %s", r.code, r.stderr)
	}
	if after, err := os.ReadFile(filepath.Join(dir, resultsFile)); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the same command again changed the results (%v)", err)
	}

	out := filepath.Join(dir, "report")
	r = run(t, "scarbench", "report", dir, "--out", out, "--json")
	var rep scarbench.Report
	if err := json.Unmarshal([]byte(r.stdout), &rep); err != nil || r.code != exitDone {
		t.Fatalf("exit %d, %v: %s", r.code, err, r.stderr)
	}
	for _, row := range rep.Rows {
		want := 0.0
		if row.Agent == "forgetful" && row.Defence == "none" {
			want = 1
		}
		if row.GHOST.Value != want || row.Pairs != 4 {
			t.Errorf("%s, %s: GHOST %+v of %d", row.Agent, row.Defence, row.GHOST, row.Pairs)
		}
	}
	for _, name := range []string{"report.json", "report.html"} {
		if b, err := os.ReadFile(filepath.Join(out, name)); err != nil || len(b) < 1000 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
}

func TestScarbenchUsage(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		line string
		code exitCode
		want string
	}{
		{"run --agent safe", exitUsage, "--out DIR"},
		{"run --out DIR", exitUsage, "either --agent or --model"},
		{"run --out DIR --agent safe --model m", exitUsage, "either --agent or --model"},
		{"run --out DIR --agent clever", exitUsage, "no scripted agent"},
		{"run --out DIR --model m", exitUsage, "base URL"},
		{"run --out DIR --model m --base-url http://127.0.0.1:1/v1 --key-env NO_SUCH_KEY_HERE", exitUsage, "NO_SUCH_KEY_HERE is not set"},
		{"run --out DIR --agent safe --defence luck", exitUsage, "no defence"},
		{"run --out DIR --agent safe --case zoo", exitUsage, "no such case"},
		{"run --out DIR --agent safe --condition brief", exitUsage, "no condition"},
		{"run --out DIR --agent safe --repetitions 0", exitUsage, "--repetitions"},
		{"run --out DIR --agent safe --window -1", exitUsage, "window"},
		{"report DIR/nothing", exitFailure, "run scarbench run first"},
		{"report", exitUsage, "arg"},
		{"run --quiet --out DIR --model m --base-url http://127.0.0.1:1/v1 --case fs-01 --defence none --repetitions 1 --timeout 1s", exitFailure, "all 4 runs failed"},
	} {
		args := append([]string{"scarbench"}, strings.Fields(strings.ReplaceAll(c.line, "DIR", dir))...)
		if r := run(t, args...); r.code != c.code || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit %d, %s", c.line, r.code, r.stderr)
		}
	}
}
