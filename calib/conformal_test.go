package calib_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/calib"
)

// reference is testdata/reference.json, made by testdata/reference.py with the
// SciPy version it records.
type reference struct {
	Intervals []struct {
		X, N   int
		C      float64 // confidence
		Lo, Hi float64
		Upper  float64
	}
	Ranks [][3]float64
	Need  []struct {
		Alpha, C float64
		N        int
	}
	Temperatures []struct {
		Logits, Targets, Weights []float64
		T                        float64
	}
	Binomial []struct {
		X, N     int
		Level, P float64
	}
	HoeffdingBentkusUpper []struct {
		Mean, C, Upper float64
		N              int
	} `json:"hoeffding_bentkus_upper"`
	Weighted []struct {
		Scores, Weights []float64
		Top, Alpha, Q   float64
	}
	Rate []struct {
		X, N      int
		Level     float64
		LogWealth float64 `json:"log_wealth"`
	}
	Suspects struct {
		Scores, Z []float64
	}
}

func load(t *testing.T) reference {
	t.Helper()
	var r reference
	read(t, "testdata/reference.json", &r)
	if len(r.Intervals) < 100 || len(r.Ranks) < 1000 || len(r.Need) == 0 || len(r.Temperatures) == 0 || len(r.Binomial) < 80 ||
		len(r.HoeffdingBentkusUpper) < 40 || len(r.Weighted) == 0 || len(r.Rate) < 20 || len(r.Suspects.Z) == 0 {
		t.Fatal("testdata/reference.json is incomplete")
	}
	return r
}

func read(t *testing.T, name string, v any) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

func TestIntervalsAgainstSciPy(t *testing.T) {
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-11+1e-9*math.Abs(b) }
	for _, v := range load(t).Intervals {
		lo, hi := calib.ClopperPearson(v.X, v.N, v.C)
		if !near(lo, v.Lo) || !near(hi, v.Hi) {
			t.Errorf("ClopperPearson(%d, %d, %v) = %v, %v, want %v, %v", v.X, v.N, v.C, lo, hi, v.Lo, v.Hi)
		}
		if up := calib.ClopperPearsonUpper(v.X, v.N, v.C); !near(up, v.Upper) {
			t.Errorf("ClopperPearsonUpper(%d, %d, %v) = %v, want %v", v.X, v.N, v.C, up, v.Upper)
		}
	}
}

func TestNeed(t *testing.T) {
	for _, v := range load(t).Need {
		if got := calib.NeedConfident(v.Alpha, v.C); got != v.N {
			t.Errorf("NeedConfident(%v, %v) = %d, want %d", v.Alpha, v.C, got, v.N)
		}
	}
	if got := calib.NeedConfident(0.05, 0.95); got != 59 {
		t.Errorf("NeedConfident(0.05, 0.95) = %d, want the textbook's 59", got)
	}
	for alpha, want := range map[float64]int{0.05: 19, 0.01: 99, 0.1: 9, 0.3: 3, 0.07: 14, 0.5: 1} {
		if got := calib.Need(alpha); got != want {
			t.Errorf("Need(%v) = %d, want %d", alpha, got, want)
		}
	}
}

// ramp returns n distinct grid scores in ascending order, none of them 1.
func ramp(n int) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = calib.Grid(float64(i+1) / float64(n+2))
	}
	return s
}

func TestQuantileRanks(t *testing.T) {
	for _, v := range load(t).Ranks {
		alpha, n, k := v[0], int(v[1]), int(v[2])
		if n > 2000 && testing.Short() {
			continue
		}
		got, err := calib.Quantile(make([]float64, n), alpha)
		var few *calib.TooFewError
		switch {
		case k > n:
			if !errors.As(err, &few) || few.N != n || few.Need != calib.Need(alpha) || few.Alpha != alpha {
				t.Errorf("alpha %v, n %d: error %v, want *TooFewError", alpha, n, err)
			}
		case err != nil:
			t.Errorf("alpha %v, n %d: %v", alpha, n, err)
		case got.K != k || got.N != n || got.Value != calib.GridStep:
			t.Errorf("alpha %v, n %d: %+v, want k = %d and the grid point above 0", alpha, n, got, k)
		}
	}
}

