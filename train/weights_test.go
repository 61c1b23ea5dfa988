package train

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

func TestWeightsRoundTrip(t *testing.T) {
	w, err := newWeights(testConfig().Model, testDims(), 1)
	if err != nil {
		t.Fatal(err)
	}
	randomise(w)
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := w.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := LoadWeights(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Dims != w.Dims || got.Model != w.Model {
		t.Errorf("sizes %v %v, want %v %v", got.Dims, got.Model, w.Dims, w.Model)
	}
	if diff := cmp.Diff(w.Tensors(), got.Tensors()); diff != "" {
		t.Error(diff)
	}
	if all, run := len(w.Tensors()), len(w.RuntimeTensors()); run != all-6 {
		t.Errorf("%d of %d tensors at run time, want all but obs.l1.* and obs.out.*", run, all)
	}
}

func TestLoadWeightsRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := LoadWeights(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("not a model"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadWeights(junk); !errors.Is(err, ErrWeights) || !strings.Contains(err.Error(), junk) {
		t.Errorf("junk: %v", err)
	}
	good := func() []safetensors.Tensor {
		w, err := newWeights(testConfig().Model, testDims(), 1)
		if err != nil {
			t.Fatal(err)
		}
		return w.Tensors()
	}
	for _, c := range []struct {
		name, want string
		edit       func([]safetensors.Tensor) []safetensors.Tensor
	}{
		{"missing", `"adapt.a.b" is missing`, func(ts []safetensors.Tensor) []safetensors.Tensor { return ts[1:] }},
		{"twice", `"adapt.a.b" comes twice`, func(ts []safetensors.Tensor) []safetensors.Tensor { return append(ts, ts[0]) }},
		{"unknown", `"other" is unknown`, func(ts []safetensors.Tensor) []safetensors.Tensor { ts[3].Name = "other"; return ts }},
		{"shape", "has shape [7], want [12]", func(ts []safetensors.Tensor) []safetensors.Tensor { ts[0].Shape = []int{7}; return ts }},
		{"NaN", "adapt.a.w", func(ts []safetensors.Tensor) []safetensors.Tensor {
			for i := range ts {
				if ts[i].Name == "adapt.a.w" {
					ts[i].Data[2] = float32(math.NaN())
				}
			}
			return ts
		}},
	} {
		_, err := WeightsFrom(testConfig().Model, testDims(), c.edit(good()))
		if !errors.Is(err, ErrWeights) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %s", c.name, err, c.want)
		}
	}
}

// The table of docs/reference/model.md, at the sizes of preset paper.
func TestSummary(t *testing.T) {
	cfg := configs.Config{Model: configs.Model{Hidden: 256, Factors: 16, Classes: 16, Adapter: 256, HeadHidden: 128}}
	s := Summary(cfg, Dims{D: 256, F: 90})
	const x, head = 256 + 256 + 90, 256 + 256 + 256 + 90 + 256
	want := map[Group]int{
		Constant: 2 * 90,
		Adapter:  3 * (256*256 + 3*256),
		World: 256 + // obs.none
			(256*256 + 256) + // init
			(256*512 + 3*256) + (256*256 + 256) + // post
			(256*256 + 3*256) + (256*256 + 256) + // prior
			(256*512 + 3*256) + (256*256 + 256), // obs
		Core: 2*x + 3*256*x + 3*256*256 + 4*256,
		Head: 2 * (128*head + 3*128 + 128 + 1 + 90),
	}
	var total int
	for _, g := range s.Groups {
		total += g.Values
		if g.Values != want[g.Group] {
			t.Errorf("%s has %d values, want %d", g.Group, g.Values, want[g.Group])
		}
	}
	if s.Total != total {
		t.Errorf("total %d, want %d", s.Total, total)
	}
	if text := s.String(); !strings.Contains(text, "gru.wr             core       [256 602]\n") {
		t.Errorf("parameters.txt lacks gru.wr:\n%s", text)
	}
}

func TestFeatureStats(t *testing.T) {
	xs := []Example{
		{Steps: 2, Features: []float32{1e4, 5, 1e4 + 2, 5}},
		{Steps: 1, Features: []float32{1e4 + 4, 5}},
	}
	mean, scale := featureStats(xs, 2)
	near(t, "mean", mean, []float64{1e4 + 2, 5}, 1e-7)
	near(t, "scale", scale, []float64{math.Sqrt(8.0 / 3), 1}, 1e-6)
	out := make([]float32, 4)
	normalise(out, []float32{1e4 + 2, 6, 1e9, -1e9}, mean, scale)
	near(t, "normalised", out, []float64{0, 1, 8, -8}, 1e-6)
}

func TestExampleCheck(t *testing.T) {
	d := testDims()
	for _, c := range []struct {
		want string
		edit func(*Example)
	}{
		{"steps is 0", func(x *Example) { x.Steps = 0 }},
		{"task has 7 values, want 8", func(x *Example) { x.Task = x.Task[1:] }},
		{"features has 14 values, want 15", func(x *Example) { x.Features = x.Features[1:] }},
		{"calls[3] is NaN", func(x *Example) { x.Calls[3] = float32(math.NaN()) }},
		{"results[0] is -Inf", func(x *Example) { x.Results[0] = float32(math.Inf(-1)) }},
		{"have 3 and 2 values", func(x *Example) { x.Judged = x.Judged[1:] }},
		{"hazard is 3: want -1 to 2", func(x *Example) { x.Label, x.Hazard = data.Unsafe, 3 }},
		{"labelled safe", func(x *Example) { x.Hazard = 1 }},
		{"weight is -1", func(x *Example) { x.Weight = -1 }},
	} {
		xs := testExamples(1, d, func(x *Example) { x.Label, x.Hazard = data.Safe, -1; c.edit(x) }, 3)
		err := checkAll("train", xs, d)
		if !errors.Is(err, ErrExample) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "train[0]: ") {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	if err := checkAll("train", testExamples(9, d, nil, 1, 5), d); err != nil {
		t.Error(err)
	}
}

func TestCheckConfig(t *testing.T) {
	for _, c := range []struct {
		want string
		edit func(*configs.Config)
	}{
		{"model.uniform_mix is 0", func(c *configs.Config) { c.Model.UniformMix = 0 }},
		{"model.latent is \"sample\"", func(c *configs.Config) { c.Model.Latent = "sample" }},
		{"model.hidden is 0", func(c *configs.Config) { c.Model.Hidden = 0 }},
		{"model.classes is 1", func(c *configs.Config) { c.Model.Classes = 1 }},
		{"train.buckets is [4 2]", func(c *configs.Config) { c.Train.Buckets = []int{4, 2} }},
		{"train.buckets is [2]", func(c *configs.Config) { c.Train.Buckets = []int{2} }},
		{"train.batch is 0", func(c *configs.Config) { c.Train.Batch = 0 }},
		{"train.max_steps is 65", func(c *configs.Config) { c.Train.MaxSteps = 65 }},
		{"train.lr is NaN", func(c *configs.Config) { c.Train.LR = math.NaN() }},
		{"train.stage2.drop_state is 1", func(c *configs.Config) { c.Train.Stage2.DropState = 1 }},
		{"train.stage2.dropout is 1", func(c *configs.Config) { c.Train.Stage2.Dropout = 1 }},
		{"train.stage2.horizon", func(c *configs.Config) { c.Train.Stage2.Decay = 0 }},
		{"unknown backend \"tpu\"", func(c *configs.Config) { c.Backend = "tpu" }},
	} {
		cfg := testConfig()
		c.edit(&cfg)
		_, err := newFitter(cfg, testDims(), testExamples(2, testDims(), nil, 3), nil, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %s", err, c.want)
		}
	}
}
