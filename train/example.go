package train

import (
	"errors"
	"fmt"
	"math"

	"github.com/dreamguard/dreamguard/data"
)

// Dims are the input sizes that the data fixes.
type Dims struct {
	D int `json:"d"` // length of an embedding
	F int `json:"f"` // number of call features

	// What the heads have of trees, once they are grown: 0 before, and without any.
	Trees int `json:"trees,omitempty"` // of each head
	Nodes int `json:"nodes,omitempty"` // of each tree
}

// Example is one trajectory ready for the model. Slices are row-major, one row
// per step.
type Example struct {
	ID        string
	Dataset   string
	Steps     int
	Task      []float32 // [D] e
	Calls     []float32 // [Steps*D] embedding of a_t
	Features  []float32 // [Steps*F] raw call features of a_t
	Results   []float32 // [Steps*D] embedding of what came back after step t (o_{t+1})
	HasResult []bool    // [Steps]
	Judged    []bool    // [Steps] true for tool calls (messages are scored but never stopped)
	Label     data.Label
	Hazard    int     // first hazard, -1 if none or not located
	Exact     bool    // located by an exact rule
	Weight    float32 // weight of its source, >= 0
}

// ErrExample is wrapped by every error about an [Example] that does not fit the
// model or itself.
var ErrExample = errors.New("example does not fit")

// located reports whether the run is unsafe with a known first hazard.
func (x *Example) located() bool { return x.Label == data.Unsafe && x.Hazard >= 0 }

// supervised is how many steps, from the first, have risk targets: all of a safe
// run, those up to and including the first hazard of a located unsafe run, none
// of any other.
func (x *Example) supervised() int {
	switch {
	case x.Label == data.Safe:
		return x.Steps
	case x.located():
		return x.Hazard + 1
	}
	return 0
}

// check finds what would otherwise surface as a slice out of range or as a NaN
// thousands of steps later.
func (x *Example) check(d Dims) error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s: %s", ErrExample, x.ID, fmt.Sprintf(format, a...))
	}
	if x.Steps < 1 {
		return bad("steps is %d: an example needs at least one", x.Steps)
	}
	for _, f := range []struct {
		name string
		v    []float32
		want int
	}{
		{"task", x.Task, d.D},
		{"calls", x.Calls, x.Steps * d.D},
		{"features", x.Features, x.Steps * d.F},
		{"results", x.Results, x.Steps * d.D},
	} {
		if len(f.v) != f.want {
			return bad("%s has %d values, want %d for %d steps, D=%d, F=%d", f.name, len(f.v), f.want, x.Steps, d.D, d.F)
		}
		for i, v := range f.v {
			if v-v != 0 { // NaN or infinite
				return bad("%s[%d] is %g", f.name, i, v)
			}
		}
	}
	if len(x.HasResult) != x.Steps || len(x.Judged) != x.Steps {
		return bad("has_result and judged have %d and %d values, want %d", len(x.HasResult), len(x.Judged), x.Steps)
	}
	if x.Hazard < -1 || x.Hazard >= x.Steps {
		return bad("hazard is %d: want -1 to %d", x.Hazard, x.Steps-1)
	}
	if x.Hazard >= 0 && x.Label != data.Unsafe {
		return bad("hazard is %d although the run is labelled %v", x.Hazard, x.Label)
	}
	if !(x.Weight >= 0) || math.IsInf(float64(x.Weight), 0) {
		return bad("weight is %g: want a finite number from 0 up", x.Weight)
	}
	return nil
}

func checkAll(set string, xs []Example, d Dims) error {
	for i := range xs {
		if err := xs[i].check(d); err != nil {
			return fmt.Errorf("%s[%d]: %w", set, i, err)
		}
	}
	return nil
}

// featureClip bounds a standardised feature, so that a value never met in
// training cannot saturate the model.
const featureClip = 8

// featureStats returns mean and scale (standard deviation, 1 for a constant
// feature) of every feature over all steps of xs, both [F]. Runs are not
// weighted: the statistics describe the inputs, not their importance.
func featureStats(xs []Example, f int) (mean, scale []float32) {
	sum, sq := make([]float64, f), make([]float64, f)
	var n float64
	for i := range xs {
		n += float64(xs[i].Steps)
		for j, v := range xs[i].Features {
			sum[j%f] += float64(v)
		}
	}
	for j := range sum {
		sum[j] /= n
	}
	// Two passes: the one-pass formula loses everything for a feature such as a
	// length, whose mean is large beside its spread.
	for i := range xs {
		for j, v := range xs[i].Features {
			d := float64(v) - sum[j%f]
			sq[j%f] += d * d
		}
	}
	mean, scale = make([]float32, f), make([]float32, f)
	for j := range mean {
		mean[j], scale[j] = float32(sum[j]), 1
		if sd := math.Sqrt(sq[j] / n); sd > 1e-6 {
			scale[j] = float32(sd)
		}
	}
	return mean, scale
}

// normalise writes clip((raw - mean) / scale, -8, 8) to dst, any number of rows.
func normalise(dst, raw, mean, scale []float32) {
	f := len(mean)
	for i, v := range raw {
		j := i % f
		dst[i] = min(max((v-mean[j])/scale[j], -featureClip), featureClip)
	}
}