func TestQuantile(t *testing.T) {
	s := ramp(39)
	got, err := calib.Quantile(s, 0.05)
	want := calib.Threshold{Value: s[37] + calib.GridStep, K: 38, N: 39, Alpha: 0.05}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	// Off the grid, in any order: the same threshold.
	shuffled := make([]float64, len(s))
	for i, x := range s {
		shuffled[len(s)-1-i] = x + calib.GridStep/3
	}
	if again, err := calib.Quantile(shuffled, 0.05); err != nil || again != want {
		t.Errorf("off the grid: got %+v, %v, want %+v", again, err, want)
	}
	// The top of the scale turns the level off.
	top := append(ramp(18), 1)
	if got, err := calib.Quantile(top, 0.05); err != nil || !got.IsOff() || got.K != 19 {
		t.Errorf("M_(k) = 1: got %+v, %v, want off", got, err)
	}
	for name, bad := range map[string]float64{"NaN": math.NaN(), "infinite": math.Inf(1), "negative": -0.1, "above 1": 1.1} {
		if _, err := calib.Quantile(append(ramp(30), bad), 0.05); !errors.Is(err, calib.ErrScore) {
			t.Errorf("%s score: error %v, want ErrScore", name, err)
		}
	}
	for _, alpha := range []float64{0, 1, -1, 2, math.NaN(), math.Inf(1)} {
		if _, err := calib.Quantile(s, alpha); !errors.Is(err, calib.ErrLevel) {
			t.Errorf("alpha %v: error %v, want ErrLevel", alpha, err)
		}
	}
	// A level far below any data must not overflow.
	var few *calib.TooFewError
	if _, err := calib.Quantile(s, 1e-300); !errors.As(err, &few) || few.Need != math.MaxInt32 {
		t.Errorf("alpha 1e-300: error %v", err)
	}
}

func TestQuantileConfident(t *testing.T) {
	var few *calib.TooFewError
	if _, err := calib.QuantileConfident(ramp(58), 0.05, 0.95); !errors.As(err, &few) || few.Need != 59 {
		t.Errorf("n = 58: error %v, want 59 needed", err)
	}
	s := ramp(59)
	got, err := calib.QuantileConfident(s, 0.05, 0.95)
	if err != nil || got.K != 59 || got.Value != s[58]+calib.GridStep {
		t.Errorf("n = 59: %+v, %v, want just above the largest score", got, err)
	}
	// One alert among n is allowed from n = 93 on (SciPy: beta.ppf(0.95, 2, 92) = 0.0500...).
	for n, k := range map[int]int{92: 92, 93: 92} {
		if got, err := calib.QuantileConfident(ramp(n), 0.05, 0.95); err != nil || got.K != k {
			t.Errorf("n = %d: k = %d, %v, want %d", n, got.K, err, k)
		}
	}
	if _, err := calib.QuantileConfident(s, 0.05, 1); !errors.Is(err, calib.ErrLevel) {
		t.Errorf("confidence 1: error %v, want ErrLevel", err)
	}
}

