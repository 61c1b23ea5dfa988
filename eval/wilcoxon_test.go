package eval

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// TestSignedRankAgainstSciPy compares with testdata/wilcoxon.json, made by
// testdata/wilcoxon.py with the version it records.
func TestSignedRankAgainstSciPy(t *testing.T) {
	b, err := os.ReadFile("testdata/wilcoxon.json")
	if err != nil {
		t.Fatal(err)
	}
	var ref struct {
		Cases []struct {
			D            []float64
			Statistic, P float64
		}
	}
	if err := json.Unmarshal(b, &ref); err != nil {
		t.Fatal(err)
	}
	if len(ref.Cases) != 14 {
		t.Fatal("testdata/wilcoxon.json is incomplete")
	}
	for i, c := range ref.Cases {
		got := SignedRank(c.D)
		if math.Abs(float64(got.P)-c.P) > 1e-9 || float64(got.Statistic) != c.Statistic {
			t.Errorf("case %d (%d differences): statistic %v, p %v, want %v, %v", i, len(c.D), got.Statistic, got.P, c.Statistic, c.P)
		}
		if want := len(c.D) <= exactPairs; got.Exact != want {
			t.Errorf("case %d: exact is %v", i, got.Exact)
		}
	}
}

func TestSignedRankEdges(t *testing.T) {
	if got := SignedRank([]float64{0, 0, math.NaN()}); got.N != 0 || got.Zeros != 2 || got.P.OK() || got.Statistic.OK() {
		t.Errorf("without differences: %+v", got)
	}
	if got := SignedRank([]float64{0, 1, math.Inf(1)}); got.N != 1 || got.Zeros != 1 || got.P != 1 || got.Statistic != 1 {
		t.Errorf("one difference: %+v", got)
	}
	// The least p of nine pairs: two of 512 assignments.
	if got := SignedRank([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9}); got.P != 2./512 {
		t.Errorf("nine in one direction: p %v, want 2/512", got.P)
	}
}

// TestSignedRankByEnumeration counts all assignments of signs.
func TestSignedRankByEnumeration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		d := make([]float64, n)
		for i := range d {
			d[i] = float64(rapid.IntRange(1, 4).Draw(t, "size")) // ties are likely
			if rapid.Bool().Draw(t, "negative") {
				d[i] = -d[i]
			}
		}
		got := SignedRank(d)
		var atMost, atLeast float64
		for signs := range 1 << n {
			e := make([]float64, n)
			for i := range e {
				if e[i] = math.Abs(d[i]); signs>>i&1 == 1 {
					e[i] = -e[i]
				}
			}
			s := SignedRank(e).Statistic
			atMost += b2f(s <= got.Statistic)
			atLeast += b2f(s >= got.Statistic)
		}
		if want := min(1, 2*min(atMost, atLeast)/float64(int(1)<<n)); math.Abs(float64(got.P)-want) > 1e-12 {
			t.Fatalf("%v: p %v, want %v", d, got.P, want)
		}
	})
}

func TestMeanSD(t *testing.T) {
	nan := Num(math.NaN())
	if m, sd, n := MeanSD([]Num{1, nan, 4, 7}); m != 4 || sd != 3 || n != 3 {
		t.Errorf("%v, %v, %d", m, sd, n)
	}
	if m, sd, n := MeanSD([]Num{2}); m != 2 || sd.OK() || n != 1 {
		t.Errorf("one figure: %v, %v, %d", m, sd, n)
	}
	if m, sd, n := MeanSD(nil); m.OK() || sd.OK() || n != 0 {
		t.Errorf("none: %v, %v, %d", m, sd, n)
	}
}
