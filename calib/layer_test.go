package calib

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// layerRuns draws runs of six steps in groups of two. The logits tell the kinds
// apart weakly; with signal call feature 1 does so well.
func layerRuns(n int, signal float64, seed uint64) []Run {
	rng := rand.New(rand.NewPCG(seed, 3))
	runs := make([]Run, n)
	for i := range runs {
		r := Run{ID: fmt.Sprint("run ", i), Group: fmt.Sprint(i / 2), Hazard: -1, Unsafe: i%2 == 1}
		if r.Unsafe {
			r.Hazard = 3
		}
		for t := range 6 {
			x := []float32{float32(rng.NormFloat64()), float32(rng.NormFloat64()), 0}
			haz := rng.NormFloat64() - 3
			if r.Unsafe && t == 3 {
				haz, x[1] = haz+1, x[1]+float32(signal)
			}
			r.Haz, r.Pre, r.Judged, r.X = append(r.Haz, haz), append(r.Pre, rng.NormFloat64()-2), append(r.Judged, true), append(r.X, x)
		}
		runs[i] = r
	}
	return runs
}

var layerBase = Fusion{TempHazard: 1, TempPrefix: 1, WeightHazard: 1, WeightEMA: 0.5, Beta: 0.8, Window: 4}

func TestFitLayer(t *testing.T) {
	runs := layerRuns(300, 4, 1)
	fit, err := FitLayer(layerBase, runs, 1)
	if err != nil {
		t.Fatal(err)
	}
	if fit.Layer == nil || !fit.Features || fit.Layer.Features[1] <= 0 || fit.Safe != 150 || fit.Unsafe != 150 || !(fit.After > fit.Before+0.1) {
		t.Fatalf("a feature that tells the kinds apart: %+v, %+v", fit, fit.Layer)
	}
	// It does as well on runs that it has not seen as cross-validation says.
	with := layerBase
	with.Layer = fit.Layer
	fresh := layerRuns(600, 4, 2)
	before, _ := AUROC(layerBase, fresh)
	after, _ := AUROC(with, fresh)
	if math.Abs(after-fit.After) > 0.05 || after < before+0.1 {
		t.Errorf("on new runs %v without and %v with it, cross-validation %v", before, after, fit.After)
	}
	// The order of the runs plays no part.
	again := slices.Clone(runs)
	rand.New(rand.NewPCG(9, 9)).Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
	other, err := FitLayer(layerBase, again, 1)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(fit.Layer)
	b, _ := json.Marshal(other.Layer)
	if string(a) != string(b) {
		t.Errorf("another order gives another layer: %s, %s", a, b)
	}
}

// Where features say nothing a layer must not be found often: one standard error
// lets chance through in some draws, and then costs next to nothing.
func TestFitLayerOnNoise(t *testing.T) {
	found, worse := 0, 0.0
	const draws = 20
	for seed := range uint64(draws) {
		runs := layerRuns(160, 0, seed)
		fit, err := FitLayer(layerBase, runs, seed)
		if err != nil {
			t.Fatal(err)
		}
		if fit.Layer == nil {
			continue
		}
		found++
		with := layerBase
		with.Layer = fit.Layer
		fresh := layerRuns(400, 0, 1000+seed)
		before, _ := AUROC(layerBase, fresh)
		after, _ := AUROC(with, fresh)
		worse += (before - after) / draws
	}
	if found > draws*3/4 || worse > 0.02 {
		t.Errorf("a layer in %d of %d draws, mean loss of AUROC %v", found, draws, worse)
	}
}

func TestFitLayerRefuses(t *testing.T) {
	good := layerRuns(60, 2, 1)
	for name, change := range map[string]func([]Run) []Run{
		"no runs":   func([]Run) []Run { return nil },
		"safe only": func(r []Run) []Run { return slices.DeleteFunc(r, func(r Run) bool { return r.Unsafe }) },
		"no hazards": func(r []Run) []Run {
			for i := range r {
				r[i].Hazard = -1
			}
			return r
		},
		"one group": func(r []Run) []Run {
			for i := range r {
				r[i].Group = "g"
			}
			return r
		},
		"NaN":         func(r []Run) []Run { r[3].Haz = slices.Clone(r[3].Haz); r[3].Haz[0] = math.NaN(); return r },
		"no features": func(r []Run) []Run { r[0].X = nil; return r },
		"other width": func(r []Run) []Run { r[0].X = slices.Clone(r[0].X); r[0].X[1] = []float32{1}; return r },
	} {
		if _, err := FitLayer(layerBase, change(slices.Clone(good)), 1); !errors.Is(err, ErrTuning) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLayer(t *testing.T) {
	same := layerBase
	same.Layer = &Layer{}
	deep := layerBase
	deep.Layer = &Layer{Bias: -1, Heads: [3]float64{0.5, 0, 0}, Features: []float64{0, 2}}
	var a, b, c, d Memory
	rng := rand.New(rand.NewPCG(4, 4))
	for range 50 {
		h, p := 8*rng.NormFloat64(), 4*rng.NormFloat64()
		plain := layerBase.Advance(&a, h, p)
		kept := same.Advance(&b, h, p)
		if math.Abs(plain.Risk-kept.Risk) > GridStep && plain.Risk < 0.9999 {
			t.Fatalf("a layer of zeros makes %v of %v", kept.Risk, plain.Risk)
		}
		low := deep.AdvanceWith(&c, h, p, []float32{0, -1})
		high := deep.AdvanceWith(&d, h, p, []float32{0, 1})
		if low.Risk > high.Risk || low.Hazard != plain.Hazard || low.EMA != plain.EMA || high.Risk < 0 || high.Risk > 1 {
			t.Fatalf("features of -1 and 1 give %+v and %+v, without a layer %+v", low, high, plain)
		}
	}
	for _, x := range [][]float32{nil, {1}, {1, 2, 3}, {0, float32(math.NaN())}} {
		var m Memory
		if s := deep.AdvanceWith(&m, -9, -9, x); s.Risk != 1 {
			t.Errorf("features %v: risk %v, want 1: what cannot be judged must not pass", x, s.Risk)
		}
	}
}

func TestLayerValidate(t *testing.T) {
	for name, l := range map[string]Layer{
		"bias":     {Bias: math.NaN()},
		"head":     {Heads: [3]float64{0, math.Inf(1), 0}},
		"feature":  {Features: []float64{0, 1001}},
		"too many": {Features: make([]float64, MaxLayerFeatures+1)},
	} {
		f := layerBase
		f.Layer = &l
		if err := f.Validate(); !errors.Is(err, ErrFusion) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := layerBase
	f.Layer = &Layer{Bias: -2, Features: make([]float64, MaxLayerFeatures)}
	if err := f.Validate(); err != nil {
		t.Error(err)
	}
}
