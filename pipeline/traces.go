package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/clean"
	"github.com/dreamguard/dreamguard/data/formats"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/internal/progress"
)

// TraceOptions configures EvaluateTraces.
type TraceOptions struct {
	Artifact    string // folder or tar of the artifact
	Calibration string // calibration.json to use instead of the artifact's own; "" for that
	Encoder     EncoderSource
	Files       []string // labelled trajectories in any import format
	Format      string   // import format; "" detects it
	Out         string   // folder for report.json and report.html
	Seed        uint64
	Bootstrap   int // resamples of groups
	Version     string
	Progress    *progress.Reporter
}

// EvaluateTraces measures an artifact on the user's own labelled trajectories:
// one set per file, named after it.
func EvaluateTraces(ctx context.Context, o TraceOptions) (eval.Report, error) {
	vectors := scratch{parent: o.Out, pattern: "vectors-"}
	defer vectors.remove()
	m, ahead, done, err := openArtifact(ctx, o.Artifact, o.Calibration, o.Encoder, &vectors, o.Progress)
	if err != nil {
		return eval.Report{}, err
	}
	defer done()
	if err := os.MkdirAll(o.Out, 0o777); err != nil { // rather than after the work
		return eval.Report{}, err
	}
	report := eval.Report{Protocol: "traces", Seed: o.Seed, Tool: o.Version}
	describe(&report, m)
	labelled := 0
	for _, file := range o.Files {
		ts, err := importFile(file, o.Format)
		if err != nil {
			return eval.Report{}, err
		}
		for _, t := range ts {
			if t.Label != data.Unknown {
				labelled++
			}
		}
		if err := ahead.fill(ctx, filepath.Base(file), ts); err != nil {
			return eval.Report{}, err
		}
		task := o.Progress.Start("evaluate "+filepath.Base(file), len(ts))
		traces, err := eval.Score(ctx, m, ts, 0, func(n int) { task.Add(n) })
		task.Done()
		if err != nil {
			return eval.Report{}, err
		}
		name := filepath.Base(file)
		if leaks := leaking(ts); leaks > 0 {
			report.Notes = append(report.Notes, fmt.Sprintf("%s: %d of %d runs hold text that gives a benchmark's label or attack away (`dreamguard inspect` lists it): its figures may be too good.", name, leaks, len(ts)))
		}
		report.Sets = append(report.Sets, eval.Measure(name, traces, eval.Options{Seed: o.Seed, Bootstrap: o.Bootstrap, Curves: true}))
		report.Examples = append(report.Examples, eval.PickExamples(name, traces)...)
	}
	if labelled == 0 {
		return eval.Report{}, errors.New("none of the trajectories is labelled: give each a label of 0 (safe) or 1 (unsafe), and first_hazard where it is known")
	}
	report.Notes = append(report.Notes, shiftNote)
	return report, report.Save(o.Out)
}

// leaking counts the runs in which a leak rule finds something besides folding,
// which the guard undoes itself.
func leaking(ts []*data.Trajectory) int {
	n := 0
	for _, t := range ts {
		found := clean.Leaks(t)
		delete(found, clean.YAMLFolding)
		if len(found) > 0 {
			n++
		}
	}
	return n
}

// openArtifact opens an artifact with its encoder, and with another calibration
// where one is named. The vectors of a slow encoder are kept in folder, which is
// made once all else is known to be sound; without a folder each is computed when
// it is needed. done must be called when the model is not used any more.
func openArtifact(ctx context.Context, path, calibration string, src EncoderSource, folder *scratch, report *progress.Reporter, opts ...guard.Option) (m *guard.Model, ahead *ahead, done func(), err error) {
	done = func() {}
	enc, err := artifactEncoder(ctx, path, src)
	if err != nil {
		return nil, nil, done, err
	}
	if calibration != "" {
		b, err := readBounded(calibration)
		if err != nil {
			return nil, nil, done, err
		}
		opts = append(opts, guard.WithCalibration(b))
	}
	if enc == nil || folder == nil || !slow(enc.ID().Kind) {
		if enc != nil {
			opts = append(opts, guard.WithEncoder(enc))
		}
		m, err = OpenGuard(path, opts...)
	} else {
		m, ahead, done, err = openCached(path, folder.make, enc, report, opts...)
	}
	if errors.Is(err, guard.ErrCalibration) {
		err = fmt.Errorf("%s: %w", calibration, err)
	}
	return m, ahead, done, err
}

