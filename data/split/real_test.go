package split

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/dreamguard/dreamguard/configs/splits"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/simulate"
)

// The rules hold on the published data: every fold and suite left out of p1, and p2.
func TestRealData(t *testing.T) {
	dir := os.Getenv("DREAMGUARD_DATA")
	if dir == "" {
		t.Skipf("set DREAMGUARD_DATA to the folder of trajectory files to run this")
	}
	eval, err := EvalIDs(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []string{P1, P2} {
		all, report, err := Load(dir, protocol, LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(report)) {
			t.Logf("%s %s: %+v", protocol, name, report[name])
		}
		for tr := range simulate.Generate(simulate.Options{Seed: 1, Runs: 400}) {
			all[simulator] = append(all[simulator], tr)
		}
		for fold := range splits.Folds {
			for _, out := range []string{"", "dailylife", "github", "shopping"} {
				if protocol == P2 && (fold > 0 || out != "") {
					continue
				}
				a, err := Assign(Options{Protocol: protocol, Fold: fold, LeaveOut: out}, all, eval)
				if err != nil {
					t.Fatal(err)
				}
				if protocol == P1 {
					check(t, a, out)
				}
				checkGroups(t, a)
				if n := len(a.Sets["test-asb"]); n != 800 {
					t.Errorf("asb: %d locked rows, want 800", n)
				}
				if n := len(a.Sets["test-agentdojo"]); n != 662 {
					t.Errorf("agentdojo: %d locked rows, want 662", n)
				}
				if c := a.Counts[Validation]; c.Safe < 50 || c.Unsafe < 20 {
					t.Errorf("%s fold %d without %q: validation %+v is too small to choose by", protocol, fold, out, c)
				}
				if fold <= 1 && (out == "" || fold == 1) {
					for _, name := range slices.Sorted(maps.Keys(a.Sets)) {
						t.Logf("%s fold %d without %q: %-20s %+v", protocol, fold, out, name, a.Counts[name])
					}
					t.Logf("unused %v", a.Unused)
				}
			}
		}
	}
}

// checkGroups: no set shares a group with another, but for validation in tuning
// and for agentdyn's test goals on training tasks, which check looks at.
func checkGroups(t *testing.T, a *Assignment) {
	t.Helper()
	where := map[[2]string]string{}
	for _, name := range slices.Sorted(maps.Keys(a.Sets)) {
		if name == Tuning {
			continue
		}
		for _, tr := range a.Sets[name] {
			if tr.Dataset == agentDyn && name == "test-agentdyn" {
				continue
			}
			k := [2]string{tr.Dataset, tr.Group}
			if other := where[k]; other != "" && other != name {
				t.Fatalf("%s and %s share group %v", name, other, k)
			}
			where[k] = name
			if tr.Label == data.Unknown && name != Train {
				t.Errorf("%s holds %s without a label", name, tr.ID)
			}
		}
	}
}
