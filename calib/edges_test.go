package calib_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/calib"
)

func TestMissThreshold(t *testing.T) {
	s := ramp(19)
	got, err := calib.MissThreshold(s, 0.1, 0)
	if want := (calib.Threshold{Value: s[1], K: 2, N: 19, Alpha: 0.1}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	// Runs that score 0 cannot be caught by a level above it.
	zero := make([]float64, 19)
	if got, err := calib.MissThreshold(zero, 0.1, 0); err != nil || got.Value != 0 {
		t.Errorf("all 0: %+v, %v, want the level 0", got, err)
	}
	one := append(make([]float64, 1), ramp(18)...)
	if got, err := calib.MissThreshold(one, 0.1, 0); err != nil || got.Value != one[1] {
		t.Errorf("one 0: %+v, %v, want %v", got, err, one[1])
	}
	for _, c := range []struct{ miss, confidence float64 }{{0, 0}, {1, 0}, {math.NaN(), 0}, {0.1, 1}, {0.1, -1}, {0.1, math.NaN()}} {
		if _, err := calib.MissThreshold(s, c.miss, c.confidence); !errors.Is(err, calib.ErrLevel) {
			t.Errorf("%+v: error %v, want ErrLevel", c, err)
		}
	}
	if _, err := calib.MissThreshold([]float64{0.1, math.NaN(), 0.2, 0.3}, 0.3, 0); !errors.Is(err, calib.ErrScore) {
		t.Errorf("NaN: error %v, want ErrScore", err)
	}
	var few *calib.TooFewError
	if _, err := calib.MissThreshold(s[:8], 0.1, 0); !errors.As(err, &few) || few.Need != 9 {
		t.Errorf("8 runs: error %v, want need 9", err)
	}
	if _, err := calib.MissThreshold(s, 0.1, 0.95); !errors.As(err, &few) || few.Need != 29 {
		t.Errorf("with confidence: error %v, want need 29", err)
	}
}

// TestMissThresholdProperties: fewer than the budget lie below the level, and
// more would below the next higher score.
func TestMissThresholdProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		levels := rapid.SampledFrom([]int{2, 5, 1 << 16}).Draw(t, "levels")
		s := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(0, levels).Draw(t, "j")) / float64(levels)
		}), 19, 150).Draw(t, "scores")
		got, err := calib.MissThreshold(s, 0.1, 0)
		if err != nil {
			t.Fatal(err)
		}
		k := int(math.Floor(float64(len(s)+1) * 0.1))
		var below, upTo int
		for _, x := range s {
			below += btoi(calib.Grid(x) < got.Value)
			upTo += btoi(calib.Grid(x) < got.Value+calib.GridStep)
		}
		if below > k-1 || upTo <= k-1 {
			t.Fatalf("%d lie below %v and %d up to it, want at most and more than %d", below, got.Value, upTo, k-1)
		}
	})
}

