package distill

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/dreamguard/dreamguard/embed"
)

// Run is what pairs of texts are drawn from: the texts of one trajectory.
type Run struct {
	Set   string // data set
	Group string // runs of one group share a task
	Texts []string
}

// Kind says how the two texts of a pair are related.
type Kind string

// The kinds of pairs, from near to far.
const (
	SameRun    Kind = "same run"    // two texts of one run
	SameSet    Kind = "same set"    // of two groups of one data set
	AcrossSets Kind = "across sets" // of two data sets
)

// Kinds lists the kinds.
var Kinds = []Kind{SameRun, SameSet, AcrossSets}

// Pair is two different texts.
type Pair struct {
	Kind Kind
	A, B string
}

// DrawPairs draws n pairs of each kind that runs have: every data set with the
// same probability, every run of it, and every text of that. The same runs in
// the same order and the same seed give the same pairs. No pair is drawn twice;
// a kind of which runs hold too few has fewer.
func DrawPairs(runs []Run, n int, seed uint64) []Pair {
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	bySet := map[string][]Run{}
	var sets []string
	for _, r := range runs {
		if len(r.Texts) == 0 {
			continue
		}
		if bySet[r.Set] == nil {
			sets = append(sets, r.Set)
		}
		bySet[r.Set] = append(bySet[r.Set], r)
	}
	if len(sets) == 0 {
		return nil
	}
	slices.Sort(sets)
	pick := func(set string) Run { return bySet[set][rng.IntN(len(bySet[set]))] }
	var out []Pair
	for _, kind := range Kinds {
		seen := map[Pair]bool{}
		// Runs with one text, or sets with one group, make draws that fail.
		for try := 0; len(seen) < n && try < 50*n; try++ {
			a := pick(sets[rng.IntN(len(sets))])
			b := a
			switch kind {
			case SameSet:
				b = pick(a.Set)
				if a.Group == b.Group {
					continue
				}
			case AcrossSets:
				b = pick(sets[rng.IntN(len(sets))])
				if a.Set == b.Set {
					continue
				}
			}
			p := Pair{kind, a.Texts[rng.IntN(len(a.Texts))], b.Texts[rng.IntN(len(b.Texts))]}
			if p.A == p.B || seen[p] || seen[Pair{kind, p.B, p.A}] {
				continue
			}
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

// Agreement says how well the cosines of one encoder follow those of another.
type Agreement struct {
	Kind     Kind    `json:"kind"` // empty: all pairs together
	Pairs    int     `json:"pairs"`
	Spearman float64 `json:"spearman"` // rank correlation of the cosines, -1 to 1
	Low      float64 `json:"low"`      // 95 % interval of it, see [SpearmanInterval]
	High     float64 `json:"high"`
	Pearson  float64 `json:"pearson"`
}

// Agree compares the cosines that two encoders give to pairs: all together
// first, then by kind. A zero vector has the cosine 0 with every other.
func Agree(ctx context.Context, pairs []Pair, student, teacher embed.Encoder) ([]Agreement, error) {
	texts := make([]string, 0, 2*len(pairs))
	for _, p := range pairs {
		texts = append(texts, p.A, p.B)
	}
	a, err := cosines(ctx, student, texts)
	if err != nil {
		return nil, err
	}
	b, err := cosines(ctx, teacher, texts)
	if err != nil {
		return nil, err
	}
	out := []Agreement{correlate("", a, b)}
	for _, kind := range Kinds {
		var x, y []float64
		for i, p := range pairs {
			if p.Kind == kind {
				x, y = append(x, a[i]), append(y, b[i])
			}
		}
		if len(x) > 0 {
			out = append(out, correlate(kind, x, y))
		}
	}
	return out, nil
}

func correlate(kind Kind, x, y []float64) Agreement {
	rho := Spearman(x, y)
	low, high := SpearmanInterval(rho, len(x))
	return Agreement{Kind: kind, Pairs: len(x), Spearman: rho, Low: low, High: high, Pearson: stat.Correlation(x, y, nil)}
}

// cosines returns the cosine of texts 2i and 2i+1.
func cosines(ctx context.Context, enc embed.Encoder, texts []string) ([]float64, error) {
	dims := enc.ID().Dims
	v, err := encode(ctx, enc, texts)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(texts)/2)
	for i := range out {
		out[i] = cosine(v[2*i*dims:(2*i+1)*dims], v[(2*i+1)*dims:(2*i+2)*dims])
	}
	return out, nil
}

// Cosines returns the cosine of every text with every other.
func Cosines(ctx context.Context, enc embed.Encoder, texts []string) ([][]float64, error) {
	dims := enc.ID().Dims
	v, err := encode(ctx, enc, texts)
	if err != nil {
		return nil, err
	}
	out := make([][]float64, len(texts))
	for i := range out {
		for j := range texts {
			out[i] = append(out[i], cosine(v[i*dims:(i+1)*dims], v[j*dims:(j+1)*dims]))
		}
	}
	return out, nil
}

func encode(ctx context.Context, enc embed.Encoder, texts []string) ([]float32, error) {
	v := make([]float32, len(texts)*enc.ID().Dims)
	if err := enc.Encode(ctx, texts, v); err != nil {
		return nil, fmt.Errorf("encode with %v: %w", enc.ID(), err)
	}
	return v, nil
}

// cosine is the inner product: an encoder's vectors have unit length, or are zero.
func cosine(a, b []float32) (s float64) {
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

// Spearman is the rank correlation of x and y, equal values sharing the mean of
// their ranks. It is NaN for fewer than two values or where all are equal.
func Spearman(x, y []float64) float64 { return stat.Correlation(ranks(x), ranks(y), nil) }

func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case x[a] < x[b]:
			return -1
		case x[a] > x[b]:
			return 1
		}
		return 0
	})
	out := make([]float64, len(x))
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && x[order[j]] == x[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			out[k] = float64(i+j-1) / 2
		}
		i = j
	}
	return out
}

// SpearmanInterval returns a 95 % interval of a rank correlation of n pairs: on
// the scale of atanh, rho +- 1.96 sqrt((1 + rho^2/2) / (n - 3)) (Bonett and
// Wright, Sample size requirements for estimating Pearson, Kendall and Spearman
// correlations, Psychometrika 65, 2000). It takes the pairs as independent;
// texts of one run are not, so it is rather too narrow.
func SpearmanInterval(rho float64, n int) (low, high float64) {
	if n <= 3 || math.IsNaN(rho) {
		return -1, 1
	}
	z, se := math.Atanh(rho), 1.96*math.Sqrt((1+rho*rho/2)/float64(n-3))
	return math.Tanh(z - se), math.Tanh(z + se)
}
