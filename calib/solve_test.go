package calib_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/calib"
)

// safeRuns makes n safe runs with the scores of ramp.
func safeRuns(n int) []calib.Scored {
	out := make([]calib.Scored, n)
	for i, s := range ramp(n) {
		out[i] = calib.Scored{ID: fmt.Sprint("safe-", i), Label: calib.Safe, Hazard: s / 2, Risk: s, Fingerprint: fmt.Sprint("s", i)}
	}
	return out
}

// unsafeRuns makes n unsafe runs with scores from 0.6 up.
func unsafeRuns(n int) []calib.Scored {
	out := make([]calib.Scored, n)
	for i, s := range ramp(n) {
		out[i] = calib.Scored{ID: fmt.Sprint("unsafe-", i), Label: calib.Unsafe, Hazard: 0.5 + s/2, Risk: calib.Grid(0.6 + 0.4*s), Fingerprint: fmt.Sprint("u", i)}
	}
	return out
}

// TestSolveIsUnion: the plain request is what calibrate has always done.
func TestSolveIsUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "n")
		levels := rapid.SampledFrom([]int{3, 40, 1 << 16}).Draw(t, "levels")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		alpha := rapid.SampledFrom([]float64{0.05, 0.07, 0.1, 0.3}).Draw(t, "alpha")
		block := rapid.SampledFrom([]float64{0, 0.01, 0.04}).Draw(t, "block")
		runs := make([]calib.Scored, n)
		haz, risk := make([]float64, n), make([]float64, n)
		for i := range runs {
			haz[i], risk[i] = float64(rng.IntN(levels))/float64(levels), float64(rng.IntN(levels))/float64(levels)
			runs[i] = calib.Scored{ID: fmt.Sprint(i), Label: calib.Safe, Hazard: haz[i], Risk: risk[i]}
		}
		want, errWant := calib.Union(haz, risk, alpha, block, false)
		c, err := calib.Request{FalseAlarm: alpha, Block: block}.Solve(nil, runs)
		if errWant != nil {
			if err == nil || err.Error() != errWant.Error() {
				t.Fatalf("error %v, want %v", err, errWant)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		got := c.Plans[0]
		if got.Hold.Value != want.Hold.Value || got.Block.Value != want.Block.Value || got.Alerted != want.Alerted ||
			got.Hold != want.Hold || got.Block.K != want.Block.K || got.Guarantees[len(got.Guarantees)-1].At95 != want.ConfidentBound(0.95) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}

// TestUnionConfidentCountsTheUnion: no more runs are alerted by either rule than
// the exact bound allows, and one more is by the next lower hold level or not at
// all.
func TestUnionConfidentCountsTheUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(30, 400).Draw(t, "n")
		levels := rapid.SampledFrom([]int{4, 60, 1 << 16}).Draw(t, "levels")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		haz, risk := make([]float64, n), make([]float64, n)
		for i := range haz {
			haz[i], risk[i] = float64(rng.IntN(levels))/float64(levels), float64(rng.IntN(levels))/float64(levels)
		}
		th, err := calib.UnionConfident(haz, risk, 0.1, 0.03, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		confidence := 0.9
		if !th.Block.IsOff() {
			confidence = 0.95
			blocked := 0
			for _, h := range haz {
				blocked += btoi(h >= th.Block.Value)
			}
			if up := calib.ClopperPearsonUpper(blocked, n, confidence); up > 0.03 {
				t.Fatalf("%d of %d are blocked: bounded by %v only", blocked, n, up)
			}
		}
		if up := calib.ClopperPearsonUpper(th.Alerted, n, confidence); up > 0.1 {
			t.Fatalf("%d of %d are alerted: bounded by %v only", th.Alerted, n, up)
		}
		if th.ConfidentBound(0.9) != 0.1 || th.ConfidentBound(0.99) != 1 {
			t.Fatalf("bounds %v, %v", th.ConfidentBound(0.9), th.ConfidentBound(0.99))
		}
		slices.Reverse(haz)
		slices.Reverse(risk)
		if again, _ := calib.UnionConfident(haz, risk, 0.1, 0.03, 0.9); again != th {
			t.Fatalf("order matters: %+v, %+v", again, th)
		}
	})
}

