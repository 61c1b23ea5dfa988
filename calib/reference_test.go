package calib_test

import (
	"math"
	"slices"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
)

// libraries is testdata/libraries.json, made by testdata/libraries.py with the
// versions it records.
type libraries struct {
	Quantiles []struct {
		Scores               []float64
		Alpha, Mapie, Crepes float64
	}
	Mondrian struct {
		Scores []float64
		Bins   []string
		Alpha  float64
		Q      map[string]float64
	}
	PValues struct {
		Scores, Tests, P []float64
	} `json:"p_values"`
	Online struct {
		Scores, U, P []float64
	}
	Jumper struct {
		P, Crepes, Mapie []float64
	}
	HoeffdingBentkus []struct {
		Mean, Level, P float64
		N              int
	} `json:"hoeffding_bentkus"`
	Misses []struct {
		Scores          []float64
		Miss, Threshold float64
	}
	LTT struct {
		Rows, Pairs, Valid []pair
		Labels             []int
		FalseAlarm         float64 `json:"false_alarm"`
		Miss, Confidence   float64
	}
	Isotonic []struct {
		X, Y, W, At, F []float64
	}
	VennAbers struct {
		Scores, At, P0, P1 []float64
		Labels             []int
	} `json:"venn_abers"`
	ROC struct {
		Scores []float64
		Labels []int
		Points [][3]float64 // level, false alarms, misses
	}
}

type pair [2]float64

func loadLibraries(t *testing.T) (l libraries) {
	t.Helper()
	read(t, "testdata/libraries.json", &l)
	return l
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12+1e-9*math.Abs(b) }

func TestBinomialAgainstSciPy(t *testing.T) {
	for _, v := range load(t).Binomial {
		if got := calib.BinomialP(v.X, v.N, v.Level); math.Abs(got-v.P) > 1e-300+1e-9*v.P {
			t.Errorf("BinomialP(%d, %d, %v) = %v, want %v", v.X, v.N, v.Level, got, v.P)
		}
	}
	for _, c := range []struct {
		x, n int
		want float64
	}{{-1, 10, 0}, {10, 10, 1}, {11, 10, 1}, {0, 0, 1}, {0, -1, 1}} {
		if got := calib.BinomialP(c.x, c.n, 0.3); got != c.want {
			t.Errorf("BinomialP(%d, %d) = %v, want %v", c.x, c.n, got, c.want)
		}
	}
}

func TestHoeffdingBentkusAgainstMAPIE(t *testing.T) {
	vs := loadLibraries(t).HoeffdingBentkus
	if len(vs) < 40 {
		t.Fatal("testdata/libraries.json is incomplete")
	}
	for _, v := range vs {
		if got := calib.HoeffdingBentkusP(v.Mean, v.N, v.Level); !near(got, v.P) {
			t.Errorf("HoeffdingBentkusP(%v, %d, %v) = %v, want %v", v.Mean, v.N, v.Level, got, v.P)
		}
	}
	for _, v := range load(t).HoeffdingBentkusUpper {
		if got := calib.HoeffdingBentkusUpper(v.Mean, v.N, v.C); math.Abs(got-v.Upper) > 1e-9 {
			t.Errorf("HoeffdingBentkusUpper(%v, %d, %v) = %v, want %v", v.Mean, v.N, v.C, got, v.Upper)
		}
	}
	if calib.HoeffdingBentkusP(0.5, 0, 0.1) != 1 || calib.HoeffdingBentkusUpper(0, 0, 0.9) != 1 || calib.HoeffdingBentkusUpper(1, 10, 0.9) != 1 {
		t.Error("no data or nothing but errors must bound nothing")
	}
}

