package configs

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func mustLoad(t *testing.T, name string) Config {
	t.Helper()
	c, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryPresetLoads(t *testing.T) {
	files, err := presetFS.ReadDir("presets")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(Presets()) {
		t.Errorf("%d preset files, %d listed", len(files), len(Presets()))
	}
	for _, name := range Presets() {
		c := mustLoad(t, name)
		if c.Name != name {
			t.Errorf("preset %s is called %q", name, c.Name)
		}
		if c.Seed != 20260701 {
			t.Errorf("preset %s has seed %d", name, c.Seed)
		}
	}
}

// The values that the paper states, and those that the protocols fix.
func TestPresetValues(t *testing.T) {
	p := mustLoad(t, "paper")
	for _, v := range []struct {
		name      string
		got, want any
	}{
		{"batch", p.Train.Batch, 8},
		{"lr", p.Train.LR, 2e-4},
		{"world_scale", p.Train.WorldScale, 0.25},
		{"adapter_scale", p.Train.AdapterScale, 0.25},
		{"dynamics", p.Train.Stage1.Dynamics, 0.03},
		{"represent", p.Train.Stage1.Represent, 0.03},
		{"predict", p.Train.Stage1.Predict, 1.25},
		{"prior", p.Train.Stage1.Prior, 0.0},
		{"free_bits", p.Train.Stage1.FreeBits, 0.2},
		{"alpha", p.Calib.Alpha, 0.05},
		{"p1 alpha", mustLoad(t, "protocol-p1").Calib.Alpha, 0.07},
		{"p2 protocol", mustLoad(t, "protocol-p2").Data.Protocol, "p2"},
		{"paper hidden", p.Model.Hidden, 256},
		{"p2 hidden", mustLoad(t, "protocol-p2").Model.Hidden, 96},
		{"quickstart weights", len(mustLoad(t, "quickstart").Data.Weights), 0},
		{"quickstart steps", mustLoad(t, "quickstart").Train.Stage2.Steps, 1500},
		{"debug runs", mustLoad(t, "debug").Data.MaxRuns, 150},
		{"debug locked", mustLoad(t, "debug").Eval.LockedSmoke, true},
	} {
		if v.got != v.want {
			t.Errorf("%s = %v, want %v", v.name, v.got, v.want)
		}
	}
}

// Every other preset and file starts from paper, so a leaf that it does not
// name would silently be zero.
func TestRootPresetIsComplete(t *testing.T) {
	src, err := presetFS.ReadFile("presets/paper.yaml")
	if err != nil {
		t.Fatal(err)
	}
	node, err := parse("paper.yaml", src)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range Keys() {
		n := node
		for _, part := range strings.Split(key, ".") {
			values, err := decoder{}.entries(n, key)
			if err != nil {
				t.Fatal(err)
			}
			n = nil
			for _, e := range values {
				if keyName(e) == part {
					n = e.Value
				}
			}
			if n == nil {
				t.Errorf("paper.yaml does not name %s", key)
				break
			}
		}
	}
}

func TestLoadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	src := "# ours\nbase: quickstart\nseed: 7\ntrain:\n  stage1: {steps: 5}\ndata:\n  weights: {tau-bench: 2}\n"
	if err := os.WriteFile(path, []byte(src), 0o666); err != nil {
		t.Fatal(err)
	}
	got := mustLoad(t, path)
	want := mustLoad(t, "quickstart")
	want.Name, want.Seed, want.Train.Stage1.Steps = "mine", 7, 5
	want.Data.Weights = map[string]float64{"tau-bench": 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"unknown leaf", "train:\n  stage1:\n    stps: 3\n", "f.yaml:3: train.stage1.stps: unknown key: did you mean train.stage1.steps?"},
		{"unknown section", "trian:\n  lr: 1\n", "f.yaml:1: trian: unknown key: did you mean train?"},
		{"wrong place", "lr: 0.1\n", "f.yaml:1: lr: unknown key: did you mean train.lr?"},
		{"nothing alike", "quux: 0.1\n", "f.yaml:1: quux: unknown key: the sections are name, seed, data, encoder, model, train, calibrate, eval, backend"},
		{"text for number", "model:\n  hidden: wide\n", `f.yaml:2: model.hidden: want a whole number, not "wide"`},
		{"float for int", "model:\n  hidden: 1.5\n", "f.yaml:2: model.hidden: want a whole number, not 1.5"},
		{"quoted number", "model:\n  hidden: \"256\"\n", `f.yaml:2: model.hidden: want a whole number, not "256"`},
		{"negative seed", "seed: -1\n", "f.yaml:1: seed: want a whole number from 0 up, not -1"},
		{"number for bool", "calibrate:\n  paper_clamp: 1\n", "f.yaml:2: calibrate.paper_clamp: want true or false, not 1"},
		{"number for text", "name: 12\n", "f.yaml:1: name: want text, not 12: put it in quotes"},
		{"scalar for list", "train:\n  buckets: 12\n", "f.yaml:2: train.buckets: want a list such as [4, 8, 16], not 12"},
		{"list item", "train:\n  buckets: [4, x]\n", `f.yaml:2: train.buckets[1]: want a whole number, not "x"`},
		{"map item", "data:\n  weights:\n    tau-bench: heavy\n", `f.yaml:3: data.weights.tau-bench: want a number, not "heavy"`},
		{"scalar for section", "train: 3\n", "f.yaml:1: train: want a mapping of keys to values, not 3"},
		{"empty section", "train:\n", "f.yaml:1: train: want a mapping of keys to values, not nothing"},
		{"base", "base: fast\n", `f.yaml:1: base: want one of the presets debug, quickstart, protocol-p1, protocol-p2, paper, not "fast"`},
		{"anchor", "seed: &x 1\n", "a YAML anchor, alias or tag, which a configuration does not have"},
		{"duplicate", "seed: 1\nseed: 2\n", `f.yaml:2: mapping key "seed" already defined`},
		{"two documents", "seed: 1\n---\nseed: 2\n", "a configuration is one YAML document"},
		{"syntax", "train: [1\n", "f.yaml:1: "},
		{"top level", "- 1\n", "f.yaml:1: want a mapping of keys to values, not a list"},
		{"too large", strings.Repeat("# comment\n", maxFile/10+1), "a configuration has at most 32768"},
		{"brackets", strings.Repeat("[", maxBrackets+1), "a configuration has at most 256"},
		{"range", "train:\n  batch: 0\n", "f.yaml: train.batch: want a whole number from 1 to 1024, not 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(c.src))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error is %v (%T), want an *Error", err, err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %q, want %q in it", err, c.want)
			}
		})
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	_, err := Parse("f.yaml", []byte("seed: -1\nmodel:\n  hiden: 3\n"))
	if err == nil || !strings.Contains(err.Error(), "seed") || !strings.Contains(err.Error(), "model.hidden?") {
		t.Errorf("error is %q, want both mistakes", err)
	}
}

