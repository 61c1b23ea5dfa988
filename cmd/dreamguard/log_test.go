package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/guard/decisionlog"
)

func TestLogVerify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.jsonl")
	l, err := decisionlog.Open(path, decisionlog.Options{MaxBytes: 1200})
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if err := l.Append(decisionlog.Record{Event: decisionlog.Start, Run: "r"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := run(t, "log", "verify", path)
	if r.code != exitDone || !strings.Contains(r.stdout, "12 records, 1 to 12\nhead ") || !strings.Contains(r.stdout, "every line is what was written") {
		t.Fatalf("%+v", r)
	}
	_, head, _ := strings.Cut(r.stdout, "head ")
	if r := run(t, "log", "verify", "--head", head[:64], path); r.code != exitDone {
		t.Errorf("its own head: %+v", r)
	}
	if r := run(t, "log", "verify", "--head", strings.Repeat("0", 64), path); r.code != exitFailure || !strings.Contains(r.stdout, "cut off or written anew") {
		t.Errorf("another head: %+v", r)
	}

	files, err := decisionlog.Files(path)
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[1], bytes.Replace(b, []byte(`"run":"r"`), []byte(`"run":"x"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, "log", "verify", path); r.code != exitFailure || !strings.Contains(r.stdout, files[1]+":1: changed: ") || !strings.Contains(r.stderr, "1 problems") {
		t.Errorf("a changed line: %+v", r)
	}
	r = run(t, "log", "verify", "--json", path)
	var report decisionlog.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || r.code != exitFailure || len(report.Problems) != 1 {
		t.Errorf("--json: %+v, %v", r, err)
	}
	if r := run(t, "log", "verify", path+"x"); r.code != exitFailure || !strings.Contains(r.stderr, path+"x") {
		t.Errorf("a file that is not there: %+v", r)
	}
	wantUsage(t, "log verify", "see dreamguard log verify --help")
	wantUsage(t, "log verfy", "see dreamguard log --help")
}
