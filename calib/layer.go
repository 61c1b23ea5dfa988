package calib

import (
	"fmt"
	"math"
)

// Layer is a small last layer on the fused score of a step: a logistic regression
// on the log-odds of S, p_haz and p_pre and on the call features f' of the model,
//
//	ln S'/(1-S') = ln S/(1-S) + Bias + Heads . (ln S/(1-S), ln p_haz/(1-p_haz), ln p_pre/(1-p_pre)) + Features . f'
//
// With all weights 0 it changes nothing. Log-odds are kept within 12 of 0. It changes the risk that
// HOLD is decided on and leaves p_haz alone. [FitLayer] fits it.
type Layer struct {
	Bias     float64    `json:"bias"`
	Heads    [3]float64 `json:"heads"`
	Features []float64  `json:"features,omitempty"` // one per call feature of the model, or none
}

// Bounds of a layer.
const (
	MaxLayerFeatures = 1 << 10
	MaxLayerWeight   = 1e3
	maxLogOdds       = 12
)

// Validate checks the bounds. The error wraps [ErrFusion].
func (l *Layer) Validate() error {
	if n := len(l.Features); n > MaxLayerFeatures {
		return fmt.Errorf("%w: layer.features has %d weights, want at most %d", ErrFusion, n, MaxLayerFeatures)
	}
	check := func(name string, w float64) error {
		if !(math.Abs(w) <= MaxLayerWeight) {
			return fmt.Errorf("%w: layer.%s is %v, want a number from %v to %v", ErrFusion, name, w, -MaxLayerWeight, MaxLayerWeight)
		}
		return nil
	}
	if err := check("bias", l.Bias); err != nil {
		return err
	}
	for i, w := range l.Heads {
		if err := check(fmt.Sprintf("heads[%d]", i), w); err != nil {
			return err
		}
	}
	for i, w := range l.Features {
		if err := check(fmt.Sprintf("features[%d]", i), w); err != nil {
			return err
		}
	}
	return nil
}

// apply returns S' for a step. Without the features that it needs a step is as
// risky as can be: what cannot be judged must not pass.
func (l *Layer) apply(risk, hazard, prefix float64, features []float32) float64 {
	if l.Features != nil && len(features) != len(l.Features) {
		return 1
	}
	s := logOdds(risk)
	z := s + l.Bias + l.Heads[0]*s + l.Heads[1]*logOdds(hazard) + l.Heads[2]*logOdds(prefix)
	for i, w := range l.Features {
		z += w * float64(features[i])
	}
	if math.IsNaN(z) {
		return 1
	}
	return sigmoid(z)
}

func logOdds(p float64) float64 {
	return min(max(math.Log(p)-math.Log1p(-p), -maxLogOdds), maxLogOdds)
}
