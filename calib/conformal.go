package calib

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
)

// Errors. A [*TooFewError] is separate because it carries what is needed.
var (
	// ErrScore is returned for a score that is NaN, infinite or outside [0, 1].
	ErrScore = errors.New("score is not a number in [0, 1]")
	// ErrLevel is returned for a level or confidence outside its range.
	ErrLevel = errors.New("level out of range")
	// ErrFusion is returned for fusion parameters that no score can be made of.
	ErrFusion = errors.New("calib: invalid fusion")
	// ErrTuning is returned for tuning runs that nothing can be chosen on.
	ErrTuning = errors.New("calib: cannot tune")
)

// TooFewError says that no valid threshold exists: with N calibration runs
// even the largest score promises less than was asked for.
type TooFewError struct {
	Of         string  // what is counted; "" means scored safe runs
	N          int     // how many were given
	Need       int     // the smallest number that suffices; an estimate where what is needed depends on the scores
	Alpha      float64 // the level that was asked for
	Confidence float64 // the confidence that was asked for; 0 for the marginal promise
}

func (e *TooFewError) Error() string {
	of, with := e.Of, ""
	if of == "" {
		of = "scored safe runs"
	}
	if e.Confidence > 0 {
		with = fmt.Sprintf(" with %s confidence", percent(e.Confidence))
	}
	return fmt.Sprintf("calib: %d %s are too few for alpha %v%s: at least %d are needed", e.N, of, e.Alpha, with, e.Need)
}

// Threshold is one level of the guard: it acts where score >= Value.
type Threshold struct {
	Value float64 // a grid point, or Off
	K     int     // rank of the calibration score that Value lies just above, 1 to N; 0 if the level was never set
	N     int     // calibration scores
	Alpha float64 // level this threshold was set for
}

// FormatLevel renders a level for a person: five digits, or off.
func FormatLevel(level float64) string {
	if math.IsInf(level, 1) {
		return "off"
	}
	return fmt.Sprintf("%.5f", level)
}

// IsOff reports whether no score reaches the threshold.
func (t Threshold) IsOff() bool { return math.IsInf(t.Value, 1) }

type thresholdJSON struct {
	Value *float64 `json:"value"` // null = off
	K     int      `json:"k"`
	N     int      `json:"n"`
	Alpha float64  `json:"alpha"`
}

