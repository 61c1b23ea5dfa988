package calib

import (
	"fmt"
	"math"
)

// Martingale bets against p-values being independent and uniform: the simple
// jumper. Under exchangeability its value starts at 1 and is a nonnegative
// martingale, so by Ville's inequality it ever reaches 1/delta with probability
// at most delta.
//
// Three accounts hold the capital and bet eps = -1, 0, 1 on p-values that are
// small, neither, or large; before each bet a share Jump of it is spread evenly:
//
//	C_e <- ((1-Jump) C_e + Jump/3 sum C) (1 + e (p - 1/2)),   value = sum C
//
// While nothing happens, betting costs: the value of a simple jumper falls
// exponentially, and a late change would be met by an empty purse. With Reserve
// above 0 that share of the first unit stays asleep and is woken little by
// little, so that
//
//	Reserve wake / (wake + t)   is asleep after t p-values, wake = 1000
//
// which keeps it a martingale and costs a change at time t a logarithm of t.
// Reserve 0 is the plain simple jumper.
//
// Source: Vovk et al., Retrain or not retrain: conformal test martingales for
// change-point detection (2021), algorithm 1; the reserve follows the
// Sleeper/Stayer of Algorithmic Learning in a Random World, second edition,
// chapter 9.
type Martingale struct {
	Jump    float64 `json:"jump"`    // in (0, 1]
	Reserve float64 `json:"reserve"` // in [0, 1)

	Steps   int        `json:"steps"`    // p-values so far
	Share   [3]float64 `json:"share"`    // of the capital that is awake, on eps = -1, 0, 1; sums to 1
	LogWake float64    `json:"log_wake"` // natural log of the capital that is awake
	LogPeak float64    `json:"log_peak"` // largest log value so far
}

const wake = 1000.0

// NewMartingale returns a martingale of value 1. jump 0 means 0.01.
func NewMartingale(jump, reserve float64) *Martingale {
	if jump == 0 {
		jump = 0.01
	}
	return &Martingale{Jump: jump, Reserve: reserve, Share: [3]float64{1. / 3, 1. / 3, 1. / 3}, LogWake: math.Log1p(-reserve)}
}

// asleep returns the reserve left after t steps.
func (m *Martingale) asleep(t int) float64 { return m.Reserve * wake / (wake + float64(t)) }

// Bet takes the next p-value, in [0, 1]; NaN and numbers outside change nothing.
func (m *Martingale) Bet(p float64) {
	if !(p >= 0 && p <= 1) {
		return
	}
	// The accounts are kept as shares and the capital as a logarithm: it may fall
	// far below the smallest float64.
	woken := m.asleep(m.Steps) - m.asleep(m.Steps+1)
	m.Steps++
	var total float64
	for i, e := range [3]float64{-1, 0, 1} {
		m.Share[i] = ((1-m.Jump)*m.Share[i] + m.Jump/3) * (1 + e*(p-0.5))
		total += m.Share[i]
	}
	for i := range m.Share {
		m.Share[i] /= total
	}
	m.LogWake += math.Log(total)
	if woken > 0 { // joins the accounts evenly
		next := logAdd(m.LogWake, math.Log(woken))
		f := math.Exp(m.LogWake - next)
		for i := range m.Share {
			m.Share[i] = f*m.Share[i] + (1-f)/3
		}
		m.LogWake = next
	}
	m.LogPeak = max(m.LogPeak, m.LogValue())
}

// LogValue returns the natural logarithm of the value.
func (m *Martingale) LogValue() float64 {
	if s := m.asleep(m.Steps); s > 0 {
		return logAdd(m.LogWake, math.Log(s))
	}
	return m.LogWake
}

// Withdrawn reports whether the value ever reached 1/delta.
func (m *Martingale) Withdrawn(delta float64) bool { return m.LogPeak >= -math.Log(delta) }

// check refuses a stored state that cannot be one.
func (m *Martingale) check() error {
	s := m.Share[0] + m.Share[1] + m.Share[2]
	switch {
	case !(m.Jump > 0 && m.Jump <= 1):
		return fmt.Errorf("%w: martingale: jump is %v, want more than 0 and at most 1", ErrMonitor, m.Jump)
	case !(m.Reserve >= 0 && m.Reserve < 1):
		return fmt.Errorf("%w: martingale: reserve is %v, want 0 or more and less than 1", ErrMonitor, m.Reserve)
	case m.Steps < 0 || !finite(m.LogWake) || !(m.LogPeak >= 0) || !finite(m.LogPeak) || !(min(m.Share[0], m.Share[1], m.Share[2]) >= 0) || !(math.Abs(s-1) < 1e-6):
		return fmt.Errorf("%w: martingale: its capital is no capital", ErrMonitor)
	}
	return nil
}

// logAdd returns log(e^a + e^b).
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	return a + math.Log1p(math.Exp(b-a))
}
