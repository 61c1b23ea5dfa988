package pipeline

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run does not write over what it did not make.
func TestOpenRefusesAnOccupiedFolder(t *testing.T) {
	for _, name := range []string{"data", "artifact", "final", "stages.json"} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, tiny(t), fixed); !errors.Is(err, ErrNoRun) || !strings.Contains(err.Error(), name) {
			t.Errorf("a folder that holds %s: %v", name, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("left in a refused folder: %v, error %v", entries, err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "log.txt"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, tiny(t), fixed); err != nil {
		t.Errorf("a folder that holds the log of the run: %v", err)
	}
}

// Sets of earlier settings go, files of others stay.
func TestDataLeavesFilesOfOthersAlone(t *testing.T) {
	dir := t.TempDir()
	r := stop(t, dir, tiny(t), "data")
	mine := r.path("data", "mine.jsonl.gz")
	if err := os.WriteFile(mine, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(dir, "outside.jsonl.gz")
	if err := os.WriteFile(outside, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	old := r.path("data", "old.jsonl.gz")
	if err := os.WriteFile(old, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	outputs := r.ledger.Stages["data"].Outputs
	outputs[filepath.Join("data", "old.jsonl.gz")], outputs["data/../outside.jsonl.gz"] = "", ""
	if err := r.ledger.save(); err != nil {
		t.Fatal(err)
	}
	stop(t, dir, tiny(t), "data")
	for path, stays := range map[string]bool{mine: true, outside: true, old: false} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) == stays {
			t.Errorf("%s: %v, want that it stays: %v", path, err, stays)
		}
	}
}

// Folds lie beside the run, however its folder is written.
func TestSiblingBase(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	for dir, want := range map[string]string{
		filepath.Join(parent, "p1") + "/":      filepath.Join(parent, "p1"),
		filepath.Join(parent, "p1") + "/../p2": filepath.Join(parent, "p2"),
		".":                                    here,
	} {
		r, err := reopen(dir, tiny(t), fixed)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.siblingBase(); err != nil || got != want {
			t.Errorf("%s: %q, error %v; want %q", dir, got, err, want)
		}
	}
}
