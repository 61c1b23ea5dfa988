package calib_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/calib"
)

func TestFitTemperatureAgainstSciPy(t *testing.T) {
	for i, v := range load(t).Temperatures {
		got := calib.FitTemperature(v.Logits, v.Targets, v.Weights)
		if math.Abs(got-v.T) > 1e-5*v.T { // SciPy's bounded search stops at about the square root of the precision
			t.Errorf("%d: T = %v, want %v", i, got, v.T)
		}
	}
}

func TestFitTemperatureEdges(t *testing.T) {
	for _, c := range []struct {
		name                     string
		logits, targets, weights []float64
		want                     float64
	}{
		{"no data", nil, nil, nil, 1},
		{"all zero", []float64{0, 0}, []float64{0, 1}, nil, 1},
		{"no weight", []float64{1, 2}, []float64{0, 1}, []float64{0, 0}, 1},
		{"separable: as sharp as allowed", []float64{-1, 1}, []float64{0, 1}, nil, calib.MinTemperature},
		{"always wrong: as flat as allowed", []float64{-1, 1}, []float64{1, 0}, nil, calib.MaxTemperature},
		{"NaN", []float64{math.NaN()}, []float64{1}, nil, math.NaN()},
		{"infinite", []float64{math.Inf(1)}, []float64{1}, nil, math.NaN()},
		{"lengths differ", []float64{1}, nil, nil, math.NaN()},
		{"weights too short", []float64{1, 2}, []float64{0, 1}, []float64{1}, math.NaN()},
	} {
		got := calib.FitTemperature(c.logits, c.targets, c.weights)
		if got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: T = %v, want %v", c.name, got, c.want)
		}
	}
}

// TestFitTemperatureScales: multiplying all logits by c multiplies T by c.
func TestFitTemperatureScales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		c := rapid.Float64Range(0.5, 2).Draw(t, "c")
		x, cx, y := make([]float64, 80), make([]float64, 80), make([]float64, 80)
		for i := range x {
			x[i] = rng.NormFloat64() * 2
			cx[i] = c * x[i]
			if rng.Float64() < 1/(1+math.Exp(-x[i])) {
				y[i] = 1
			}
		}
		a, b := calib.FitTemperature(x, y, nil), calib.FitTemperature(cx, y, nil)
		if a > 2*calib.MinTemperature && a < calib.MaxTemperature/2 && math.Abs(b-c*a) > 1e-9*a*c {
			t.Fatalf("T = %v, scaled by %v: %v", a, c, b)
		}
	})
}

func TestRunScore(t *testing.T) {
	f := calib.Fusion{TempHazard: 1, TempPrefix: 1, WeightHazard: 1, Beta: 0.8, Window: 4}
	half, high := 0.0, 3.0 // logits of p = 0.5 and p = 0.953
	p := func(logit float64) float64 { return calib.Grid(1 / (1 + math.Exp(-logit))) }
	for _, c := range []struct {
		name   string
		run    calib.Run
		want   float64
		scored bool
	}{
		{"maximum over all", calib.Run{Hazard: -1, Haz: []float64{half, high, half}, Judged: []bool{true, true, true}}, p(high), true},
		{"a message is not judged", calib.Run{Hazard: -1, Haz: []float64{half, high, half}, Judged: []bool{true, false, true}}, p(half), true},
		{"nothing after the hazard", calib.Run{Unsafe: true, Hazard: 0, Haz: []float64{half, high}, Judged: []bool{true, true}}, p(half), true},
		{"the hazard itself counts", calib.Run{Unsafe: true, Hazard: 1, Haz: []float64{half, high}, Judged: []bool{true, true}}, p(high), true},
		{"not located: all of it", calib.Run{Unsafe: true, Hazard: -1, Haz: []float64{half, high}, Judged: []bool{true, true}}, p(high), true},
		{"held whatever the score", calib.Run{Hazard: -1, Haz: []float64{half, high}, Judged: []bool{true, true}, Held: []bool{true, false}}, p(high), true},
		{"no tool call", calib.Run{Hazard: -1, Haz: []float64{high}, Judged: []bool{false}}, 0, false},
		{"no tool call before the hazard message", calib.Run{Unsafe: true, Hazard: 0, Haz: []float64{high, high}, Judged: []bool{false, true}}, 0, false},
		{"empty", calib.Run{Hazard: -1}, 0, false},
	} {
		c.run.Pre = make([]float64, len(c.run.Haz))
		haz, risk, scored := calib.RunScore(f, c.run)
		wantRisk := c.want
		if c.run.Held != nil {
			wantRisk = 1
		}
		if haz != c.want || risk != wantRisk || scored != c.scored {
			t.Errorf("%s: %v, %v, %v, want %v, %v", c.name, haz, risk, scored, c.want, c.scored)
		}
	}
}

