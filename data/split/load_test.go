package split

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/store"
)

// folder writes a small data folder for p1 and returns it.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(set string, ts ...*data.Trajectory) {
		path := filepath.Join(dir, filepath.FromSlash(sources[set].File))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := store.WriteAll(path, ts); err != nil {
			t.Fatal(err)
		}
	}
	ids := func(set, text string) {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(sources[set].EvalIDs)), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	located := run(agentDojo, "b", "g", data.Unsafe)
	located.FirstHazard = ptr(0)
	failed := run(tauBench, "a", "airline/0", data.Safe)
	failed.TaskSucceeded = ptr(false)
	write(agentDyn, dyn("shopping", 2, "injection_task_0", data.Unsafe), dyn("shopping", 2, "", data.Safe))
	write(agentDojo, run(agentDojo, "a", "g", data.Safe), located, run(agentDojo, "c", "g", data.Unsafe))
	// b shares a's group and comes before it, c after it; d stands alone.
	write(asb, run(asb, "b", "g", data.Safe), run(asb, "d", "h", data.Safe), run(asb, "a", "g", data.Safe), run(asb, "c", "g", data.Safe))
	write(asseSecurity, run(asseSecurity, "a", "g", data.Safe))
	write(openAgentSafety, run(openAgentSafety, "a", "g", data.Unknown))
	write(tauBench, failed)
	ids(agentDojo, "agentdojo/a\n\nagentdojo/b\n")
	ids(asb, "asb/a\r\n")
	return dir
}

func TestLoad(t *testing.T) {
	dir := folder(t)
	read := 0
	all, report, err := Load(dir, P1, LoadOptions{Progress: func(n int) { read += n }})
	if err != nil {
		t.Fatal(err)
	}
	if read != 12 {
		t.Errorf("progress counted %d runs, want 12", read)
	}
	want := Report{
		agentDyn:        {File: sources[agentDyn].File, Read: 2, Kept: 2, Noted: map[string]int{noteUnlocated: 1}},
		agentDojo:       {File: sources[agentDojo].File, Read: 3, Kept: 2, Dropped: map[string]int{dropUnlocated: 1}},
		asb:             {File: sources[asb].File, Read: 4, Kept: 2, Dropped: map[string]int{sharesLocked: 2}},
		asseSecurity:    {File: sources[asseSecurity].File, Read: 1, Kept: 1},
		openAgentSafety: {File: sources[openAgentSafety].File, Read: 1, Kept: 1, Noted: map[string]int{noteUnknown: 1}},
		tauBench:        {File: sources[tauBench].File, Read: 1, Kept: 1, Noted: map[string]int{noteFailed: 1}},
	}
	if d := cmp.Diff(want, report, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	eval, err := EvalIDs(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Assign(Options{Protocol: P1, Fold: 1}, all, eval)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name := range a.Sets {
		got[name] = strings.Join(a.IDs(name), " ")
	}
	wantSets := map[string]string{
		"train":  "agentdyn/shopping/user_task_2//safe agentdyn/shopping/user_task_2/injection_task_0/unsafe openagentsafety/a",
		"tuning": "tau-bench/a", "test-agentdojo": "agentdojo/a agentdojo/b", "test-asb": "asb/a", "dev-asb": "asb/d",
		"test-asse-security": "asse-security/a",
	}
	if d := cmp.Diff(wantSets, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestFiles(t *testing.T) {
	dir := folder(t)
	got, err := Files(dir, P1)
	if err != nil || len(got) != 8 || !slices.IsSorted(got) {
		t.Errorf("got %v, %v, want 8 sorted paths", got, err)
	}
	if got, err := Files("nowhere", Simulator); err != nil || len(got) != 0 {
		t.Errorf("simulator: got %v, %v", got, err)
	}
}

func TestLoadErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		proto string
		spoil func(t *testing.T, dir string)
		is    error
		msg   string
	}{
		{"protocol", "p9", func(*testing.T, string) {}, ErrProtocol, "p9"},
		{"missing file", P2, func(*testing.T, string) {}, fs.ErrNotExist, "data set r-judge"},
		{"missing list", P1, func(t *testing.T, dir string) { remove(t, dir, "asb/eval_ids.txt") }, fs.ErrNotExist, "asb/eval_ids.txt"},
		{"empty list", P1, func(t *testing.T, dir string) { put(t, dir, "asb/eval_ids.txt", "\n") }, nil, "holds no id"},
		{"repeated id", P1, func(t *testing.T, dir string) { put(t, dir, "asb/eval_ids.txt", "asb/a\nasb/a\n") }, nil, "line 2"},
		{"empty file", P1, func(t *testing.T, dir string) { put(t, dir, "asb/trajectories.jsonl.gz", "") }, store.ErrEmpty, "asb"},
		{"other data set", P1, func(t *testing.T, dir string) {
			put(t, dir, "asb/trajectories.jsonl.gz", `{"id":"x","dataset":"y","steps":[{"type":"message"}]}`)
		}, nil, `line 1: dataset is "y": want asb`},
		{"duplicate", P1, func(t *testing.T, dir string) {
			line := `{"id":"x","dataset":"asb","steps":[{"type":"message"}]}` + "\n"
			put(t, dir, "asb/trajectories.jsonl.gz", line+line)
		}, ErrDuplicate, "line 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t)
			tt.spoil(t, dir)
			_, _, err := Load(dir, tt.proto, LoadOptions{})
			if err == nil || !strings.Contains(filepath.ToSlash(err.Error()), tt.msg) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got %v, want %v and %q", err, tt.is, tt.msg)
			}
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
