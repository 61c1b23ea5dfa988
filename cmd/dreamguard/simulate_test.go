package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/data/store"
)

func TestSimulate(t *testing.T) {
	dir := t.TempDir()
	var files [2][]byte
	for i := range files {
		path := filepath.Join(dir, "runs.jsonl.gz")
		r := run(t, "simulate", "--runs", "60", "--seed", "5", "--out", path, "--json")
		var w written
		if err := json.Unmarshal([]byte(r.stdout), &w); err != nil || r.code != exitDone {
			t.Fatalf("exit %d, stderr %q, %v in %q", r.code, r.stderr, err, r.stdout)
		}
		ts, err := store.ReadAll(path)
		if err != nil {
			t.Fatal(err)
		}
		if w.Runs != 60 || len(ts) != 60 || w.Safe == 0 || w.Unsafe == 0 || w.Safe+w.Unsafe != 60 || w.Steps < 60 {
			t.Errorf("reported %+v, wrote %d", w, len(ts))
		}
		if files[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("the same seed gave other bytes")
	}
	path := filepath.Join(dir, "code.jsonl")
	if r := run(t, "simulate", "--runs", "10", "--domain", "code", "--unsafe-share", "0", "-q", "--out", path); r.code != exitDone || r.stderr != "" || !strings.Contains(r.stdout, "10 runs, 10 safe") {
		t.Errorf("one domain: %+v", r)
	}
	ts, err := store.ReadAll(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range ts {
		if x.Suite != "code" {
			t.Errorf("run %s is of domain %s", x.ID, x.Suite)
		}
	}
}

func TestSimulateErrors(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "x.jsonl")
	for _, c := range []struct {
		args []string
		code exitCode
		want string
	}{
		{[]string{"--runs", "3"}, exitUsage, "--out FILE"},
		{[]string{"--runs", "0", "--out", out}, exitUsage, "--runs is 0"},
		{[]string{"--domain", "cooking", "--out", out}, exitUsage, "simulate: --domain: \"cooking\""},
		{[]string{"--part", "half", "--out", out}, exitUsage, "simulate: --part: \"half\""},
		{[]string{"--first", "-3", "--out", out}, exitUsage, "simulate: --first: "},
		{[]string{"--unsafe-share", "1", "--out", out}, exitUsage, "--unsafe-share is 1: want a share from 0 (no unsafe runs) to below 1"},
		{[]string{"--unsafe-share", "-0.5", "--out", out}, exitUsage, "--unsafe-share is -0.5"},
		{[]string{"--unsafe-share", "NaN", "--out", out}, exitUsage, "--unsafe-share is NaN"},
		{[]string{"--out", filepath.Join(dir, "x.csv")}, exitUsage, ".parquet"},
		{[]string{"--out", filepath.Join(dir, "none", "x.jsonl")}, exitFailure, "no such file"},
	} {
		r := run(t, append([]string{"simulate", "-q"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%v: exit %d, stderr %q; want exit %d and %q", c.args, r.code, r.stderr, c.code, c.want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("failed commands left %v (%v)", left, err)
	}
}
