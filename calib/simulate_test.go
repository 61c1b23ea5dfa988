package calib_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
)

// draws returns the number of simulated calibrations: the full 2,000 where
// DREAMGUARD_FULL is set, fewer in a normal run of the tests.
func draws(t *testing.T, normal int) int {
	t.Helper()
	switch {
	case os.Getenv("DREAMGUARD_FULL") != "":
		return 2000
	case testing.Short():
		return normal / 4
	}
	return normal
}

// population makes safe and unsafe runs whose true error rates are known: p_haz
// and S are functions of two uniform numbers, or of one.
type population struct {
	name   string
	levels int // 0: continuous scores; else so many values, nearly all tied
	draw   func(rng *rand.Rand) (haz, risk float64)
}

// populations of safe runs: opposed scores never alert the same run, equal ones
// always do, independent ones lie between.
func populations() []*population {
	var out []*population
	for _, levels := range []int{0, 20} {
		tie := func(u float64) float64 {
			if levels == 0 {
				return u
			}
			return math.Floor(u*float64(levels)) / float64(levels-1)
		}
		for _, p := range []*population{
			{name: "opposed", draw: func(rng *rand.Rand) (float64, float64) { u := rng.Float64(); return tie(1 - u), tie(u) }},
			{name: "equal", draw: func(rng *rand.Rand) (float64, float64) { u := rng.Float64(); return tie(u), tie(u) }},
			{name: "independent", draw: func(rng *rand.Rand) (float64, float64) { return tie(rng.Float64()), tie(rng.Float64()) }},
		} {
			p.levels = levels
			if levels > 0 {
				p.name += " with ties"
			}
			out = append(out, p)
		}
	}
	return out
}

// rate returns P(haz >= block or risk >= hold) for the population, exactly.
func (p *population) rate(block, hold float64) float64 {
	b, h := reach(block, p.levels), reach(hold, p.levels)
	switch p.name[:3] {
	case "opp": // both at once only where 1-u and u reach both
		if p.levels == 0 {
			return min(b+h, 1)
		}
		var c int
		for j := range p.levels {
			x := float64(j) / float64(p.levels-1)
			if calib.Grid(x) >= hold || calib.Grid(1-x) >= block {
				c++
			}
		}
		return float64(c) / float64(p.levels)
	case "equ":
		return max(b, h)
	}
	return b + h - b*h
}

func (p *population) sample(rng *rand.Rand, n int) (haz, risk []float64) {
	haz, risk = make([]float64, n), make([]float64, n)
	for i := range n {
		haz[i], risk[i] = p.draw(rng)
	}
	return haz, risk
}

// atMost fails where a share of draws lies above a level beyond chance: four
// standard errors of a binomial.
func atMost(t *testing.T, what string, bad, n int, level float64) {
	t.Helper()
	got := float64(bad) / float64(n)
	if se := math.Sqrt(level * (1 - level) / float64(n)); got > level+4*se {
		t.Errorf("%s: %.4f of %d draws, promised at most %.4f", what, got, n, level)
	}
}

// moments collects a mean and its standard error.
type moments struct{ n, sum, square float64 }

func (m *moments) add(x float64) { m.n++; m.sum += x; m.square += x * x }
func (m *moments) mean() float64 { return m.sum / m.n }
func (m *moments) se() float64 {
	return math.Sqrt(max(m.square/m.n-m.mean()*m.mean(), 0) / m.n)
}

// TestSimulateConfidentUnion: in at most 1-confidence of the draws a safe run is
// blocked, or held or blocked, more often than promised. The marginal rule, read
// as if it held with confidence, breaks that in about half of them; so does the
// usual M_(k), ties or not.
func TestSimulateConfidentUnion(t *testing.T) {
	const alpha, block, confidence = 0.1, 0.03, 0.9
	reps := draws(t, 500)
	for _, p := range populations() {
		for _, n := range []int{22, 60, 150, 600} {
			rng := rand.New(rand.NewPCG(uint64(n), 11))
			var bad, marginal, sharp int
			for range reps {
				haz, risk := p.sample(rng, n)
				th, err := calib.UnionConfident(haz, risk, alpha, block, confidence)
				if err != nil {
					t.Fatal(err)
				}
				rate := p.rate(th.Block.Value, th.Hold.Value)
				if rate > alpha+1e-12 || reach(th.Block.Value, p.levels) > block+1e-12 {
					bad++
				}
				if rate > alpha/2 {
					sharp++
				}
				q, err := calib.Quantile(risk, alpha)
				if err != nil {
					t.Fatal(err)
				}
				if reach(q.Value, p.levels) > alpha+1e-12 {
					marginal++
				}
			}
			atMost(t, fmt.Sprintf("%s, n %d", p.name, n), bad, reps, 1-confidence)
			if p.levels == 0 && float64(marginal) < 0.25*float64(reps) {
				t.Errorf("%s, n %d: the marginal rule exceeds its level in %d of %d draws only; expected it to break the promise of confidence", p.name, n, marginal, reps)
			}
			t.Logf("%s, n %d: level exceeded in %d, marginal rule in %d, of %d", p.name, n, bad, marginal, reps)
			if p.levels == 0 && n == 600 && float64(sharp) < 0.8*float64(reps) {
				t.Errorf("%s, n %d: the rate is below half of the level in %d of %d draws: the levels are too strict", p.name, n, reps-sharp, reps)
			}
		}
	}
}

