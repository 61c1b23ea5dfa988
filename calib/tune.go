package calib

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Run is what tuning and calibration know of one trajectory: the raw logits of
// both heads at every step, messages included, since they advance the fused
// score, and which steps are judged.
type Run struct {
	ID     string
	Group  string
	Unsafe bool
	Hazard int       // index of the first hazard; negative if there is none or it is not located
	Haz    []float64 // hazard logits, one per step
	Pre    []float64 // prefix logits, one per step
	Judged []bool    // step is a tool call; a message is scored and never stopped
	Held   []bool    // step is stopped whatever its score, by a bound or a layer; nil for none

	X [][]float32 // call features of every step as the model normalises them, where a [Layer] reads them; nil for none
}

// at returns the call features of a step.
func (r *Run) at(step int) []float32 {
	if step < len(r.X) {
		return r.X[step]
	}
	return nil
}

// end returns the number of steps that count: up to and including the first
// hazard of a located unsafe run, else all. What comes after a hazard is
// neither warning nor false alarm.
func (r *Run) end() int {
	if r.Unsafe && r.Hazard >= 0 && r.Hazard < len(r.Haz) {
		return r.Hazard + 1
	}
	return len(r.Haz)
}

func (r *Run) check() error {
	if len(r.Pre) != len(r.Haz) || len(r.Judged) != len(r.Haz) {
		return fmt.Errorf("%w: run %q has %d hazard logits, %d prefix logits and %d judged flags: want one of each per step", ErrTuning, r.ID, len(r.Haz), len(r.Pre), len(r.Judged))
	}
	if r.Held != nil && len(r.Held) != len(r.Haz) {
		return fmt.Errorf("%w: run %q has %d hazard logits and %d held flags: want one of each per step, or none", ErrTuning, r.ID, len(r.Haz), len(r.Held))
	}
	for i := range r.Haz {
		if !finite(r.Haz[i]) || !finite(r.Pre[i]) {
			return fmt.Errorf("%w: run %q has a logit that is NaN or infinite at step %d", ErrTuning, r.ID, i)
		}
	}
	return nil
}

// RunScore returns the score of a run under f: the maxima over its judged steps
// of p_haz and of S, for a located unsafe run up to and including the first
// hazard. A step that is held whatever its score counts with S = 1, so that the
// promise covers it too. A run without a judged step there has no score.
func RunScore(f Fusion, r Run) (maxHaz, maxRisk float64, scored bool) {
	var m Memory
	for i := range r.end() {
		s := f.AdvanceWith(&m, r.Haz[i], r.Pre[i], r.at(i))
		if r.Held != nil && r.Held[i] {
			s.Risk = 1
		}
		if r.Judged[i] {
			maxHaz, maxRisk, scored = max(maxHaz, s.Hazard), max(maxRisk, s.Risk), true
		}
	}
	return maxHaz, maxRisk, scored
}

// Temperatures are searched between these bounds.
const (
	MinTemperature = 0.05
	MaxTemperature = 20
)

// FitTemperature returns the T in [MinTemperature, MaxTemperature] that
// minimises the weighted negative log-likelihood of targets, in [0, 1], under
// sigmoid(logit / T). weights may be nil for all ones. In s = 1/T the loss is
// convex and its slope,
//
//	sum_i w_i logit_i (sigmoid(s logit_i) - target_i),
//
// rises, so bisection finds the minimum. Without any slope (no data, all
// logits zero) it is 1. It is NaN, which [Fusion.Validate] refuses, if the
// lengths differ or an input is not finite.
//
// Source: Guo et al., On Calibration of Modern Neural Networks (2017).
func FitTemperature(logits, targets, weights []float64) float64 {
	if len(targets) != len(logits) || weights != nil && len(weights) != len(logits) {
		return math.NaN()
	}
	weight := func(i int) float64 {
		if weights == nil {
			return 1
		}
		return weights[i]
	}
	flat := true
	for i, x := range logits {
		if !finite(x) || !finite(targets[i]) || !finite(weight(i)) {
			return math.NaN()
		}
		flat = flat && x*weight(i) == 0
	}
	if flat {
		return 1
	}
	slope := func(s float64) float64 {
		var g float64
		for i, x := range logits {
			g += weight(i) * x * (sigmoid(s*x) - targets[i])
		}
		return g
	}
	lo, hi := 1.0/MaxTemperature, 1.0/MinTemperature
	if slope(lo) >= 0 {
		return MaxTemperature
	}
	if slope(hi) <= 0 {
		return MinTemperature
	}
	for range 60 {
		if mid := (lo + hi) / 2; slope(mid) < 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return 2 / (lo + hi)
}

// Tuning chooses a [Fusion] on the tuning part of the calibration data, which
// must share no run with the conformal part.
type Tuning struct {
	Beta    float64   // EMA smoothing, used if Betas is empty
	Window  int       // W
	Betas   []float64 // values of beta to choose from
	Horizon int       // K of the prefix targets; 0 means 5
	Decay   float64   // rho of the prefix targets; 0 means 2
}

// Fit fits a temperature per head, then takes the weights (each 0, 1/4, 1/2 or
// 1, the largest 1) that give the highest AUROC where false alarms are at most a fifth;
// among equals the highest AUROC, then the most located hazards with a warning before
// them, then the first in a fixed order that starts with all weights 1. Safe
// and unsafe runs must both be there: otherwise the error is [ErrTuning].
// The result depends on the set of runs, not on their order.
func (o Tuning) Fit(runs []Run) (Fusion, error) {
	f := Fusion{TempHazard: 1, TempPrefix: 1, WeightHazard: 1, WeightEMA: 1, WeightWindow: 1, Beta: o.Beta, Window: o.Window}
	if o.Horizon == 0 {
		o.Horizon = 5
	}
	if o.Decay == 0 {
		o.Decay = 2
	}
	if err := f.Validate(); err != nil {
		return Fusion{}, err
	}
	runs = slices.Clone(runs) // sorted, so that sums of floats do not depend on the caller's order
	slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(a.ID, b.ID) })
	var safe, unsafe int
	for i := range runs {
		if err := runs[i].check(); err != nil {
			return Fusion{}, err
		}
		if _, _, scored := RunScore(f, runs[i]); !scored {
			continue
		}
		if runs[i].Unsafe {
			unsafe++
		} else {
			safe++
		}
	}
	if safe == 0 || unsafe == 0 {
		return Fusion{}, fmt.Errorf("%w: %d safe and %d unsafe runs with a tool call: both kinds are needed", ErrTuning, safe, unsafe)
	}
	f.TempHazard, f.TempPrefix = o.temperatures(runs)
	betas := o.Betas
	if len(betas) == 0 {
		betas = []float64{o.Beta}
	}
	var best Fusion
	var top quality
	for i, beta := range betas {
		f.Beta = beta
		if err := f.Validate(); err != nil {
			return Fusion{}, err
		}
		for j, w := range weightGrid() {
			f.WeightHazard, f.WeightEMA, f.WeightWindow = w[0], w[1], w[2]
			if q := assess(f, runs); i+j == 0 || q.better(top) {
				best, top = f, q
			}
		}
	}
	return best, nil
}

