package pipeline

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
)

// locked names the test sets that are looked at once, at the end:
// Evaluate leaves them out, EvaluateFinal records the look.
var locked = []string{"agentdojo", "asb", "asse-security"}

// recalibrated names the sets that get a row with thresholds of their own.
var recalibrated = []string{"agentdojo", "asb", "asse-security"}

// Evaluate measures the calibrated artifact and the baselines on the test sets
// of the run, and writes eval/report.json and eval/report.html. The locked sets
// are left out, unless the configuration is one whose figures mean nothing.
func (r *Run) Evaluate(ctx context.Context) error {
	return r.evaluate(ctx, "eval", r.Config.Eval.LockedSmoke, nil)
}

// EvaluateFinal is Evaluate with the locked sets, into the folder final/. The
// look is appended to the file looks before the first set is scored; a report
// that is up to date needs no further look.
func (r *Run) EvaluateFinal(ctx context.Context, looks string) error {
	return r.evaluate(ctx, "final", true, func(m *guard.Model) error { return r.recordLook(looks, m) })
}

func (r *Run) evaluate(ctx context.Context, dir string, all bool, before func(*guard.Model) error) error {
	if err := r.needs("calibrate"); err != nil {
		return err
	}
	cfg := r.Config
	return r.stage(ctx, dir, r.inputs(dir), func(ctx context.Context, rec *StageRecord) ([]string, error) {
		m, ahead, done, err := r.openModel(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
		if before != nil {
			if err := before(m); err != nil {
				return nil, err
			}
		}
		report := eval.Report{Protocol: cfg.Data.Protocol, Config: cfg.Name, Seed: cfg.Seed, Tool: r.opts.Version}
		describe(&report, m)
		for _, name := range []string{"train", "validation", "tuning", "conformal"} {
			report.Data = append(report.Data, eval.Fingerprint{
				Name: name, Runs: r.ledger.Stages["data"].Counts[name],
				Digest: r.ledger.Stages["data"].Outputs[filepath.Join("data", name+".jsonl.gz")],
			})
		}
		vocabulary, err := r.vocabulary()
		if err != nil {
			return nil, err
		}
		baselines, err := r.trainBaselines(ctx, vocabulary)
		if err != nil {
			return nil, err
		}
		results := make([]eval.BaselineResult, len(baselines))
		for i, b := range baselines {
			results[i].Name = b.model.Name()
		}
		err = r.eachTestSet(all, func(name, file string) error {
			if err := r.measureFile(ctx, m, ahead, &report, name, file); err != nil {
				return err
			}
			ts, err := r.Set(file)
			if err != nil {
				return err
			}
			rec.Counts[name] = len(ts)
			rows := runFeatures(vocabulary, ts)
			for i, b := range baselines {
				bt, err := b.traces(ts, rows)
				if err != nil {
					return err
				}
				results[i].Sets = append(results[i].Sets, eval.Measure(name, bt, eval.Options{Seed: cfg.Seed, Bootstrap: cfg.Eval.Bootstrap}))
			}
			return nil
		}, func(row eval.SetResult) { report.Sets = append(report.Sets, row) })
		if err != nil {
			return nil, err
		}
		report.Baselines = results
		report.Notes = append(report.Notes, shiftNote)
		if cfg.Data.Protocol != "simulator" && cfg.Data.LeaveOut == "" {
			report.Sets = append(report.Sets, eval.NotRun("agentdyn-loso", "one run per suite, with `dreamguard run --loso`"))
		}
		if err := report.Save(r.path(dir)); err != nil {
			return nil, err
		}
		if err := r.writeCard(m, report); err != nil {
			return nil, err
		}
		return []string{filepath.Join(dir, "report.json"), filepath.Join(dir, "report.html")}, nil
	})
}

// shiftNote says why the promise and the false-alarm rates of the table differ.
const shiftNote = "The promise is about runs exchangeable with the calibration runs. Test sets hold other tasks, goals, formats and wordings on purpose: their false-alarm rates show what such a shift costs, and the +recalibrated rows what calibrating on one's own traffic gives."

// eachTestSet calls do for each test set of the folder in the order of the
// report, and skipped with the row of each that is locked.
func (r *Run) eachTestSet(all bool, do func(name, file string) error, skipped func(eval.SetResult)) error {
	for _, file := range r.testSets() {
		name := setName(file)
		if slices.Contains(locked, name) && !all {
			skipped(eval.NotRun(name, "locked: measured once, with `dreamguard eval --final --run DIR`"))
			continue
		}
		if err := do(name, file); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// measure adds a set's rows, curves and examples to the report.
func (r *Run) measure(report *eval.Report, name string, traces []eval.Trace) {
	cfg := r.Config
	report.Sets = append(report.Sets, eval.Measure(name, traces, eval.Options{Seed: cfg.Seed, Bootstrap: cfg.Eval.Bootstrap, Curves: true}))
	report.Examples = append(report.Examples, eval.PickExamples(name, traces)...)
	if slices.Contains(recalibrated, name) {
		report.Sets = append(report.Sets, eval.Recalibrated(name, traces, eval.Recalibration{
			Seed: cfg.Seed, N: cfg.Eval.Recalibrate, Draws: cfg.Eval.RecalibrateDraws, Alpha: cfg.Calib.Alpha, AlphaBlock: cfg.Calib.AlphaBlock,
		}))
	}
}

func (r *Run) scoreAll(ctx context.Context, m *guard.Model, ahead *ahead, name string, ts []*data.Trajectory) ([]eval.Trace, error) {
	if err := ahead.fill(ctx, name, ts); err != nil {
		return nil, err
	}
	task := r.opts.Progress.Start("evaluate "+name, len(ts))
	defer task.Done()
	return eval.Score(ctx, m, ts, 0, func(n int) { task.Add(n) })
}

// setName is the name in the report of a set's file: test-asb is asb, dev-asb is
// asb-dev.
func setName(file string) string {
	if name, ok := strings.CutPrefix(file, "dev-"); ok {
		return name + "-dev"
	}
	return strings.TrimPrefix(file, "test-")
}

// describe copies what identifies the model and its promise into a report.
func describe(report *eval.Report, m *guard.Model) {
	report.Model = m.Digest()
	c := m.Calibration()
	if c == nil {
		return
	}
	report.Calibration = c.Digest
	t := promised(c)
	report.Thresholds = &t
	report.Guarantee = promises(c, t)
}

// promises states what a calibration promises: every stored promise, or those that
// its ranks amount to.
func promises(c *artifact.Calibration, t calib.Thresholds) []string {
	if c.Plans == nil {
		return []string{t.Marginal(), t.Confident(0.95)}
	}
	var out []string
	for _, p := range c.Plans.Plans {
		for _, g := range p.Guarantees {
			out = append(out, g.String())
		}
	}
	return append(out, c.Plans.Notes...)
}

// promised rebuilds the thresholds and their ranks from a certificate.
func promised(c *artifact.Calibration) calib.Thresholds {
	if c.Plans != nil {
		return c.Plans.Plans[0].Thresholds()
	}
	cert := c.Certificate
	hold, block := c.Thresholds.Levels()
	alphaHold := cert.Alpha - cert.AlphaBlock
	if cert.KBlock == 0 { // all of alpha went to HOLD
		alphaHold = cert.Alpha
	}
	return calib.Thresholds{
		Block: calib.Threshold{Value: block, K: cert.KBlock, N: cert.N, Alpha: cert.AlphaBlock},
		Hold:  calib.Threshold{Value: hold, K: cert.KHold, N: cert.N, Alpha: alphaHold},
		Alpha: cert.Alpha, N: cert.N, Alerted: cert.Alerted, NoGuarantee: cert.NoGuarantee,
	}
}

// now is the date that is written into a certificate.
func (r *Run) now() time.Time {
	if r.opts.Now.IsZero() {
		return time.Now()
	}
	return r.opts.Now
}
