package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/formats"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/oneline"
	"github.com/dreamguard/dreamguard/internal/progress"
)

// batch is how many runs are read before they are scored on all cores: memory
// holds no more of them, whatever the size of the files.
const batch = 256

// traceSource is where recorded runs and the model that scores them are found.
type traceSource struct {
	Artifact    string
	Calibration string // to use instead of the artifact's own; "" for that
	Encoder     EncoderSource
	Files       []string // in any import format
	Format      string   // import format; "" detects it
	Progress    *progress.Reporter
	Features    bool // also give the call features of every step
}

// open opens the model. done must be called when it is not used any more.
func (s *traceSource) open(ctx context.Context, opts ...guard.Option) (m *guard.Model, ahead *ahead, done func(), err error) {
	vectors := scratch{parent: os.TempDir(), pattern: "dreamguard-vectors-"}
	m, ahead, closeModel, err := openArtifact(ctx, s.Artifact, s.Calibration, s.Encoder, &vectors, s.Progress, opts...)
	done = func() {
		closeModel()
		vectors.remove()
	}
	if err != nil {
		done()
		return nil, nil, nil, err
	}
	return m, ahead, done, nil
}

// batches reads the runs of all files, a batch at a time.
func (s *traceSource) batches(ctx context.Context, do func(task *progress.Task, ts []*data.Trajectory) error) error {
	for _, file := range s.Files {
		task := s.Progress.Start("score "+file, 0)
		var ts []*data.Trajectory
		flush := func() error {
			if len(ts) == 0 {
				return nil
			}
			err := do(task, ts)
			clear(ts)
			ts = ts[:0]
			return err
		}
		_, err := formats.Import(file, s.Format, func(t *data.Trajectory) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if ts = append(ts, t); len(ts) == batch {
				return flush()
			}
			return nil
		})
		if err == nil {
			err = flush()
		}
		task.End(err)
		if err != nil {
			return err
		}
	}
	return nil
}

// scoredRun is a run with what is computed of it on all cores.
type scoredRun struct {
	run         *data.Trajectory
	trace       *eval.Trace
	features    [][]float32 // call features of its steps, nil unless they are asked for
	fingerprint string
}

// scored calls each with every run and its scores, in the order of the files.
func (s *traceSource) scored(ctx context.Context, m *guard.Model, ahead *ahead, each func(scoredRun) error) error {
	return s.batches(ctx, func(task *progress.Task, ts []*data.Trajectory) error {
		if err := ahead.fill(ctx, "traces", ts); err != nil {
			return err
		}
		traces, err := eval.Score(ctx, m, ts, 0, func(n int) { task.Add(n) })
		if err != nil {
			return err
		}
		features := make([][][]float32, len(ts))
		if s.Features {
			if features, err = callFeatures(ctx, m, ts); err != nil {
				return err
			}
		}
		fingerprints := make([]string, len(ts))
		parallel(len(ts), func(i int) { fingerprints[i] = artifact.RunDigest(ts[i]) })
		for i, t := range ts {
			if err := each(scoredRun{t, &traces[i], features[i], fingerprints[i]}); err != nil {
				return fmt.Errorf("run %s: %w", t.ID, err)
			}
		}
		return nil
	})
}

// callFeatures returns the call features of every step of every run, as the guard
// itself normalises them.
func callFeatures(ctx context.Context, m *guard.Model, ts []*data.Trajectory) ([][][]float32, error) {
	out, errs := make([][][]float32, len(ts)), make([]error, len(ts))
	parallel(len(ts), func(i int) {
		t := ts[i]
		s := m.Start(t.StartTask())
		out[i] = make([][]float32, len(t.Steps))
		for k := range t.Steps {
			s.Judge(ctx, t.Call(k))
			if out[i][k] = s.Features(); out[i][k] == nil {
				errs[i] = fmt.Errorf("run %s step %d: %w", t.ID, k, cmp.Or(ctx.Err(), eval.ErrUnscored))
				return
			}
			if err := s.Commit(t.Call(k), t.Result(k)); err != nil {
				errs[i] = fmt.Errorf("run %s step %d: %w", t.ID, k, err)
				return
			}
		}
	})
	return out, errors.Join(errs...)
}

// excerpt is the beginning of a text, for a reader.
func excerpt(s string, n int) string { return oneline.Of(s, n) }
