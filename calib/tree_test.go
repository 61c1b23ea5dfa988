package calib_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
)

func TestTreeBacksOff(t *testing.T) {
	var runs []calib.Scored
	add := func(n int, path ...string) {
		for range n {
			i := len(runs)
			runs = append(runs, calib.Scored{ID: fmt.Sprint(i), Label: calib.Safe, Risk: float64(i%97) / 100, Path: path})
		}
	}
	add(100, "bank", "mail")
	add(50, "bank", "files")
	add(3, "bank", "sms")
	add(25, "shop", "mail")
	add(1, "shop", "files")
	add(2, "lone", "mail")
	tuning := slices.Clone(runs)
	c, err := calib.Request{FalseAlarm: 0.05, By: []string{"tenant", "tool"}}.Solve(tuning, runs)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct{ path, plan []string }{
		{[]string{"bank", "mail"}, []string{"bank", "mail"}},
		{[]string{"bank", "files"}, []string{"bank", "files"}},
		{[]string{"bank", "sms"}, []string{"bank"}},
		{[]string{"bank", "new"}, []string{"bank"}},
		{[]string{"shop", "mail"}, []string{"shop", "mail"}},
		{[]string{"shop", "files"}, []string{"shop"}},
		{[]string{"lone", "mail"}, nil},
		{[]string{"new", "new"}, nil},
		{nil, nil},
	} {
		if got := c.For(w.path); !slices.Equal(got.Path, w.plan) {
			t.Errorf("%q takes the levels of %q, want %q", w.path, got.Path, w.plan)
		}
	}
	bank := c.For([]string{"bank", "sms"})
	if g := bank.Guarantees[0]; !g.Pooled || g.Runs != 153 || g.For != "tenant=bank" || !strings.Contains(g.String(), "all these runs together") {
		t.Errorf("%+v: %s", g, g)
	}
	for _, g := range c.Groups {
		if own := len(c.For(g.Path).Path) == 2; g.Backoff == own {
			t.Errorf("%+v", g)
		}
	}
	if len(c.Groups) != 6 || c.Groups[5].Runs != 1 && c.Groups[4].Runs != 1 {
		t.Errorf("%d groups", len(c.Groups))
	}
	// Values may hold anything: lengths keep them apart.
	odd := calib.Tree{Own: [][]string{{"1:a"}, {"a", "b"}}}
	if got := odd.Node([]string{"a", "b"}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q", got)
	}
}

func TestSplit(t *testing.T) {
	var runs []calib.Scored
	for i := range 4000 {
		runs = append(runs, calib.Scored{ID: fmt.Sprint(i), Group: fmt.Sprint("task-", i/4)})
	}
	tuning, conformal := calib.Split(runs, 0.3, 7)
	if n := float64(len(tuning)) / 4000; math.Abs(n-0.3) > 0.05 || len(tuning)+len(conformal) != 4000 {
		t.Errorf("%d tune and %d calibrate", len(tuning), len(conformal))
	}
	side := map[string]bool{}
	for _, s := range tuning {
		side[s.Group] = true
	}
	for _, s := range conformal {
		if side[s.Group] {
			t.Fatalf("group %s is on both sides", s.Group)
		}
	}
	// More runs move none of the old ones.
	some, _ := calib.Split(runs[:1000], 0.3, 7)
	if !reflect.DeepEqual(some, tuning[:len(some)]) {
		t.Error("more runs moved old ones")
	}
	other, _ := calib.Split(runs, 0.3, 8)
	if reflect.DeepEqual(other, tuning) {
		t.Error("the seed does nothing")
	}
	if none, all := calib.Split(runs, 0, 1); len(none) != 0 || len(all) != 4000 {
		t.Error("share 0 tunes on something")
	}
}

func TestDuplicates(t *testing.T) {
	runs := safeRuns(6)
	runs[4].Fingerprint, runs[2].Fingerprint = runs[1].Fingerprint, runs[0].Fingerprint
	runs[5].Fingerprint, runs[3].Fingerprint = "", ""
	if got := calib.Duplicates(runs); !reflect.DeepEqual(got, [][]int{{0, 2}, {1, 4}}) {
		t.Errorf("%v", got)
	}
}
