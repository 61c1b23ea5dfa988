package eval

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/data"
)

// TestAbsorbedGamblersRuin: from a fortune of i among n, a fair game reaches n first
// with probability i/n.
func TestAbsorbedGamblersRuin(t *testing.T) {
	const n = 8
	c := newChain(n - 1) // fortunes 1 to n-1; the hazard is n, the end 0
	for s := range n - 1 {
		up, down := s+1, s-1 // above the last state comes the hazard's column
		if down < 0 {
			down = n
		}
		c.row(s)[up], c.row(s)[down] = 0.5, 0.5
	}
	for s, p := range c.absorbed(5000) {
		if want := float64(s+1) / n; math.Abs(p-want) > 1e-9 {
			t.Errorf("fortune %d: %v, want %v", s+1, p, want)
		}
	}
	if v := c.absorbed(2); v[n-2] != 0.5 || v[n-3] != 0.25 || v[n-4] != 0 {
		t.Errorf("within two games: %v", v)
	}
}

// TestAbsorbedAgainstMatrices compares with the power of the whole transition matrix,
// and a long horizon with the fundamental matrix.
func TestAbsorbedAgainstMatrices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "states")
		c := newChain(n)
		full := mat.NewDense(n+2, n+2, nil)
		for s := range n {
			row := c.row(s)
			for to := range row {
				row[to] = rapid.Float64Range(0.05, 1).Draw(t, "p")
			}
			normalize(row)
			full.SetRow(s, row)
		}
		full.Set(n, n, 1)
		full.Set(n+1, n+1, 1)
		k := rapid.IntRange(1, 12).Draw(t, "horizon")
		var power mat.Dense
		power.Pow(full, k)
		for s, p := range c.absorbed(k) {
			if want := power.At(s, n); math.Abs(p-want) > 1e-12 {
				t.Fatalf("state %d within %d steps: %v, want %v", s, k, p, want)
			}
		}
		// N r with N = (I - Q)^-1.
		a, r := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
		for s := range n {
			for to := range n {
				a.Set(s, to, b2f(s == to)-full.At(s, to))
			}
			r.SetVec(s, full.At(s, n))
		}
		var b mat.VecDense
		if err := b.SolveVec(a, r); err != nil {
			t.Fatal(err)
		}
		for s, p := range c.absorbed(2000) {
			if want := b.AtVec(s); math.Abs(p-want) > 1e-9 {
				t.Fatalf("state %d in the end: %v, want %v", s, p, want)
			}
		}
	})
}

// chainRuns makes runs whose single feature walks through the given values; the last
// step of an unsafe one is its hazard.
func chainRuns(suite string, walks ...[]float32) (runs []*data.Trajectory, features [][][]float32) {
	for i, w := range walks {
		t := &data.Trajectory{ID: fmt.Sprint(suite, i), Suite: suite, Label: data.Safe}
		if w[0] < 0 { // marks an unsafe run
			w = w[1:]
			at := len(w) - 1
			t.Label, t.FirstHazard = data.Unsafe, &at
		}
		var f [][]float32
		for _, x := range w {
			t.Steps = append(t.Steps, data.Step{Type: data.ToolCall, Tool: "x"})
			f = append(f, []float32{x})
		}
		runs, features = append(runs, t), append(features, f)
	}
	return runs, features
}

func TestTrainMarkov(t *testing.T) {
	// Two states, cut at 1. Transitions of low: low, high, high, end; of high: hazard, end.
	runs, features := chainRuns("a", []float32{0, 0, 1}, []float32{-1, 0, 1}, []float32{0})
	m, err := TrainMarkov(runs, features, Markov{Bins: []StateBin{{0, []float32{1}}}, Horizon: 2, Prior: 3})
	if err != nil {
		t.Fatal(err)
	}
	// Together 1 low, 2 high, 1 hazard, 2 end, half a step more of each: of 8.
	prior := []float64{1.5 / 8, 2.5 / 8, 1.5 / 8, 2.5 / 8}
	low, high := make([]float64, 4), make([]float64, 4)
	for to := range prior {
		low[to] = ([]float64{1, 2, 0, 1}[to] + 3*prior[to]) / 7
		high[to] = ([]float64{0, 0, 1, 1}[to] + 3*prior[to]) / 5
	}
	got, err := m.Steps(runs[0], features[0])
	if err != nil {
		t.Fatal(err)
	}
	wantLow := low[2] + low[0]*low[2] + low[1]*high[2]
	wantHigh := high[2] + high[0]*low[2] + high[1]*high[2]
	for i, want := range []float64{wantLow, wantLow, wantHigh} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("step %d: %v, want %v", i, got[i], want)
		}
	}
	if m.Name() != "absorbing Markov chain" {
		t.Error(m.Name())
	}
}

