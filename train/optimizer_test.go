package train

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// fitted returns a fitter at the start of a stage, with random weights.
func fitted(t *testing.T, st stage, edit func(*fitter)) *fitter {
	t.Helper()
	cfg, dims := testConfig(), testDims()
	cfg.Train.Stage2.WeightDecay = 0
	f, err := newFitter(cfg, dims, testExamples(9, dims, nil, 4, 3), nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	randomise(f.w)
	if edit != nil {
		edit(f)
	}
	if err := f.begin(st); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFrozenGroupsKeepTheirBytes(t *testing.T) {
	for _, c := range []struct {
		st     stage
		frozen []Group
	}{{1, []Group{Constant, Head}}, {2, []Group{Constant, Core}}} {
		f := fitted(t, c.st, nil)
		before := f.w.clone()
		for range 3 {
			if _, err := f.step(); err != nil {
				t.Fatal(err)
			}
		}
		for i, p := range f.w.params {
			same := slices.Equal(before.values[i], f.w.values[i])
			frozen := slices.Contains(c.frozen, p.Group) || c.st == 2 && trainingOnly(p.Name)
			if p.Name == "obs.out.b" || strings.HasPrefix(p.Name, "obs.") && c.st == 1 {
				continue // without eight results in a batch there is nothing to learn
			}
			if same != frozen {
				t.Errorf("stage %d: %s (%s) unchanged: %v, want %v", c.st, p.Name, p.Group, same, frozen)
			}
		}
	}
}

// Adam's first step is lr * scale * sign(gradient) for every value whose gradient
// is far above epsilon.
func TestFirstStepIsScaledPerGroup(t *testing.T) {
	f := fitted(t, 2, func(f *fitter) { f.cfg.Train.Clip = 0 })
	before := f.w.clone()
	if _, err := f.step(); err != nil {
		t.Fatal(err)
	}
	scale := map[Group]float64{Adapter: 0.25, World: 0.25, Head: 1}
	for i, p := range f.w.params {
		want := f.cfg.Train.LR * scale[p.Group]
		var moved float64
		for k := range before.values[i] {
			moved = max(moved, math.Abs(float64(f.w.values[i][k]-before.values[i][k])))
		}
		if trainingOnly(p.Name) {
			want = 0
		}
		if math.Abs(moved-want) > 0.01*want+1e-7 {
			t.Errorf("%s (%s) moved by %g, want %g", p.Name, p.Group, moved, want)
		}
	}
}

// Three steps against the textbook form of Adam in float64.
func TestAdam(t *testing.T) {
	params := []param{{Name: "w", Shape: []int{1, 2}, Group: Head, decay: true}}
	values := [][]float32{{0.5, -0.25}}
	cfg := testConfig().Train
	cfg.LR, cfg.Clip, cfg.Stage2.WeightDecay = 0.1, 1, 0.2
	a := newAdam(2, cfg, 1)
	w, m, v := []float64{0.5, -0.25}, make([]float64, 2), make([]float64, 2)
	for step, g := range [][]float32{{0.3, -0.4}, {3, 4}, {-0.1, 0}} {
		norm, err := globalNorm(params, []int{0}, [][]float32{g})
		if err != nil {
			t.Fatal(err)
		}
		if want := math.Hypot(float64(g[0]), float64(g[1])); math.Abs(norm-want) > 1e-6 {
			t.Errorf("norm %g, want %g", norm, want)
		}
		a.update(params, values, []int{0}, [][]float32{g}, norm)
		for k := range w {
			x := float64(g[k]) / max(norm, 1)
			m[k], v[k] = 0.9*m[k]+0.1*x, 0.999*v[k]+0.001*x*x
			mHat, vHat := m[k]/(1-math.Pow(0.9, float64(step+1))), v[k]/(1-math.Pow(0.999, float64(step+1)))
			w[k] = w[k]*(1-0.1*0.2) - 0.1*mHat/(math.Sqrt(vHat)+1e-8)
		}
		near(t, "w", values[0], w, 1e-5)
	}
}

func TestNotFiniteNamesTensorAndStep(t *testing.T) {
	f := fitted(t, 2, nil)
	if _, err := f.step(); err != nil {
		t.Fatal(err)
	}
	f.w.Value("head.haz.out.b")[0] = float32(math.NaN())
	if err := f.begin(2); err != nil { // loads the weights anew
		t.Fatal(err)
	}
	_, err := f.step()
	if !errors.Is(err, ErrNotFinite) || !strings.Contains(err.Error(), "stage 2 step 2") || !strings.Contains(err.Error(), "loss") {
		t.Errorf("error %v, want one that names stage, step and loss term", err)
	}
	params := []param{{Name: "a"}, {Name: "b"}}
	_, err = globalNorm(params, []int{0, 1}, [][]float32{{1, 2}, {3, float32(math.Inf(1)), 1, 1, 1}})
	if !errors.Is(err, ErrNotFinite) || !strings.Contains(err.Error(), "gradient of b") {
		t.Errorf("error %v, want one that names the gradient of b", err)
	}
}

// The heads start at logit 0 whatever their input.
func TestHeadsStartAtZero(t *testing.T) {
	cfg, dims := testConfig(), testDims()
	w, err := newWeights(cfg.Model, dims, 1)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := NewEvaluator(w)
	if err != nil {
		t.Fatal(err)
	}
	logits, err := ev.Logits(context.Background(), testExamples(2, dims, nil, 5))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range logits {
		for _, v := range append(l.Hazard, l.Prefix...) {
			if v != 0 {
				t.Errorf("logit %g before training, want 0", v)
			}
		}
	}
}

// Both stages lower their loss on data that has something to learn.
func TestFitLearns(t *testing.T) {
	cfg, dims := testConfig(), testDims()
	cfg.Train.Stage1.Steps, cfg.Train.Stage2.Steps, cfg.Train.LR = 40, 250, 5e-3
	cfg.Train.Batch, cfg.Train.ValidateEvery = 8, 50
	var first, last [2]float64
	res, err := Fit(context.Background(), cfg, dims,
		testExamples(80, dims, nil, 4, 3, 2), testExamples(60, dims, nil, 3, 4), Options{Progress: func(e Event) {
			if e.Validation != nil || e.Stage > 2 {
				return
			}
			s := e.Stage - 1
			if e.Step <= 10 {
				first[s] += e.Loss
			}
			if e.Step > e.Steps-10 {
				last[s] += e.Loss
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	for s := range first {
		if last[s] > 0.9*first[s] {
			t.Errorf("stage %d: loss %g over the first ten steps, %g over the last", s+1, first[s], last[s])
		}
	}
	if res.Best == nil || res.Best.AUROC < 0.9 {
		t.Errorf("validation %+v, want an AUROC of at least 0.9 where feature 0 tells", res.Best)
	}
}

func TestEarlyStop(t *testing.T) {
	cfg, dims := testConfig(), testDims()
	cfg.Train.Stage1.Steps, cfg.Train.Stage2.Steps = 0, 60
	cfg.Train.LR, cfg.Train.ValidateEvery, cfg.Train.Patience = 0, 2, 3
	// Nothing moves at learning rate 0, so the first validation stays the best.
	res, err := Fit(context.Background(), cfg, dims, testExamples(8, dims, nil, 3), testExamples(8, dims, nil, 3), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !res.Early || res.BestAt != 2 || res.Steps != [2]int{0, 8} {
		t.Errorf("early %v, best at %d, steps %v: want true, 2, [0 8]", res.Early, res.BestAt, res.Steps)
	}
}
