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

// BinomialP returns the exact p-value of the hypothesis that a risk exceeds
// level, when x of n independent runs erred:
//
//	p = P(Bin(n, level) <= x)
//
// It is at most delta exactly where [ClopperPearsonUpper](x, n, 1-delta) <=
// level. x below 0 gives 0, x >= n or n <= 0 gives 1; level in (0, 1).
//
// Source: Angelopoulos et al., Learn then Test (2021), section 1.2, for losses
// that are 0 or 1.
func BinomialP(x, n int, level float64) float64 {
	switch {
	case n <= 0 || x >= n:
		return 1
	case x < 0:
		return 0
	case x == 0:
		return math.Exp(float64(n) * math.Log1p(-level))
	}
	return mathext.RegIncBeta(float64(n-x), float64(x)+1, 1-level)
}

// HoeffdingBentkusP returns a p-value of the hypothesis that the mean of a loss
// in [0, 1] exceeds level, when n independent losses have the given mean:
//
//	p = min( exp(-n h1(min(mean, level), level)), e P(Bin(n, level) <= ceil(n mean)) )
//	h1(a, b) = a ln(a/b) + (1-a) ln((1-a)/(1-b))
//
// It serves losses that are not 0 or 1; for those [BinomialP] is exact and
// sharper. mean in [0, 1], level in (0, 1); n <= 0 gives 1.
//
// Source: Bates et al., Distribution-Free, Risk-Controlling Prediction Sets
// (2021), section 3.1 (Hoeffding-Bentkus bound); Angelopoulos et al., Learn then
// Test (2021), section 1.2.
func HoeffdingBentkusP(mean float64, n int, level float64) float64 {
	if n <= 0 {
		return 1
	}
	a := min(mean, level)
	h := (1 - a) * math.Log((1-a)/(1-level))
	if a > 0 {
		h += a * math.Log(a/level)
	}
	hoeffding := math.Exp(-float64(n) * h)
	// A sum of shares such as 20 times 1/20 may end a hair above the integer;
	// that is not one more error.
	errors := int(math.Ceil(float64(n)*mean - 1e-9))
	return min(hoeffding, math.E*BinomialP(errors, n, level), 1)
}

// HoeffdingBentkusUpper returns an upper confidence bound of the mean of a loss
// in [0, 1]: the largest level that [HoeffdingBentkusP] does not refute at
// 1-confidence. Arguments as there; confidence in (0, 1).
func HoeffdingBentkusUpper(mean float64, n int, confidence float64) float64 {
	if n <= 0 || mean >= 1 {
		return 1
	}
	lo, hi := max(mean, 0), 1.0
	for range 100 {
		mid := lo + (hi-lo)/2
		if mid <= lo || mid >= hi {
			break
		}
		if HoeffdingBentkusP(mean, n, mid) > 1-confidence {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// maxErrors returns the largest x with [BinomialP](x, n, level) <= delta, or -1.
func maxErrors(n int, level, delta float64) int {
	lo, hi := -1, n // p(lo) <= delta < p(hi)
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; BinomialP(mid, n, level) <= delta {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// maxSum returns the largest sum of n losses in [0, 1] whose mean still
// refutes "the risk exceeds level" at delta by [HoeffdingBentkusP]; negative if
// not even zero does.
func maxSum(n int, level, delta float64) float64 {
	if HoeffdingBentkusP(0, n, level) > delta {
		return -1
	}
	lo, hi := 0.0, level
	for range 60 {
		if mid := (lo + hi) / 2; HoeffdingBentkusP(mid, n, level) <= delta {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo * float64(n)
}