func TestMarkovBacksOff(t *testing.T) {
	runs, features := chainRuns("calm", []float32{0, 0, 0}, []float32{0, 0})
	r, f := chainRuns("wild", []float32{-1, 0, 1}, []float32{-1, 1}, []float32{-1, 2})
	runs, features = append(runs, r...), append(features, f...)
	bins := []StateBin{{0, []float32{1, 2}}}
	score := func(o Markov, suite string, x float32) float64 {
		m, err := TrainMarkov(runs, features, o)
		if err != nil {
			t.Fatal(err)
		}
		run, f := chainRuns(suite, []float32{x})
		s, err := m.Steps(run[0], f[0])
		if err != nil {
			t.Fatal(err)
		}
		return s[0]
	}
	global := Markov{Bins: bins, Horizon: 1, Prior: 1}
	local := global
	local.PerDomain = true
	if got, want := score(local, "elsewhere", 0), score(global, "elsewhere", 0); got != want {
		t.Errorf("a domain that was not trained on: %v, globally %v", got, want)
	}
	if got, want := score(local, "calm", 1), score(global, "calm", 1); got != want {
		t.Errorf("a state that the domain never was in: %v, globally %v", got, want)
	}
	if calm, all := score(local, "calm", 0), score(global, "calm", 0); !(calm < all) {
		t.Errorf("a domain without hazards: %v, globally %v", calm, all)
	}
	strong := local
	strong.Prior = 1e9
	if got, want := score(strong, "wild", 1), score(Markov{Bins: bins, Horizon: 1, Prior: 1e9}, "wild", 1); math.Abs(got-want) > 1e-6 {
		t.Errorf("a prior that outweighs the steps: %v, globally %v", got, want)
	}
	if m, err := TrainMarkov(runs, features, local); err != nil || m.Name() != "absorbing Markov chain per domain" {
		t.Error(err)
	}
}

func TestMarkovStates(t *testing.T) {
	m := &markovModel{width: 2, bins: []StateBin{{0, []float32{0.5}}, {1, []float32{1, 2}}}}
	for _, c := range []struct {
		f    []float32
		want int
	}{{[]float32{0, 0}, 0}, {[]float32{0, 1}, 1}, {[]float32{0, 1.5}, 1}, {[]float32{0, 2}, 2}, {[]float32{0.5, 0}, 3}, {[]float32{9, 9}, 5}} {
		if got := m.state(c.f); got != c.want || got >= m.states() {
			t.Errorf("%v: state %d, want %d", c.f, got, c.want)
		}
	}
}

func TestTrainMarkovRefuses(t *testing.T) {
	runs, features := chainRuns("a", []float32{0}, []float32{-1, 1})
	var many []float32 // 33 bins, and 33 times 33 are too many
	for i := range 32 {
		many = append(many, float32(i))
	}
	for name, o := range map[string]Markov{
		"horizon":      {Horizon: -1},
		"prior":        {Prior: math.NaN()},
		"feature":      {Bins: []StateBin{{1, nil}}},
		"negative":     {Bins: []StateBin{{-1, nil}}},
		"order":        {Bins: []StateBin{{0, []float32{1, 1}}}},
		"no number":    {Bins: []StateBin{{0, []float32{float32(math.NaN())}}}},
		"states":       {Bins: []StateBin{{0, many}, {0, many}}},
		"weight":       {Weight: func(*data.Trajectory) float64 { return -1 }},
		"large weight": {Weight: func(*data.Trajectory) float64 { return math.MaxFloat64 }},
		"no weight":    {Weight: func(*data.Trajectory) float64 { return 0 }},
	} {
		if _, err := TrainMarkov(runs, features, o); !errors.Is(err, ErrTraining) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := TrainMarkov(runs[:1], features[:1], Markov{}); !errors.Is(err, ErrTraining) {
		t.Errorf("without a hazard: %v", err)
	}
	m, err := TrainMarkov(runs, features, Markov{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Steps(runs[0], nil); !errors.Is(err, errFeatures) {
		t.Errorf("without features: %v", err)
	}
}