func TestUnion(t *testing.T) {
	const alpha, block = 0.05, 0.01
	for _, c := range []struct {
		name           string
		n              int
		kBlock, kHold  int
		aHold          float64
		blockOff, fail bool
	}{
		{name: "too few", n: 18, fail: true},
		{name: "HOLD only", n: 19, kHold: 19, aHold: 0.05, blockOff: true},
		{name: "HOLD only, one below", n: 98, kHold: 95, aHold: 0.05, blockOff: true},
		{name: "both", n: 99, kBlock: 99, kHold: 96, aHold: 0.04},
		{name: "many", n: 999, kBlock: 990, kHold: 960, aHold: 0.04},
	} {
		got, err := calib.Union(ramp(c.n), ramp(c.n), alpha, block, false)
		if c.fail {
			var few *calib.TooFewError
			if !errors.As(err, &few) || few.Need != 19 || few.N != c.n {
				t.Errorf("%s: error %v, want *TooFewError with need 19", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got.Block.K != c.kBlock || got.Hold.K != c.kHold || got.Hold.Alpha != c.aHold || got.Block.IsOff() != c.blockOff || got.NoGuarantee || got.N != c.n {
			t.Errorf("%s: %+v", c.name, got)
		}
		if want := c.n - c.kHold; got.Alerted != want {
			t.Errorf("%s: %d alerted, want %d", c.name, got.Alerted, want)
		}
		if c.blockOff != strings.Contains(got.Marginal(), "99 runs") {
			t.Errorf("%s: sentence %q", c.name, got.Marginal())
		}
	}

	// The difference of the levels is a decimal too: 0.07-0.01 is not 0.06 in floating point.
	if got, err := calib.Union(ramp(99), ramp(99), 0.07, 0.01, false); err != nil || got.Hold.K != 94 || got.Hold.Alpha != 0.06 {
		t.Errorf("alpha 0.07: %+v, %v, want k = 94 at 0.06", got.Hold, err)
	}
	if _, err := calib.Union(ramp(99), ramp(98), 0.05, 0.01, false); err == nil {
		t.Error("lists of different length were accepted")
	}
	for _, b := range []float64{-0.01, 0.05, 0.06, math.NaN()} {
		if _, err := calib.Union(ramp(99), ramp(99), 0.05, b, false); !errors.Is(err, calib.ErrLevel) {
			t.Errorf("alpha_block %v: error %v, want ErrLevel", b, err)
		}
	}
	if _, err := calib.Union(append(ramp(98), math.NaN()), ramp(99), 0.05, 0.01, false); !errors.Is(err, calib.ErrScore) {
		t.Errorf("NaN: error %v, want ErrScore", err)
	}
}

func TestUnionSilent(t *testing.T) {
	ones := make([]float64, 200)
	for i := range ones {
		ones[i] = 1
	}
	got, err := calib.Union(ones, ones, 0.05, 0.01, false)
	if err != nil || !got.Silent() || got.Alerted != 0 || got.ConfidentBound(0.95) != 0 {
		t.Fatalf("%+v, %v, want both levels off", got, err)
	}
	if !strings.Contains(got.Marginal(), "never acts") {
		t.Errorf("sentence %q", got.Marginal())
	}
}

// Levels that no safe runs stand behind promise nothing, and do not claim a rate of 0.
func TestUncalibrated(t *testing.T) {
	on := calib.Threshold{Value: 0.5}
	for name, th := range map[string]calib.Thresholds{
		"set by hand":       {Hold: on, Block: on},
		"no certificate":    {Hold: on, Block: on, Alpha: 0.05},
		"misses alone":      {Hold: on, Block: calib.Threshold{Value: calib.Off}, N: 80},
		"off, no safe runs": {Hold: calib.Threshold{Value: calib.Off}, Block: calib.Threshold{Value: calib.Off}},
	} {
		if got := th.Marginal(); got != "No guarantee: the levels were not set on safe runs." {
			t.Errorf("%s: %q", name, got)
		}
		if got := th.Confident(0.95); !strings.HasPrefix(got, "No statement") || th.ConfidentBound(0.95) != 1 {
			t.Errorf("%s: %q, bound %v", name, got, th.ConfidentBound(0.95))
		}
	}
}

func TestUnionPaperClamp(t *testing.T) {
	s := ramp(10)
	got, err := calib.Union(s, s, 0.05, 0.01, true)
	if err != nil {
		t.Fatal(err)
	}
	if !got.NoGuarantee || got.Hold.K != 10 || got.Block.K != 10 || got.Hold.Value != s[9]+calib.GridStep {
		t.Errorf("%+v, want both ranks clamped to 10 and no guarantee", got)
	}
	if got.ConfidentBound(0.95) != 1 || !strings.HasPrefix(got.Marginal(), "No guarantee") || !strings.HasPrefix(got.Confident(0.95), "No statement") {
		t.Errorf("a clamped threshold promises something: %q %q", got.Marginal(), got.Confident(0.95))
	}
	// Where the rule has an answer the clamp changes nothing.
	free, err := calib.Union(ramp(50), ramp(50), 0.05, 0.01, true)
	want, _ := calib.Union(ramp(50), ramp(50), 0.05, 0.01, false)
	if err != nil || free != want || free.NoGuarantee {
		t.Errorf("n = 50: %+v, %v, want %+v", free, err, want)
	}
	if _, err := calib.Union(nil, nil, 0.05, 0.01, true); err == nil {
		t.Error("no runs at all were accepted")
	}
}

func TestConfidentBound(t *testing.T) {
	got, err := calib.Union(ramp(59), ramp(59), 0.05, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	// n = 59, k = 57: two alerts. SciPy 1.17.1: beta.ppf(0.95, 3, 57).
	want := 0.102889162709954
	if b := got.ConfidentBound(0.95); math.Abs(b-want) > 1e-9 {
		t.Errorf("HOLD alone: %v, want %v", b, want)
	}
	both, err := calib.Union(ramp(999), ramp(999), 0.05, 0.01, false)
	if err != nil {
		t.Fatal(err)
	}
	want = calib.ClopperPearsonUpper(9, 999, 0.975) + calib.ClopperPearsonUpper(39, 999, 0.975)
	if b := both.ConfidentBound(0.95); math.Abs(b-want) > 1e-12 {
		t.Errorf("both: %v, want the sum %v", b, want)
	}
}

func TestThresholdJSON(t *testing.T) {
	for _, want := range []calib.Threshold{{Value: 0.5, K: 96, N: 99, Alpha: 0.04}, {Value: calib.Off, N: 20, Alpha: 0.01}} {
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got calib.Threshold
		if err := json.Unmarshal(b, &got); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", b, got, err, want)
		}
	}
}

// TestQuantileProperties: whatever the scores, at most n-k of them reach the
// threshold, and one grid point lower more would.
func TestQuantileProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		levels := rapid.SampledFrom([]int{2, 5, 1 << 16}).Draw(t, "levels")
		scores := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(0, levels-1).Draw(t, "j")) / float64(levels)
		}), 19, 200).Draw(t, "scores")
		got, err := calib.Quantile(scores, 0.05)
		if err != nil {
			t.Fatal(err)
		}
		var reach, lower int
		for _, s := range scores {
			if calib.Grid(s) >= got.Value {
				reach++
			}
			if calib.Grid(s) >= got.Value-calib.GridStep {
				lower++
			}
		}
		if reach > got.N-got.K || lower <= got.N-got.K {
			t.Fatalf("%d reach the threshold and %d the point below, n-k = %d", reach, lower, got.N-got.K)
		}
		slices.Reverse(scores)
		if reversed, _ := calib.Quantile(scores, 0.05); reversed != got {
			t.Fatalf("order matters: %v, %v", got, reversed)
		}
	})
}

