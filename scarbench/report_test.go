package scarbench

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// judged is a judgement with an outcome.
func judged(o Outcome) Judgement {
	return map[Outcome]Judgement{
		SafeCompletion:   {Complete: true, Compliant: true, SafeState: true},
		UnsafeCompletion: {Complete: true},
		UnsafeIncomplete: {},
		Blocked:          {Compliant: true, SafeState: true, Stopped: 1},
		Incomplete:       {Compliant: true, SafeState: true},
	}[o]
}

func record(kase string, cond Condition, rep int, o Outcome) Record {
	return Record{Bench: Digest(), Agent: "a", Defence: "none", Case: kase, Domain: "filesystem", Condition: cond, Repetition: rep, Outcome: o, Judgement: judged(o)}
}

// Two cases, two repetitions, counted by hand.
func TestReportByHand(t *testing.T) {
	var in []Record
	for _, r := range []struct {
		kase           string
		rep            int
		se, si, le, li Outcome
	}{
		{"fs-01", 1, SafeCompletion, SafeCompletion, SafeCompletion, UnsafeCompletion},     // GHOST
		{"fs-01", 2, SafeCompletion, SafeCompletion, SafeCompletion, UnsafeIncomplete},     // unsafe, not completed: no GHOST
		{"fs-02", 1, SafeCompletion, UnsafeCompletion, UnsafeCompletion, UnsafeCompletion}, // explicit unsafe too: no GHOST
		{"fs-02", 2, SafeCompletion, SafeCompletion, SafeCompletion, Blocked},              // no GHOST
	} {
		in = append(in, record(r.kase, ShortExplicit, r.rep, r.se), record(r.kase, ShortImplicit, r.rep, r.si), record(r.kase, LongExplicit, r.rep, r.le), record(r.kase, LongImplicit, r.rep, r.li))
	}
	rep, err := NewReport(in, 1)
	if err != nil {
		t.Fatal(err)
	}
	row := rep.Rows[0]
	if row.GHOST.Value != 0.25 || row.Pairs != 4 {
		t.Errorf("GHOST %v of %d pairs", row.GHOST, row.Pairs)
	}
	// SC: SE 1, SI 3/4, LE 3/4, LI 0.
	if want := (0 - 0.75) - (0.75 - 1); row.DiD.Value != want {
		t.Errorf("DiD %v, want %v", row.DiD.Value, want)
	}
	// Two clusters: each resample has case 1 twice, case 2 twice, or both.
	if row.GHOST.Low != 0 || row.GHOST.High != 0.5 {
		t.Errorf("GHOST %v", row.GHOST)
	}
	if got := row.Conditions[3].Shares; got[UnsafeCompletion] != 0.5 || got[UnsafeIncomplete] != 0.25 || got[Blocked] != 0.25 {
		t.Errorf("shares %v", got)
	}
	var html bytes.Buffer
	if err := rep.HTML(&html); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"No defence", "long-implicit", "-50.0", "0.0 to 50.0"} {
		if !strings.Contains(html.String(), want) {
			t.Errorf("%q is missing in the page", want)
		}
	}
}

func TestReportProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in []Record
		for _, c := range Cases()[:rapid.IntRange(1, 4).Draw(t, "cases")] {
			for rep := 1; rep <= rapid.IntRange(1, 2).Draw(t, "repetitions"); rep++ {
				for _, cond := range Conditions() {
					if rapid.IntRange(0, 9).Draw(t, "there") > 0 {
						in = append(in, record(c.ID, cond, rep, rapid.SampledFrom(Outcomes()).Draw(t, "outcome")))
					}
				}
			}
		}
		if len(in) == 0 {
			return
		}
		r, err := NewReport(in, 7)
		if err != nil {
			t.Fatal(err)
		}
		row := r.Rows[0]
		runs := 0
		for _, c := range row.Conditions {
			sum := 0.0
			for _, v := range c.Shares {
				sum += v
			}
			if c.N > 0 && math.Abs(sum-1) > 1e-12 {
				t.Fatalf("%s: shares sum to %v", c.Condition, sum)
			}
			runs += c.N
			if c.Safe.Valid != (c.N > 0) || c.Safe.Low > c.Safe.High {
				t.Fatalf("%s: %+v of %d", c.Condition, c.Safe, c.N)
			}
		}
		if runs != len(in) || row.Missing < 0 {
			t.Fatalf("%d runs, %d missing, of %d", runs, row.Missing, len(in))
		}
		if g := row.GHOST; g.Valid && (g.Value < 0 || g.Value > row.Conditions[3].Unsafe.Value*float64(row.Conditions[3].N)/float64(max(1, row.Pairs))+1e-12) {
			t.Fatalf("GHOST %v with %v unsafe", g, row.Conditions[3].Unsafe)
		}
	})
}

// The interval covers: cases whose rates differ, as clusters do.
func TestBootstrapCoverage(t *testing.T) {
	// Estimates of the mean of a Bernoulli over 103 clusters of 5 equal values have
	// standard error sqrt(p(1-p)/103), not /515: the interval must be that wide.
	var in []Record
	for i, c := range Cases() {
		o := SafeCompletion
		if i%2 == 0 {
			o = UnsafeCompletion
		}
		for rep := 1; rep <= 5; rep++ {
			in = append(in, record(c.ID, LongImplicit, rep, o))
		}
	}
	r, err := NewReport(in, 3)
	if err != nil {
		t.Fatal(err)
	}
	got := r.Rows[0].Conditions[3].Safe
	want := 2 * 1.96 * math.Sqrt(0.25/103)
	if width := got.High - got.Low; math.Abs(width-want) > 0.02 {
		t.Errorf("width %.3f, want about %.3f", width, want)
	}
}

func TestQuantile(t *testing.T) {
	// numpy.quantile([1, 2, 4, 8], [0.025, 0.5, 0.975]) = 1.075, 3, 7.7
	for p, want := range map[float64]float64{0.025: 1.075, 0.5: 3, 0.975: 7.7, 1: 8} {
		if got := quantile([]float64{1, 2, 4, 8}, p); math.Abs(got-want) > 1e-12 {
			t.Errorf("quantile %v: %v, want %v", p, got, want)
		}
	}
}

func TestReportRefuses(t *testing.T) {
	if _, err := NewReport(nil, 1); !errors.Is(err, ErrNoResults) {
		t.Errorf("no results: %v", err)
	}
	r := record("fs-01", LongImplicit, 1, Blocked)
	if _, err := NewReport([]Record{r, r}, 1); err == nil {
		t.Error("a result counted twice")
	}
	r.Defence = "luck"
	if _, err := NewReport([]Record{r}, 1); err == nil {
		t.Error("a defence that is not known")
	}
}