// TestAdvanceIsStep: the in-place form is the same arithmetic, and Step leaves
// its argument alone.
func TestAdvanceIsStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := calib.Fusion{TempHazard: 2, TempPrefix: 0.5, WeightHazard: 0.5, WeightEMA: 1, WeightWindow: 0.25,
			Beta: rapid.Float64Range(0, 0.99).Draw(t, "beta"), Window: rapid.IntRange(1, calib.MaxWindow).Draw(t, "window")}
		var a, b calib.Memory
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			h, p := rapid.Float64Range(-20, 20).Draw(t, "h"), rapid.Float64Range(-20, 20).Draw(t, "p")
			before := a
			want, next := f.Step(&a, h, p)
			if a != before {
				t.Fatal("Step changed its argument")
			}
			a = next
			if got := f.Advance(&b, h, p); got != want || a != b {
				t.Fatalf("got %+v, want %+v", got, want)
			}
		}
	})
}

// TestStepByHand works a short run out on paper: T = 1, beta 0.5, W = 2.
func TestStepByHand(t *testing.T) {
	f := calib.Fusion{TempHazard: 1, TempPrefix: 1, WeightHazard: 1, WeightEMA: 1, WeightWindow: 0.5, Beta: 0.5, Window: 2}
	logit := func(p float64) float64 { return math.Log(p / (1 - p)) }
	var m calib.Memory
	for i, c := range []struct{ haz, pre, ema, win float64 }{
		{0.25, 0.5, 0.25, 0.5},
		{0.5, 0.75, 0.5, 0.625},
		{0.125, 0.25, 0.375, 0.5},
	} {
		risk := 1 - (1-c.haz)*(1-c.ema)*(1-0.5*c.win)
		want := calib.Scores{Hazard: c.haz, Prefix: c.pre, EMA: c.ema, Window: c.win, Risk: calib.Grid(risk)}
		if got := f.Advance(&m, logit(c.haz), logit(c.pre)); got != want {
			t.Errorf("step %d: %+v, want %+v", i, got, want)
		}
	}
}

// sample makes runs of 6 steps whose hazard at step 4 is announced by one head
// only; the other head is noise.
func sample(n int, informed string) []calib.Run {
	rng := rand.New(rand.NewPCG(7, uint64(len(informed))))
	runs := make([]calib.Run, n)
	for i := range runs {
		r := calib.Run{ID: fmt.Sprintf("%04d", i), Unsafe: i%2 == 0, Hazard: -1}
		if r.Unsafe {
			r.Hazard = 4
		}
		for t := range 6 {
			h, p := rng.NormFloat64()*2, rng.NormFloat64()*2
			if informed == "hazard" {
				h = -4 + rng.NormFloat64()
				if t == r.Hazard {
					h += 6
				}
			} else {
				p = -3 + rng.NormFloat64()
				if r.Unsafe && t >= 2 {
					p += 5
				}
			}
			r.Haz, r.Pre, r.Judged = append(r.Haz, h), append(r.Pre, p), append(r.Judged, true)
		}
		runs[i] = r
	}
	return runs
}