func TestWeighted(t *testing.T) {
	s := ramp(99)
	ones := make([]float64, 99)
	for i := range ones {
		ones[i] = 2.5
	}
	want, err := calib.Quantile(s, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := calib.WeightedQuantile(s, ones, 2.5, 0.05); err != nil || got != want {
		t.Errorf("equal weights: %+v, %v, want %+v", got, err, want)
	}
	if n := calib.EffectiveSize(ones); math.Abs(n-99) > 1e-9 {
		t.Errorf("effective size %v, want 99", n)
	}
	if n := calib.EffectiveSize([]float64{1, 0, 0}); n != 1 || calib.EffectiveSize(nil) != 0 {
		t.Errorf("effective size %v, want 1", n)
	}
	for name, c := range map[string]struct {
		weights []float64
		top     float64
	}{"no top": {ones, 0}, "infinite top": {ones, math.Inf(1)}, "above the top": {ones, 2}, "NaN": {append([]float64{math.NaN()}, ones[1:]...), 3}} {
		if _, err := calib.WeightedQuantile(s, c.weights, c.top, 0.05); !errors.Is(err, calib.ErrRequest) {
			t.Errorf("%s: error %v, want ErrRequest", name, err)
		}
	}
	if _, err := calib.WeightedQuantile(s, ones[1:], 3, 0.05); err == nil {
		t.Error("lists of different length were accepted")
	}
	// A live run so heavy that no calibration run could outweigh it.
	var few *calib.TooFewError
	if _, err := calib.WeightedQuantile(s, ones, 1000, 0.05); !errors.As(err, &few) {
		t.Errorf("top 1000: error %v, want *TooFewError", err)
	}
}

func TestShareShift(t *testing.T) {
	var runs []calib.Scored
	for i := range 10 {
		runs = append(runs, calib.Scored{Group: []string{"a", "a", "a", "b", "c"}[i%5]})
	}
	kind := func(s *calib.Scored) string { return s.Group }
	s, err := calib.ShareShift(runs, kind, map[string]float64{"a": 3, "b": 7, "c": 0})
	if err != nil {
		t.Fatal(err)
	}
	for g, want := range map[string]float64{"a": 0.3 / 0.6, "b": 0.7 / 0.2, "c": 0, "new": 0} {
		if got := s.Weight(&calib.Scored{Group: g}); math.Abs(got-want) > 1e-12 {
			t.Errorf("weight of %s is %v, want %v", g, got, want)
		}
	}
	if math.Abs(s.Top-3.5) > 1e-12 {
		t.Errorf("top %v, want 3.5", s.Top)
	}
	for name, live := range map[string]map[string]float64{
		"unknown kind": {"a": 0.5, "new": 0.5}, "none": {}, "zero": {"a": 0}, "negative": {"a": -1}, "NaN": {"a": math.NaN()},
	} {
		if _, err := calib.ShareShift(runs, kind, live); !errors.Is(err, calib.ErrRequest) {
			t.Errorf("%s: error %v, want ErrRequest", name, err)
		}
	}
}

// TestLearnThenTest: what is accepted passes the exact test, the chosen pair
// stops the fewest runs, and Pareto testing accepts more than Bonferroni here.
func TestLearnThenTest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	tuning, conformal := labelled(rng, 600, "t"), labelled(rng, 3000, "c")
	r := calib.Risks{FalseAlarm: 0.35, Block: 0.05, Miss: 0.3}
	stops := map[calib.Method]int{}
	for _, m := range []calib.Method{calib.Pareto, calib.Bonferroni} {
		s, err := calib.LearnThenTest(tuning, conformal, r, 0.95, m)
		if err != nil {
			t.Fatal(err)
		}
		count := func(p calib.Pair) (stopped int) {
			for i := range conformal {
				stopped += btoi(conformal[i].Alerted(p.Hold, p.Block))
			}
			return stopped
		}
		stops[m] = count(s.Chosen.Pair)
		for _, c := range s.Accepted {
			p := max(calib.BinomialP(c.Alerted, s.Safe, r.FalseAlarm), calib.BinomialP(c.Missed, s.Unsafe, r.Miss))
			if p > 0.05 || p > c.P || count(c.Pair) < stops[m] {
				t.Errorf("accepted %+v with p = %v, stops %d, the chosen one %d", c, p, count(c.Pair), stops[m])
			}
		}
		if s.Tests < len(s.Accepted) || s.Safe != 1500 || s.Unsafe != 1500 {
			t.Errorf("%+v", s)
		}
	}
	if stops[calib.Pareto] > stops[calib.Bonferroni] {
		t.Errorf("Pareto testing stops %d runs, Bonferroni %d", stops[calib.Pareto], stops[calib.Bonferroni])
	}
}

func TestInfeasible(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	tuning, conformal := labelled(rng, 600, "t"), labelled(rng, 400, "c")
	var no *calib.InfeasibleError
	// Rates that can be had, with more runs.
	_, err := calib.LearnThenTest(tuning, conformal, calib.Risks{FalseAlarm: 0.26, Miss: 0.27}, 0.95, calib.Pareto)
	if !errors.As(err, &no) || no.Need <= 200 || no.Need > 20_000 || !strings.Contains(err.Error(), "of each kind would do") {
		t.Errorf("hard: %v", err)
	}
	// And rates that cannot.
	_, err = calib.LearnThenTest(tuning, conformal, calib.Risks{FalseAlarm: 0.1, Miss: 0.1}, 0.95, calib.Pareto)
	if !errors.As(err, &no) || no.Need != 0 || no.Best.P < 0.5 || len(no.Frontier) < 10 {
		t.Errorf("impossible: %v, %+v", err, no)
	}
	for _, r := range []calib.Risks{{FalseAlarm: 0, Miss: 0.1}, {FalseAlarm: 0.1, Miss: 1}, {FalseAlarm: 0.1, Miss: math.NaN()}, {FalseAlarm: 0.1, Miss: 0.1, Block: 0.1}} {
		if _, err := calib.LearnThenTest(tuning, conformal, r, 0.9, calib.Pareto); !errors.Is(err, calib.ErrLevel) {
			t.Errorf("%+v: error %v, want ErrLevel", r, err)
		}
	}
	tuning[0].Risk = math.NaN()
	if _, err := calib.LearnThenTest(tuning, conformal, calib.Risks{FalseAlarm: 0.3, Miss: 0.3}, 0.9, calib.Pareto); !errors.Is(err, calib.ErrScore) {
		t.Errorf("NaN: error %v, want ErrScore", err)
	}
}

