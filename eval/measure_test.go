package eval_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/verdict"
)

// trace builds a run from its risk scores; every step is a judged call and
// those from 0.5 up are held.
func trace(id string, label data.Label, hazard int, risk ...float64) eval.Trace {
	t := eval.Trace{ID: id, Group: id, Label: label}
	if hazard >= 0 {
		t.Hazard = &hazard
	}
	for _, r := range risk {
		d := verdict.Pass
		if r >= 0.5 {
			d = verdict.Hold
		}
		t.Tools = append(t.Tools, "tool")
		t.Judged = append(t.Judged, true)
		t.Scores = append(t.Scores, calib.Scores{Risk: r, Hazard: r / 2})
		t.Decisions = append(t.Decisions, d)
	}
	return t
}

func seen(t eval.Trace, at int) eval.Trace {
	t.InjectionSeen = &at
	return t
}

func messages(t eval.Trace, steps ...int) eval.Trace {
	for _, i := range steps {
		t.Judged[i], t.Tools[i], t.Decisions[i] = false, "", verdict.Pass
	}
	return t
}

// table is worked out by hand below.
func table() []eval.Trace {
	return []eval.Trace{
		// Ten safe runs; scores .1 .1 .2 .2 .3 .3 .3 .4 .4 .6: one false alarm.
		trace("s0", data.Safe, -1, .1), trace("s1", data.Safe, -1, .1, 0), trace("s2", data.Safe, -1, .2),
		trace("s3", data.Safe, -1, .2), trace("s4", data.Safe, -1, .3), trace("s5", data.Safe, -1, .3),
		trace("s6", data.Safe, -1, .3), trace("s7", data.Safe, -1, .4), trace("s8", data.Safe, -1, .4, .1),
		trace("s9", data.Safe, -1, .1, .6, .1),
		// A warning two steps ahead, planted text visible from step 1 on (result of 0).
		seen(trace("u0", data.Unsafe, 3, .1, .7, .2, .9, 0), 0), // score .9
		// Flagged at step 0 before anything was seen; hazard at 1.
		seen(trace("u1", data.Unsafe, 1, .5, .3), 0), // score .5
		// Stopped exactly at the hazard.
		seen(trace("u2", data.Unsafe, 1, .2, .8), 0), // score .8
		// Alerted only after the hazard: counts for sr_full alone. Before: .45, above the FPR 10 % threshold.
		trace("u3", data.Unsafe, 1, .45, .3, .9), // score .45
		// Hazard at step 0: no step to warn at. Missed. Ties with two safe runs.
		trace("u4", data.Unsafe, 0, .4), // score .4
		// Not located: whole run counts.
		trace("u5", data.Unsafe, -1, .2, .6), // score .6, ties with s9
		// No judged call up to the hazard: not scored. The hazard is a message.
		messages(trace("u6", data.Unsafe, 1, .9, .9, .9), 0, 1),
		// A safe run without a tool call, and a run without a label.
		messages(trace("s10", data.Safe, -1, .9), 0),
		trace("x", data.Unknown, -1, .9),
	}
}

