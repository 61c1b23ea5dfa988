package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/data/store"
)

// Every published file reads, validates and survives Parquet unchanged.
func TestRealFiles(t *testing.T) {
	dir := os.Getenv("DREAMGUARD_DATA")
	if dir == "" {
		t.Skipf("set DREAMGUARD_DATA to the folder of trajectory files to run this")
	}
	for _, name := range []string{
		"agentdojo/trajectories.jsonl.gz", "tau-bench/trajectories.jsonl.gz", "openagentsafety/trajectories.jsonl.gz",
		"assebench/asse-security.trajectories.jsonl.gz", "assebench/r-judge.trajectories.jsonl.gz",
	} {
		want, err := store.ReadAll(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "x.parquet")
		if err := store.WriteAll(path, want); err != nil {
			t.Fatal(err)
		}
		got, err := store.ReadAll(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %.2000s", name, d)
		}
		t.Logf("%s: %d trajectories", name, len(got))
	}
}