// TestFrontierBlocks: a run that is blocked is alerted at every hold level.
func TestFrontierBlocks(t *testing.T) {
	runs := []calib.Scored{
		{Label: calib.Safe, Hazard: 0.9, Risk: 0.2}, {Label: calib.Safe, Hazard: 0.1, Risk: 0.4},
		{Label: calib.Unsafe, Hazard: 0.95, Risk: 0.1}, {Label: calib.Unsafe, Hazard: 0.2, Risk: 0.5}, {Label: calib.Unsafe, Hazard: 0.2, Risk: 0.3},
		{Label: calib.Unlabelled, Hazard: 1, Risk: 1},
	}
	got := calib.Frontier(runs, 0.8)
	want := []calib.Tradeoff{{Hold: calib.Grid(0.5), FalseAlarms: 1, Misses: 1, Hull: true}, {Hold: calib.Grid(0.3), FalseAlarms: 2, Misses: 0, Hull: true}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := calib.Frontier(nil, calib.Off); len(got) != 1 || got[0].FalseAlarms != 0 || got[0].Misses != 0 {
		t.Errorf("no runs: %+v", got)
	}
}

func TestHistogram(t *testing.T) {
	var zero calib.Histogram
	if p, err := zero.Add(0.3, 0.25); err != nil || p != 0.25 || zero.N() != 1 || zero.Limit() != 1 {
		t.Errorf("the zero value: p = %v, %v, n = %d", p, err, zero.N())
	}
	b, err := json.Marshal(new(calib.Histogram))
	if err != nil || string(b) != `{"limit":65536,"counts":[]}` {
		t.Errorf("%s, %v", b, err)
	}
	// Everything from the cap up is one value.
	h, err := calib.NewHistogram([]float64{0.2, 0.5, 0.7, 1}, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := h.Add(0.9, 0); err != nil || p != 0 {
		t.Errorf("p = %v, %v, want 0", p, err)
	}
	if p, err := h.Add(0.6, 1); err != nil || p != 5.0/6 {
		t.Errorf("p = %v, %v, want 5/6", p, err)
	}
	if p, err := h.Add(0, 1); err != nil || p != 1 {
		t.Errorf("p = %v, %v, want 1", p, err)
	}
	b, err = json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var back calib.Histogram
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(&back, h) {
		t.Errorf("%s: %v", b, err)
	}
	if _, err := calib.NewHistogram(nil, 0); !errors.Is(err, calib.ErrLevel) {
		t.Errorf("cap 0: error %v", err)
	}
}

func TestMartingale(t *testing.T) {
	// Small p-values win, and what is won is not forgotten.
	m := calib.NewMartingale(0, 0.5)
	for range 60 {
		m.Bet(0.01)
	}
	if !m.Withdrawn(0.01) {
		t.Errorf("60 p-values of 0.01: log value %v", m.LogValue())
	}
	rng := rand.New(rand.NewPCG(2, 2))
	for range 5000 {
		m.Bet(rng.Float64())
	}
	if m.LogValue() > 0 || !m.Withdrawn(0.01) {
		t.Errorf("log value %v, peak %v", m.LogValue(), m.LogPeak)
	}
	// A million fair bets neither underflow nor change a NaN in.
	fair := calib.NewMartingale(0, 0)
	for range 1_000_000 {
		fair.Bet(rng.Float64())
	}
	v := fair.LogValue()
	fair.Bet(math.NaN())
	fair.Bet(2)
	if !(v < -1000) || math.IsInf(v, 0) || fair.LogValue() != v || fair.Steps != 1_000_000 {
		t.Errorf("log value %v, then %v", v, fair.LogValue())
	}
}

// TestMartingaleIsFair: whatever came before, the mean over the next p-value is
// the value before it.
func TestMartingaleIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := calib.NewMartingale(rapid.Float64Range(0.001, 1).Draw(t, "jump"), rapid.SampledFrom([]float64{0, 0.5, 0.9}).Draw(t, "reserve"))
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			m.Bet(rapid.Float64Range(0, 1).Draw(t, "p"))
		}
		// The value is linear in p: its mean is that at the two ends.
		var mean float64
		for _, p := range []float64{0, 1} {
			next := *m
			next.Bet(p)
			mean += math.Exp(next.LogValue()) / 2
		}
		if v := math.Exp(m.LogValue()); math.Abs(mean-v) > 1e-9*v {
			t.Fatalf("the mean of the next value is %v, the value %v", mean, v)
		}
	})
}

