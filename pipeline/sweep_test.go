package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseRange(t *testing.T) {
	for s, want := range map[string]Range{
		"model.hidden=8,16":                {Key: "model.hidden", Values: []string{"8", "16"}},
		"train.buckets=[4, 12],[12]":       {Key: "train.buckets", Values: []string{"[4, 12]", "[12]"}},
		" train.lr = 0.001..0.01":          {Key: "train.lr", Low: 0.001, High: 0.01},
		"train.lr=1e-4..1e-2,log":          {Key: "train.lr", Low: 1e-4, High: 1e-2, Log: true},
		"model.hidden=16..64":              {Key: "model.hidden", Low: 16, High: 64, Whole: true},
		"train.trees.prefix=0..1":          {Key: "train.trees.prefix", High: 1, Whole: true},
		"train.trees.prefix=0.0..1":        {Key: "train.trees.prefix", High: 1},
		"data.weights.openagentsafety=0,1": {Key: "data.weights.openagentsafety", Values: []string{"0", "1"}},
	} {
		got, err := ParseRange(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s:\n%s", s, d)
		}
	}
	for _, s := range []string{"", "a", "a=", "=1", "a=1,1", "a=1,,2", "a=2..1", "a=1..1", "a=x..y", "a=0..1,log", "a=-1..1,log", "a=1..inf", "a=nan..1"} {
		if r, err := ParseRange(s); !errors.Is(err, ErrSweep) {
			t.Errorf("%q: %+v, %v", s, r, err)
		}
	}
}

// What is drawn from a range of a number lies in it, and is a value of its key.
func TestDraw(t *testing.T) {
	base, err := configs.Load("debug")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		over := []Range{
			{Key: "train.lr", Low: 1e-5, High: 1e-2, Log: rapid.Bool().Draw(t, "log")},
			{Key: "model.hidden", Low: 8, High: 9, Whole: true},
			{Key: "model.adapter", Low: 1, High: 300, Whole: true, Log: true},
			{Key: "train.trees.count", Values: []string{"0", "7"}},
		}
		o := SweepOptions{Config: base, Over: over, Trials: 5, Seed: rapid.Uint64().Draw(t, "seed")}
		list, err := o.trials()
		if err != nil {
			t.Fatal(err)
		}
		for _, settings := range list {
			cfg, err := o.with(settings)
			if err != nil {
				t.Fatal(err)
			}
			if lr := cfg.Train.LR; lr < 1e-5 || lr > 1e-2 {
				t.Fatalf("train.lr %v", lr)
			}
			if h := cfg.Model.Hidden; h != 8 && h != 9 {
				t.Fatalf("model.hidden %d", h)
			}
			if n := cfg.Train.Trees.Count; n != 0 && n != 7 {
				t.Fatalf("train.trees.count %d", n)
			}
		}
		more := o
		more.Trials = 8 // the first are the same
		longer, err := more.trials()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(list, longer[:5]); d != "" {
			t.Fatal(d)
		}
	})
}

func TestSweepRefuses(t *testing.T) {
	for name, o := range map[string]SweepOptions{
		"nothing":         {},
		"twice":           {Over: []Range{{Key: "train.lr", Values: []string{"1e-3"}}, {Key: "train.lr", Values: []string{"1e-4"}}}},
		"a range":         {Over: []Range{{Key: "train.lr", Low: 1e-4, High: 1e-3}}},
		"unknown key":     {Over: []Range{{Key: "train.learning", Values: []string{"1"}}}},
		"wrong value":     {Over: []Range{{Key: "train.lr", Values: []string{"-1"}}}},
		"not trained":     {Over: []Range{{Key: "calibrate.alpha", Values: []string{"0.1"}}}},
		"validation runs": {Over: []Range{{Key: "data.fold", Values: []string{"0", "1"}}}},
		"too many":        {Trials: maxTrials + 1, Over: []Range{{Key: "train.lr", Values: []string{"1e-3"}}}},
	} {
		o.Config, o.Out = tiny(t), filepath.Join(t.TempDir(), "out")
		if _, err := Sweep(t.Context(), o); !errors.Is(err, ErrSweep) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(o.Out); err == nil {
			t.Errorf("%s: a folder was made", name)
		}
	}
}

func TestSweep(t *testing.T) {
	o := SweepOptions{Out: t.TempDir(), Config: tiny(t), Options: fixed, Over: []Range{
		{Key: "train.trees.count", Values: []string{"0", "20"}}, {Key: "train.lr", Values: []string{"0.001"}},
	}}
	// Stopped after the first trial, it goes on with the second.
	ctx, cancel := context.WithCancel(t.Context())
	o.Done = func(SweepTrial) { cancel() }
	if _, err := Sweep(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that of the context", err)
	}
	o.Done = nil
	if _, err := Sweep(t.Context(), o); !errors.Is(err, ErrSweep) || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("a folder in use: %v", err)
	}
	o.Resume = true
	trials, err := Sweep(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) != 2 || trials[1].better(&trials[0]) {
		t.Fatalf("%+v", trials)
	}
	for _, x := range trials {
		if !x.Recall.OK() || !x.AUROC.OK() || x.Unsafe == 0 || x.Runs <= x.Unsafe || x.Seconds <= 0 {
			t.Errorf("%+v", x)
		}
	}
	best, err := configs.Load(filepath.Join(o.Out, BestFile))
	if err != nil {
		t.Fatal(err)
	}
	want, err := o.with(trials[0].Settings)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, best); d != "" {
		t.Errorf("best.yaml (-want +got):\n%s", d)
	}
	// The second trial took data and vectors from the first.
	first, err := Reopen(filepath.Join(o.Out, "trial-0001"), fixed)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Reopen(filepath.Join(o.Out, "trial-0002"), fixed)
	if err != nil {
		t.Fatal(err)
	}
	for stage, shared := range map[string]bool{"data": true, "embed": true, "train": false} {
		if same := first.Record(stage).Finished == second.Record(stage).Finished; same != shared {
			t.Errorf("%s is shared: %v", stage, same)
		}
	}
	// A third time there is nothing to do, and no other sweep gets in.
	before, err := os.ReadFile(filepath.Join(o.Out, SweepFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Sweep(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(filepath.Join(o.Out, SweepFile)); err != nil || string(after) != string(before) {
		t.Errorf("a finished sweep changed its log (%v)", err)
	}
	o.Over[0].Values = []string{"0", "21"}
	if _, err := Sweep(t.Context(), o); !errors.Is(err, ErrSweep) {
		t.Errorf("another sweep in the folder: %v", err)
	}
}
