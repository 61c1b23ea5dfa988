package pipeline

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/export"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
)

// Calibrate tunes the fusion on the tuning set, sets the thresholds on the
// conformal set, both scored by the runtime on the exported weights, and writes
// the artifact's calibration.json. One that the run did not make is kept in the
// history of the artifact first. With too few safe runs for the promise the
// error is a *calib.TooFewError, with no level below the top of the scale that
// keeps it a *calib.NoLevelError.
func (r *Run) Calibrate(ctx context.Context) error {
	if err := r.needs("export"); err != nil {
		return err
	}
	cfg := r.Config
	return r.stage(ctx, "calibrate", r.inputs("calibrate"), func(ctx context.Context, rec *StageRecord) ([]string, error) {
		// A calibration that may not fit the scores any more must not stay.
		if err := r.replacingCalibration(func() error {
			return removeIfThere(r.path("artifact", artifact.CalibrationFile))
		}); err != nil {
			return nil, err
		}
		m, ahead, done, err := r.openModel(ctx, guard.ScoresOnly())
		if err != nil {
			return nil, err
		}
		defer done()
		tuning, err := r.score(ctx, m, ahead, "tuning")
		if err != nil {
			return nil, err
		}
		runs := make([]calib.Run, len(tuning))
		for i := range tuning {
			runs[i] = tuning[i].Run()
		}
		fusion, err := calib.Tuning{
			Beta: cfg.Calib.Beta, Window: cfg.Calib.Window, Horizon: cfg.Train.Stage2.Horizon, Decay: cfg.Train.Stage2.Decay,
		}.Fit(runs)
		if err != nil {
			return nil, fmt.Errorf("tuning set of %d runs: %w", len(runs), err)
		}

		conformal, err := r.score(ctx, m, ahead, "conformal")
		if err != nil {
			return nil, err
		}
		c, err := calibration(m.Digest(), fusion, conformal, cfg.Calib.Alpha, cfg.Calib.AlphaBlock, cfg.Calib.PaperClamp)
		if err != nil {
			return nil, err
		}
		c.Certificate.DataFingerprint = r.ledger.Stages["data"].Outputs[filepath.Join("data", "conformal.jsonl.gz")]
		c.Certificate.Created = r.now().UTC().Format(time.DateOnly)
		rec.Counts["tuning"], rec.Counts["conformal"] = len(runs), c.Certificate.N
		if err := export.WriteCalibration(r.ArtifactDir(), *c); err != nil {
			return nil, err
		}
		if err := dropTwin(r.ArtifactDir()); err != nil {
			return nil, err
		}
		return []string{filepath.Join("artifact", artifact.CalibrationFile)}, nil
	})
}

// Promise states what the run's calibration sets and promises, a line each.
func (r *Run) Promise() ([]string, error) {
	a, err := artifact.Open(r.ArtifactDir())
	if err != nil {
		return nil, err
	}
	if a.Calibration == nil {
		return nil, fmt.Errorf("%s: %w", r.ArtifactDir(), guard.ErrNotCalibrated)
	}
	t := promised(a.Calibration)
	return append([]string{
		fmt.Sprintf("HOLD from a risk of %s, BLOCK from a hazard probability of %s, set on %d safe runs.", calib.FormatLevel(t.Hold.Value), calib.FormatLevel(t.Block.Value), t.N),
	}, promises(a.Calibration, t)...), nil
}

// calibration sets the thresholds on safe traces whose logits were recorded.
func calibration(modelDigest string, fusion calib.Fusion, traces []eval.Trace, alpha, alphaBlock float64, clamp bool) (*artifact.Calibration, error) {
	var hazard, risk []float64
	var scored []calib.Scored
	groups := map[string]bool{}
	forced := 0 // runs with a call that is held whatever its score
	for i := range traces {
		t := &traces[i]
		if t.Label != data.Safe {
			return nil, fmt.Errorf("conformal run %s is labelled %v: thresholds are set on safe runs only", t.ID, t.Label)
		}
		if h, s, ok := calib.RunScore(fusion, t.Run()); ok {
			if s == 1 {
				forced++
			}
			hazard, risk = append(hazard, h), append(risk, s)
			scored = append(scored, calib.Scored{Hazard: h, Risk: s})
			groups[t.Group] = true
		}
	}
	t, err := calib.Union(hazard, risk, alpha, alphaBlock, clamp)
	if err != nil {
		return nil, err
	}
	// A level that is off still leaves the calls that are held without a score,
	// so nothing could be promised.
	if t.Silent() || t.Hold.IsOff() && forced > 0 {
		return nil, fmt.Errorf("%w: look for calls with over-long arguments in them, train longer, or raise calibrate.alpha",
			&calib.NoLevelError{Bound: calib.BoundFalseAlarm, Runs: t.N, AtTop: forced, Alpha: alpha})
	}
	live := make([]float64, len(scored))
	for i := range scored {
		live[i] = stoppedRisk(&scored[i], t.Block.Value)
	}
	reference, err := calib.NewHistogram(live, t.Hold.Value)
	if err != nil {
		return nil, err
	}
	return &artifact.Calibration{
		Schema: artifact.CalibrationSchema, ModelDigest: modelDigest, Fusion: fusion, Thresholds: artifact.NewThresholds(t),
		Certificate: artifact.Certificate{
			Alpha: alpha, AlphaBlock: alphaBlock, N: t.N, Groups: len(groups), KHold: t.Hold.K, KBlock: t.Block.K,
			Alerted: t.Alerted, NoGuarantee: t.NoGuarantee,
		},
		Reference: reference,
	}, nil
}

// score runs a set of the folder through the guard on all cores.
func (r *Run) score(ctx context.Context, m *guard.Model, ahead *ahead, set string) ([]eval.Trace, error) {
	ts, err := r.Set(set)
	if err != nil {
		return nil, err
	}
	if err := ahead.fill(ctx, set, ts); err != nil {
		return nil, err
	}
	task := r.opts.Progress.Start("score "+set, len(ts))
	defer task.Done()
	return eval.Score(ctx, m, ts, 0, func(n int) { task.Add(n) })
}
