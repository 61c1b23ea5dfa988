package calib

import (
	"fmt"
	"math"
)

// GridStep is the grid on which scores are compared: 2^-16. Scores are rounded
// to it in calibration and at run time alike, so that ties are explicit and a
// difference in the last bit cannot change a verdict.
const GridStep = 1.0 / (1 << 16)

// Grid rounds x, in [0, 1], to the nearest grid point.
func Grid(x float64) float64 { return math.Round(x/GridStep) * GridStep }

// NextAbove returns the grid point above the grid point x.
func NextAbove(x float64) float64 { return Grid(x + GridStep) }

// Off is the threshold that no score reaches.
var Off = math.Inf(1)

// Fusion turns the two head logits of a step into one risk score (DESIGN
// section 5, Runtime). It is chosen on the tuning part of the calibration data.
type Fusion struct {
	TempHazard   float64 `json:"temp_hazard"` // T of the hazard head, > 0
	TempPrefix   float64 `json:"temp_prefix"` // T of the prefix head, > 0
	WeightHazard float64 `json:"weight_hazard"`
	WeightEMA    float64 `json:"weight_ema"`
	WeightWindow float64 `json:"weight_window"`
	Beta         float64 `json:"beta"`            // EMA smoothing, in [0, 1)
	Window       int     `json:"window"`          // W, 1 to MaxWindow
	Layer        *Layer  `json:"layer,omitempty"` // a last layer on S, from a refit; nil for none
}

// Validate checks the ranges that [Fusion.Step] relies on. The error wraps
// [ErrFusion] and names the field.
func (f *Fusion) Validate() error {
	bad := func(field string, v any, want string) error {
		return fmt.Errorf("%w: %s is %v, want %s", ErrFusion, field, v, want)
	}
	for _, t := range []struct {
		field string
		v     float64
	}{{"temp_hazard", f.TempHazard}, {"temp_prefix", f.TempPrefix}} {
		if !(t.v > 0) || math.IsInf(t.v, 1) {
			return bad(t.field, t.v, "a finite number above 0")
		}
	}
	for _, w := range []struct {
		field string
		v     float64
	}{{"weight_hazard", f.WeightHazard}, {"weight_ema", f.WeightEMA}, {"weight_window", f.WeightWindow}} {
		if !(w.v >= 0) || math.IsInf(w.v, 1) {
			return bad(w.field, w.v, "a finite number, 0 or more")
		}
	}
	if !(f.Beta >= 0 && f.Beta < 1) {
		return bad("beta", f.Beta, "0 or more and less than 1")
	}
	if f.Window < 1 || f.Window > MaxWindow {
		return bad("window", f.Window, fmt.Sprintf("1 to %d", MaxWindow))
	}
	if f.Layer != nil {
		return f.Layer.Validate()
	}
	return nil
}

// MaxWindow bounds the state of a session.
const MaxWindow = 64

// Memory is the part of a session that the score depends on. Its zero value is
// the start of a run. It is a plain value: copying it is a snapshot.
type Memory struct {
	EMA   float64
	Last  [MaxWindow]float64 // ring of prefix probabilities
	Count int                // steps seen
}

// Scores are the quantities that a verdict is made of, all on the grid.
type Scores struct {
	Hazard float64 `json:"hazard"` // p_haz
	Prefix float64 `json:"prefix"` // p_pre
	EMA    float64 `json:"ema"`    // p_ema after this step
	Window float64 `json:"window"` // p_win after this step
	Risk   float64 `json:"risk"`   // S
}

// Step returns the scores of a step with the given logits, and the memory after
// it. It does not change m, so judging without committing is free.
func (f *Fusion) Step(m *Memory, logitHazard, logitPrefix float64) (Scores, Memory) {
	next := *m
	s := f.Advance(&next, logitHazard, logitPrefix)
	return s, next
}

// Advance is [Fusion.Step] in place, without the copies: for replaying runs
// whose steps are all executed.
func (f *Fusion) Advance(m *Memory, logitHazard, logitPrefix float64) Scores {
	return f.AdvanceWith(m, logitHazard, logitPrefix, nil)
}

// AdvanceWith is [Fusion.Advance] with the call features of the step, as the model
// normalises them, which a [Layer] may read. A layer that reads features and is
// given none answers 1.
func (f *Fusion) AdvanceWith(m *Memory, logitHazard, logitPrefix float64, features []float32) Scores {
	s := f.fuse(m, logitHazard, logitPrefix)
	if f.Layer != nil {
		s.risk = f.Layer.apply(s.risk, s.hazard, s.prefix, features)
	}
	return Scores{Hazard: Grid(s.hazard), Prefix: Grid(s.prefix), EMA: Grid(m.EMA), Window: Grid(s.window), Risk: Grid(s.risk)}
}

// fused are the scores of a step before rounding and before a layer.
type fused struct{ hazard, prefix, window, risk float64 }

func (f *Fusion) fuse(m *Memory, logitHazard, logitPrefix float64) fused {
	haz := sigmoid(logitHazard / f.TempHazard)
	pre := sigmoid(logitPrefix / f.TempPrefix)
	m.EMA = f.Beta*m.EMA + (1-f.Beta)*pre
	m.Last[m.Count%f.Window] = pre
	m.Count++
	n := min(m.Count, f.Window)
	var win float64
	for _, p := range m.Last[:n] {
		win += p
	}
	win /= float64(n)
	clip := func(x float64) float64 { return min(max(x, 0), 1) }
	risk := 1 - (1-clip(f.WeightHazard*haz))*(1-clip(f.WeightEMA*m.EMA))*(1-clip(f.WeightWindow*win))
	return fused{haz, pre, win, risk}
}

func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}
