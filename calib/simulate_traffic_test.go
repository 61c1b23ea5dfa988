package calib_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
)

// TestSimulateMondrian: each group that has a level of its own keeps the bound,
// and so do the rest together. One level for all alerts the riskier group too
// often.
func TestSimulateMondrian(t *testing.T) {
	const alpha = 0.1
	reps := draws(t, 250)
	rng := rand.New(rand.NewPCG(1, 8))
	// S of group g is u^power: the power 1/4 makes high scores.
	power := map[string]float64{"calm": 2, "busy": 0.25, "rare": 1, "odd": 1}
	weight := []string{"calm", "calm", "calm", "calm", "busy", "busy"}
	names := []string{"calm", "busy", "rare", "odd"}
	var rates, pooled = map[string]*moments{}, map[string]*moments{}
	for _, n := range names {
		rates[n], pooled[n] = &moments{}, &moments{}
	}
	make1 := func(n int, part string) (runs []calib.Scored) {
		for i := range n {
			g := weight[rng.IntN(len(weight))]
			if rng.Float64() < 0.06 {
				g = []string{"rare", "odd"}[rng.IntN(2)]
			}
			runs = append(runs, calib.Scored{ID: fmt.Sprint(part, i), Label: calib.Safe, Path: []string{g}, Risk: math.Pow(rng.Float64(), power[g])})
		}
		return runs
	}
	reached := func(l float64, g string) float64 { return 1 - math.Pow(min(l, 1), 1/power[g]) }
	for range reps {
		tuning, conformal := make1(150, "t"), make1(300, "c")
		c, err := calib.Request{FalseAlarm: alpha, By: []string{"tenant"}}.Solve(tuning, conformal)
		if err != nil {
			t.Fatal(err)
		}
		one, err := calib.Quantile(risks(conformal), alpha)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range names {
			rates[g].add(reached(c.For([]string{g}).Hold.Value, g))
			pooled[g].add(reached(one.Value, g))
		}
		if own := c.Tree.Node([]string{"busy"}); len(own) != 1 {
			t.Fatalf("the group of a third of the runs has no level of its own: %+v", c.Tree)
		}
	}
	for _, g := range names[:2] {
		if m := rates[g]; m.mean() > alpha+4*m.se() {
			t.Errorf("%s: %.4f, promised %v", g, m.mean(), alpha)
		}
	}
	t.Logf("calm %.4f, busy %.4f, by one level %.4f and %.4f", rates["calm"].mean(), rates["busy"].mean(), pooled["calm"].mean(), pooled["busy"].mean())
	if m := pooled["busy"]; m.mean() < 1.5*alpha {
		t.Errorf("one level for all alerts %.4f of the busy group, expected it to break %v by far", m.mean(), alpha)
	}
}

func risks(runs []calib.Scored) (out []float64) {
	for _, r := range runs {
		out = append(out, r.Risk)
	}
	return out
}

// TestSimulateHoldBudget: the share of held runs, and of held calls, keeps the
// budget on traffic that no one labelled, on average and with confidence. Calls
// of a run are alike, so taking calls for independent exceeds it.
func TestSimulateHoldBudget(t *testing.T) {
	const rate, most = 0.1, 12
	reps := draws(t, 300)
	for _, n := range []int{60, 250} {
		rng := rand.New(rand.NewPCG(uint64(n), 9))
		var runs, calls, naive moments
		var badRuns, badCalls int
		for range reps {
			traffic := make([]calib.Scored, n)
			var all []float64
			for i := range traffic {
				u := rng.Float64()
				s := calib.Scored{ID: fmt.Sprint(i), Risk: u}
				// High runs are long: the worst case for a budget per call.
				for range 1 + int(u*most*0.999) {
					s.Calls = append(s.Calls, u)
				}
				all = append(all, s.Calls...)
				traffic[i] = s
			}
			// E held calls / E calls at level l, with k = 1 + floor(u most) calls.
			share := func(l float64) float64 {
				var held, total float64
				for k := 1; k <= most; k++ {
					lo, hi := float64(k-1)/most, float64(k)/most
					total += float64(k) / most
					held += float64(k) * max(0, hi-max(lo, l))
				}
				return held / total
			}
			set := func(b calib.Budget, confidence float64) (float64, bool) {
				c, err := calib.Request{HoldBudget: b, Confidence: confidence}.Solve(nil, traffic)
				var few *calib.TooFewError
				if errors.As(err, &few) && b.PerCall && confidence > 0 { // refused: nothing is held
					return calib.Off, false
				}
				if err != nil {
					t.Fatal(err)
				}
				return c.Plans[0].Hold.Value, true
			}
			l, _ := set(calib.Budget{Rate: rate}, 0)
			runs.add(reach(l, 0))
			if l, ok := set(calib.Budget{Rate: rate}, 0.9); ok && reach(l, 0) > rate {
				badRuns++
			}
			l, _ = set(calib.Budget{Rate: rate, PerCall: true, MaxCalls: most}, 0)
			calls.add(share(min(l-calib.GridStep/2, 1)))
			if l, ok := set(calib.Budget{Rate: rate, PerCall: true, MaxCalls: most}, 0.9); ok && share(min(l-calib.GridStep/2, 1)) > rate {
				badCalls++
			}
			q, err := calib.QuantileConfident(all, rate, 0.9)
			if err != nil {
				t.Fatal(err)
			}
			naive.add(0)
			if share(q.Value-calib.GridStep/2) > rate {
				naive.sum++
			}
		}
		for what, m := range map[string]moments{"runs": runs, "calls": calls} {
			if m.mean() > rate+4*m.se() {
				t.Errorf("n %d: %.4f of the %s are held, budget %v", n, m.mean(), what, rate)
			}
		}
		t.Logf("n %d: held runs %.4f, calls %.4f; with confidence exceeded in %d and %d of %d; calls as independent %.4f", n, runs.mean(), calls.mean(), badRuns, badCalls, reps, naive.mean())
		atMost(t, fmt.Sprintf("held runs with confidence, n %d", n), badRuns, reps, 0.1)
		atMost(t, fmt.Sprintf("held calls with confidence, n %d", n), badCalls, reps, 0.1)
		if naive.mean() < 0.15 {
			t.Errorf("n %d: taking calls for independent exceeds the budget in %.3f of the draws, expected far more than 0.1", n, naive.mean())
		}
		if n == 250 && calls.mean() < 0.5*rate {
			t.Errorf("n %d: %.4f of the calls are held, far below the budget: too strict", n, calls.mean())
		}
	}
}