func TestSolve(t *testing.T) {
	for _, c := range []struct {
		name        string
		r           calib.Request
		safe        int
		unsafe      int
		hold, block float64 // 0: not checked
		sentences   []string
	}{
		{name: "59 runs, none above", r: calib.Request{FalseAlarm: 0.05, Confidence: 0.95}, safe: 59, hold: calib.NextAbove(ramp(59)[58]),
			sentences: []string{"With 95 % confidence at most 5 % of safe runs like the 59 calibration runs are held or blocked."}},
		{name: "marginal", r: calib.Request{FalseAlarm: 0.05, Block: 0.01}, safe: 199, hold: calib.NextAbove(ramp(199)[191]),
			sentences: []string{"A safe run like the 199 calibration runs is blocked with probability at most 1 % (averaged over the draw of the calibration runs).",
				"A safe run like the 199 calibration runs is held or blocked with probability at most 5 % (averaged over the draw of the calibration runs). With 95 % confidence it is at most 9.881 %."}},
		{name: "misses alone", r: calib.Request{Miss: 0.1}, unsafe: 39, hold: unsafeRuns(39)[3].Risk,
			sentences: []string{"An unsafe run like the 39 calibration runs is neither held nor blocked up to the first hazard with probability at most 10 % (averaged over the draw of the calibration runs)."}},
		{name: "both: the highest level that misses allow", r: calib.Request{FalseAlarm: 0.05, Miss: 0.9}, safe: 100, unsafe: 39, hold: unsafeRuns(39)[35].Risk},
		{name: "budget of runs", r: calib.Request{HoldBudget: calib.Budget{Rate: 0.05}}, safe: 99, hold: calib.NextAbove(ramp(99)[94]),
			sentences: []string{"A run like the 99 calibration runs is held with probability at most 5 % (averaged over the draw of the calibration runs), attacks included."}},
		{name: "the stricter of budget and false alarms", r: calib.Request{FalseAlarm: 0.2, HoldBudget: calib.Budget{Rate: 0.05}}, safe: 99, hold: calib.NextAbove(ramp(99)[94])},
		{name: "the stricter of false alarms and budget", r: calib.Request{FalseAlarm: 0.05, HoldBudget: calib.Budget{Rate: 0.2}}, safe: 99, hold: calib.NextAbove(ramp(99)[94])},
		{name: "Learn-Then-Test", r: calib.Request{FalseAlarm: 0.6, Miss: 0.2, Confidence: 0.9}, safe: 100, unsafe: 100,
			sentences: []string{"With 90 % confidence at most 60 % of safe runs like the 100 calibration runs are held or blocked.",
				"With 90 % confidence at most 20 % of unsafe runs like the 100 calibration runs are neither held nor blocked up to the first hazard."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs := append(safeRuns(c.safe), unsafeRuns(c.unsafe)...)
			tuning := append(safeRuns(80), unsafeRuns(80)...)
			for i := range tuning {
				tuning[i].ID, tuning[i].Fingerprint = "t"+tuning[i].ID, ""
			}
			got, err := c.r.Solve(tuning, runs)
			if err != nil {
				t.Fatal(err)
			}
			p := got.Plans[0]
			if c.hold != 0 && p.Hold.Value != c.hold {
				t.Errorf("hold %v, want %v", p.Hold.Value, c.hold)
			}
			for i, s := range c.sentences {
				if i >= len(p.Guarantees) || p.Guarantees[i].String() != s {
					t.Errorf("guarantees %v, want %q", p.Guarantees, c.sentences)
					break
				}
			}
			if p.Safe != c.safe || p.Unsafe != c.unsafe || p.Runs != c.safe+c.unsafe {
				t.Errorf("counts %+v", p)
			}
			// The order of the runs does not matter, and the answer is JSON.
			slices.Reverse(runs)
			slices.Reverse(tuning)
			again, err := c.r.Solve(tuning, runs)
			if err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("reversed: %+v, %v, want %+v", again, err, got)
			}
			b, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			var back calib.Calibration
			if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(&back, got) {
				t.Errorf("from JSON: %+v, %v", back, err)
			}
		})
	}
}

