package train

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/internal/backend"
)

func TestPrefixTarget(t *testing.T) {
	e := math.Exp
	for _, c := range []struct {
		hazard, horizon int
		decay           float64
		want            []float64 // steps 0, 1, ...
	}{
		{hazard: 6, horizon: 5, decay: 2, want: []float64{0, e(-2), e(-1.5), e(-1), e(-0.5), 1, 1, 0}},
		{hazard: 0, horizon: 5, decay: 2, want: []float64{1, 0, 0}},
		{hazard: 2, horizon: 1, decay: 1, want: []float64{0, 1, 1, 0}},
		{hazard: 2, horizon: 0, decay: 1, want: []float64{0, 0, 1}},
		{hazard: -1, horizon: 5, decay: 2, want: []float64{0, 0, 0}},
	} {
		var got []float64
		for step := range c.want {
			got = append(got, prefixTarget(step, c.hazard, c.horizon, c.decay))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("hazard %d, horizon %d, decay %g:\n%s", c.hazard, c.horizon, c.decay, diff)
		}
	}
}

// oneRun builds the batch of a single run of four steps.
func oneRun(t *testing.T, st stage, edit func(*Example)) (map[string][]float32, *batcher) {
	t.Helper()
	cfg, dims := testConfig(), testDims()
	cfg.Train.Batch, cfg.Train.Buckets = 1, []int{4}
	w, err := newWeights(cfg.Model, dims, 1)
	if err != nil {
		t.Fatal(err)
	}
	xs := testExamples(1, dims, func(x *Example) { x.HasResult = []bool{true, false, true, true}; edit(x) }, 4)
	k, err := newBatcher(st, cfg, w, xs)
	if err != nil {
		t.Fatal(err)
	}
	_, batch := k.step(0)
	return batch, k
}

func TestMasks(t *testing.T) {
	unsafe := func(hazard int, exact bool, weight float32) func(*Example) {
		return func(x *Example) { x.Label, x.Hazard, x.Exact, x.Weight = data.Unsafe, hazard, exact, weight }
	}
	for _, c := range []struct {
		name                   string
		edit                   func(*Example)
		hazW, hazY, preW, preY []float32
	}{
		{"safe", func(*Example) {}, []float32{.25, .25, .25, .25}, []float32{0, 0, 0, 0}, []float32{.25, .25, .25, .25}, []float32{0, 0, 0, 0}},
		// Supervised up to and including the hazard; the positive weighs pos_weight = 2.
		{"exact", unsafe(1, true, 1), []float32{.5, 1, 0, 0}, []float32{0, 1, 0, 0}, []float32{.5, .5, 0, 0}, []float32{1, 1, 0, 0}},
		// A weak hazard halves everything, a source of weight 0.5 halves it again.
		{"weak", unsafe(1, false, 0.5), []float32{.125, .25, 0, 0}, []float32{0, 1, 0, 0}, []float32{.125, .125, 0, 0}, []float32{1, 1, 0, 0}},
	} {
		batch, _ := oneRun(t, 2, c.edit)
		for _, f := range []struct {
			name string
			want []float32
		}{{"haz.w", c.hazW}, {"haz.y", c.hazY}, {"pre.w", c.preW}, {"pre.y", c.preY}} {
			if diff := cmp.Diff(f.want, batch[f.name]); diff != "" {
				t.Errorf("%s: %s:\n%s", c.name, f.name, diff)
			}
		}
	}
	batch, _ := oneRun(t, 1, unsafe(1, true, 0.5))
	if diff := cmp.Diff([]float32{.125, .125, .125, .125}, batch["kl.w"]); diff != "" {
		t.Errorf("stage 1 uses every valid step, also after the hazard:\n%s", diff)
	}
	if diff := cmp.Diff([]float32{0, 0, 0, 0}, batch["predict.w"]); diff != "" {
		t.Errorf("three steps with a result are too few for the prediction loss:\n%s", diff)
	}
	if diff := cmp.Diff([]float32{0, 1, 0, 1, 1}, batch["has"]); diff != "" {
		t.Errorf("o_0 is absent, o_2 is missing in the data:\n%s", diff)
	}
}

