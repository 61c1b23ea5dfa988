package calib

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// ClopperPearson returns the exact two-sided confidence interval of a
// proportion of which x successes among n trials were seen: each side errs with
// probability at most (1-confidence)/2. x is in 0..n; with n <= 0 the interval
// is [0, 1]; confidence in (0, 1).
//
//	lo = BetaInv((1-c)/2; x, n-x+1),   hi = BetaInv(1-(1-c)/2; x+1, n-x)
//
// Source: Clopper, Pearson, The use of confidence or fiducial limits (1934).
func ClopperPearson(x, n int, confidence float64) (lo, hi float64) {
	tail := (1 - confidence) / 2
	return clopperLower(x, n, tail), clopperUpper(x, n, tail)
}

// ClopperPearsonUpper returns the exact one-sided upper confidence bound: the
// proportion exceeds it with probability at most 1-confidence. Arguments as for
// [ClopperPearson].
func ClopperPearsonUpper(x, n int, confidence float64) float64 {
	return clopperUpper(x, n, 1-confidence)
}

func clopperUpper(x, n int, tail float64) float64 {
	switch {
	case n <= 0 || x >= n:
		return 1
	case x <= 0: // closed form: no loss of digits for large n
		return -math.Expm1(math.Log(tail) / float64(n))
	}
	return betaInv(1-tail, float64(x)+1, float64(n-x))
}

func clopperLower(x, n int, tail float64) float64 {
	switch {
	case n <= 0 || x <= 0:
		return 0
	case x >= n:
		return math.Exp(math.Log(tail) / float64(n))
	}
	return betaInv(tail, float64(x), float64(n-x)+1)
}

// betaInv inverts the regularised incomplete beta function by bisection on
// [mathext.RegIncBeta]: it is exact to the last digits everywhere, where the
// library's own inverse stops at about 1e-8.
func betaInv(p, a, b float64) float64 {
	lo, hi := 0.0, 1.0
	for range 200 {
		mid := lo + (hi-lo)/2
		if mid <= lo || mid >= hi {
			break
		}
		if mathext.RegIncBeta(a, b, mid) < p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo + (hi-lo)/2
}

// Wilson returns Wilson's score interval of a proportion, without continuity
// correction. It is shorter than [ClopperPearson] and only approximately
// covers. Arguments as there.
//
// Source: Wilson, Probable inference, the law of succession, and statistical
// inference (1927).
func Wilson(x, n int, confidence float64) (lo, hi float64) {
	if n <= 0 {
		return 0, 1
	}
	z := mathext.NormalQuantile(1 - (1-confidence)/2)
	nf, p := float64(n), float64(x)/float64(n)
	centre := (p + z*z/(2*nf)) / (1 + z*z/nf)
	half := z / (1 + z*z/nf) * math.Sqrt(p*(1-p)/nf+z*z/(4*nf*nf))
	lo, hi = max(centre-half, 0), min(centre+half, 1)
	if x <= 0 { // exact by algebra; rounding would leave 1e-17
		lo = 0
	}
	if x >= n {
		hi = 1
	}
	return lo, hi
}
