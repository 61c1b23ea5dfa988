package eval

import (
	"cmp"
	"math"
	"slices"
)

// exactPairs is the largest number of differences for which [SignedRank] enumerates
// the distribution instead of approximating it.
const exactPairs = 50

// SignedRankTest is the outcome of [SignedRank].
type SignedRankTest struct {
	N         int  `json:"n"`         // differences that are not zero
	Zeros     int  `json:"zeros"`     // those that are, left out
	Statistic Num  `json:"statistic"` // sum of the ranks of the positive differences
	P         Num  `json:"p"`         // two-sided; null without differences
	Exact     bool `json:"exact"`     // from the exact distribution rather than the normal approximation
}

// SignedRank is the Wilcoxon signed-rank test of whether paired differences are
// symmetric about zero (Wilcoxon, "Individual comparisons by ranking methods",
// Biometrics Bulletin 1945). Zeros are left out, equal sizes share their mean rank.
// Up to 50 differences the p-value is exact, given the ranks, ties included: it counts
// all 2^n assignments of signs. Above, it is that of the normal approximation
// with the variance corrected for ties, without a correction for continuity. They are the
// values of SciPy's wilcoxon. Differences that are not finite are left out.
func SignedRank(differences []float64) SignedRankTest {
	var d []float64
	t := SignedRankTest{Statistic: Num(math.NaN()), P: Num(math.NaN())}
	for _, x := range differences {
		switch {
		case math.IsNaN(x) || math.IsInf(x, 0):
		case x == 0:
			t.Zeros++
		default:
			d = append(d, x)
		}
	}
	n := len(d)
	if t.N = n; n == 0 {
		return t
	}
	slices.SortFunc(d, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	twice := make([]int, n) // ranks times two, whole numbers
	var positive int
	var ties float64 // sum of m^3 - m over groups of m equal sizes
	for i := 0; i < n; {
		end := i + 1
		for end < n && math.Abs(d[end]) == math.Abs(d[i]) {
			end++
		}
		for k := i; k < end; k++ {
			twice[k] = i + 1 + end
			if d[k] > 0 {
				positive += twice[k]
			}
		}
		m := float64(end - i)
		ties += m*m*m - m
		i = end
	}
	t.Statistic = Num(positive) / 2
	if n <= exactPairs {
		t.Exact, t.P = true, Num(exactSignedRank(twice, positive))
		return t
	}
	f := float64(n)
	mean, variance := f*(f+1)/4, f*(f+1)*(2*f+1)/24-ties/48
	z := (float64(positive)/2 - mean) / math.Sqrt(variance)
	t.P = Num(math.Erfc(math.Abs(z) / math.Sqrt2))
	return t
}

// exactSignedRank is the two-sided p-value of a sum of those ranks whose sign is
// positive, if each sign is a fair coin.
func exactSignedRank(ranks []int, sum int) float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	p := make([]float64, total+1) // p[s]: probability of the sum s
	p[0] = 1
	for _, r := range ranks {
		for s := total; s >= 0; s-- {
			p[s] /= 2
			if s >= r {
				p[s] += p[s-r] / 2
			}
		}
	}
	var atMost, atLeast float64
	for s, q := range p {
		if s <= sum {
			atMost += q
		}
		if s >= sum {
			atLeast += q
		}
	}
	return min(1, 2*min(atMost, atLeast))
}

// MeanSD returns the mean and the sample standard deviation of the figures that
// exist, and how many they are. The deviation of fewer than two does not exist.
func MeanSD(figures []Num) (mean, sd Num, n int) {
	var sum float64
	for _, x := range figures {
		if x.OK() {
			sum += float64(x)
			n++
		}
	}
	mean, sd = Num(math.NaN()), Num(math.NaN())
	if n > 0 {
		mean = Num(sum / float64(n))
	}
	if n > 1 {
		var squares float64
		for _, x := range figures {
			if x.OK() {
				squares += (float64(x) - float64(mean)) * (float64(x) - float64(mean))
			}
		}
		sd = Num(math.Sqrt(squares / float64(n-1)))
	}
	return mean, sd, n
}