func TestStagesUseTheRightRuns(t *testing.T) {
	for _, c := range []struct {
		name   string
		x      Example
		stages [2]bool
	}{
		{"safe", Example{Steps: 3, Label: data.Safe, Hazard: -1, Weight: 1}, [2]bool{true, true}},
		{"located", Example{Steps: 3, Label: data.Unsafe, Hazard: 0, Weight: 1}, [2]bool{true, true}},
		{"not located", Example{Steps: 3, Label: data.Unsafe, Hazard: -1, Weight: 1}, [2]bool{true, false}},
		{"unknown", Example{Steps: 3, Hazard: -1, Weight: 1}, [2]bool{true, false}},
		{"weight 0", Example{Steps: 3, Label: data.Safe, Hazard: -1}, [2]bool{false, false}},
	} {
		if got := [2]bool{stage(1).uses(&c.x), stage(2).uses(&c.x)}; got != c.stages {
			t.Errorf("%s: used in stages 1 and 2: %v, want %v", c.name, got, c.stages)
		}
	}
}

func TestBatchesCoverEveryRunOnce(t *testing.T) {
	cfg, dims := testConfig(), testDims()
	xs := testExamples(23, dims, nil, 1, 2, 3, 4, 9)
	w, err := newWeights(cfg.Model, dims, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range []stage{1, 2} {
		k, err := newBatcher(st, cfg, w, xs)
		if err != nil {
			t.Fatal(err)
		}
		var orders []string
		for epoch := range 3 {
			k.load(epoch)
			if len(k.plan) != k.perEpoch {
				t.Errorf("stage %d: epoch %d has %d batches, epoch 0 had %d", st, epoch, len(k.plan), k.perEpoch)
			}
			seen := map[int]int{}
			short := 0
			for _, b := range k.plan {
				if len(b.windows) < cfg.Train.Batch {
					short++
				}
				for _, v := range b.windows {
					x := &xs[v.run]
					seen[v.run]++
					if v.steps > b.t || v.start < 0 || v.start+v.steps > st.length(x, cfg.Train) {
						t.Errorf("stage %d: window %+v does not fit run of %d steps in a batch of %d", st, v, x.Steps, b.t)
					}
					if x.located() && (x.Hazard < v.start || x.Hazard >= v.start+v.steps) {
						t.Errorf("stage %d: window %+v loses the hazard at %d", st, v, x.Hazard)
					}
				}
			}
			if short > 1 {
				t.Errorf("stage %d: %d batches are not full, want at most one", st, short)
			}
			if len(seen) != len(xs) || slices.Max(slices.Collect(maps.Values(seen))) != 1 {
				t.Errorf("stage %d: epoch %d shows %d of %d runs", st, epoch, len(seen), len(xs))
			}
			orders = append(orders, fmt.Sprint(k.plan))
		}
		if orders[0] == orders[1] {
			t.Errorf("stage %d: two epochs have the same order", st)
		}
		// Jumping to a step gives what walking to it gives.
		again, err := newBatcher(st, cfg, w, xs)
		if err != nil {
			t.Fatal(err)
		}
		n := 2*k.perEpoch + 1
		for i := range n {
			k.step(i)
		}
		_, walked := k.step(n)
		_, jumped := again.step(n)
		if diff := cmp.Diff(walked, jumped); diff != "" {
			t.Errorf("stage %d: step %d depends on the steps before it:\n%s", st, n, diff)
		}
	}
}

// Padding to a longer bucket and empty rows must not change loss terms or
// gradients, whatever stands in the padding.
func TestPaddingChangesNothing(t *testing.T) {
	for _, st := range []stage{1, 2} {
		cfg, dims := gradientConfig(), testDims()
		cfg.Train.Stage2.Dropout, cfg.Train.Stage2.DropState = 0, 0 // its noise is drawn per row of the padded batch
		w, err := newWeights(cfg.Model, dims, 1)
		if err != nil {
			t.Fatal(err)
		}
		randomise(w)
		xs := testExamples(4, dims, func(x *Example) { x.HasResult = []bool{true, true, true} }, 3)
		run := func(steps, rows int, fill float32) ([]float32, [][]float32) {
			cfg.Train.Batch, cfg.Train.MaxSteps, cfg.Train.Buckets = rows, steps, []int{steps}
			k, err := newBatcher(st, cfg, w, xs)
			if err != nil {
				t.Fatal(err)
			}
			windows := make([]window, len(xs))
			for i := range xs {
				windows[i] = window{run: i, steps: st.length(&xs[i], cfg.Train)}
			}
			batch := k.build(batch{steps, windows})
			for _, name := range []string{"u.post", "u.prior"} { // noise by run and step
				blocks := steps
				if name == "u.post" {
					blocks++
				}
				for t := range blocks {
					for b := range rows {
						for g := range cfg.Model.Factors {
							if v := batch[name]; v != nil {
								v[(t*rows+b)*cfg.Model.Factors+g] = float32((7*t+3*b+5*g)%11) / 11
							}
						}
					}
				}
			}
			for t := range steps {
				for b := range rows {
					if b >= len(xs) || t >= windows[b].steps {
						for _, name := range []string{"a", "o", "f"} {
							width := len(batch[name]) / steps / rows
							row := t*rows + b
							if name == "o" {
								width = len(batch[name]) / (steps + 1) / rows
								row += rows // what comes back from padded step t
							}
							for i := range width {
								batch[name][row*width+i] = fill
							}
						}
					}
				}
			}
			be, err := backend.Open(backend.Go)
			if err != nil {
				t.Fatal(err)
			}
			s, err := newStepper(be, cfg, dims, st, steps, rows)
			if err != nil {
				t.Fatal(err)
			}
			params, err := onBackend(be, w)
			if err != nil {
				t.Fatal(err)
			}
			var terms []float32
			var grads [][]float32
			err = s.run(params, batch, func(values []float32, g [][]float32) error {
				terms = slices.Clone(values)
				for _, v := range g {
					grads = append(grads, slices.Clone(v))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return terms, grads
		}
		terms, grads := run(3, 4, 0)
		padded, paddedGrads := run(5, 6, 3)
		near(t, fmt.Sprintf("stage %d: terms", st), padded, wide(terms), 1e-5)
		for i := range grads {
			near(t, fmt.Sprintf("stage %d: gradient %d", st, i), paddedGrads[i], wide(grads[i]), 1e-4)
		}
	}
}

func TestWindowStartsFromWhatCameBefore(t *testing.T) {
	cfg, dims := testConfig(), testDims()
	cfg.Train.Batch = 1
	xs := testExamples(2, dims, func(x *Example) {
		for i := range x.HasResult {
			x.HasResult[i] = true
		}
		if x.Label == data.Unsafe {
			x.Hazard = 8
		}
	}, 10)
	w, err := newWeights(cfg.Model, dims, 1)
	if err != nil {
		t.Fatal(err)
	}
	k, err := newBatcher(2, cfg, w, xs[1:])
	if err != nil {
		t.Fatal(err)
	}
	if got, want := k.plan[0].windows[0], (window{run: 0, start: 5, steps: 4}); got != want {
		t.Errorf("window of a run with hazard 8 is %+v, want %+v", got, want)
	}
	_, batch := k.step(0)
	if diff := cmp.Diff(xs[1].Results[4*dims.D:9*dims.D], batch["o"]); diff != "" {
		t.Errorf("observations of the window:\n%s", diff)
	}
	starts := map[int]bool{}
	if k, err = newBatcher(1, cfg, w, xs[:1]); err != nil {
		t.Fatal(err)
	}
	for epoch := range 50 {
		k.load(epoch)
		starts[k.plan[0].windows[0].start] = true
	}
	if len(starts) != 7 {
		t.Errorf("windows of a safe run of 10 steps start at %v, want each of 0 to 6", slices.Sorted(maps.Keys(starts)))
	}
}

func TestNoUsableRuns(t *testing.T) {
	cfg, dims := testConfig(), testDims()
	xs := testExamples(3, dims, func(x *Example) { x.Label, x.Hazard = data.Unknown, -1 }, 3)
	_, err := Fit(context.Background(), cfg, dims, xs, nil, Options{Progress: func(Event) { t.Error("a step was done") }})
	if err == nil || !strings.Contains(err.Error(), "stage 2: none of the 3 training runs") {
		t.Errorf("error %v, want one that says what stage 2 lacks", err)
	}
}
