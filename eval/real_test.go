package eval_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/eval"
)

// realRuns reads one data set of the folder that DREAMGUARD_DATA names.
func realRuns(t *testing.T, path string) []*data.Trajectory {
	t.Helper()
	dir := os.Getenv("DREAMGUARD_DATA")
	if dir == "" {
		t.Skipf("set DREAMGUARD_DATA to the data folder to run on %s", path)
	}
	f, err := os.Open(filepath.Join(dir, path))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(z)
	sc.Buffer(nil, 64<<20)
	var runs []*data.Trajectory
	for sc.Scan() {
		tr := new(data.Trajectory)
		if err := json.Unmarshal(sc.Bytes(), tr); err != nil {
			t.Fatalf("line %d: %v", len(runs)+1, err)
		}
		runs = append(runs, tr)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return runs
}

// TestTextBaselineOnAgentDyn splits by group alone. Its injection goals are
// shared by all user tasks, so a bag of words must look excellent here: 0.986
// AUROC per run was measured independently. Far less means that the baseline is
// too weak to compare with.
func TestTextBaselineOnAgentDyn(t *testing.T) {
	var train, test []*data.Trajectory
	for _, r := range realRuns(t, "agentdyn/trajectories.jsonl.gz") {
		h := fnv.New32a()
		h.Write([]byte(r.Group))
		if h.Sum32()%2 == 0 {
			train = append(train, r)
		} else {
			test = append(test, r)
		}
	}
	m, err := eval.TrainText(train, eval.Training{})
	if err != nil {
		t.Fatal(err)
	}
	traces, err := eval.Baseline(m, test, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := eval.Measure("agentdyn by group", traces, eval.Options{Seed: 1, Bootstrap: 200})
	t.Logf("n %d, unsafe %d, AUROC %.4f, interval %.4f, recall at 5 %% %.3f", got.N, got.Unsafe, got.AUROC, got.CI.AUROC, got.RecallAtFPR.At05)
	if got.AUROC < 0.95 {
		t.Errorf("AUROC %v, want about 0.986", got.AUROC)
	}
}
