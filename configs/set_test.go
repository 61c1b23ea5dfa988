package configs

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestSet(t *testing.T) {
	c := mustLoad(t, "paper")
	shared := c // must not see changes of c's map
	for _, a := range []string{
		"train.stage1.steps=500", "train.buckets=[6, 12]", "train.max_steps = 12", "train.lr=1e-3",
		"data.weights.tau-bench=2", "data.leave_out=github", "calibrate.paper_clamp=true",
		"seed=18446744073709551615", "name=2026", "calibrate.alpha=.1",
	} {
		if err := c.Set(a); err != nil {
			t.Errorf("Set(%q): %v", a, err)
		}
	}
	for _, v := range []struct {
		name      string
		got, want any
	}{
		{"steps", c.Train.Stage1.Steps, 500},
		{"buckets", fmt.Sprint(c.Train.Buckets), "[6 12]"},
		{"max_steps", c.Train.MaxSteps, 12},
		{"lr", c.Train.LR, 1e-3},
		{"weights", c.Data.Weights, map[string]float64{"openagentsafety": 0.3, "tau-bench": 2}},
		{"leave_out", c.Data.LeaveOut, "github"},
		{"paper_clamp", c.Calib.PaperClamp, true},
		{"seed", c.Seed, uint64(math.MaxUint64)},
		{"name", c.Name, "2026"},
		{"alpha", c.Calib.Alpha, 0.1},
	} {
		if !reflect.DeepEqual(v.got, v.want) {
			t.Errorf("%s = %v, want %v", v.name, v.got, v.want)
		}
	}
	if len(shared.Data.Weights) != 1 {
		t.Errorf("a copy's weights became %v", shared.Data.Weights)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if err := c.Set("data.weights={simulator: 0.5}"); err != nil || len(c.Data.Weights) != 1 {
		t.Errorf("weights %v, error %v", c.Data.Weights, err)
	}
}

// Every key can be set to the value that it has.
func TestSetEveryKey(t *testing.T) {
	c := mustLoad(t, "paper")
	for _, key := range Keys() {
		v := reflect.ValueOf(&c).Elem()
		for _, part := range strings.Split(key, ".") {
			f, ok := fieldByName(v, part)
			if !ok {
				t.Fatalf("no field for %s", key)
			}
			v = f
		}
		before := fmt.Sprint(v.Interface())
		text := strings.ReplaceAll(before, " ", ", ")
		if v.Kind() == reflect.Map {
			text = "{openagentsafety: 0.3}"
		}
		if err := c.Set(key + "=" + text); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if after := fmt.Sprint(v.Interface()); after != before {
			t.Errorf("%s = %s after setting it to %s", key, after, before)
		}
	}
}

func TestSetErrors(t *testing.T) {
	for a, want := range map[string]string{
		"train.stage1.step=3":   "train.stage1.step: unknown key: did you mean train.stage1.steps?",
		"stage1.steps=3":        "did you mean train.stage1.steps?",
		"steps=3":               "did you mean train.stage1.steps?",
		"train.stage1=3":        "train.stage1: is a section: set one of its keys, steps",
		"train.lr.x=3":          "train.lr has no keys of its own",
		"train.lr":              "want key=value",
		"=3":                    "want key=value",
		"train.lr=fast":         `train.lr: want a number, not "fast"`,
		"train.lr=.nan":         "train.lr: want a number, not .nan",
		"train.clip=.inf":       "train.clip: want a number, not .inf",
		"train.lr='1e-3'":       `train.lr: want a number, not "1e-3"`,
		"train.lr=1e-3x":        `train.lr: want a number, not "1e-3x"`,
		"train.lr=":             "train.lr: want a number, not nothing",
		"model.hidden=1e2":      "model.hidden: want a whole number",
		"train.buckets=6":       "train.buckets: want a list such as [4, 8, 16], not 6",
		"train.buckets=[6":      "train.buckets: ",
		"data.weights=3":        "data.weights: want a mapping",
		"data.weights.asb=much": "data.weights.asb: want a number",
		"eval.locked_smoke=yes": "eval.locked_smoke: want true or false",
	} {
		c := mustLoad(t, "paper")
		before, err := c.Digest()
		if err != nil {
			t.Fatal(err)
		}
		err = c.Set(a)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("Set(%q): %v, want %q in it", a, err, want)
		}
		if after, err := c.Digest(); err != nil || after != before {
			t.Errorf("Set(%q) failed and changed the configuration (%v)", a, err)
		}
	}
}

func TestValidate(t *testing.T) {
	for a, want := range map[string]string{
		"train.batch=0":                  "train.batch: want a whole number from 1 to 1024, not 0",
		"train.max_steps=8":              "train.buckets: want the last length to equal train.max_steps (8)",
		"train.buckets=[]":               "train.buckets: want 1 to 16 lengths",
		"train.buckets=[8, 8, 16]":       "train.buckets: want 1 to 16 lengths",
		"train.lr=0":                     "train.lr: want a number above 0 to below 1, not 0",
		"train.stage2.dropout=0.96":      "train.stage2.dropout: want a number from 0 to 0.95, not 0.96",
		"train.stage2.drop_state=1":      "train.stage2.drop_state: want a number from 0 to 0.95, not 1",
		"model.uniform_mix=0":            "model.uniform_mix: want a number above 0 to below 1, not 0",
		"calibrate.alpha=1":              "calibrate.alpha: want a number above 0 to below 1, not 1",
		"calibrate.alpha_block=0.05":     "calibrate.alpha_block: want a number from 0 to below calibrate.alpha (0.05)",
		"calibrate.window=65":            "calibrate.window: want a whole number from 1 to 64",
		"data.protocol=p3":               `data.protocol: want p1, p2 or simulator, not "p3": did you mean p1?`,
		"data.leave_out=gitub":           "data.leave_out: want dailylife, github or shopping, not \"gitub\": did you mean github?",
		"data.weights.openagentsaftey=1": "did you mean openagentsafety?",
		"train.without=sense":            `train.without: want features, texts, state or memory, or "" to leave nothing out`,
		"model.latent=soft":              "model.latent: want probabilities or mode",
		"eval.locked_smoke=true":         "eval.locked_smoke: is for preset debug only",
		"name=a/b":                       "name: want 1 to 64 characters",
		"backend=xla":                    "backend: want go, xla:cpu or xla:cuda, not",
	} {
		c := mustLoad(t, "paper")
		if err := c.Set(a); err != nil {
			t.Errorf("Set(%q): %v", a, err)
			continue
		}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("after %s: %v, want %q in it", a, err, want)
		}
	}
}