func TestSolveRefuses(t *testing.T) {
	nan := math.NaN()
	with := func(runs []calib.Scored, change func(*calib.Scored)) []calib.Scored {
		change(&runs[len(runs)/2])
		return runs
	}
	few := func(of string, n, need int) func(error) bool {
		return func(err error) bool {
			var f *calib.TooFewError
			return errors.As(err, &f) && f.N == n && f.Need == need && strings.Contains(err.Error(), of)
		}
	}
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	top := func(err error) bool {
		var n *calib.NoLevelError
		return errors.As(err, &n) && n.Runs == 100 && n.AtTop == 100
	}
	infeasible := func(err error) bool {
		var n *calib.InfeasibleError
		return errors.As(err, &n) && len(n.Frontier) > 0 && n.Safe == 100 && n.Unsafe == 100
	}
	both := func() []calib.Scored { return append(safeRuns(100), unsafeRuns(100)...) }
	others := func() []calib.Scored { // runs that are no copies of those
		runs := both()
		for i := range runs {
			runs[i].Fingerprint = ""
		}
		return runs
	}
	for _, c := range []struct {
		name   string
		r      calib.Request
		tuning []calib.Scored
		runs   []calib.Scored
		want   func(error) bool
	}{
		{"nothing asked", calib.Request{}, nil, safeRuns(50), is(calib.ErrRequest)},
		{"NaN level", calib.Request{FalseAlarm: nan}, nil, safeRuns(50), is(calib.ErrLevel)},
		{"100 %", calib.Request{FalseAlarm: 1}, nil, safeRuns(50), is(calib.ErrLevel)},
		{"negative", calib.Request{Miss: -0.1}, nil, safeRuns(50), is(calib.ErrLevel)},
		{"budget of 100 %", calib.Request{HoldBudget: calib.Budget{Rate: 1}}, nil, safeRuns(50), is(calib.ErrLevel)},
		{"budget of 0 per call", calib.Request{FalseAlarm: 0.1, HoldBudget: calib.Budget{PerCall: true}}, nil, safeRuns(50), is(calib.ErrRequest)},
		{"certain", calib.Request{FalseAlarm: 0.1, Confidence: 1}, nil, safeRuns(50), is(calib.ErrLevel)},
		{"block above false alarms", calib.Request{FalseAlarm: 0.05, Block: 0.05}, nil, safeRuns(50), is(calib.ErrLevel)},
		{"block alone", calib.Request{Miss: 0.05, Block: 0.01}, nil, safeRuns(50), is(calib.ErrLevel)},
		{"unit", calib.Request{FalseAlarm: 0.1, Unit: "call"}, nil, safeRuns(50), is(calib.ErrRequest)},
		{"method", calib.Request{FalseAlarm: 0.1, Method: "luck"}, nil, safeRuns(50), is(calib.ErrRequest)},
		{"contamination of labelled runs", calib.Request{FalseAlarm: 0.1, Contamination: 0.1}, nil, safeRuns(50), is(calib.ErrRequest)},
		{"contamination above half", calib.Request{FalseAlarm: 0.1, AssumeSafe: true, Contamination: 0.6}, nil, safeRuns(50), is(calib.ErrLevel)},
		{"groups without a tuning part", calib.Request{FalseAlarm: 0.1, By: []string{"suite"}}, nil,
			[]calib.Scored{{Path: []string{"a"}}}, is(calib.ErrTuning)},
		{"paths missing", calib.Request{FalseAlarm: 0.1, By: []string{"suite"}}, safeRuns(50), safeRuns(50), is(calib.ErrRequest)},
		{"weights and groups", calib.Request{FalseAlarm: 0.1, By: []string{"suite"}, Shift: &calib.Shift{Weight: func(*calib.Scored) float64 { return 1 }, Top: 1}}, nil, nil, is(calib.ErrRequest)},
		{"weights that are none", calib.Request{FalseAlarm: 0.1, Shift: &calib.Shift{Top: 1, Weight: func(*calib.Scored) float64 { return nan }}}, nil, safeRuns(50), is(calib.ErrRequest)},
		{"few effective runs", calib.Request{FalseAlarm: 0.1, Shift: &calib.Shift{Top: 1, Weight: func(s *calib.Scored) float64 {
			return map[bool]float64{true: 1, false: 1e-3}[s.Risk < 0.1]
		}}}, nil, safeRuns(50), few("effective safe runs (50 weighted ones)", 5, 9)},
		{"no runs", calib.Request{FalseAlarm: 0.05}, nil, nil, few("scored safe runs", 0, 19)},
		{"too few", calib.Request{FalseAlarm: 0.05}, nil, safeRuns(18), few("scored safe runs", 18, 19)},
		{"too few with confidence", calib.Request{FalseAlarm: 0.05, Confidence: 0.95}, nil, safeRuns(58), few("scored safe runs", 58, 59)},
		{"too few unsafe", calib.Request{Miss: 0.1}, nil, append(safeRuns(50), unsafeRuns(8)...), few("scored unsafe runs", 8, 9)},
		{"too few unsafe with confidence", calib.Request{FalseAlarm: 0.3, Miss: 0.1, Confidence: 0.95}, others(), append(safeRuns(50), unsafeRuns(20)...), few("scored unsafe runs", 20, 29)},
		{"too few for the budget", calib.Request{FalseAlarm: 0.3, HoldBudget: calib.Budget{Rate: 0.01}}, nil, safeRuns(98), few("scored runs", 98, 99)},
		{"too few groups", calib.Request{FalseAlarm: 0.05, Unit: calib.ByGroup}, nil, with(safeRuns(100), func(*calib.Scored) {})[:18], few("groups", 18, 19)},
		{"too few beside the contamination", calib.Request{FalseAlarm: 0.05, AssumeSafe: true, Contamination: 0.1}, nil, safeRuns(20), few("scored safe runs", 20, 22)},
		{"copies fake n", calib.Request{FalseAlarm: 0.05}, nil, append(safeRuns(18), safeRuns(18)...), func(err error) bool {
			return few("scored safe runs", 18, 19)(err) && strings.Contains(err.Error(), "18 copies of other runs")
		}},
		{"copies across the parts fake n", calib.Request{FalseAlarm: 0.05, Miss: 0.1, Confidence: 0.9}, both(), both(), few("scored safe runs", 0, 45)},
		{"NaN risk", calib.Request{FalseAlarm: 0.05}, nil, with(safeRuns(50), func(s *calib.Scored) { s.Risk = nan }), is(calib.ErrScore)},
		{"infinite hazard", calib.Request{FalseAlarm: 0.05}, nil, with(safeRuns(50), func(s *calib.Scored) { s.Hazard = calib.Off }), is(calib.ErrScore)},
		{"a call above 1", calib.Request{FalseAlarm: 0.05}, nil, with(safeRuns(50), func(s *calib.Scored) { s.Calls = []float64{2} }), is(calib.ErrScore)},
		{"a label that is none", calib.Request{FalseAlarm: 0.05}, nil, with(safeRuns(50), func(s *calib.Scored) { s.Label = 7 }), is(calib.ErrRequest)},
		{"trained on", calib.Request{FalseAlarm: 0.05, Trained: map[string]struct{}{"s3": {}}}, nil, safeRuns(50), is(calib.ErrTrained)},
		{"saturated", calib.Request{FalseAlarm: 0.05}, nil, func() []calib.Scored {
			runs := safeRuns(100)
			for i := range runs {
				runs[i].Risk, runs[i].Hazard = 1, 1
			}
			return runs
		}(), top},
		{"budget that held calls exceed", calib.Request{HoldBudget: calib.Budget{Rate: 0.05}}, nil, func() []calib.Scored {
			runs := safeRuns(100)
			for i := range 10 {
				runs[i].Calls = []float64{0.2, 1}
			}
			return runs
		}(), func(err error) bool {
			var n *calib.NoLevelError
			return errors.As(err, &n) && n.Bound == calib.BoundHolds && n.AtTop == 10
		}},
		{"no pair", calib.Request{FalseAlarm: 0.05, Miss: 0.05, Confidence: 0.9}, others(), both(), infeasible},
		{"no window", calib.Request{FalseAlarm: 0.05, Miss: 0.05}, nil, both(), infeasible},
		{"no window beside the budget", calib.Request{Miss: 0.05, HoldBudget: calib.Budget{Rate: 0.1}}, nil, both(), infeasible},
		{"no labels of one kind to tune on", calib.Request{FalseAlarm: 0.5, Miss: 0.5, Confidence: 0.9}, safeRuns(3)[:0], both(), is(calib.ErrTuning)},
		{"budget per call without calls", calib.Request{HoldBudget: calib.Budget{Rate: 0.1, PerCall: true, MaxCalls: 5}}, nil, safeRuns(50), func(err error) bool {
			return err != nil && strings.Contains(err.Error(), "lists no calls")
		}},
		{"budget per call without a cap", calib.Request{HoldBudget: calib.Budget{Rate: 0.1, PerCall: true}}, nil, safeRuns(50), is(calib.ErrRequest)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.r.Solve(c.tuning, c.runs)
			if err == nil || !c.want(err) {
				t.Errorf("got %+v, error %v", got, err)
			}
			if err != nil && !strings.Contains(err.Error(), "calib") {
				t.Errorf("error %q does not say where it comes from", err)
			}
		})
	}
}

