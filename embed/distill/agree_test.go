package distill

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/hash"
)

func TestSpearman(t *testing.T) {
	want := readReference(t)
	x := []float64{1, 2, 2, 3.5, -1, 0, 2}
	y := []float64{0.1, 0.4, 0.2, 0.2, -3, 0.5, 0.2}
	if got := Spearman(x, y); math.Abs(got-want.Spearman) > 1e-12 {
		t.Errorf("spearman %v, want %v", got, want.Spearman)
	}
	if got := correlate("", x, y).Pearson; math.Abs(got-want.Pearson) > 1e-12 {
		t.Errorf("pearson %v, want %v", got, want.Pearson)
	}
	if got := Spearman([]float64{1, 2, 9}, []float64{-1, 0, 50}); got != 1 {
		t.Errorf("a monotone map has %v", got)
	}
	if got := Spearman([]float64{1, 1}, []float64{1, 2}); !math.IsNaN(got) {
		t.Errorf("equal values have %v", got)
	}
}

// Over draws of independent normal pairs with correlation 0.8, about 95 % of the
// intervals hold the true rank correlation, (6/pi) asin(0.8/2).
func TestSpearmanInterval(t *testing.T) {
	truth := 6 / math.Pi * math.Asin(0.4)
	rng := newNormals(3)
	const repeats, n = 400, 120
	inside := 0
	for range repeats {
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			a, b := rng(), rng()
			x[i], y[i] = a, 0.8*a+0.6*b
		}
		if low, high := SpearmanInterval(Spearman(x, y), n); low <= truth && truth <= high {
			inside++
		}
	}
	// Four standard errors of a share of 0.95 are 0.044.
	if share := float64(inside) / repeats; share < 0.90 || share > 0.995 {
		t.Errorf("%.3f of the intervals hold the truth", share)
	}
	if low, high := SpearmanInterval(math.NaN(), 100); low != -1 || high != 1 {
		t.Errorf("undefined: %v to %v", low, high)
	}
	if low, high := SpearmanInterval(0.5, 3); low != -1 || high != 1 {
		t.Errorf("three pairs: %v to %v", low, high)
	}
}

// newNormals returns a seeded generator of standard normal numbers.
func newNormals(seed uint64) func() float64 {
	uniform := func() float64 {
		seed = seed*6364136223846793005 + 1442695040888963407
		return (float64(seed>>11) + 0.5) / (1 << 53)
	}
	return func() float64 {
		return math.Sqrt(-2*math.Log(uniform())) * math.Cos(2*math.Pi*uniform())
	}
}

func runs() []Run {
	var out []Run
	for i := range 30 {
		r := Run{Set: []string{"b", "a", "c"}[i%3], Group: fmt.Sprint("g", i%10)}
		for k := range 1 + i%4 {
			r.Texts = append(r.Texts, fmt.Sprintf("%s %s text %d of run %d", r.Set, r.Group, k, i))
		}
		out = append(out, r)
	}
	return append(out, Run{Set: "empty", Group: "g"})
}

func TestDrawPairs(t *testing.T) {
	owner := map[string]Run{}
	for _, r := range runs() {
		for _, text := range r.Texts {
			owner[text] = r
		}
	}
	pairs := DrawPairs(runs(), 25, 9)
	if diff := cmp.Diff(pairs, DrawPairs(runs(), 25, 9)); diff != "" {
		t.Errorf("the same seed, other pairs:\n%s", diff)
	}
	if cmp.Equal(pairs, DrawPairs(runs(), 25, 10)) {
		t.Error("another seed, the same pairs")
	}
	count := map[Kind]int{}
	seen := map[[2]string]bool{}
	for _, p := range pairs {
		count[p.Kind]++
		a, b := owner[p.A], owner[p.B]
		sound := p.A != p.B
		switch p.Kind {
		case SameRun:
			sound = sound && slices.Equal(a.Texts, b.Texts)
		case SameSet:
			sound = sound && a.Set == b.Set && a.Group != b.Group
		case AcrossSets:
			sound = sound && a.Set != b.Set
		}
		if !sound {
			t.Errorf("%s: %q and %q", p.Kind, p.A, p.B)
		}
		if seen[[2]string{p.A, p.B}] || seen[[2]string{p.B, p.A}] {
			t.Errorf("%q and %q are drawn twice", p.A, p.B)
		}
		seen[[2]string{p.A, p.B}] = true
	}
	if want := (map[Kind]int{SameRun: 25, SameSet: 25, AcrossSets: 25}); !cmp.Equal(count, want) {
		t.Errorf("%v, want %v", count, want)
	}
	// One set has no pairs across, runs of one text none within.
	one := []Run{{Set: "a", Group: "1", Texts: []string{"x"}}, {Set: "a", Group: "2", Texts: []string{"y"}}}
	if got, want := DrawPairs(one, 5, 1), 1; len(got) != want || got[0].Kind != SameSet {
		t.Errorf("%v, want one pair of the same set", got)
	}
	if got := DrawPairs(nil, 5, 1); got != nil {
		t.Errorf("no runs: %v", got)
	}
}

// failing is an encoder that does not work.
type failing struct{ embed.Encoder }

var errBroken = errors.New("broken")

func (failing) Encode(context.Context, []string, []float32) error { return errBroken }

func TestAgree(t *testing.T) {
	pairs := DrawPairs(runs(), 25, 9)
	enc := hash.New(64)
	got, err := Agree(context.Background(), pairs, enc, enc)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		kind Kind
		n    int
	}{{"", 75}, {SameRun, 25}, {SameSet, 25}, {AcrossSets, 25}}
	for i, a := range got {
		if a.Kind != want[i].kind || a.Pairs != want[i].n || math.Abs(a.Spearman-1) > 1e-12 || math.Abs(a.Pearson-1) > 1e-12 {
			t.Errorf("an encoder with itself: %+v", a)
		}
	}
	// Few dimensions agree less with many than more do.
	coarse, err := Agree(context.Background(), pairs, hash.New(4), hash.New(512))
	if err != nil {
		t.Fatal(err)
	}
	fine, err := Agree(context.Background(), pairs, hash.New(256), hash.New(512))
	if err != nil {
		t.Fatal(err)
	}
	if coarse[0].Spearman >= fine[0].Spearman {
		t.Errorf("4 dimensions agree at %.3f, 256 at %.3f", coarse[0].Spearman, fine[0].Spearman)
	}
	table, err := Cosines(context.Background(), enc, []string{"read the invoice", "Reading invoices", "", "read the invoice"})
	if err != nil {
		t.Fatal(err)
	}
	if near := table[0][1]; near <= 0.1 || near != table[1][0] || math.Abs(table[0][3]-1) > 1e-6 || table[0][2] != 0 || table[2][2] != 0 {
		t.Errorf("cosines %v", table)
	}
	if _, err := Agree(context.Background(), pairs, failing{enc}, enc); !errors.Is(err, errBroken) {
		t.Errorf("broken student: %v", err)
	}
	if _, err := Agree(context.Background(), pairs, enc, failing{enc}); !errors.Is(err, errBroken) {
		t.Errorf("broken teacher: %v", err)
	}
}
