package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/backend"
)

// Options are what does not change the result of [Fit].
type Options struct {
	// Dir is the train folder of a run (docs/reference/run-folder.md), created if
	// needed. A former run in it is continued. "" keeps everything in memory.
	Dir string
	// Progress, if not nil, is called after every step and every validation.
	Progress func(Event)
	// Log, if not nil, receives what a user should know of: a damaged checkpoint,
	// a stop before the last step.
	Log *slog.Logger
}

// Event is one sign of progress.
type Event struct {
	Stage      int // 1 or 2; 3 where trees are grown, a head a step
	Step       int // steps done in the stage
	Steps      int // steps of the stage
	Loss       float64
	Validation *Validation // set after a validation in stage 2
	World      *WorldCheck // set after a validation in stage 1
}

// Result is a finished training.
type Result struct {
	Weights *Weights    // the best by validation, or the last if there was none
	Best    *Validation // nil without usable validation runs
	BestAt  int         // step of stage 2 that Best belongs to
	Steps   [2]int      // steps done in stages 1 and 2
	Early   bool        // stage 2 stopped for lack of improvement
}

// Fit trains a model on trainSet in the two stages of docs/reference/model.md and returns
// the weights that separate the validation runs best. The same config, data and
// backend give the same bytes, whether or not the run was interrupted.
//
// If ctx ends, Fit writes a checkpoint and returns an error that wraps ctx.Err();
// called again with the same Dir it goes on. Other errors: [ErrExample],
// [ErrNotFinite], [checkpoints.ErrMismatch] for a Dir that holds another run, and
// the reason why cfg.Backend cannot be used here.
func Fit(ctx context.Context, cfg configs.Config, dims Dims, trainSet, validation []Example, opts Options) (*Result, error) {
	f, err := newFitter(cfg, dims, trainSet, validation, opts)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if err := f.open(); err != nil {
		return nil, err
	}
	for f.state.Stage <= 2 {
		if err := f.runStage(ctx); err != nil {
			return nil, err
		}
	}
	return f.result(ctx)
}

// fitter is a training in progress.
type fitter struct {
	cfg                    configs.Config
	dims                   Dims
	train, validation      []Example
	opts                   Options
	be                     compute.Backend
	configDigest, dataHash string

	state   state
	w       *Weights
	average *Weights // running average of w in stage 2, nil without one
	best    *Weights // nil before the first validation
	adam    *adam
	params  []*tensors.Tensor // w on the backend
	batches *batcher
	steps   map[int]*stepper // by padded length, of the current stage
	heads   *Evaluator       // of stage 2, made by the first validation
	world   *Evaluator       // of stage 1
	log     *metricsLog
	saved   state // what the last checkpoint holds
}

// state is the part of a training that is neither weights nor moments. It is
// comparable and goes into checkpoints as JSON.
type state struct {
	Stage     stage      `json:"stage"`
	Step      int        `json:"step"` // done in the stage; with the seed it fixes every random stream
	AdamSteps int        `json:"adam_steps"`
	Done      [2]int     `json:"done"` // steps of finished stages
	Early     bool       `json:"early"`
	Validated int        `json:"validated"` // step of the last validation in the stage
	HasBest   bool       `json:"has_best"`
	Best      Validation `json:"best"`
	BestAt    int        `json:"best_at"`
	Bad       int        `json:"bad"` // validations since the best
	Metrics   int64      `json:"metrics_bytes"`
}