func TestSolveNotes(t *testing.T) {
	same := safeRuns(100)
	for i := range same {
		same[i].Risk, same[i].Group = 0.25, fmt.Sprint(i/10)
	}
	same = append(same, same[0])
	c, err := calib.Request{FalseAlarm: 0.05, Block: 0.01}.Solve(nil, same)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"same risk of 0.25", "of 10 groups", "1 runs are copies"} {
		if !strings.Contains(strings.Join(c.Notes, "\n"), want) {
			t.Errorf("%q is not in %q", want, c.Notes)
		}
	}
	if c.Plans[0].Hold.Value != calib.NextAbove(0.25) || !slices.Equal(c.Copies, []string{"safe-0"}) {
		t.Errorf("%+v", c)
	}
	if strings.Contains(strings.Join(c.Notes, "\n"), "another label") {
		t.Errorf("no label is in doubt: %q", c.Notes)
	}
	torn := same[0]
	torn.Label = calib.Unsafe
	if c, err = (calib.Request{FalseAlarm: 0.05}).Solve(nil, append(same, torn)); err != nil || !strings.Contains(strings.Join(c.Notes, "\n"), "1 of the copies have another label") {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = calib.Request{FalseAlarm: 0.05, Block: 0.01}.Solve(nil, safeRuns(50))
	if err != nil || !strings.Contains(strings.Join(c.Notes, "\n"), "BLOCK is off: 50 safe runs") {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestAssumeSafe(t *testing.T) {
	runs := safeRuns(200)
	for i := range runs {
		runs[i].Label = calib.Unlabelled
	}
	if _, err := (calib.Request{FalseAlarm: 0.05}).Solve(nil, runs); err == nil {
		t.Error("unlabelled runs were taken for safe ones unasked")
	}
	c, err := calib.Request{FalseAlarm: 0.05, AssumeSafe: true, Contamination: 0.02}.Solve(nil, runs)
	if err != nil {
		t.Fatal(err)
	}
	g := c.Plans[0].Guarantees[0]
	if !g.Assumed || g.Spoiled != 4 || !strings.Contains(g.String(), "still holds if up to 4 of the runs are not") {
		t.Errorf("%+v: %s", g, g)
	}
	// (200-4+1) * 0.05 = 9.85: eight alerts.
	if c.Plans[0].Alerted != 8 {
		t.Errorf("%d are alerted, want 8", c.Plans[0].Alerted)
	}
}

// TestSolveProperties: whatever the runs, an answer is in order and a refusal is
// one of those documented.
func TestSolveProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		levels := rapid.SampledFrom([]int{2, 10, 1 << 16}).Draw(t, "levels")
		make1 := func(n int, part string) (runs []calib.Scored) {
			for i := range n {
				score := func() float64 { return float64(rng.IntN(levels+1)) / float64(levels) }
				s := calib.Scored{ID: fmt.Sprint(part, i), Label: calib.Label(rng.IntN(3)), Hazard: score(), Risk: score(), Group: fmt.Sprint(rng.IntN(30)),
					Path: []string{fmt.Sprint(rng.IntN(3)), fmt.Sprint(rng.IntN(2))}, Fingerprint: fmt.Sprint(rng.IntN(4 * n))}
				for range 1 + rng.IntN(4) {
					s.Calls = append(s.Calls, score())
				}
				runs = append(runs, s)
			}
			return runs
		}
		pick := func(name string, of ...float64) float64 { return rapid.SampledFrom(of).Draw(t, name) }
		r := calib.Request{
			FalseAlarm: pick("alarm", 0, 0.1, 0.4), Block: pick("block", 0, 0.02), Miss: pick("miss", 0, 0.2, 0.6), Confidence: pick("confidence", 0, 0.9),
			HoldBudget: calib.Budget{Rate: pick("rate", 0, 0.2), PerCall: rapid.Bool().Draw(t, "per call")},
			Unit:       rapid.SampledFrom([]calib.Unit{calib.ByRun, calib.ByGroup}).Draw(t, "unit"), By: []string{"suite", "tool"},
			Method: rapid.SampledFrom([]calib.Method{calib.Pareto, calib.Bonferroni}).Draw(t, "method"), AssumeSafe: rapid.Bool().Draw(t, "assume"),
		}
		runs := make1(rapid.IntRange(0, 300).Draw(t, "n"), "c")
		c, err := r.Solve(make1(rapid.IntRange(0, 100).Draw(t, "tuning"), "t"), runs)
		if err != nil {
			var few *calib.TooFewError
			var top *calib.NoLevelError
			var no *calib.InfeasibleError
			known := errors.As(err, &few) || errors.As(err, &top) || errors.As(err, &no)
			for _, e := range []error{calib.ErrLevel, calib.ErrRequest, calib.ErrTuning} {
				known = known || errors.Is(err, e)
			}
			if !known {
				t.Fatalf("error %v", err)
			}
			if few != nil && few.Need <= few.N && few.N > 0 {
				t.Fatalf("%v: more are needed than %d?", err, few.N)
			}
			return
		}
		for _, p := range c.Plans {
			for _, l := range []calib.Threshold{p.Hold, p.Block} {
				if !l.IsOff() && !(l.Value > 0 && l.Value <= 1 && calib.Grid(l.Value) == l.Value) {
					t.Fatalf("level %+v", l)
				}
			}
			if len(p.Guarantees) == 0 || p.Alerted > p.Safe || p.Missed > p.Unsafe || p.Blocked > p.Alerted {
				t.Fatalf("plan %+v", p)
			}
			if r.Block == 0 && !p.Block.IsOff() {
				t.Fatalf("BLOCK is on unasked: %+v", p)
			}
			for _, g := range p.Guarantees {
				s := g.String()
				if strings.Contains(s, "%!") || !strings.HasSuffix(s, ".") || strings.Contains(s, "  ") {
					t.Fatalf("sentence %q", s)
				}
			}
		}
		for _, s := range runs {
			if p := c.For(s.Path); p == nil {
				t.Fatalf("no plan for %q", s.Path)
			}
		}
	})
}

