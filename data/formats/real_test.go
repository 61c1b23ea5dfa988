package formats_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/formats"
	"github.com/dreamguard/dreamguard/data/store"
)

func dataDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("DREAMGUARD_DATA")
	if dir == "" {
		t.Skipf("set DREAMGUARD_DATA to the folder of trajectory files to run this")
	}
	return dir
}

// sameSteps compares with a conversion made by another program, which cut long
// texts and left a mark where it did.
func sameSteps(a, b []data.Step) bool {
	if len(a) != len(b) {
		return false
	}
	same := func(x, y string) bool {
		if head, _, cut := strings.Cut(y, "…[cut "); cut {
			return strings.HasPrefix(x, strings.TrimRight(head, " "))
		}
		return strings.TrimSpace(x) == strings.TrimSpace(y)
	}
	for i := range a {
		if a[i].Type != b[i].Type || a[i].Tool != b[i].Tool || !same(a[i].Text, b[i].Text) || !same(a[i].Error, b[i].Error) {
			return false
		}
		// A turn of the user behind a call went into its result there.
		result, _, _ := strings.Cut(b[i].Result, "\n"+data.UserPrefix)
		if !same(a[i].Result, b[i].Result) && !same(a[i].Result, result) {
			return false
		}
		if !same(a[i].Args, b[i].Args) && !sameJSON(a[i].Args, b[i].Args) {
			return false
		}
	}
	return true
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	p, err1 := json.Marshal(x)
	q, err2 := json.Marshal(y)
	return err1 == nil && err2 == nil && string(p) == string(q)
}

// The published AgentDojo logs become the same steps as in an independent
// conversion of them.
func TestRealAgentDojo(t *testing.T) {
	dir := filepath.Join(dataDir(t), "agentdojo")
	// The conversion names models after files, which have no dots.
	key := func(id string) string { return strings.ReplaceAll(id, ".", "-") }
	ref := map[string]*data.Trajectory{}
	all, err := store.ReadAll(filepath.Join(dir, "trajectories.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range all {
		ref[key(tr.ID)] = tr
	}
	files, err := filepath.Glob(filepath.Join(dir, "raw", "*.jsonl.gz"))
	if err != nil || len(files) != 17 {
		t.Fatalf("%d raw files, %v", len(files), err)
	}
	var read, kept, found, same, unsafeRuns int
	for _, file := range files {
		rep, err := formats.Import(file, "", func(tr *data.Trajectory) error {
			if tr.Label == data.Unsafe {
				unsafeRuns++
			}
			want := ref[key(tr.ID)]
			if want == nil {
				return nil
			}
			found++
			if tr.Task == want.Task && tr.Group == want.Group && sameSteps(tr.Steps, want.Steps) {
				same++
			}
			if tr.Label == data.Unsafe && want.Label != data.Unsafe {
				t.Errorf("%s is unsafe here and %s there", tr.ID, want.Label)
			}
			return nil
		})
		if err != nil || rep.Format != "agentdojo" {
			t.Fatalf("%s: %+v, %v", file, rep, err)
		}
		checkReport(t, rep)
		read, kept = read+rep.Read, kept+rep.Kept
	}
	t.Logf("read %d, kept %d, found %d, same steps %d (%.1f %%), unsafe %d", read, kept, found, same, 100*float64(same)/float64(found), unsafeRuns)
	// 17 files of 194 runs, 252 attacked ones that reached the goal.
	if read != 3298 || unsafeRuns > 252 {
		t.Errorf("read %d runs, %d unsafe", read, unsafeRuns)
	}
	if float64(found) < 0.99*float64(kept) || float64(same) < 0.98*float64(found) {
		t.Errorf("of %d kept runs %d are known and %d have the same steps", kept, found, same)
	}
}

// The raw files of ASSEBench, against the same conversion. Most runs of R-Judge
// differ, in white space or because this importer understands more of the ways
// in which it writes a call.
func TestRealASSEBench(t *testing.T) {
	dir := filepath.Join(dataDir(t), "assebench")
	for _, tt := range []struct {
		raw, converted string
		n              int
		steps          float64 // least share of runs with the same steps
	}{
		{"AgentJudge-security", "asse-security", 817, 1},
		{"agentharm", "agentharm-asse", 176, 1},
		{"rjudge", "r-judge", 564, 0.3},
	} {
		all, err := store.ReadAll(filepath.Join(dir, tt.converted+".trajectories.jsonl.gz"))
		if err != nil {
			t.Fatal(err)
		}
		ref := map[string]*data.Trajectory{}
		for _, tr := range all {
			ref[strings.TrimPrefix(tr.ID, tt.converted+"/")] = tr
		}
		same := 0
		rep, err := formats.Import(filepath.Join(dir, tt.raw+".json.gz"), "", func(tr *data.Trajectory) error {
			want := ref[strings.TrimPrefix(tr.ID, "assebench/"+tt.raw+"/")]
			if want == nil {
				t.Errorf("%s is unknown", tr.ID)
				return nil
			}
			if tr.Label != want.Label {
				t.Errorf("%s: %s here, %s there", tr.ID, tr.Label, want.Label)
			}
			if sameSteps(tr.Steps, want.Steps) {
				same++
			}
			return nil
		})
		if err != nil || rep.Kept != tt.n || rep.Format != "assebench" {
			t.Fatalf("%s: %+v, %v", tt.raw, rep, err)
		}
		t.Logf("%s: %d of %d with the same steps, repaired %v", tt.raw, same, rep.Kept, rep.Repaired)
		if float64(same) < tt.steps*float64(rep.Kept) {
			t.Errorf("%s: only %d of %d have the same steps", tt.raw, same, rep.Kept)
		}
	}
}