func newFitter(cfg configs.Config, dims Dims, trainSet, validation []Example, opts Options) (*fitter, error) {
	if err := checkConfig(cfg, dims); err != nil {
		return nil, err
	}
	if len(trainSet) == 0 {
		return nil, errors.New("train: no training runs: import or simulate some first")
	}
	if err := checkAll("train", trainSet, dims); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if err := checkAll("validation", validation, dims); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	be, err := backend.Open(cfg.Backend)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	f := &fitter{cfg: cfg, dims: dims, train: trainSet, validation: validation, opts: opts, be: be, state: state{Stage: 1}}
	if f.opts.Log == nil {
		f.opts.Log = slog.New(slog.DiscardHandler)
	}
	if f.w, err = newWeights(cfg.Model, dims, cfg.Seed); err != nil {
		return nil, err
	}
	mean, scale := featureStats(trainSet, dims.F)
	copy(f.w.Value("feat.mean"), mean)
	copy(f.w.Value("feat.scale"), scale)
	f.w.hold(pins(cfg.Train.Without, f.w.sizes()))
	// Before the first step of stage 1, not after its last, is the time to say that
	// stage 2 has nothing to learn from.
	for i, steps := range []int{cfg.Train.Stage1.Steps, cfg.Train.Stage2.Steps} {
		if steps > 0 {
			if _, err := newBatcher(stage(i+1), cfg, f.w, trainSet); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

// open reads or starts the train folder.
func (f *fitter) open() error {
	if f.opts.Dir == "" {
		return nil
	}
	if err := os.MkdirAll(f.opts.Dir, 0o777); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	f.configDigest, f.dataHash = configDigest(f.cfg, f.dims), dataDigest(f.train, f.validation)
	if err := f.resume(); err != nil {
		return err
	}
	log, err := openMetrics(filepath.Join(f.opts.Dir, "metrics.jsonl"), f.state.Metrics)
	if err != nil {
		return err
	}
	f.log = log
	summary := Summary(f.cfg, f.dims)
	return atomicfile.WriteFile(filepath.Join(f.opts.Dir, "parameters.txt"), []byte(summary.String()))
}

func (f *fitter) close() {
	if f.log != nil {
		f.log.close()
	}
}

// stageSteps is the configured number of steps of a stage.
func (f *fitter) stageSteps() int {
	if f.state.Stage == 1 {
		return f.cfg.Train.Stage1.Steps
	}
	return f.cfg.Train.Stage2.Steps
}

// begin prepares the current stage: batches, optimizer, weights on the backend.
// Moments that a checkpoint brought are kept.
func (f *fitter) begin(st stage) error {
	f.state.Stage = st
	var err error
	if f.batches, err = newBatcher(st, f.cfg, f.w, f.train); err != nil {
		return err
	}
	if f.adam == nil {
		f.adam = newAdam(st, f.cfg.Train, len(f.w.params))
	}
	if st == 2 && f.cfg.Train.Stage2.Average > 0 && f.average == nil {
		f.average = f.w.clone()
	}
	f.steps = map[int]*stepper{}
	f.params, err = onBackend(f.be, f.w)
	return err
}

// runStage runs the current stage to its end and moves on to the next.
func (f *fitter) runStage(ctx context.Context) error {
	if f.stageSteps() > 0 && f.state.Step < f.stageSteps() && !f.state.Early {
		if err := f.begin(f.state.Stage); err != nil {
			return err
		}
	}
	for {
		if ctx.Err() != nil {
			return f.interrupted(ctx)
		}
		if f.validationDue() {
			if err := f.validate(ctx); err != nil {
				if ctx.Err() != nil {
					return f.interrupted(ctx)
				}
				return err
			}
		}
		end := f.state.Step >= f.stageSteps() || f.state.Early
		if every := f.cfg.Train.CheckpointEvery; end || every > 0 && f.state.Step > 0 && f.state.Step%every == 0 {
			if err := f.checkpoint(); err != nil {
				return err
			}
		}
		if end {
			break
		}
		if _, err := f.step(); err != nil {
			return err
		}
	}
	s := &f.state
	s.Done[s.Stage-1] = s.Step
	s.Stage, s.Step, s.AdamSteps, s.Validated = s.Stage+1, 0, 0, 0
	f.adam, f.batches, f.steps = nil, nil, nil
	return nil
}

// interrupted writes a checkpoint and says so.
func (f *fitter) interrupted(ctx context.Context) error {
	if err := f.checkpoint(); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	return fmt.Errorf("train: stopped at stage %d step %d, to be continued from there: %w", f.state.Stage, f.state.Step, ctx.Err())
}

// step does one optimizer step and returns the loss terms.
func (f *fitter) step() (map[string]float32, error) {
	s := &f.state
	t, batch := f.batches.step(s.Step)
	exe := f.steps[t]
	if exe == nil {
		if backend.IsXLA(f.cfg.Backend) {
			f.opts.Log.Info("compiling the training graph, once per stage", "backend", f.cfg.Backend, "stage", int(s.Stage), "steps", t)
		}
		var err error
		if exe, err = newStepper(f.be, f.cfg, f.dims, s.Stage, t, f.cfg.Train.Batch); err != nil {
			return nil, err
		}
		f.steps[t] = exe
	}
	terms := map[string]float32{}
	var norm float64
	err := exe.run(f.params, batch, func(values []float32, grads [][]float32) error {
		for i, name := range s.Stage.metricNames(f.cfg.Train) {
			terms[name] = values[i]
			if v := float64(values[i]); math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("loss term %s is %w", name, ErrNotFinite)
			}
		}
		var err error
		if norm, err = globalNorm(f.w.params, exe.trained, grads); err != nil {
			return err
		}
		f.adam.update(f.w.params, f.w.values, exe.trained, grads, norm)
		for _, at := range exe.trained {
			if err := tensors.AssignFlatData(f.params[at], f.w.values[at]); err != nil {
				return fmt.Errorf("update %s: %w", f.w.params[at].Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("train: stage %d step %d: %w", s.Stage, s.Step+1, err)
	}
	s.Step++
	s.AdamSteps = f.adam.steps
	if f.average != nil && s.Stage == 2 {
		f.average.follow(f.w, exe.trained, averageDecay(f.cfg.Train.Stage2.Average, s.Step))
	}
	f.progress(Event{Loss: float64(terms["loss"])})
	return terms, f.record(Record{Terms: terms, Norm: norm, LR: f.cfg.Train.LR})
}

func (f *fitter) progress(e Event) {
	if f.opts.Progress != nil {
		e.Stage, e.Step, e.Steps = int(f.state.Stage), f.state.Step, f.stageSteps()
		f.opts.Progress(e)
	}
}

func (f *fitter) record(r Record) error {
	if f.log == nil {
		return nil
	}
	r.Stage, r.Step = int(f.state.Stage), f.state.Step
	if err := f.log.write(r); err != nil {
		return err
	}
	f.state.Metrics = f.log.size
	return nil
}

// judged returns the weights that are validated and kept.
func (f *fitter) judged() *Weights {
	if f.average != nil && f.state.Stage >= 2 {
		return f.average
	}
	return f.w
}

// averageDecay is the decay of the running average at a step from 1. It grows
// to its final value, so that the first weights are soon forgotten.
func averageDecay(final float64, step int) float32 {
	return float32(min(final, (1+float64(step))/(10+float64(step))))
}

// result grows the trees, writes the best weights with them and returns those.
func (f *fitter) result(ctx context.Context) (*Result, error) {
	r := &Result{Weights: f.judged(), Steps: f.state.Done, Early: f.state.Early}
	if f.state.HasBest {
		best := f.state.Best
		r.Weights, r.Best, r.BestAt = f.best, &best, f.state.BestAt
	} else if len(f.validation) > 0 {
		f.opts.Log.Warn("no validation score: it takes safe and unsafe runs with a judged step; the last weights are kept")
	}
	var err error
	if r.Weights, err = f.withTrees(ctx, r.Weights); err != nil {
		return nil, err
	}
	if f.opts.Dir == "" {
		return r, nil
	}
	dir := filepath.Join(f.opts.Dir, "best")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if err := r.Weights.Save(filepath.Join(dir, "model.safetensors")); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return r, nil
}