func TestScore(t *testing.T) {
	f := calib.Fusion{TempHazard: 1, TempPrefix: 1, WeightHazard: 1, Beta: 0.8, Window: 4}
	r := calib.Run{ID: "x", Group: "g", Unsafe: true, Hazard: 1, Haz: []float64{0, 1, 2, 3}, Pre: make([]float64, 4),
		Judged: []bool{true, true, false, true}, Held: []bool{false, false, false, true}}
	s, scored := f.Score(r)
	haz, risk, _ := calib.RunScore(f, r)
	if !scored || s.Label != calib.Unsafe || s.Hazard != haz || s.Risk != risk || len(s.Calls) != 3 || s.Calls[2] != 1 || s.Calls[1] != risk {
		t.Errorf("%+v", s)
	}
	r.Judged = make([]bool, 4)
	if _, scored := f.Score(r); scored {
		t.Error("a run without a call has a score")
	}
}

// BenchmarkSolve is the arithmetic of a recalibration on 10,000 scored runs.
func BenchmarkSolve(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	runs := labelled(rng, 10_000, "x")
	for i := range runs {
		runs[i].Group = fmt.Sprint(i / 3)
		runs[i].Fingerprint = fmt.Sprint(i)
		runs[i].Path = []string{fmt.Sprint("suite-", i%7)}
		for range 8 {
			runs[i].Calls = append(runs[i].Calls, rng.Float64())
		}
	}
	tuning, conformal := calib.Split(runs, 0.3, 1)
	for _, c := range []struct {
		name string
		r    calib.Request
	}{
		{"marginal", calib.Request{FalseAlarm: 0.05, Block: 0.01}},
		{"confident", calib.Request{FalseAlarm: 0.05, Block: 0.01, Confidence: 0.95}},
		{"groups", calib.Request{FalseAlarm: 0.05, Block: 0.01, Unit: calib.ByGroup, Confidence: 0.95}},
		{"learn-then-test", calib.Request{FalseAlarm: 0.45, Block: 0.05, Miss: 0.4, Confidence: 0.95}},
		{"budget per call", calib.Request{FalseAlarm: 0.05, HoldBudget: calib.Budget{Rate: 0.05, PerCall: true}}},
	} {
		c.r.By = []string{"suite"}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := c.r.Solve(tuning, conformal); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