// TestSimulateMiss: an unsafe run is missed at most as often as promised, on
// average and with confidence. The uncorrected k = ceil(n miss) breaks it.
func TestSimulateMiss(t *testing.T) {
	const miss = 0.1
	reps := draws(t, 600)
	for _, levels := range []int{0, 20} {
		missed := func(l float64) float64 { return 1 - reach(l, levels) }
		for _, n := range []int{22, 35, 200} {
			rng := rand.New(rand.NewPCG(uint64(n), uint64(levels)))
			var mean, naive moments
			var bad int
			for range reps {
				s := make([]float64, n)
				for i := range s {
					s[i] = rng.Float64()
					if levels > 0 {
						s[i] = math.Floor(s[i]*float64(levels)) / float64(levels-1)
					}
				}
				l, err := calib.MissThreshold(s, miss, 0)
				if err != nil {
					t.Fatal(err)
				}
				mean.add(missed(l.Value))
				naive.add(missed(calib.NextAbove(kth(s, int(math.Ceil(float64(n)*miss))))))
				if l, err = calib.MissThreshold(s, miss, 0.9); err != nil {
					t.Fatal(err)
				}
				if missed(l.Value) > miss+1e-12 {
					bad++
				}
			}
			if mean.mean() > miss+4*mean.se() {
				t.Errorf("levels %d, n %d: %.4f are missed, promised %v", levels, n, mean.mean(), miss)
			}
			if levels == 0 && mean.mean() < 0.6*miss {
				t.Errorf("n %d: %.4f are missed, far below the %v that may be: too strict", n, mean.mean(), miss)
			}
			// Without ties its rate is k/(n+1), which some n keep below the level by luck.
			if breaks := levels > 0 || math.Ceil(float64(n)*miss)/float64(n+1) > 1.05*miss; breaks && naive.mean() < miss+2*naive.se() {
				t.Errorf("levels %d, n %d: the uncorrected rule misses %.4f, expected it to break %v", levels, n, naive.mean(), miss)
			}
			t.Logf("levels %d, n %d: %.4f missed, uncorrected %.4f, with confidence exceeded in %d of %d", levels, n, mean.mean(), naive.mean(), bad, reps)
			atMost(t, fmt.Sprintf("miss with confidence, levels %d, n %d", levels, n), bad, reps, 0.1)
		}
	}
}

// TestSimulateGroups: runs of a task are alike. The rule by run, which takes
// them for independent, alerts runs of new tasks too often; the rule by group
// keeps its level, on average and with confidence.
func TestSimulateGroups(t *testing.T) {
	const alpha, size = 0.1, 10
	reps := draws(t, 160)
	for _, levels := range []int{0, 20} {
		tie := func(u float64) float64 {
			if levels == 0 {
				return u
			}
			return math.Floor(u*float64(levels)) / float64(levels-1)
		}
		for _, groups := range []int{10, 25, 60} {
			rng := rand.New(rand.NewPCG(uint64(groups), 3))
			var byRun, byGroup moments
			var bad, confident int
			for range reps {
				var runs []calib.Scored
				for g := range groups {
					u := rng.Float64() // one score per task, and groups of unequal size
					for i := range 1 + rng.IntN(2*size-1) {
						runs = append(runs, calib.Scored{ID: fmt.Sprint(g, "/", i), Group: fmt.Sprint(g), Label: calib.Safe, Risk: tie(u)})
					}
				}
				rate := func(r calib.Request) (float64, bool) {
					c, err := r.Solve(nil, runs)
					var few *calib.TooFewError
					var top *calib.NoLevelError
					switch {
					case errors.As(err, &few) && r.Confidence > 0 && few.N == groups && few.Need == 22 && groups < 22:
						return 0, false
					case errors.As(err, &top): // refused: nothing is set, nobody is alerted
						return 0, true
					case err != nil:
						t.Fatalf("%d groups: %v", groups, err)
					}
					return reach(c.Plans[0].Hold.Value, levels), true
				}
				p, _ := rate(calib.Request{FalseAlarm: alpha})
				byRun.add(p)
				p, _ = rate(calib.Request{FalseAlarm: alpha, Unit: calib.ByGroup})
				byGroup.add(p)
				if p, set := rate(calib.Request{FalseAlarm: alpha, Unit: calib.ByGroup, Confidence: 0.9}); set {
					confident++
					if p > alpha+1e-12 {
						bad++
					}
				}
			}
			if byGroup.mean() > alpha+4*byGroup.se() {
				t.Errorf("levels %d, %d groups: runs of a new group are alerted with probability %.4f, promised %v", levels, groups, byGroup.mean(), alpha)
			}
			if groups == 10 && levels == 0 && byRun.mean() < alpha+2*byRun.se() {
				t.Errorf("%d groups: the rule by run alerts %.4f of new groups, expected it to break %v", groups, byRun.mean(), alpha)
			}
			t.Logf("levels %d, %d groups: by group %.4f, by run %.4f, with confidence exceeded in %d of %d", levels, groups, byGroup.mean(), byRun.mean(), bad, confident)
			if confident > 0 {
				atMost(t, fmt.Sprintf("by group with confidence, %d groups", groups), bad, confident, 0.1)
			}
		}
	}
}