// scratch is a temporary folder that is made when it is first needed.
type scratch struct {
	parent  string // made as well
	pattern string // of os.MkdirTemp
	dir     string // "" until it is made
}

func (s *scratch) make() (string, error) {
	if s.dir != "" {
		return s.dir, nil
	}
	if err := os.MkdirAll(s.parent, 0o777); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(s.parent, s.pattern)
	if err == nil {
		s.dir = dir
	}
	return dir, err
}

// remove leaves nothing of the folder; what cannot be removed can only take space.
func (s *scratch) remove() {
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// importFile reads a file of any import format. The texts stay as the guard would
// see them in service: leak rules are for benchmarks.
func importFile(file, format string) ([]*data.Trajectory, error) {
	var ts []*data.Trajectory
	_, err := formats.Import(file, format, func(t *data.Trajectory) error {
		ts = append(ts, t)
		return nil
	})
	return ts, err
}

// JudgeOptions configures Judge.
type JudgeOptions struct {
	Artifact    string
	Calibration string
	Encoder     EncoderSource
	File        string // trajectories in any import format
	Format      string
	ID          string // which run of the file; "" for the only one
	Step        int    // index of the action to judge, negative for the last tool call
	Explain     bool   // the last verdict carries its evidence
}

// Judgement is what Judge found.
type Judgement struct {
	ID       string
	Step     int
	Tools    []string        // tool per step, "" for a message
	Verdicts []guard.Verdict // one per step up to and including Step
}

// Judge replays a run up to a step and returns the verdict on each action, at the
// levels of the run's group where the calibration has groups. The result of the
// last one, if the file has it, plays no part.
func Judge(ctx context.Context, o JudgeOptions) (*Judgement, error) {
	m, _, done, err := openArtifact(ctx, o.Artifact, o.Calibration, o.Encoder, nil, nil)
	if err != nil {
		return nil, err
	}
	defer done()
	var run *data.Trajectory
	n := 0
	_, err = formats.Import(o.File, o.Format, func(t *data.Trajectory) error {
		n++
		if o.ID == "" || t.ID == o.ID {
			run = t
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, fmt.Errorf("%s: holds no run with a step of an agent: see what \"dreamguard import\" drops of it", o.File)
	case run == nil:
		return nil, fmt.Errorf("%s: none of its %d runs has the id %q", o.File, n, o.ID)
	case o.ID == "" && n > 1:
		return nil, fmt.Errorf("%s holds %d runs: say which with --id", o.File, n)
	}
	step := o.Step
	if step < 0 { // a log mostly ends in a message, and a message is never stopped
		step = len(run.Steps) - 1
		for i := range run.Steps {
			if !run.Call(i).IsMessage() {
				step = i
			}
		}
	}
	if step >= len(run.Steps) {
		return nil, fmt.Errorf("run %s has %d steps, numbered from 0: there is no step %d", run.ID, len(run.Steps), step)
	}
	s := eval.ModelFor(m, run).Start(run.StartTask())
	j := &Judgement{ID: run.ID, Step: step}
	for i := 0; i <= step; i++ {
		judge := s.Judge
		if o.Explain && i == step {
			judge = s.Explain
		}
		v := judge(ctx, run.Call(i))
		j.Tools, j.Verdicts = append(j.Tools, run.Steps[i].Tool), append(j.Verdicts, v)
		if i == step {
			break
		}
		// The file says that the step was executed, whatever the verdict.
		if err := s.Commit(run.Call(i), run.Result(i)); err != nil {
			return nil, fmt.Errorf("run %s step %d: %w", run.ID, i, err)
		}
	}
	return j, nil
}