// MarshalJSON writes a level that is off as "value": null, since JSON has no
// infinity.
func (t Threshold) MarshalJSON() ([]byte, error) {
	j := thresholdJSON{K: t.K, N: t.N, Alpha: t.Alpha}
	if !t.IsOff() {
		j.Value = &t.Value
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Threshold) UnmarshalJSON(b []byte) error {
	var j thresholdJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*t = Threshold{Value: Off, K: j.K, N: j.N, Alpha: j.Alpha}
	if j.Value != nil {
		t.Value = *j.Value
	}
	return nil
}

// Quantile returns the threshold that a new score, exchangeable with scores,
// reaches with probability at most alpha:
//
//	k = ceil((n+1)(1-alpha)),   Value = the grid point above M_(k)
//
// M_(k) is the k-th smallest score on the grid. "The point above" matters: the
// guard acts at score >= Value, and with Value = M_(k) the calibration score
// itself, and everything tied with it, would count as alerts. If M_(k) is the
// top grid point, the level is off.
//
// alpha is read as the shortest decimal that denotes it, and k is computed in
// exact arithmetic: 0.05 with n = 19 gives k = 19. Errors: [ErrLevel] for alpha
// outside (0, 1), [ErrScore], and [*TooFewError] if k > n.
//
// Source: Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World,
// section 4.2 (inductive conformal prediction).
func Quantile(scores []float64, alpha float64) (Threshold, error) {
	a, err := level(alpha)
	if err != nil {
		return Threshold{}, err
	}
	return quantile(scores, a, false)
}

// quantile is Quantile at an exact level. With clamp, k is min(k, n), as in the
// paper, which promises nothing.
func quantile(scores []float64, alpha *big.Rat, clamp bool) (Threshold, error) {
	n, k := len(scores), rank(len(scores), alpha)
	if k > n {
		if !clamp || n == 0 {
			return Threshold{}, &TooFewError{N: n, Need: need(alpha), Alpha: toFloat(alpha)}
		}
		k = n
	}
	v, err := above(scores, k)
	return Threshold{Value: v, K: k, N: n, Alpha: toFloat(alpha)}, err
}

// QuantileConfident returns the lowest threshold of which it can be said, with
// the given confidence over the draw of the calibration runs, that a new score
// reaches it with probability at most alpha. A threshold above M_(k) is reached
// with a probability that is at most Beta(n-k+1, k) distributed, so the bound
// is the exact Clopper-Pearson one with n-k alerts among n runs.
//
// Source: Vovk, Conditional validity of inductive conformal predictors (2012),
// proposition 2a.
func QuantileConfident(scores []float64, alpha, confidence float64) (Threshold, error) {
	if _, err := level(alpha); err != nil {
		return Threshold{}, err
	}
	if !(confidence > 0 && confidence < 1) {
		return Threshold{}, fmt.Errorf("calib: %w: confidence is %v, want more than 0 and less than 1", ErrLevel, confidence)
	}
	n := len(scores)
	alerts := maxErrors(n, alpha, 1-confidence)
	if alerts < 0 {
		return Threshold{}, &TooFewError{N: n, Need: NeedConfident(alpha, confidence), Alpha: alpha, Confidence: confidence}
	}
	v, err := above(scores, n-alerts)
	return Threshold{Value: v, K: n - alerts, N: n, Alpha: alpha}, err
}

// Need returns the smallest number of calibration runs for which [Quantile] has
// an answer at level alpha, ceil(1/alpha) - 1; 0 if alpha is not in (0, 1).
func Need(alpha float64) int {
	a, err := level(alpha)
	if err != nil {
		return 0
	}
	return need(a)
}

// NeedConfident returns the smallest number of calibration runs for which
// [QuantileConfident] has an answer: the smallest n with (1-alpha)^n <=
// 1-confidence; 0 if an argument is not in (0, 1).
func NeedConfident(alpha, confidence float64) int {
	if !(alpha > 0 && alpha < 1 && confidence > 0 && confidence < 1) {
		return 0
	}
	q := math.Ceil(math.Log1p(-confidence) / math.Log1p(-alpha))
	if q >= math.MaxInt32 {
		return math.MaxInt32
	}
	n := max(int(q), 1)
	// The quotient may be off by an ulp on either side of an integer.
	for n > 1 && BinomialP(0, n-1, alpha) <= 1-confidence {
		n--
	}
	for BinomialP(0, n, alpha) > 1-confidence {
		n++
	}
	return n
}

// above returns the grid point above the k-th smallest score, or Off.
func above(scores []float64, k int) (float64, error) {
	s, err := onGrid(scores)
	if err != nil {
		return 0, err
	}
	slices.Sort(s)
	return nextAbove(s[k-1]), nil
}

// onGrid copies scores to the grid and refuses what is no score.
func onGrid(scores []float64) ([]float64, error) {
	s := make([]float64, len(scores))
	for i, x := range scores {
		if !(x >= 0 && x <= 1) { // NaN fails both
			return nil, fmt.Errorf("calib: %w: scores[%d] is %v", ErrScore, i, x)
		}
		s[i] = Grid(x)
	}
	return s, nil
}

// nextAbove returns the grid point above the grid point m, or Off at the top.
func nextAbove(m float64) float64 {
	if m >= 1 {
		return Off
	}
	return NextAbove(m)
}

// level reads alpha as the decimal its user wrote: the float64 nearest to 0.29
// lies below it, and (99+1)*0.29 must still be 29.
func level(alpha float64) (*big.Rat, error) {
	if !(alpha > 0 && alpha < 1) {
		return nil, fmt.Errorf("calib: %w: alpha is %v, want more than 0 and less than 1", ErrLevel, alpha)
	}
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(alpha, 'g', -1, 64))
	return r, nil
}

// rank is ceil((n+1)(1-alpha)) = n + 1 - floor((n+1) alpha).
func rank(n int, alpha *big.Rat) int {
	m := new(big.Rat).Mul(big.NewRat(int64(n)+1, 1), alpha)
	return n + 1 - int(floor(m))
}

// need is the smallest n with (n+1) alpha >= 1.
func need(alpha *big.Rat) int {
	inv := new(big.Rat).Inv(alpha)
	f := floor(inv)
	if inv.IsInt() {
		f--
	}
	return int(min(f, math.MaxInt32))
}

// floor of a positive x, capped at MaxInt64.
func floor(x *big.Rat) int64 {
	q := new(big.Int).Quo(x.Num(), x.Denom())
	if !q.IsInt64() {
		return math.MaxInt64
	}
	return q.Int64()
}

func toFloat(r *big.Rat) float64 {
	f, _ := r.Float64()
	return f
}

// percent renders a share for a sentence: 0.05 as "5 %".
func percent(x float64) string {
	return strconv.FormatFloat(x*100, 'g', 4, 64) + " %"
}
