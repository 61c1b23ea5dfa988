package calib

import (
	"fmt"
	"math/big"
)

// Budget bounds how often people are asked: HOLDs among all traffic, attacks
// included. The zero value is no bound.
type Budget struct {
	Rate     float64 `json:"rate"`                // at most this share of runs, or of calls, is held; 0 is no bound
	PerCall  bool    `json:"per_call,omitempty"`  // count calls instead of runs
	MaxCalls int     `json:"max_calls,omitempty"` // calls of a run that count, per call; 0: as many as the longest run of the tuning part has
}

// threshold returns the lowest hold level that keeps the budget on traffic, any
// runs, labelled or not.
//
// Per run it is [Quantile] (or its form with confidence) of their scores. Per
// call a run has the loss
//
//	L(l) = held calls at l - rate calls,   -rate C <= L <= (1-rate) C
//
// with C = MaxCalls, which falls as l rises. E L <= 0 says that held calls are
// at most rate of all calls. Conformal risk control asks for
//
//	sum_i L_i(l) + (1-rate) C <= 0
//
// and with confidence the Hoeffding-Bentkus bound is applied to (L + rate C)/C,
// in [0, 1], at level rate.
//
// A run that BLOCK stops counts as held where its S reaches the level: the
// budget is on the safe side of that.
//
// Source: Angelopoulos et al., Conformal Risk Control (2022), section 2.
func (b Budget) threshold(traffic []Scored, e evidence) (Threshold, error) {
	rate, err := level(b.Rate)
	if err != nil {
		return Threshold{}, err
	}
	if !b.PerCall {
		n, costs := len(traffic), []float64(nil)
		if e.byGroup {
			n, costs = units(traffic, ByGroup)
		}
		e.n = n
		of := "scored runs"
		if e.byGroup {
			of = "groups of scored runs"
		}
		return e.threshold(column(traffic, (*Scored).traffic), costs, rate, of, 0)
	}
	return b.perCall(traffic, rate, e.confidence)
}

func (b Budget) perCall(traffic []Scored, rate *big.Rat, confidence float64) (Threshold, error) {
	var calls []float64
	for i := range traffic {
		if traffic[i].Calls == nil {
			return Threshold{}, fmt.Errorf("calib: run %q lists no calls: a hold budget per call needs the score of each", traffic[i].ID)
		}
		calls = append(calls, traffic[i].Calls[:min(len(traffic[i].Calls), b.MaxCalls)]...)
	}
	n, longest, r := len(traffic), float64(b.MaxCalls), toFloat(rate)
	budget := r*float64(len(calls)) - (1-r)*longest
	if confidence > 0 {
		// mean of (held_i - r calls_i + r C)/C <= s/n
		budget = -1
		if s := maxSum(n, r, 1-confidence); s >= 0 {
			budget = s*longest + r*float64(len(calls)) - r*longest*float64(n)
		}
	}
	t := Threshold{Value: Off, N: len(calls), Alpha: r}
	if budget < 0 {
		return t, &TooFewError{Of: "scored runs", N: n, Need: b.needPerCall(len(calls), n, confidence), Alpha: r, Confidence: confidence}
	}
	s, err := onGrid(calls)
	if err != nil {
		return t, err
	}
	t.Value = lowest(s, nil, budget)
	t.K = countBelow(s, t.Value)
	return t, nil
}

// needPerCall estimates the number of runs that a budget per call needs, if runs
// go on to have as many calls as these do.
func (b Budget) needPerCall(calls, n int, confidence float64) int {
	mean := float64(calls) / float64(max(n, 1)) / float64(b.MaxCalls) // in [0, 1]
	enough := func(n int) bool {
		if confidence == 0 {
			return b.Rate*mean*float64(n) >= 1-b.Rate
		}
		return maxSum(n, b.Rate, 1-confidence)+b.Rate*(mean-1)*float64(n) >= 0
	}
	if mean == 0 {
		mean = 1 / float64(b.MaxCalls)
	}
	lo, hi := n, n+1
	for !enough(hi) && hi < 1<<30 {
		lo, hi = hi, 2*hi
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; enough(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}
