package calib_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
)

func newMonitor(t *testing.T, w calib.Watch, scores []float64) *calib.Monitor {
	t.Helper()
	m, err := calib.NewMonitor(w, scores)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSimulateDrift: exchangeable runs ever withdraw a certificate in at most
// delta of the repeats, with ties, with few calibration runs, capped at the hold
// level. p-values that rank against the calibration runs alone, instead of all
// runs so far, withdraw far more of them.
//
// With DREAMGUARD_FULL it is 2,000 repeats of 100,000 runs.
func TestSimulateDrift(t *testing.T) {
	reps, length, delta := draws(t, 300), 2000, 0.05
	full := os.Getenv("DREAMGUARD_FULL") != ""
	if full {
		length, delta = 100_000, 0.01
	}
	for _, c := range []struct {
		name   string
		levels int
		n      int
		hold   float64
	}{{"continuous", 0, 60, 0.95}, {"ties", 10, 19, 0.95}, {"hardly a level below", 0, 200, 0.05}} {
		rng := rand.New(rand.NewPCG(uint64(c.n), 13))
		draw := func() float64 {
			u := rng.Float64()
			if c.levels > 0 {
				return math.Floor(u*float64(c.levels)) / float64(c.levels)
			}
			return u
		}
		var withdrawn, naive int
		for rep := range reps {
			cal := make([]float64, c.n)
			for i := range cal {
				cal[i] = draw()
			}
			m := newMonitor(t, calib.Watch{Hold: calib.Grid(c.hold), Level: 0.05, Delta: delta, Seed: uint64(rep)}, cal)
			fixed := calib.NewMartingale(0, 0.5)
			for range length {
				s := draw()
				if _, err := m.Observe(s); err != nil {
					t.Fatal(err)
				}
				if m.Withdrawn() != calib.Stands {
					break
				}
			}
			if m.Withdrawn() != calib.Stands {
				withdrawn++
			}
			if c.levels > 0 || full {
				continue
			}
			for range length {
				var above float64
				s := draw()
				for _, x := range cal {
					if x > s {
						above++
					}
				}
				fixed.Bet((above + rng.Float64()) / float64(c.n+1))
			}
			if fixed.Withdrawn(delta) {
				naive++
			}
		}
		atMost(t, "withdrawn without a drift, "+c.name, withdrawn, reps, delta)
		if c.n == 60 && !full && float64(naive) < 4*delta*float64(reps) {
			t.Errorf("%s: ranks against the calibration runs alone withdraw %d of %d, expected far more than %v", c.name, naive, reps, delta)
		}
		t.Logf("%s: %d of %d withdrawn, delta %v, by fixed ranks %d", c.name, withdrawn, reps, delta, naive)
	}
}

// TestMonitorSeesDrift: a change is found, early or late in the life of a
// certificate, and stays found.
func TestMonitorSeesDrift(t *testing.T) {
	for _, start := range []int{50, 3000, 30_000} {
		rng := rand.New(rand.NewPCG(4, uint64(start)))
		cal := make([]float64, 200)
		for i := range cal {
			cal[i] = rng.Float64()
		}
		m := newMonitor(t, calib.Watch{Hold: calib.Grid(0.95), Level: 0.05, Seed: 1}, cal)
		for range start {
			m.Observe(rng.Float64())
		}
		if m.Withdrawn() != calib.Stands {
			t.Fatalf("withdrawn without a drift: %+v", m.Status())
		}
		n := 0
		for ; m.Withdrawn() == calib.Stands && n < 2000; n++ {
			m.Observe(math.Sqrt(rng.Float64())) // higher scores
		}
		t.Logf("after %d runs: found after %d more", start, n)
		if n > 800 {
			t.Errorf("after %d runs: %d more were not enough", start, n)
		}
		for range 2000 {
			m.Observe(rng.Float64())
		}
		if s := m.Status(); s.Cause != calib.Drifted || s.At != start+n {
			t.Errorf("a withdrawal did not stay: %+v", s)
		}
	}
}

// TestSimulateRate: the bounds of the alert rate hold at all times at once in all
// but delta of the repeats. Looking at an interval for a fixed number of runs
// after every run errs far more often.
func TestSimulateRate(t *testing.T) {
	const delta = 0.05
	reps, length := draws(t, 250), 1000
	for _, p := range []float64{0.05, 0.3} {
		rng := rand.New(rand.NewPCG(uint64(p*100), 14))
		var low, high, fixed int
		for range reps {
			var r calib.Rate
			var lowBad, highBad, fixedBad bool
			for range length {
				r.Add(rng.Float64() < p)
				lowBad = lowBad || r.LogWealth(p) >= -math.Log(delta)
				// The upper bound is the lower one of the rate of no alert.
				highBad = highBad || calib.Rate{N: r.N, Alerts: r.N - r.Alerts}.LogWealth(1-p) >= -math.Log(delta)
				fixedBad = fixedBad || r.Alerts > 0 && calib.BinomialP(r.N-r.Alerts, r.N, 1-p) <= delta
			}
			if lowBad != (r.Lower(delta) > p) && !lowBad {
				t.Fatalf("Lower %v contradicts the wealth", r.Lower(delta))
			}
			low, high, fixed = low+btoi(lowBad), high+btoi(highBad), fixed+btoi(fixedBad)
		}
		atMost(t, "lower bound ever above the rate", low, reps, delta)
		atMost(t, "upper bound ever below the rate", high, reps, delta)
		if float64(fixed) < 3*delta*float64(reps) {
			t.Errorf("rate %v: the fixed-n interval errs in %d of %d, expected far more than %v", p, fixed, reps, delta)
		}
		t.Logf("rate %v: %d below, %d above, fixed-n %d, of %d", p, low, high, fixed, reps)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestRate(t *testing.T) {
	var r calib.Rate
	if r.Lower(0.01) != 0 || r.Upper(0.01) != 1 {
		t.Errorf("nothing seen: %v to %v, want 0 to 1", r.Lower(0.01), r.Upper(0.01))
	}
	for i := range 2000 {
		r.Add(i%10 == 0)
	}
	lo, hi := r.Lower(0.01), r.Upper(0.01)
	if !(0.06 < lo && lo < 0.1 && 0.1 < hi && hi < 0.14) {
		t.Errorf("200 of 2000: %v to %v", lo, hi)
	}
	if w := r.LogWealth(lo); math.Abs(w-math.Log(100)) > 1e-6 {
		t.Errorf("wealth at the lower bound is %v, want log(1/delta)", w)
	}
	all := calib.Rate{N: 50, Alerts: 50}
	if all.Upper(0.01) != 1 || all.Lower(0.01) < 0.8 {
		t.Errorf("50 of 50: %v to %v", all.Lower(0.01), all.Upper(0.01))
	}
	huge := calib.Rate{N: 1e9, Alerts: 5e7}
	if lo, hi := huge.Lower(0.01), huge.Upper(0.01); !(lo > 0.0499 && lo < 0.05 && hi > 0.05 && hi < 0.0501) {
		t.Errorf("a billion runs: %v to %v", lo, hi)
	}
}

func TestMonitorRate(t *testing.T) {
	m := newMonitor(t, calib.Watch{Hold: 0.5, Level: 0.05}, nil)
	for i := 0; i < 400 && m.Withdrawn() == calib.Stands; i++ {
		m.Label(i%5 == 0)
	}
	s := m.Status()
	if s.Cause != calib.TooOften || s.RateLower < 0.05-1e-9 || s.Labelled > 200 {
		t.Errorf("a rate of 20 %% against 5 %%: %+v", s)
	}
	m = newMonitor(t, calib.Watch{Hold: 0.5, Level: 0.05}, nil)
	for i := range 5000 {
		m.Label(i%25 == 0)
	}
	if s := m.Status(); s.Cause != calib.Stands || s.RateUpper > 0.06 || s.RateLower > 0.04 {
		t.Errorf("a rate of 4 %% against 5 %%: %+v", s)
	}
}

// TestMonitorResumes: a monitor that is read back goes on as if never stopped.
func TestMonitorResumes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	cal := make([]float64, 30)
	for i := range cal {
		cal[i] = rng.Float64()
	}
	w := calib.Watch{Hold: calib.Off, Level: 0.1, Delta: 0.05, Seed: 9}
	a, b := newMonitor(t, w, cal), newMonitor(t, w, cal)
	for i := range 300 {
		x := rng.Float64()
		pa, errA := a.Observe(x)
		state, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		b = new(calib.Monitor)
		if err := json.Unmarshal(state, b); err != nil {
			t.Fatal(err)
		}
		pb, errB := b.Observe(x)
		a.Label(i%7 == 0)
		b.Label(i%7 == 0)
		if pa != pb || errA != nil || errB != nil || a.Status() != b.Status() {
			t.Fatalf("after %d: %v, %v, %+v, %+v", i, pa, pb, a.Status(), b.Status())
		}
	}
}

func TestMonitorRefuses(t *testing.T) {
	for _, w := range []calib.Watch{
		{Hold: 0, Level: 0.05}, {Hold: math.NaN(), Level: 0.05}, {Hold: 0.5, Level: 0}, {Hold: 0.5, Level: 1}, {Hold: 0.5, Level: math.NaN()},
		{Hold: 0.5, Level: 0.05, Delta: 1}, {Hold: 0.5, Level: 0.05, Delta: -0.1},
	} {
		if _, err := calib.NewMonitor(w, nil); !errors.Is(err, calib.ErrMonitor) {
			t.Errorf("%+v: error %v, want ErrMonitor", w, err)
		}
	}
	if _, err := calib.NewMonitor(calib.Watch{Hold: 0.5, Level: 0.05}, []float64{math.NaN()}); !errors.Is(err, calib.ErrScore) {
		t.Errorf("NaN score: error %v, want ErrScore", err)
	}
	m := newMonitor(t, calib.Watch{Hold: 0.5, Level: 0.05}, []float64{0.1, 0.2})
	for _, bad := range []float64{math.NaN(), -0.1, 1.1, math.Inf(1)} {
		if _, err := m.Observe(bad); !errors.Is(err, calib.ErrScore) || m.Status().Runs != 0 {
			t.Errorf("score %v: error %v, runs %d", bad, err, m.Status().Runs)
		}
	}
	state, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{`"hold":0.5`, `"hold":0`}, {`"hold":0.5`, `"hold":0.25`}, {`"level":0.05`, `"level":2`}, {`"jump":0.01`, `"jump":-1`},
		{`"reserve":0.5`, `"reserve":1`}, {`"share":[0.3`, `"share":[0.9`}, {`"share":[0.3`, `"share":[-0.3`}, {`"log_wake":-0.6`, `"log_wake":1e999`},
		{`"counts":[[6554,1]`, `"counts":[[6554,0]`}, {`"counts":[[6554,1]`, `"counts":[[65537,1]`}, {`"counts":[[6554,1]`, `"counts":[[13107,1]`},
		{`"limit":32768`, `"limit":0`}, {`"limit":32768`, `"limit":70000`}, {`"n":0`, `"n":-1`}, {`"alerts":0`, `"alerts":1`},
		{`"runs":0`, `"runs":9`}, {`"random":"`, `"random":"AA`}, {`"watch"`, `"cause":"boredom","watch"`}, {`"drift":{`, `"drift":null,"was":{`},
		{`"scores":{`, `"scores":null,"were":{`}, {`{`, `[`},
	} {
		broken := strings.Replace(string(state), c[0], c[1], 1)
		if broken == string(state) {
			t.Fatalf("%s does not occur in %s", c[0], state)
		}
		if err := json.Unmarshal([]byte(broken), new(calib.Monitor)); err == nil {
			t.Errorf("%s -> %s was accepted", c[0], c[1])
		}
	}
}

// FuzzMonitor: no stored state makes a monitor panic, and what is accepted
// survives another round.
func FuzzMonitor(f *testing.F) {
	m, err := calib.NewMonitor(calib.Watch{Hold: 0.5, Level: 0.05}, []float64{0.1, 0.2})
	if err != nil {
		f.Fatal(err)
	}
	state, err := json.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(state)
	f.Add([]byte(`{"watch":{"hold":1,"level":0.1,"delta":0.1},"drift":{"jump":1},"scores":{"limit":65536,"counts":[]},"random":""}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m calib.Monitor
		if json.Unmarshal(b, &m) != nil {
			return
		}
		m.Observe(0.3)
		m.Label(true)
		m.Status()
		again, err := json.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, new(calib.Monitor)); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkMonitorObserve(b *testing.B) {
	m, err := calib.NewMonitor(calib.Watch{Hold: 0.9, Level: 0.05}, nil)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		if _, err := m.Observe(rng.Float64()); err != nil {
			b.Fatal(err)
		}
	}
}