func TestTuningFindsTheInformedHead(t *testing.T) {
	f, err := calib.Tuning{Beta: 0.8, Window: 4}.Fit(sample(200, "hazard"))
	if err != nil {
		t.Fatal(err)
	}
	if f.WeightHazard != 1 || f.WeightEMA == 1 || f.WeightWindow == 1 {
		t.Errorf("hazard head informed: %+v", f)
	}
	runs := sample(200, "prefix")
	f, err = calib.Tuning{Beta: 0.8, Window: 4}.Fit(runs)
	if err != nil {
		t.Fatal(err)
	}
	// The noisy head is flattened by its temperature or left out; either way the
	// scores of the two kinds lie apart.
	highest, lowest := 0.0, 1.0
	for _, r := range runs {
		if _, s, _ := calib.RunScore(f, r); r.Unsafe {
			lowest = min(lowest, s)
		} else {
			highest = max(highest, s)
		}
	}
	if max(f.WeightEMA, f.WeightWindow) != 1 || highest >= lowest {
		t.Errorf("prefix head informed: %+v; safe up to %v, unsafe from %v", f, highest, lowest)
	}
}

func TestTuningIgnoresOrder(t *testing.T) {
	runs := sample(60, "prefix")
	o := calib.Tuning{Window: 3, Betas: []float64{0.5, 0.8, 0.9}}
	want, err := o.Fit(runs)
	if err != nil {
		t.Fatal(err)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
	if got, err := o.Fit(runs); err != nil || got != want {
		t.Errorf("shuffled: %+v, %v, want %+v", got, err, want)
	}
}

func TestTuningRefuses(t *testing.T) {
	good := sample(20, "hazard")
	var safe, unsafe []calib.Run
	for _, r := range good {
		if r.Unsafe {
			unsafe = append(unsafe, r)
		} else {
			safe = append(safe, r)
		}
	}
	nan := good[0]
	nan.Haz = append([]float64{math.NaN()}, nan.Haz[1:]...)
	short := good[0]
	short.Judged = short.Judged[1:]
	held := good[0]
	held.Held = []bool{true}
	silent := good[0]
	silent.Judged = make([]bool, len(silent.Haz))
	for name, runs := range map[string][]calib.Run{
		"no runs": nil, "no unsafe runs": safe, "no safe runs": unsafe,
		"NaN": append([]calib.Run{nan}, good[1:]...), "ragged": append([]calib.Run{short}, good[1:]...), "held flags": append([]calib.Run{held}, good[1:]...),
		"unsafe run without a call": append([]calib.Run{silent}, safe...),
	} {
		if _, err := (calib.Tuning{Beta: 0.8, Window: 4}).Fit(runs); !errors.Is(err, calib.ErrTuning) {
			t.Errorf("%s: error %v, want ErrTuning", name, err)
		}
	}
	for _, c := range []struct {
		beta   float64
		window int
	}{{1, 4}, {-0.1, 4}, {math.NaN(), 4}, {0.8, 0}, {0.8, calib.MaxWindow + 1}} {
		if _, err := (calib.Tuning{Beta: c.beta, Window: c.window}).Fit(good); !errors.Is(err, calib.ErrFusion) {
			t.Errorf("beta %v, window %d: error %v, want ErrFusion", c.beta, c.window, err)
		}
	}
}

func TestFusionValidate(t *testing.T) {
	ok := calib.Fusion{TempHazard: 1, TempPrefix: 1, WeightHazard: 1, Beta: 0.8, Window: 4}
	if err := ok.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*calib.Fusion){
		"temp_hazard":   func(f *calib.Fusion) { f.TempHazard = math.NaN() },
		"temp_prefix":   func(f *calib.Fusion) { f.TempPrefix = 0 },
		"weight_hazard": func(f *calib.Fusion) { f.WeightHazard = -1 },
		"weight_ema":    func(f *calib.Fusion) { f.WeightEMA = math.Inf(1) },
		"weight_window": func(f *calib.Fusion) { f.WeightWindow = math.NaN() },
		"beta":          func(f *calib.Fusion) { f.Beta = 1 },
		"window":        func(f *calib.Fusion) { f.Window = 0 },
	} {
		f := ok
		change(&f)
		if err := f.Validate(); !errors.Is(err, calib.ErrFusion) {
			t.Errorf("%s: error %v, want ErrFusion", name, err)
		}
	}
}

func BenchmarkTuning(b *testing.B) {
	runs := sample(2000, "prefix")
	for b.Loop() {
		if _, err := (calib.Tuning{Beta: 0.8, Window: 4}).Fit(runs); err != nil {
			b.Fatal(err)
		}
	}
}