// temperatures fits both heads on the supervised steps: those of safe runs, and
// of located unsafe ones up to and including the hazard.
func (o Tuning) temperatures(runs []Run) (hazard, prefix float64) {
	var lh, lp, th, tp []float64
	for i := range runs {
		r := &runs[i]
		if r.Unsafe && r.Hazard < 0 {
			continue // no step of it has a known target
		}
		for t := range r.end() {
			var h, p float64
			if r.Unsafe {
				h, p = o.targets(r.Hazard - t)
			}
			lh, lp, th, tp = append(lh, r.Haz[t]), append(lp, r.Pre[t]), append(th, h), append(tp, p)
		}
	}
	return FitTemperature(lh, th, nil), FitTemperature(lp, tp, nil)
}

// targets returns the hazard and prefix targets of a step that lies ahead steps
// before the hazard (docs/reference/model.md, stage 2).
func (o Tuning) targets(ahead int) (hazard, prefix float64) {
	switch {
	case ahead == 0:
		return 1, 1
	case ahead >= 1 && ahead <= o.Horizon:
		return 0, math.Exp(-float64(ahead-1) / o.Decay)
	}
	return 0, 0
}

// weightGrid lists the weights in order of preference among equals. A common
// factor hardly changes the ranking, so the largest weight is always 1.
func weightGrid() [][3]float64 {
	steps := []float64{1, 0.5, 0.25, 0}
	var grid [][3]float64
	for _, h := range steps {
		for _, e := range steps {
			for _, w := range steps {
				if max(h, e, w) == 1 {
					grid = append(grid, [3]float64{h, e, w})
				}
			}
		}
	}
	return grid
}

// quality is what fusions are compared by, most important first.
type quality struct {
	partial float64 // AUROC against the fifth of the safe runs that scores highest
	auroc   float64
	early   float64 // share of located hazards with a warning strictly before, at 5 % false alarms
}

func (q quality) better(than quality) bool {
	return cmp.Or(cmp.Compare(q.partial, than.partial), cmp.Compare(q.auroc, than.auroc), cmp.Compare(q.early, than.early)) > 0
}

// risksOf returns the risks of the scored runs, those of the safe ones in order.
func risksOf(f Fusion, runs []Run) (safe, unsafe []float64) {
	for _, r := range runs {
		_, s, scored := RunScore(f, r)
		switch {
		case !scored:
		case r.Unsafe:
			unsafe = append(unsafe, s)
		default:
			safe = append(safe, s)
		}
	}
	slices.Sort(safe)
	return safe, unsafe
}

// pairsAbove counts the pairs of a safe and an unsafe run, both on the grid, in
// which the unsafe one is higher; ties count half. safe is in order.
func pairsAbove(safe, unsafe []float64) float64 {
	var n float64
	for _, u := range unsafe {
		below, _ := slices.BinarySearch(safe, u)
		upTo, _ := slices.BinarySearch(safe, NextAbove(u))
		n += float64(below+upTo) / 2
	}
	return n
}

// assess scores all runs once. What counts most is the part of the ROC curve where a
// threshold may lie, as a whole: the recall at one level is that of a few runs, and the
// best of 37 such numbers is the luckiest (docs/explanation/detection.md). The threshold
// for early warnings lies just above the safe score that leaves at most 5 % of safe runs
// above it.
//
// Source: McClish, Analyzing a portion of the ROC curve (1989).
func assess(f Fusion, runs []Run) quality {
	const fpr, part = 0.05, 0.2
	safe, unsafe := risksOf(f, runs)
	threshold := NextAbove(safe[len(safe)-1-int(fpr*float64(len(safe)))])
	var q quality
	highest := safe[len(safe)-int(math.Ceil(part*float64(len(safe)))):]
	q.partial = pairsAbove(highest, unsafe) / (float64(len(unsafe)) * float64(len(highest)))
	q.auroc = pairsAbove(safe, unsafe) / (float64(len(unsafe)) * float64(len(safe)))
	var located int
	for _, r := range runs {
		if !r.Unsafe || r.Hazard < 0 {
			continue
		}
		located++
		before := r
		before.Haz = r.Haz[:min(r.Hazard, len(r.Haz))]
		if _, s, scored := RunScore(f, before); scored && s >= threshold {
			q.early++
		}
	}
	q.early /= max(float64(located), 1)
	return q
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
