package audit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/store"
)

// The documented defects of the published sets must be found: ASSE-Security is
// three quarters ASB runs, and its backdoor trigger stands in unsafe runs only.
func TestRealData(t *testing.T) {
	dir := os.Getenv("DREAMGUARD_DATA")
	if dir == "" {
		t.Skipf("set DREAMGUARD_DATA to the folder of trajectory files to run this")
	}
	read := func(name string) []*data.Trajectory {
		ts, err := store.ReadAll(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return ts
	}
	asse := read("assebench/asse-security.trajectories.jsonl.gz")
	sets := map[string][]*data.Trajectory{
		"asse": asse, "agentharm": read("assebench/agentharm-asse.trajectories.jsonl.gz"),
		"dyn": read("agentdyn/trajectories.jsonl.gz"), "dojo": read("agentdojo/trajectories.jsonl.gz"),
	}
	for _, o := range Duplicates(sets).Overlaps {
		t.Logf("%+v", o)
	}
	found := false
	for _, s := range Shortcuts(asse, 100, 2000) {
		if s.Phrase == "perspicacious discernment" {
			found = s.Label == data.Unsafe && s.Runs == 216
			t.Logf("%+v", s)
		}
	}
	if !found {
		t.Error("the backdoor trigger (216 unsafe runs, no safe one) was not found")
	}
	t.Logf("%+v", Summarize(asse).Total)
}
