package train

import (
	"math"
	"testing"

	"github.com/dreamguard/dreamguard/configs"
)

// trainedWithout trains a little model.
func trainedWithout(t *testing.T, without string) (configs.Config, *Weights) {
	t.Helper()
	cfg, d := testConfig(), testDims()
	cfg.Train.Without = without
	xs := testExamples(12, d, nil, 4, 3)
	r, err := Fit(t.Context(), cfg, d, xs, xs[:6], Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg, r.Weights
}

// TestWithout trains models without something and looks whether it can still move
// the last logit of a run.
func TestWithout(t *testing.T) {
	const steps = 4
	d := testDims()
	negate := func(v []float32) {
		for i := range v {
			v[i] = -v[i]
		}
	}
	changes := map[string]func(*Example){
		withoutFeatures: func(x *Example) { negate(x.Features) },
		withoutTexts:    func(x *Example) { negate(x.Task); negate(x.Calls); negate(x.Results) },
		// What the state alone brings: the steps before, and what came back last.
		withoutState: func(x *Example) {
			negate(x.Calls[:(steps-1)*d.D])
			negate(x.Features[:(steps-1)*d.F])
			negate(x.Results)
		},
		// All steps before, but what came back last.
		withoutMemory: func(x *Example) {
			negate(x.Calls[:(steps-1)*d.D])
			negate(x.Features[:(steps-1)*d.F])
			negate(x.Results[:(steps-2)*d.D])
		},
	}
	last := func(w *Weights, x Example) [2]float64 {
		ev, err := NewEvaluator(w)
		if err != nil {
			t.Fatal(err)
		}
		l, err := ev.Logits(t.Context(), []Example{x})
		if err != nil {
			t.Fatal(err)
		}
		return [2]float64{float64(l[0].Hazard[steps-1]), float64(l[0].Prefix[steps-1])}
	}
	_, whole := trainedWithout(t, "")
	for without, change := range changes {
		x := testExamples(1, d, nil, steps)[0]
		for i := range x.HasResult {
			x.HasResult[i] = true
		}
		y := testExamples(1, d, nil, steps)[0]
		copy(y.HasResult, x.HasResult)
		change(&y)
		if a, b := last(whole, x), last(whole, y); math.Abs(a[0]-b[0]) < 1e-5 || math.Abs(a[1]-b[1]) < 1e-5 {
			t.Errorf("%s move no logit of a whole model (%v, %v): the test shows nothing", without, a, b)
		}
		_, w := trainedWithout(t, without)
		if a, b := last(w, x), last(w, y); math.Abs(a[0]-b[0]) > 1e-9 || math.Abs(a[1]-b[1]) > 1e-9 {
			t.Errorf("without %s: they move the logits from %v to %v", without, a, b)
		}
	}
}

// TestWithoutPins: what is held stays, the rest of the tensor learns.
func TestWithoutPins(t *testing.T) {
	for _, without := range []string{withoutFeatures, withoutTexts, withoutState, withoutMemory} {
		cfg, w := trainedWithout(t, without)
		fresh, err := newWeights(cfg.Model, w.Dims, cfg.Seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pins(without, w.sizes()) {
			at := w.index(p.name)
			moved := false
			for i, v := range w.values[at] {
				if p.columns == 0 || i%w.params[at].Shape[1] < p.columns {
					if v != p.value {
						t.Fatalf("without %s: %s[%d] is %v, want %v", without, p.name, i, v, p.value)
					}
				} else {
					moved = moved || v != fresh.values[at][i]
				}
			}
			if p.columns > 0 && !moved {
				t.Errorf("without %s: the other columns of %s do not learn", without, p.name)
			}
		}
	}
}

func TestLearned(t *testing.T) {
	cfg, d := testConfig(), testDims()
	count := func() int { return Summary(cfg, d).Learned }
	whole := count()
	m := cfg.Model
	z, x := m.Factors*m.Classes, m.Factors*m.Classes+m.Adapter+d.F
	if constants := 2 * d.F; whole != Summary(cfg, d).Runtime-constants {
		t.Errorf("%d values learn, want all but the %d constants", whole, constants)
	}
	for without, want := range map[string]int{
		withoutFeatures: 0,
		withoutTexts:    3 * m.Adapter * d.D,
		withoutState: 2*m.HeadHidden*(m.Hidden+z) + (m.Adapter*d.D + 3*m.Adapter) + // adapt.o
			m.Adapter + (m.Hidden*m.Adapter + m.Hidden) + // obs.none, init
			(m.Hidden*(m.Hidden+m.Adapter) + 3*m.Hidden) + (z*m.Hidden + z) + // posterior
			(m.Hidden*m.Hidden + 3*m.Hidden) + (z*m.Hidden + z) + // prior
			2*x + 3*(m.Hidden*x+m.Hidden*m.Hidden+m.Hidden) + m.Hidden, // cell
		withoutMemory: 3*m.Hidden*m.Hidden + m.Hidden*x + m.Hidden + m.Hidden*m.Hidden + m.Hidden*m.Adapter + m.Hidden,
	} {
		cfg.Train.Without = without
		if got := whole - count(); got != want {
			t.Errorf("without %s %d values are held, want %d", without, got, want)
		}
	}
	cfg.Train.Without = ""
	cfg.Train.Stage1.Steps, cfg.Train.WorldScale, cfg.Train.AdapterScale = 0, 0, 0
	heads := 0
	for _, g := range Summary(cfg, d).Groups {
		if g.Group == Head {
			heads = g.Values
		}
	}
	if got := count(); got != heads {
		t.Errorf("%d values learn, want those of the heads, %d", got, heads)
	}
	cfg.Train.Without = "sense"
	if _, err := Fit(t.Context(), cfg, d, testExamples(4, d, nil, 3), nil, Options{}); err == nil {
		t.Error("an unknown part is accepted")
	}
}
