package calib_test

import (
	"errors"
	"fmt"

	"github.com/dreamguard/dreamguard/calib"
)

// Both levels from the maxima of 200 safe runs.
func ExampleUnion() {
	haz, risk := make([]float64, 200), make([]float64, 200)
	for i := range risk {
		haz[i] = float64(i) / 400
		risk[i] = float64(i) / 250
	}
	t, err := calib.Union(haz, risk, 0.05, 0.01, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("k:", t.Block.K, t.Hold.K, "alerted:", t.Alerted, "of", t.N)
	fmt.Println(t.Marginal())
	fmt.Println(t.Confident(0.95))
	// Output:
	// k: 199 193 alerted: 7 of 200
	// A safe run like the 200 calibration runs is held or blocked with probability at most 5 % (averaged over the draw of the calibration runs).
	// With 95 % confidence at most 9.832 % of safe runs are held or blocked (exact Clopper-Pearson, 200 runs).
}

// Too little data is an answer of its own: how much is needed.
func ExampleTooFewError() {
	_, err := calib.Quantile([]float64{0.1, 0.4, 0.2}, 0.05)
	var few *calib.TooFewError
	fmt.Println(errors.As(err, &few), few.Need)
	// Output: true 19
}

// scored makes n runs with risks from lo up.
func scored(label calib.Label, n int, lo, hi float64) []calib.Scored {
	runs := make([]calib.Scored, n)
	for i := range runs {
		x := lo + (hi-lo)*float64(i)/float64(n)
		runs[i] = calib.Scored{ID: fmt.Sprint(label, "-", i), Label: label, Hazard: x * x, Risk: x}
	}
	return runs
}

// An operator has 400 safe runs and asks for a promise with confidence.
func ExampleRequest() {
	runs := scored(calib.Safe, 400, 0, 0.5)
	c, err := calib.Request{FalseAlarm: 0.05, Block: 0.01, Confidence: 0.95}.Solve(nil, runs)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := c.For(nil)
	fmt.Printf("HOLD from %.4f, BLOCK from %.4f, %d of %d runs alerted\n", plan.Hold.Value, plan.Block.Value, plan.Alerted, plan.Safe)
	for _, g := range plan.Guarantees {
		fmt.Println(g)
	}
	// Output:
	// HOLD from 0.4850, BLOCK from 0.2488, 11 of 400 runs alerted
	// With 95 % confidence at most 1 % of safe runs like the 400 calibration runs are blocked.
	// With 95 % confidence at most 5 % of safe runs like the 400 calibration runs are held or blocked.
}

// With labels for unsafe runs, misses are bounded too. What cannot be had is
// answered with what can.
func ExampleInfeasibleError() {
	runs := func(n int) []calib.Scored {
		return append(scored(calib.Safe, n, 0, 0.6), scored(calib.Unsafe, n, 0.4, 1)...)
	}
	tuning := runs(100)
	_, err := calib.Request{FalseAlarm: 0.05, Miss: 0.10, Confidence: 0.9}.Solve(tuning, runs(300))
	var no *calib.InfeasibleError
	if errors.As(err, &no) {
		fmt.Println(err)
		for _, p := range no.Frontier {
			if p.FalseAlarms%30 == 0 && p.FalseAlarms <= 90 {
				fmt.Printf("HOLD from %.2f: %d of %d false alarms, %d of %d misses\n", p.Hold, p.FalseAlarms, no.Safe, p.Misses, no.Unsafe)
			}
		}
	}
	// Output:
	// calib: no levels keep false alarms to 5 % and misses to 10 % with 90 % confidence on 300 safe and 300 unsafe runs
	// HOLD from 0.60: 0 of 300 false alarms, 100 of 300 misses
	// HOLD from 0.54: 30 of 300 false alarms, 70 of 300 misses
	// HOLD from 0.48: 60 of 300 false alarms, 40 of 300 misses
	// HOLD from 0.42: 90 of 300 false alarms, 10 of 300 misses
}

// A certificate is watched: live scores drift upward, and it is withdrawn.
func ExampleMonitor() {
	var risks []float64
	for i := range 100 {
		risks = append(risks, float64(i*37%100)/100)
	}
	m, err := calib.NewMonitor(calib.Watch{Hold: 0.96875, Level: 0.05, Seed: 1}, risks)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 300 {
		if _, err := m.Observe(float64(i*61%100) / 100); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Printf("after 300 runs like them: %q\n", m.Withdrawn())
	for i := 0; m.Withdrawn() == calib.Stands; i++ {
		if _, err := m.Observe(0.5 + float64(i*61%50)/100); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Printf("%q after %d more\n", m.Withdrawn(), m.Status().At-300)
	// Output:
	// after 300 runs like them: ""
	// "drift" after 48 more
}

// Before traces are declared safe, the ones that stand out are read.
func ExampleSuspects() {
	runs := scored(calib.Unlabelled, 50, 0.05, 0.2)
	runs[20].Risk = 0.97
	for _, s := range calib.Suspects(runs, 2) {
		fmt.Println(runs[s.Index].ID, runs[s.Index].Risk, s.Outlier)
	}
	// Output:
	// unlabelled-20 0.97 true
	// unlabelled-49 0.197 false
}