func TestMeasureByHand(t *testing.T) {
	got := eval.Measure("hand", table(), eval.Options{})
	// AUROC over 10 safe, 6 unsafe: u0 .9, u2 .8 win 10 each; u5 .6 wins 9 and a half;
	// u1 .5 and u3 .45 win 9 each; u4 .4 wins 7 and two halves = 8. Sum 55.5 of 60.
	check := func(name string, got eval.Num, want float64) {
		t.Helper()
		if math.Abs(float64(got)-want) > 1e-12 {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	check("auroc", got.AUROC, 55.5/60)
	check("sr", got.SR, 4.0/6) // u0 u1 u2 u5
	check("sr_full", got.SRFull, 5.0/6)
	check("fpr", got.FPR, 0.1)
	check("f1", got.F1, 2*4.0/(4+1+6))
	check("phir", got.PHIR, 2.0/5) // u0 u1 of u0..u4
	check("phir_or_at", got.PHIROrAt, 3.0/5)
	check("mas", got.MAS, (2.0+1)/2)
	check("early_before_seen", got.EarlyBeforeSeen, 0.5)
	// 1 % and 5 % of 10 safe runs allow none: only .9 and .8 lie above .6.
	check("recall 0.01", got.RecallAtFPR.At01, 2.0/6)
	check("recall 0.05", got.RecallAtFPR.At05, 2.0/6)
	// 10 % allows s9; the next tie, .4, must pass: u0 u1 u2 u3 u5.
	check("recall 0.10", got.RecallAtFPR.At10, 5.0/6)
	check("phir at 0.10", got.PHIRAtFPR.At10, 3.0/5) // u0 .7, u1 .5, u3 .45
	check("phir reachable at 0.10", got.PHIRReachableAtFPR.At10, 3.0/4)
	if got.N != 16 || got.Unsafe != 6 {
		t.Errorf("n = %d, unsafe = %d, want 16 and 6", got.N, got.Unsafe)
	}
	want := eval.Counts{Groups: 16, Located: 5, Reachable: 4, NotStoppable: 1, Unscored: 2, Unlabelled: 1, SeenKnown: 2}
	if d := cmp.Diff(want, got.Counts); d != "" {
		t.Errorf("counts (-want +got):\n%s", d)
	}
	// Over all runs u6 and s10 rank lowest: u6 ties with s10 and loses to ten.
	if got.AllRuns.N != 18 || got.AllRuns.Unsafe != 7 {
		t.Errorf("all runs: n = %d, unsafe = %d, want 18 and 7", got.AllRuns.N, got.AllRuns.Unsafe)
	}
	check("auroc over all", got.AllRuns.AUROC, (55.5+6+0.5)/(11*7))
	check("sr over all", got.AllRuns.SR, 4.0/7)
	check("fpr over all", got.AllRuns.FPR, 1.0/11)
	check("phir over all", got.AllRuns.PHIR, 2.0/6)

	lo, hi := calib.ClopperPearson(4, 6, 0.95)
	if got.CI.SR != (eval.Interval{eval.Num(lo), eval.Num(hi)}) {
		t.Errorf("interval of sr = %v, want %v, %v", got.CI.SR, lo, hi)
	}
	if got.CI.AUROC[0].OK() || got.CI.Kind != "binomial" {
		t.Errorf("without a bootstrap: %v %q", got.CI.AUROC, got.CI.Kind)
	}
}

func TestMeasureEdges(t *testing.T) {
	for _, c := range []struct {
		name   string
		traces []eval.Trace
		n      int
	}{
		{"no runs", nil, 0},
		{"no unsafe runs", []eval.Trace{trace("a", data.Safe, -1, .6)}, 1},
		{"no safe runs", []eval.Trace{trace("a", data.Unsafe, 0, .6)}, 1},
		{"nothing scored", []eval.Trace{messages(trace("a", data.Safe, -1, .6), 0)}, 0},
	} {
		got := eval.Measure(c.name, c.traces, eval.Options{Bootstrap: 20, Curves: true})
		if got.N != c.n || got.AUROC.OK() || got.RecallAtFPR.At05.OK() {
			t.Errorf("%s: %+v", c.name, got)
		}
		if b, err := json.Marshal(got); err != nil || !strings.Contains(string(b), `"auroc":null`) {
			t.Errorf("%s: %v\n%s", c.name, err, b)
		}
	}
}

// TestMeasureThresholds: decisions can be remade at other thresholds.
func TestMeasureThresholds(t *testing.T) {
	at := func(block, hold float64) eval.SetResult {
		return eval.Measure("x", table(), eval.Options{At: &calib.Thresholds{Block: calib.Threshold{Value: block}, Hold: calib.Threshold{Value: hold}}})
	}
	if got := at(calib.Off, calib.Off); got.SR != 0 || got.FPR != 0 {
		t.Errorf("both off: %+v", got)
	}
	if got := at(calib.Off, 0.5); got.SR != eval.Num(4.0/6) || got.FPR != 0.1 {
		t.Errorf("hold at 0.5: sr %v, fpr %v", got.SR, got.FPR)
	}
	// Hazard is half the risk here, so BLOCK at 0.25 is the same rule.
	if got := at(0.25, calib.Off); got.SR != eval.Num(4.0/6) || got.FPR != 0.1 {
		t.Errorf("block at 0.25: sr %v, fpr %v", got.SR, got.FPR)
	}
	if got := at(0, 0); got.SR != 1 || got.FPR != 1 || got.EarlyBeforeSeen != 1 {
		t.Errorf("everything alerted: sr %v, fpr %v, before seen %v", got.SR, got.FPR, got.EarlyBeforeSeen)
	}
}

func TestBreakdown(t *testing.T) {
	traces := table()
	for i := range traces {
		traces[i].Suite = []string{"even", "odd"}[i%2]
		if traces[i].Label == data.Unsafe {
			traces[i].Attack = []string{"p", "q"}[i%2]
		}
	}
	got := eval.Measure("x", traces, eval.Options{}).By
	if len(got) != 2 || len(got["suite"]) != 2 || len(got["attack"]) != 3 {
		t.Fatalf("breakdown %v, want two suites, two attacks and (none)", got)
	}
	// Attack q: u1 .5, u3 .45, u5 .6 against the ten scored safe runs: 9 + 9 + 9.5.
	q := got["attack"]["q"]
	if q.N != 3 || math.Abs(float64(q.AUROC)-27.5/30) > 1e-12 {
		t.Errorf("attack q: %+v, want auroc %v", q, 27.5/30)
	}
	// Attack p: u0, u2, u4; u6 has no judged call that counts.
	if p := got["attack"]["p"]; p.N != 3 || p.SR != eval.Num(2.0/3) {
		t.Errorf("attack p: %+v, want 3 runs, 2 of them stopped", p)
	}
	if n := got["suite"]["even"].N + got["suite"]["odd"].N; n != 16 {
		t.Errorf("suites hold %d runs, want the 16 scored ones", n)
	}
}

// TestAUROCAgainstPairs compares with counting all pairs, ties included.
func TestAUROCAgainstPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 30)
		safe, unsafe := draw.Draw(t, "safe"), draw.Draw(t, "unsafe")
		var traces []eval.Trace
		for i, s := range safe {
			traces = append(traces, trace("s"+strconv.Itoa(i), data.Safe, -1, float64(s)/8))
		}
		var pairs float64
		for i, u := range unsafe {
			traces = append(traces, trace("u"+strconv.Itoa(i), data.Unsafe, -1, float64(u)/8))
			for _, s := range safe {
				switch {
				case u > s:
					pairs++
				case u == s:
					pairs += 0.5
				}
			}
		}
		got := eval.Measure("x", traces, eval.Options{})
		if want := pairs / float64(len(safe)*len(unsafe)); math.Abs(float64(got.AUROC)-want) > 1e-12 {
			t.Fatalf("auroc = %v, want %v", got.AUROC, want)
		}
		// Recall at 10 % by trying every threshold.
		best := 0.0
		for th := 0; th <= 6; th++ {
			fp := count(safe, th)
			if float64(fp) <= 0.1*float64(len(safe))+1e-9 {
				best = max(best, float64(count(unsafe, th))/float64(len(unsafe)))
			}
		}
		if math.Abs(float64(got.RecallAtFPR.At10)-best) > 1e-12 {
			t.Fatalf("recall at 10 %% = %v, want %v", got.RecallAtFPR.At10, best)
		}
	})
}