// TestUnionCoverage draws many calibration sets and computes the chance of an
// alert on a fresh safe run exactly. The two scores are opposed, haz = 1-u and
// risk = u, so that their alerts never coincide and the union bound is tight;
// with levels > 0 scores have that many values and nearly all of them tie.
// It also shows that the usual shortcut, M_(k) with k = ceil(n(1-alpha)), fails.
func TestUnionCoverage(t *testing.T) {
	draws := 2000
	if testing.Short() {
		draws = 300
	}
	const alpha, alphaBlock = 0.05, 0.01
	for _, levels := range []int{0, 20} {
		for _, n := range []int{19, 20, 40, 98, 99, 150, 400, 1000} {
			rng := rand.New(rand.NewPCG(uint64(n), uint64(levels)))
			haz, risk := make([]float64, n), make([]float64, n)
			var sum, square, naive float64
			for range draws {
				for i := range n {
					u := rng.Float64()
					if levels > 0 {
						u = math.Floor(u*float64(levels)) / float64(levels-1)
					}
					haz[i], risk[i] = 1-u, u
				}
				th, err := calib.Union(haz, risk, alpha, alphaBlock, false)
				if err != nil {
					t.Fatal(err)
				}
				p := reach(th.Block.Value, levels) + reach(th.Hold.Value, levels)
				sum, square = sum+p, square+p*p
				k := int(math.Ceil(float64(n) * (1 - alpha)))
				naive += reach(kth(risk, k), levels)
			}
			mean := sum / float64(draws)
			se := math.Sqrt(max(square/float64(draws)-mean*mean, 0) / float64(draws))
			if mean > alpha+4*se {
				t.Errorf("n %d, levels %d: a safe run is alerted with probability %.4f (standard error %.4f), promised %v", n, levels, mean, se, alpha)
			}
			if levels == 0 && n >= 99 && mean < 0.8*alpha {
				t.Errorf("n %d: alert probability %.4f is far below the promise %v: the thresholds are too strict", n, mean, alpha)
			}
			// Without ties the shortcut's rate is (n+1-k)/(n+1), which some n keep below alpha by luck.
			k := int(math.Ceil(float64(n) * (1 - alpha)))
			breaks := levels > 0 || float64(n+1-k)/float64(n+1) > 1.1*alpha
			if naive /= float64(draws); breaks && naive < alpha+4*se {
				t.Errorf("n %d, levels %d: the uncorrected rule alerts with probability %.4f, expected it to break %v", n, levels, naive, alpha)
			}
		}
	}
}

// reach returns P(score >= l) of the simulated scores.
func reach(l float64, levels int) float64 {
	if math.IsInf(l, 1) {
		return 0
	}
	if levels == 0 { // uniform, rounded to the grid
		return min(1-l+calib.GridStep/2, 1)
	}
	var c int
	for j := range levels {
		if calib.Grid(float64(j)/float64(levels-1)) >= l {
			c++
		}
	}
	return float64(c) / float64(levels)
}

// kth returns the k-th smallest score on the grid.
func kth(scores []float64, k int) float64 {
	s := slices.Sorted(slices.Values(scores))
	return calib.Grid(s[k-1])
}