func TestIsotonic(t *testing.T) {
	f, err := calib.FitIsotonic([]float64{0.1, 0.4, 0.2, 0.9}, []float64{0, 0, 1, 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for x, want := range map[float64]float64{0: 0, 0.1: 0, 0.15: 0.25, 0.2: 0.5, 0.3: 0.5, 0.4: 0.5, 0.65: 0.75, 0.9: 1, 2: 1} {
		if got := f.At(x); math.Abs(got-want) > 1e-12 {
			t.Errorf("f(%v) = %v, want %v", x, got, want)
		}
	}
	if (calib.Isotonic{}).At(0.5) != 0 {
		t.Error("no points")
	}
	for name, c := range map[string][3][]float64{
		"no data": {}, "lengths": {{1}, {1, 0}}, "NaN": {{math.NaN()}, {1}}, "infinite": {{math.Inf(1)}, {1}}, "outcome": {{1}, {2}},
		"weights": {{1}, {1}, {1, 2}}, "weight 0": {{1}, {1}, {0}},
	} {
		if _, err := calib.FitIsotonic(c[0], c[1], c[2]); !errors.Is(err, calib.ErrFit) {
			t.Errorf("%s: error %v, want ErrFit", name, err)
		}
	}
}

func TestIsotonicProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		x, y := make([]float64, n), make([]float64, n)
		outcomes := make([]bool, n)
		for i := range x {
			x[i], y[i] = float64(rng.IntN(20)), float64(rng.IntN(2))
			outcomes[i] = y[i] == 1
		}
		f, err := calib.FitIsotonic(x, y, nil)
		if err != nil {
			t.Fatal(err)
		}
		var sum float64
		for i := range x {
			sum += f.At(x[i]) - y[i]
		}
		if math.Abs(sum) > 1e-9 { // least squares keep the mean
			t.Fatalf("residuals sum to %v", sum)
		}
		va, err := calib.NewVennAbers(x, outcomes)
		if err != nil {
			t.Fatal(err)
		}
		last0, last1 := 0.0, 0.0
		for s := -1.0; s <= 21; s += 0.5 {
			p0, p1 := va.Interval(s)
			if !(0 <= p0 && p0 < p1 && p1 <= 1) || p0 < last0 || p1 < last1 || f.At(s) < f.At(s-0.5) {
				t.Fatalf("Interval(%v) = %v, %v after %v, %v", s, p0, p1, last0, last1)
			}
			last0, last1 = p0, p1
		}
	})
}

func TestVennAbersRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		s []float64
		y []bool
	}{"no data": {}, "lengths": {[]float64{1}, nil}, "NaN": {[]float64{math.NaN()}, []bool{true}}} {
		if _, err := calib.NewVennAbers(c.s, c.y); !errors.Is(err, calib.ErrFit) {
			t.Errorf("%s: error %v, want ErrFit", name, err)
		}
	}
}

func TestSuspects(t *testing.T) {
	var runs []calib.Scored
	for i := range 100 {
		runs = append(runs, calib.Scored{ID: fmt.Sprint(i), Risk: 0.1})
	}
	runs[7].Risk, runs[42].Risk = 0.9, 1
	got := calib.Suspects(runs, 3)
	if len(got) != 3 || got[0].Index != 42 || got[1].Index != 7 || !got[1].Outlier || !math.IsInf(got[1].Z, 1) || got[2].Outlier || got[2].Z != 0 {
		t.Errorf("%+v", got)
	}
	if calib.Suspects(nil, 5) != nil || calib.Suspects(runs, 0) != nil || len(calib.Suspects(runs, 1000)) != 100 {
		t.Error("limits")
	}
}

func BenchmarkLearnThenTest(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	tuning, conformal := labelled(rng, 3000, "t"), labelled(rng, 7000, "c")
	for b.Loop() {
		if _, err := calib.LearnThenTest(tuning, conformal, calib.Risks{FalseAlarm: 0.3, Block: 0.05, Miss: 0.3}, 0.95, calib.Pareto); err != nil {
			b.Fatal(err)
		}
	}
}
