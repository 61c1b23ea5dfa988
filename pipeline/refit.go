package pipeline

import (
	"fmt"

	"github.com/dreamguard/dreamguard/calib"
)

// Refit is what a recalibration chooses anew beside the thresholds.
type Refit string

// The refits.
const (
	RefitNone    Refit = ""
	RefitWeights Refit = "weights" // how the scores are fused: temperatures and weights
	RefitLayer   Refit = "layer"   // a small last layer on the fused score, see [calib.FitLayer]
)

// tunes reports whether a run is in the tuning part.
func tunes(s calib.Scored, seed uint64) bool {
	tuning, _ := calib.Split([]calib.Scored{s}, tuningShare, seed)
	return len(tuning) == 1
}

// refit chooses the fusion on the tuning part, in which copies count once.
func (rec *Recalibration) refit(runs []candidate, current calib.Fusion, o *RecalibrateOptions) (calib.Fusion, error) {
	var part []calib.Run
	var safe, unsafe int
	seen := map[string]bool{}
	for i := range runs {
		c := &runs[i]
		if c.label == calib.Unlabelled && !o.Request.AssumeSafe || !tunes(c.before, o.Seed) || seen[c.fingerprint] {
			continue
		}
		seen[c.fingerprint] = true
		switch {
		case c.label != calib.Unsafe:
			safe++
		case o.Refit == RefitLayer && c.run.Hazard < 0: // nothing to learn from
			continue
		default:
			unsafe++
		}
		part = append(part, c.run)
	}
	if safe < minRefit || unsafe < minRefit {
		kind := "unsafe runs"
		if o.Refit == RefitLayer {
			kind = "unsafe runs with a located hazard"
		}
		return calib.Fusion{}, fmt.Errorf("%w: a refit needs at least %d safe and %d %s in the tuning part, which is about %.0f %% of them; it has %d and %d", calib.ErrTuning, minRefit, minRefit, kind, 100*tuningShare, safe, unsafe)
	}
	if o.Refit == RefitWeights {
		rec.Refitted = RefitWeights
		return calib.Tuning{Beta: current.Beta, Window: current.Window}.Fit(part)
	}
	fit, err := calib.FitLayer(current, part, o.Seed)
	if err != nil {
		return calib.Fusion{}, err
	}
	rec.Layer = fit
	if fit.Layer == nil {
		rec.Notes = append(rec.Notes, fmt.Sprintf("No last layer was fitted: in cross-validation the best one has an AUROC of %.3f, the scores as they are %.3f; a difference within its standard error of %.3f is none. What was in force stays.", fit.After, fit.Before, fit.SE))
		return current, nil
	}
	rec.Refitted = RefitLayer
	reads := "the scores"
	if fit.Features {
		reads = "the scores and the call features"
	}
	rec.Notes = append(rec.Notes, fmt.Sprintf("A last layer on %s was fitted to %d safe and %d unsafe runs: in cross-validation its AUROC is %.3f, without it %.3f, standard error of the difference %.3f.", reads, fit.Safe, fit.Unsafe, fit.After, fit.Before, fit.SE))
	current.Layer = fit.Layer
	return current, nil
}