func TestQuantileAgainstMAPIEAndCrepes(t *testing.T) {
	l := loadLibraries(t)
	for i, v := range l.Quantiles {
		got, err := calib.Quantile(v.Scores, v.Alpha)
		if err != nil || got.Value != calib.NextAbove(v.Mapie) || got.Value != calib.NextAbove(v.Crepes) {
			t.Errorf("%d: %+v, %v, want the grid point above %v and %v", i, got, err, v.Mapie, v.Crepes)
		}
	}
	// One threshold per category, through a request with groups.
	var runs []calib.Scored
	for i, s := range l.Mondrian.Scores {
		runs = append(runs, calib.Scored{ID: string(rune('A' + i)), Label: calib.Safe, Risk: s, Path: []string{l.Mondrian.Bins[i]}})
	}
	c, err := calib.Request{FalseAlarm: l.Mondrian.Alpha, By: []string{"bin"}}.Solve(runs, runs)
	if err != nil {
		t.Fatal(err)
	}
	for bin, q := range l.Mondrian.Q {
		if got := c.For([]string{bin}).Hold.Value; got != calib.NextAbove(q) {
			t.Errorf("bin %s: %v, want the grid point above %v", bin, got, q)
		}
	}
}

func TestMissThresholdAgainstMAPIE(t *testing.T) {
	for i, v := range loadLibraries(t).Misses {
		got, err := calib.MissThreshold(v.Scores, v.Miss, 0)
		if err != nil || got.Value != v.Threshold {
			t.Errorf("%d: %+v, %v, want %v", i, got, err, v.Threshold)
		}
	}
}

func TestWeightedQuantileAgainstNumPy(t *testing.T) {
	for i, v := range load(t).Weighted {
		got, err := calib.WeightedQuantile(v.Scores, v.Weights, v.Top, v.Alpha)
		if err != nil || got.Value != calib.NextAbove(v.Q) {
			t.Errorf("%d: %+v, %v, want the grid point above %v", i, got, err, v.Q)
		}
	}
}

func TestPValuesAgainstCrepes(t *testing.T) {
	l := loadLibraries(t)
	sorted := slices.Sorted(slices.Values(l.PValues.Scores))
	for i, s := range l.PValues.Tests {
		if got := calib.PValue(sorted, s); !near(got, l.PValues.P[i]) {
			t.Errorf("PValue(%v) = %v, want %v", s, got, l.PValues.P[i])
		}
	}
	h, err := calib.NewHistogram(nil, calib.Off)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range l.Online.Scores {
		if got, err := h.Add(s, l.Online.U[i]); err != nil || !near(got, l.Online.P[i]) {
			t.Fatalf("score %d: p = %v, %v, want %v", i, got, err, l.Online.P[i])
		}
	}
}

func TestMartingaleAgainstCrepesAndMAPIE(t *testing.T) {
	l := loadLibraries(t).Jumper
	m := calib.NewMartingale(0.01, 0)
	for i, p := range l.P {
		m.Bet(p)
		if got := math.Exp(m.LogValue()); !near(got, l.Crepes[i]) || !near(got, l.Mapie[i]) {
			t.Fatalf("after %d: %v, want %v and %v", i+1, got, l.Crepes[i], l.Mapie[i])
		}
	}
}

func TestRateAgainstSciPy(t *testing.T) {
	for _, v := range load(t).Rate {
		if got := (calib.Rate{N: v.N, Alerts: v.X}).LogWealth(v.Level); math.Abs(got-v.LogWealth) > 1e-8*max(1, math.Abs(v.LogWealth)) {
			t.Errorf("%d of %d against %v: %v, want %v", v.X, v.N, v.Level, got, v.LogWealth)
		}
	}
}

func TestIsotonicAgainstScikitLearn(t *testing.T) {
	for i, v := range loadLibraries(t).Isotonic {
		f, err := calib.FitIsotonic(v.X, v.Y, v.W)
		if err != nil {
			t.Fatal(err)
		}
		for j, x := range v.At {
			if got := f.At(x); !near(got, v.F[j]) {
				t.Errorf("%d: f(%v) = %v, want %v", i, x, got, v.F[j])
			}
		}
	}
}