func TestLoadUnknownName(t *testing.T) {
	for name, want := range map[string]string{
		"quickstrat": "did you mean quickstart?",
		"nowhere":    "the presets are debug, quickstart",
	} {
		_, err := Load(name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load(%q): %v, want %q in it", name, err, want)
		}
	}
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, make([]byte, maxFile+1), 0o666); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{t.TempDir(): "it is a folder: want a configuration in YAML", os.DevNull: "it is a device", large: "file is too large"} {
		var e *Error
		if _, err := Load(path); !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("Load(%q): %v, want %q in it", path, err, want)
		}
	}
}

func TestMarshalRoundTrip(t *testing.T) {
	for _, name := range Presets() {
		c := mustLoad(t, name)
		b, err := c.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("x.yaml", b)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, b)
		}
		if diff := cmp.Diff(c, back); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestDigest(t *testing.T) {
	a, b := mustLoad(t, "protocol-p1"), mustLoad(t, "protocol-p1")
	da, err := a.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if db, err := b.Digest(); err != nil || da != db {
		t.Errorf("equal configurations have digests %s and %s (%v)", da, db, err)
	}
	b.Train.LR *= 2
	if db, err := b.Digest(); err != nil || da == db {
		t.Errorf("different configurations share digest %s (%v)", da, err)
	}
}

// Any value of any leaf survives Marshal and Parse, whatever its digits.
func TestRoundTripAnyValue(t *testing.T) {
	base := mustLoad(t, "paper")
	rapid.Check(t, func(t *rapid.T) {
		c := base
		c.Name = rapid.StringMatching(`[a-z0-9 .:#'"-]{1,20}`).Draw(t, "name")
		c.Seed = rapid.Uint64().Draw(t, "seed")
		c.Train.LR = rapid.Float64Range(1e-12, 0.999).Draw(t, "lr")
		c.Train.Stage1.Predict = rapid.Float64Range(0, 1000).Draw(t, "predict")
		c.Data.Weights = rapid.MapOf(rapid.SampledFrom(datasets), rapid.Float64Range(0, 100)).Draw(t, "weights")
		b, err := c.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("x.yaml", b)
		if err != nil {
			t.Fatalf("%v\n%s", err, b)
		}
		if diff := cmp.Diff(c, back); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Each leaf is of a kind that the decoder knows, with a yaml name of its own.
func TestEveryLeafHasAKind(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if seen[k] || strings.HasSuffix(k, ".") || strings.Contains(k, "..") {
			t.Errorf("key %q is empty or repeated", k)
		}
		seen[k] = true
	}
	var walk func(reflect.Type)
	walk = func(ty reflect.Type) {
		switch ty.Kind() {
		case reflect.Struct:
			for i := range ty.NumField() {
				walk(ty.Field(i).Type)
			}
		case reflect.Slice, reflect.Map:
			walk(ty.Elem())
		case reflect.String, reflect.Bool, reflect.Int, reflect.Uint64, reflect.Float64:
		default:
			t.Errorf("the decoder cannot fill a %s", ty)
		}
	}
	walk(reflect.TypeFor[Config]())
}

func FuzzParse(f *testing.F) {
	for _, name := range Presets() {
		src, err := presetFS.ReadFile("presets/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Add([]byte("a: [1, {b: *c}]\n---\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := Parse("f.yaml", src)
		if err != nil {
			return
		}
		b, err := c.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("f.yaml", b); err != nil {
			t.Fatalf("an accepted configuration does not read back: %v\n%s", err, b)
		}
	})
}
