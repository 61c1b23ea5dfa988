package study

import "math"

// Interval is a confidence interval of a proportion.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// z95 is the 0.975 quantile of the standard normal distribution.
const z95 = 1.959963984540054

// Wilson returns the 95 % Wilson score interval without continuity correction of
// k successes in n trials (Wilson, JASA 22, 1927); 0 to 1 for n = 0. It panics
// unless 0 <= k <= n.
func Wilson(k, n int) Interval {
	if k < 0 || k > n {
		panic("study: want 0 <= k <= n")
	}
	if n == 0 {
		return Interval{0, 1}
	}
	p, m := float64(k)/float64(n), float64(n)
	z2 := z95 * z95
	centre := (p + z2/(2*m)) / (1 + z2/m)
	half := z95 / (1 + z2/m) * math.Sqrt(p*(1-p)/m+z2/(4*m*m))
	i := Interval{centre - half, centre + half}
	if k == 0 {
		i.Low = 0
	}
	if k == n {
		i.High = 1
	}
	return i
}

// Fisher returns the two-sided p-value of Fisher's exact test of the table
//
//	a b
//	c d
//
// the sum of the probabilities of all tables with the same margins that are no
// more probable than this one (hypergeometric distribution). It panics on a
// negative count.
func Fisher(a, b, c, d int) float64 {
	if min(a, b, c, d) < 0 {
		panic("study: want counts of at least 0")
	}
	row, col, n := a+b, a+c, a+b+c+d
	logP := func(x int) float64 {
		return logChoose(row, x) + logChoose(n-row, col-x) - logChoose(n, col)
	}
	// Tables that are equally probable may differ by rounding.
	limit := logP(a) + 1e-10
	sum := 0.0
	for x := max(0, col-(n-row)); x <= min(row, col); x++ {
		if l := logP(x); l <= limit {
			sum += math.Exp(l)
		}
	}
	return min(1, sum)
}

func logChoose(n, k int) float64 {
	return logFactorial(n) - logFactorial(k) - logFactorial(n-k)
}

func logFactorial(n int) float64 {
	l, _ := math.Lgamma(float64(n) + 1)
	return l
}