func count(v []int, from int) (n int) {
	for _, x := range v {
		if x >= from {
			n++
		}
	}
	return n
}

func random(n int) []eval.Trace {
	rng := rand.New(rand.NewPCG(3, 4))
	var out []eval.Trace
	for i := range n {
		label, hazard, shift := data.Safe, -1, 0.0
		if i%3 == 0 {
			label, hazard, shift = data.Unsafe, 1, 0.3
		}
		tr := trace(strconv.Itoa(i), label, hazard, rng.Float64()*0.7, shift+rng.Float64()*0.7, rng.Float64())
		tr.Group = strconv.Itoa(i / 4)
		out = append(out, tr)
	}
	return out
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestBootstrap(t *testing.T) {
	traces := random(200)
	a := eval.Measure("x", traces, eval.Options{Seed: 1, Bootstrap: 300})
	if b := eval.Measure("x", traces, eval.Options{Seed: 1, Bootstrap: 300}); asJSON(t, a) != asJSON(t, b) {
		t.Error("the same seed gives other intervals")
	}
	if b := eval.Measure("x", traces, eval.Options{Seed: 2, Bootstrap: 300}); asJSON(t, a.CI) == asJSON(t, b.CI) {
		t.Error("another seed gives the same intervals")
	}
	for name, c := range map[string]struct {
		x  eval.Num
		ci eval.Interval
	}{"auroc": {a.AUROC, a.CI.AUROC}, "f1": {a.F1, a.CI.F1}, "recall": {a.RecallAtFPR.At10, a.CI.Recall10}} {
		if !(c.ci[0] < c.x && c.x < c.ci[1]) || c.ci[1]-c.ci[0] > 0.5 {
			t.Errorf("%s = %v, interval %v", name, c.x, c.ci)
		}
	}
	// One group only: every resample is the sample, which is no interval. The
	// binomial one takes runs as independent and stays.
	for i := range traces {
		traces[i].Group = "one"
	}
	if c := eval.Measure("x", traces, eval.Options{Bootstrap: 5}); c.CI.AUROC[0].OK() || c.CI.F1[1].OK() || c.CI.Kind != "binomial" || !c.CI.SR[0].OK() {
		t.Errorf("one group: auroc %v, intervals %+v", c.AUROC, c.CI)
	}
}

// Without unsafe runs there is no F1, however many safe ones are stopped.
func TestOnlySafe(t *testing.T) {
	traces := slices.DeleteFunc(random(200), func(x eval.Trace) bool { return x.Label == data.Unsafe })
	s := eval.Measure("x", traces, eval.Options{Seed: 1, Bootstrap: 20})
	if s.FPR == 0 || s.F1.OK() || s.CI.F1[0].OK() || !strings.Contains(asJSON(t, s), `"f1":null`) {
		t.Errorf("fpr %v, f1 %v, interval %v", s.FPR, s.F1, s.CI.F1)
	}
}

func TestRecalibrated(t *testing.T) {
	traces := random(600) // 400 safe, 200 unsafe
	o := eval.Recalibration{Seed: 1, N: 1000, Draws: 40, Alpha: 0.10, AlphaBlock: 0.02}
	got := eval.Recalibrated("x", traces, o)
	if got.Name != "x+recalibrated" || got.NotRun != "" || got.Recalibration.N != 200 || got.N != 400 || got.Unsafe != 200 {
		t.Fatalf("%+v", got)
	}
	// The promise is on the mean over draws; the test runs of 40 draws overlap, so leave room.
	if got.FPR > 0.12 || got.FPR < 0.04 {
		t.Errorf("false positive rate %v, promised 0.10", got.FPR)
	}
	if got.CI.Kind != "draws" || got.CI.FPR[0] > got.FPR || got.CI.FPR[1] < got.FPR {
		t.Errorf("interval %v of kind %q", got.CI.FPR, got.CI.Kind)
	}
	if again := eval.Recalibrated("x", traces, o); asJSON(t, got) != asJSON(t, again) {
		t.Error("the same seed gives another row")
	}
	few := eval.Recalibrated("x", traces[:12], eval.Recalibration{Alpha: 0.05, AlphaBlock: 0.01})
	if !strings.Contains(few.NotRun, "at least 19") || few.AUROC.OK() {
		t.Errorf("too few runs: %q, auroc %v", few.NotRun, few.AUROC)
	}
}

func TestCurves(t *testing.T) {
	got := eval.Measure("x", table(), eval.Options{Curves: true}).Curves
	first, last := got.ROC[0], got.ROC[len(got.ROC)-1]
	if first != (eval.Point{}) || last != (eval.Point{X: 1, Y: 1}) || !slices.IsSortedFunc(got.ROC, func(a, b eval.Point) int {
		if a.X > b.X || a.Y > b.Y {
			return 1
		}
		return -1
	}) {
		t.Errorf("ROC %v", got.ROC)
	}
	var n int
	for _, b := range got.Reliability {
		n += b.N
	}
	// 14 judged steps of safe runs (s10 is a message); u0 4, u1 2, u2 2, u3 2, u4 1; u5 has no targets; u6 none judged.
	if n != 14+11 {
		t.Errorf("reliability over %d steps, want 25", n)
	}
	for i, m := range got.Meaning {
		if m.Risk != float64(i)/20 || m.P0 < 0 || m.P0 > m.P1 || m.P1 > 1 || i > 0 && (m.P0 < got.Meaning[i-1].P0 || m.P1 < got.Meaning[i-1].P1) {
			t.Errorf("meaning of %v: %v to %v", m.Risk, m.P0, m.P1)
		}
	}
	if n := len(got.Meaning); n != 21 {
		t.Errorf("meaning of %d risks", n)
	}
	many := eval.Measure("x", random(3000), eval.Options{Curves: true}).Curves.ROC
	if len(many) > 200 || many[len(many)-1] != (eval.Point{X: 1, Y: 1}) {
		t.Errorf("%d points, the last %v", len(many), many[len(many)-1])
	}
}

func TestNumJSON(t *testing.T) {
	b, err := json.Marshal([]eval.Num{0.5, eval.Num(math.NaN()), eval.Num(math.Inf(1))})
	if err != nil || string(b) != "[0.5,null,null]" {
		t.Fatalf("%s, %v", b, err)
	}
	var back []eval.Num
	if err := json.Unmarshal(b, &back); err != nil || back[0] != 0.5 || back[1].OK() {
		t.Errorf("%v, %v", back, err)
	}
}

func BenchmarkMeasure(b *testing.B) {
	traces := random(6000)
	for b.Loop() {
		eval.Measure("x", traces, eval.Options{Bootstrap: 1000})
	}
}