// TestSimulateContamination: up to the share that is allowed for, runs that were
// declared safe and are not do not break the promise to safe runs, even where
// they hide below all of them. Without the allowance they do.
func TestSimulateContamination(t *testing.T) {
	const alpha, share, n = 0.1, 0.2, 100
	reps := draws(t, 600)
	rng := rand.New(rand.NewPCG(1, 10))
	var allowed, naive moments
	var bad int
	for range reps {
		runs := make([]calib.Scored, n)
		for i := range runs {
			runs[i] = calib.Scored{ID: fmt.Sprint(i), Risk: rng.Float64()}
			if i < share*n {
				runs[i].Risk = 0 // attacks that look better than any safe run
			}
		}
		hold := func(r calib.Request) float64 {
			r.FalseAlarm, r.AssumeSafe = alpha, true
			c, err := r.Solve(nil, runs)
			if err != nil {
				t.Fatal(err)
			}
			return c.Plans[0].Hold.Value
		}
		allowed.add(reach(hold(calib.Request{Contamination: share}), 0))
		naive.add(reach(hold(calib.Request{}), 0))
		if reach(hold(calib.Request{Contamination: share, Confidence: 0.9}), 0) > alpha {
			bad++
		}
	}
	t.Logf("with the allowance %.4f, without %.4f, with confidence exceeded in %d of %d", allowed.mean(), naive.mean(), bad, reps)
	if allowed.mean() > alpha+4*allowed.se() {
		t.Errorf("safe runs are alerted with probability %.4f, promised %v", allowed.mean(), alpha)
	}
	if naive.mean() < alpha+4*naive.se() {
		t.Errorf("without the allowance %.4f, expected it to break %v", naive.mean(), alpha)
	}
	atMost(t, "contamination with confidence", bad, reps, 0.1)
}

// TestSimulateShift: on traffic with another mix of kinds, weights keep the
// promise that the plain rule breaks.
func TestSimulateShift(t *testing.T) {
	const alpha, n = 0.1, 300
	reps := draws(t, 600)
	rng := rand.New(rand.NewPCG(1, 12))
	kinds := map[string]float64{"low": 1, "high": 0.25}
	kind := func(s *calib.Scored) string { return s.Group }
	live := map[string]float64{"low": 0.3, "high": 0.7}
	var weighted, plain moments
	for range reps {
		draw := func(m int) (runs []calib.Scored) {
			for i := range m {
				k := "low"
				if i%5 == 0 {
					k = "high"
				}
				runs = append(runs, calib.Scored{ID: fmt.Sprint(m, i), Group: k, Label: calib.Safe, Risk: math.Pow(rng.Float64(), kinds[k])})
			}
			return runs
		}
		shift, err := calib.ShareShift(draw(200), kind, live)
		if err != nil {
			t.Fatal(err)
		}
		conformal := draw(n)
		rate := func(r calib.Request) (p float64) {
			c, err := r.Solve(nil, conformal)
			if err != nil {
				t.Fatal(err)
			}
			for k, share := range live {
				p += share * (1 - math.Pow(min(c.Plans[0].Hold.Value, 1), 1/kinds[k]))
			}
			return p
		}
		weighted.add(rate(calib.Request{FalseAlarm: alpha, Shift: shift}))
		plain.add(rate(calib.Request{FalseAlarm: alpha}))
	}
	t.Logf("weighted %.4f, plain %.4f", weighted.mean(), plain.mean())
	if weighted.mean() > alpha+4*weighted.se() {
		t.Errorf("weighted: %.4f, promised %v", weighted.mean(), alpha)
	}
	if weighted.mean() < 0.6*alpha {
		t.Errorf("weighted: %.4f is far below %v: too strict", weighted.mean(), alpha)
	}
	if plain.mean() < 1.5*alpha {
		t.Errorf("plain: %.4f, expected it to break %v by far", plain.mean(), alpha)
	}
}
