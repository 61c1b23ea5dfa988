package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
)

// pools with four runs a task, scores rising.
func testPool(safe, unsafe int) *pool {
	p := &pool{name: "test", hold: 0.5, block: calib.Off}
	for i := range safe {
		p.safe = append(p.safe, calib.Scored{ID: fmt.Sprint("s", i), Group: fmt.Sprint(i / 4), Label: calib.Safe, Risk: float64(i) / float64(2*safe)})
	}
	for i := range unsafe {
		p.unsafe = append(p.unsafe, calib.Scored{ID: fmt.Sprint("u", i), Group: fmt.Sprint(i / 4), Label: calib.Unsafe, Risk: 0.49})
	}
	return p
}

func TestDivide(t *testing.T) {
	p := testPool(101, 40)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, drawn := range []string{byRun, byGroup} {
		set, rest, unsafe := p.divide(drawn, 59, rng)
		seen, groups := map[string]bool{}, map[string]bool{}
		for _, s := range set {
			seen[s.ID], groups[s.Group] = true, true
		}
		for _, s := range rest {
			if seen[s.ID] {
				t.Errorf("%s: run %s is in both parts", drawn, s.ID)
			}
			seen[s.ID] = true
			if drawn == byGroup && groups[s.Group] {
				t.Errorf("task %s is in both parts", s.Group)
			}
		}
		for _, s := range unsafe {
			if drawn == byGroup && groups[s.Group] {
				t.Errorf("task %s of the calibration part has an unsafe run that is tested", s.Group)
			}
		}
		if len(set) != 59 || drawn == byRun && (len(seen) != 101 || len(unsafe) != 40) || len(unsafe) == 0 {
			t.Errorf("%s: %d and %d safe runs, %d unsafe ones", drawn, len(set), len(rest), len(unsafe))
		}
	}
}

// exceed counts orders: with x = 0 of n allowed, at least k of m further runs above
// all n have probability C(n+m-k, n)/C(n+m, n) = prod_{i<k} (m-i)/(n+m-i).
func TestExceed(t *testing.T) {
	for _, c := range []struct {
		n, m, k int
		alpha   float64
	}{{59, 60, 4, 0.05}, {100, 223, 12, 0.05}, {19, 40, 1, 0.02}} {
		want := 1.0
		for i := range c.k {
			want *= float64(c.m-i) / float64(c.n+c.m-i)
		}
		if got := exceed(c.n, 0, c.m, c.alpha); math.Abs(got-want) > 1e-9 {
			t.Errorf("n %d, m %d: %v, want %v", c.n, c.m, got, want)
		}
	}
}

func TestDraw(t *testing.T) {
	p := testPool(300, 60)
	for _, confidence := range []float64{0, 0.95} {
		r, err := p.draw(byRun, 100, 200, 0.05, confidence, 1)
		if err != nil {
			t.Fatal(err)
		}
		// Scores without ties: the mean is (x+1)/(n+1) with x runs allowed above.
		x := 4.0
		if confidence > 0 {
			x = 1
		}
		if want := (x + 1) / 101; math.Abs(r.FPR.Value-want) > 1.5*r.FPR.SE2 || r.FPR.SE2 == 0 || r.SR == nil || r.SR.Value == 0 {
			t.Errorf("confidence %v: mean %v, want %v; SR %v", confidence, r.FPR, want, r.SR)
		}
		if r.FPRBefore.Value != 0 || r.SRBefore.Value != 0 || r.Rest != 200 {
			t.Errorf("before: %v and %v, %v tested", r.FPRBefore, r.SRBefore, r.Rest)
		}
		again, err := p.draw(byRun, 100, 200, 0.05, confidence, 1)
		if err != nil || again.FPR != r.FPR {
			t.Errorf("the same draws give %v and %v, %v", r.FPR, again.FPR, err)
		}
	}
	if p.allows(200) || !p.allows(100) || testPool(88, 0).allows(59) || !testPool(95, 0).allows(59) {
		t.Error("sizes")
	}
}

// The true rate is known: the promise with confidence fails in 5 % of the draws at
// most, the one on average holds on average.
func TestSynthetic(t *testing.T) {
	for _, values := range []int{0, 20} {
		for _, n := range sizes {
			r, err := synthetic("s", values, n, 500, 0.05, 0.95, 7)
			if err != nil {
				t.Fatal(err)
			}
			if r.AboveLo > 0.05 {
				t.Errorf("%d values, n %d: the true rate is above 5 %% in %d of %d draws", values, n, r.Above, r.Draws)
			}
			if r, err = synthetic("s", values, n, 500, 0.05, 0, 7); err != nil {
				t.Fatal(err)
			}
			if r.FPR.Value > 0.05+r.FPR.SE2 || values == 0 && float64(r.Above)/float64(r.Draws) < 0.25 {
				t.Errorf("%d values, n %d, on average: %v, above in %d", values, n, r.FPR, r.Above)
			}
		}
	}
}

func TestDivideLabelled(t *testing.T) {
	var runs []calib.Run
	for i := range 400 { // tasks of four, the first run of each unsafe
		runs = append(runs, calib.Run{ID: fmt.Sprint(i), Group: fmt.Sprint(i / 4), Unsafe: i%4 == 0})
	}
	for _, drawn := range []string{byRun, byGroup} {
		part, rest := divideLabelled(runs, drawn, 40, rand.New(rand.NewPCG(2, 2)))
		groups, ids := map[string]bool{}, map[string]bool{}
		var n [2]int
		for _, r := range part {
			n[kind(&r)]++
			groups[r.Group], ids[r.ID] = true, true
		}
		for _, r := range rest {
			if ids[r.ID] || drawn == byGroup && groups[r.Group] {
				t.Fatalf("%s: run %s, or its task, is in both parts", drawn, r.ID)
			}
		}
		if n != [2]int{40, 40} || len(rest) == 0 {
			t.Errorf("%s: %v runs, %d left", drawn, n, len(rest))
		}
	}
	if part, _ := divideLabelled(runs, byGroup, 80, rand.New(rand.NewPCG(2, 2))); part != nil {
		t.Error("too few unsafe runs are left, and it was drawn")
	}
}
