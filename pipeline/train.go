package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dreamguard/dreamguard/checkpoints"
	"github.com/dreamguard/dreamguard/embed/cache"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/plot"
	"github.com/dreamguard/dreamguard/internal/progress"
	"github.com/dreamguard/dreamguard/train"
)

// weightsFile is where Train leaves the weights that Export freezes.
const weightsFile = "train/weights.safetensors"

// Train fits the model, or goes on where an interrupted training stopped.
func (r *Run) Train(ctx context.Context) error {
	if err := r.needs("embed"); err != nil {
		return err
	}
	cfg, id := r.Config, r.identity()
	return r.stage(ctx, "train", r.inputs("train"), func(ctx context.Context, rec *StageRecord) ([]string, error) {
		c, err := cache.Open(r.path("embed"), id)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		v, err := r.vocabulary()
		if err != nil {
			return nil, err
		}
		sets := map[string][]train.Example{}
		for _, name := range trainingSets {
			ts, err := r.Set(name)
			if err != nil {
				return nil, err
			}
			if sets[name], err = r.examples(ts, c, v); err != nil {
				return nil, err
			}
		}
		dims := train.Dims{D: id.Dims, F: features.Count()}
		bars := stageBars{report: r.opts.Progress}
		fit := func() (*train.Result, error) {
			return train.Fit(ctx, cfg, dims, sets["train"], sets["validation"], train.Options{
				Dir: r.path("train"), Progress: bars.event, Log: r.opts.Log,
			})
		}
		res, err := fit()
		if errors.Is(err, checkpoints.ErrMismatch) {
			// Settings or data have changed since: the ledger says that this training
			// is to be made again, so nothing is lost.
			r.opts.Log.Info("training starts anew: its checkpoint is of other settings or data")
			if err := os.RemoveAll(r.path("train")); err != nil {
				return nil, err
			}
			res, err = fit()
		}
		bars.done()
		if err != nil {
			return nil, err
		}
		rec.Counts["stage 1 steps"], rec.Counts["stage 2 steps"], rec.Counts["best at"] = res.Steps[0], res.Steps[1], res.BestAt
		if err := res.Weights.Save(r.path(weightsFile)); err != nil {
			return nil, err
		}
		out := []string{weightsFile, filepath.Join("train", "metrics.jsonl")}
		curves, err := r.lossCurves()
		return append(out, curves...), err
	})
}

// lossCurves draws train/metrics.jsonl, one file per stage.
func (r *Run) lossCurves() ([]string, error) {
	f, err := os.Open(r.path("train", "metrics.jsonl"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	charts, err := plot.Loss(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	var out []string
	for i, c := range charts {
		svg, err := c.SVG()
		if err != nil {
			return nil, fmt.Errorf("loss curves: %w", err)
		}
		p := filepath.Join("train", fmt.Sprintf("loss-%d.svg", i+1))
		if err := atomicfile.WriteFile(r.path(p), svg); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// stageBars shows one bar per training stage.
type stageBars struct {
	report *progress.Reporter
	task   *progress.Task
	stage  int
	shown  int
}

func (b *stageBars) event(e train.Event) {
	if e.Stage != b.stage {
		b.task.Done()
		name := map[int]string{1: "pretrain", 2: "supervise", 3: "trees"}[e.Stage]
		b.task, b.stage, b.shown = b.report.Start(name, e.Steps), e.Stage, 0
	}
	b.task.Add(e.Step - b.shown)
	b.shown = e.Step
}

func (b *stageBars) done() { b.task.Done() }
