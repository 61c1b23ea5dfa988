package calib

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Rate bounds the rate of alerts among runs that turned out to be safe, at any
// time: one may look after every run and stop when one likes.
//
// It is a betting confidence sequence. Against "each alert has probability a at
// most, whatever came before" it bets on every higher rate q, in the proportions
// of the distribution F = Beta(1/2, 1/2), and keeps the rest in cash:
//
//	W(a) = F(a) + int_a^1 (q/a)^x ((1-q)/(1-a))^(n-x) dF(q)
//
// after x alerts among n runs. Each integrand is a nonnegative supermartingale
// under that hypothesis, so W(a) ever reaches 1/delta with probability at most
// delta (Ville). W falls in a as long as it exceeds 1, so the rates refuted are
// those below [Rate.Lower]. [Rate.Upper] is the mirror image.
//
// Source: Waudby-Smith, Ramdas, Estimating means of bounded random variables by
// betting (2024), section on the method of mixtures; Robbins, Statistical
// methods related to the law of the iterated logarithm (1970).
type Rate struct {
	N      int `json:"n"`      // runs
	Alerts int `json:"alerts"` // of these, alerted
}

// Add counts a run.
func (r *Rate) Add(alerted bool) {
	r.N++
	if alerted {
		r.Alerts++
	}
}

// LogWealth returns the natural logarithm of W(level): the evidence against
// "the rate is at most level". level in (0, 1).
func (r Rate) LogWealth(level float64) float64 { return logWealth(r.Alerts, r.N, level) }

// Lower returns a bound that the rate ever falls below with probability at most
// delta, in (0, 1): the true rate is above it at all times at once otherwise. It
// is 0 at the start.
func (r Rate) Lower(delta float64) float64 { return lowerRate(r.Alerts, r.N, delta) }

// Upper returns a bound that the rate ever exceeds with probability at most
// delta, at all times at once. It is 1 at the start.
func (r Rate) Upper(delta float64) float64 { return 1 - lowerRate(r.N-r.Alerts, r.N, delta) }

func lowerRate(x, n int, delta float64) float64 {
	if x <= 0 || n <= 0 {
		return 0
	}
	lo, hi := 0.0, float64(x)/float64(n)
	for range 60 {
		mid := (lo + hi) / 2
		if mid <= lo || mid >= hi {
			break
		}
		if logWealth(x, n, mid) >= -math.Log(delta) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

func logWealth(x, n int, level float64) float64 {
	const a, b = 0.5, 0.5
	cash := math.Log(mathext.RegIncBeta(a, b, level))
	ax, bx := a+float64(x), b+float64(n-x)
	// The tail from level to 1 of Beta(ax, bx), from its other side for the digits.
	tail := mathext.RegIncBeta(bx, ax, 1-level)
	if tail <= 0 {
		return cash
	}
	bets := mathext.Lbeta(ax, bx) - mathext.Lbeta(a, b) + math.Log(tail) -
		float64(x)*math.Log(level) - float64(n-x)*math.Log1p(-level)
	return logAdd(cash, bets)
}

func (r Rate) check() error {
	if r.N < 0 || r.Alerts < 0 || r.Alerts > r.N {
		return fmt.Errorf("%w: %d alerts among %d runs", ErrMonitor, r.Alerts, r.N)
	}
	return nil
}