// labelled draws safe runs with a uniform S and unsafe ones with S = 1-(1-u)^3,
// p_haz independent of it.
func labelled(rng *rand.Rand, n int, from string) []calib.Scored {
	var out []calib.Scored
	for i := range n {
		s := calib.Scored{ID: fmt.Sprint(from, i), Label: calib.Safe, Hazard: rng.Float64(), Risk: rng.Float64()}
		if i%2 == 1 {
			s.Label = calib.Unsafe
			s.Risk = 1 - math.Pow(1-s.Risk, 6)
		}
		out = append(out, s)
	}
	return out
}

// trueRates returns the exact error rates of labelled runs at two levels.
func trueRates(hold, block float64) (alerted, blocked, missed float64) {
	b := reach(block, 0)
	h := reach(hold, 0)
	u := 1 - h                            // P(S < hold) on safe runs
	v := 1 - math.Pow(1-min(u, 1), 1.0/6) // and on unsafe ones
	return 1 - (1-b)*u, b, (1 - b) * v
}

// TestSimulateLearnThenTest: in at most 1-confidence of the draws does any
// accepted pair exceed a bound, by either method. Picking the pair that looks
// best on the same data, without a test, exceeds one far more often.
func TestSimulateLearnThenTest(t *testing.T) {
	risks := calib.Risks{FalseAlarm: 0.30, Block: 0.05, Miss: 0.28}
	reps := draws(t, 100)
	for _, n := range []int{300, 1500} {
		rng := rand.New(rand.NewPCG(uint64(n), 5))
		var naive int
		bad, none := map[calib.Method]int{}, map[calib.Method]int{}
		for range reps {
			tuning, conformal := labelled(rng, 300, "t"), labelled(rng, n, "c")
			for _, m := range []calib.Method{calib.Pareto, calib.Bonferroni} {
				s, err := calib.LearnThenTest(tuning, conformal, risks, 0.9, m)
				var no *calib.InfeasibleError
				if errors.As(err, &no) {
					none[m]++
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range s.Accepted {
					fa, bl, ms := trueRates(c.Hold, c.Block)
					if fa > risks.FalseAlarm || bl > risks.Block || ms > risks.Miss {
						bad[m]++
						break
					}
				}
			}
			// The highest level with few enough misses in sight.
			f := calib.Frontier(conformal, calib.Off)
			i := slices.IndexFunc(f, func(p calib.Tradeoff) bool { return float64(p.Misses) <= risks.Miss*float64(n/2) })
			if fa, _, ms := trueRates(f[i].Hold, calib.Off); fa > risks.FalseAlarm || ms > risks.Miss {
				naive++
			}
		}
		for _, m := range []calib.Method{calib.Pareto, calib.Bonferroni} {
			atMost(t, fmt.Sprintf("n %d, method %q", n, m), bad[m], reps, 0.1)
		}
		if float64(naive) < 0.25*float64(reps) {
			t.Errorf("n %d: picking without a test exceeds a bound in %d of %d draws, expected far more than 10 %%", n, naive, reps)
		}
		if n == 1500 && none[calib.Pareto] > reps/4 {
			t.Errorf("n %d: no pair was accepted in %d of %d draws: the test has no power", n, none[calib.Pareto], reps)
		}
		t.Logf("n %d: exceeded %v, none accepted %v, without a test %d, of %d", n, bad, none, naive, reps)
	}
}

// TestSimulateWindow: false alarms and misses both keep their level on average.
func TestSimulateWindow(t *testing.T) {
	reps := draws(t, 400)
	r := calib.Request{FalseAlarm: 0.35, Block: 0.05, Miss: 0.3}
	for _, n := range []int{60, 400} {
		rng := rand.New(rand.NewPCG(uint64(n), 6))
		var fa, bl, ms moments
		for range reps {
			c, err := r.Solve(nil, labelled(rng, n, "c"))
			var no *calib.InfeasibleError
			if errors.As(err, &no) { // nothing is set, nothing goes wrong
				fa.add(0)
				bl.add(0)
				ms.add(0)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			x, y, z := trueRates(c.Plans[0].Hold.Value, c.Plans[0].Block.Value)
			fa.add(x)
			bl.add(y)
			ms.add(z)
		}
		for _, c := range []struct {
			what  string
			m     moments
			level float64
		}{{"false alarms", fa, r.FalseAlarm}, {"blocks", bl, r.Block}, {"misses", ms, r.Miss}} {
			t.Logf("n %d: %s %.4f, promised %v", n, c.what, c.m.mean(), c.level)
			if c.m.mean() > c.level+4*c.m.se() {
				t.Errorf("n %d: %s %.4f, promised %v", n, c.what, c.m.mean(), c.level)
			}
		}
	}
}