func TestVennAbersAgainstMAPIE(t *testing.T) {
	l := loadLibraries(t).VennAbers
	outcomes := make([]bool, len(l.Labels))
	for i, y := range l.Labels {
		outcomes[i] = y == 1
	}
	v, err := calib.NewVennAbers(l.Scores, outcomes)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range l.At {
		if p0, p1 := v.Interval(s); !near(p0, l.P0[i]) || !near(p1, l.P1[i]) {
			t.Errorf("Interval(%v) = %v, %v, want %v, %v", s, p0, p1, l.P0[i], l.P1[i])
		}
	}
}

func TestSuspectsAgainstSciPy(t *testing.T) {
	v := load(t).Suspects
	runs := make([]calib.Scored, len(v.Scores))
	for i, s := range v.Scores {
		runs[i].Risk = s
	}
	got := calib.Suspects(runs, len(runs))
	for i, s := range got {
		if !near(s.Z, v.Z[s.Index]) || s.Outlier != (s.Z > 3.5) {
			t.Errorf("run %d: z = %v, want %v", s.Index, s.Z, v.Z[s.Index])
		}
		if i > 0 && runs[s.Index].Risk > runs[got[i-1].Index].Risk {
			t.Errorf("run %d stands after one of lower risk", s.Index)
		}
	}
}

// TestFrontierAgainstScikitLearn: the frontier is the Pareto front of all
// operating points of the ROC curve.
func TestFrontierAgainstScikitLearn(t *testing.T) {
	l := loadLibraries(t).ROC
	var runs []calib.Scored
	for i, s := range l.Scores {
		runs = append(runs, calib.Scored{Risk: s, Label: []calib.Label{calib.Safe, calib.Unsafe}[l.Labels[i]]})
	}
	got := calib.Frontier(runs, calib.Off)
	unsafe := 0
	for _, y := range l.Labels {
		unsafe += y
	}
	points := append(l.Points, [3]float64{2, 0, float64(unsafe)})
	var want int
	for _, p := range points {
		front := !slices.ContainsFunc(points, func(q [3]float64) bool {
			return q[1] <= p[1] && q[2] <= p[2] && (q[1] < p[1] || q[2] < p[2])
		})
		if !front {
			continue
		}
		want++
		if !slices.ContainsFunc(got, func(g calib.Tradeoff) bool {
			return g.FalseAlarms == int(p[1]) && g.Misses == int(p[2]) && (p[0] > 1 || g.Hold == p[0])
		}) {
			t.Errorf("missing: %v", p)
		}
	}
	if len(got) != want {
		t.Errorf("%d points, want %d", len(got), want)
	}
	for i := 1; i < len(got); i++ {
		if a, b := got[i-1], got[i]; b.FalseAlarms <= a.FalseAlarms || b.Misses >= a.Misses || b.Hold >= a.Hold {
			t.Errorf("%+v before %+v", a, b)
		}
	}
	// Every point lies on or above the hull, and its corners on it.
	var hull []calib.Tradeoff
	for _, p := range got {
		if p.Hull {
			hull = append(hull, p)
		}
	}
	for _, p := range got {
		for i := 1; i < len(hull); i++ {
			a, b := hull[i-1], hull[i]
			if p.FalseAlarms >= a.FalseAlarms && p.FalseAlarms <= b.FalseAlarms {
				w := float64(p.FalseAlarms-a.FalseAlarms) / float64(b.FalseAlarms-a.FalseAlarms)
				if line := (1-w)*float64(a.Misses) + w*float64(b.Misses); float64(p.Misses) < line-1e-9 {
					t.Errorf("%+v lies below the hull", p)
				}
			}
		}
	}
	if len(hull) < 3 || !got[0].Hull || !got[len(got)-1].Hull {
		t.Errorf("hull of %d corners", len(hull))
	}
}
