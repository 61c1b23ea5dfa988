package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/suggest"
	"github.com/dreamguard/dreamguard/train"
)

// Ablation is a model without one of its parts: the settings that differ from those
// of the full model.
type Ablation struct {
	Name     string   `json:"name"`
	What     string   `json:"what"`                // is missing
	Settings []string `json:"settings"`            // key=value
	SameSize bool     `json:"same_size,omitempty"` // model.hidden is raised until as many values learn as in the full model
}

// fullModel is the name of the model that the others are compared with.
const fullModel = "full"

// Ablations lists the full model, then the ablations of the paper, then ours.
func Ablations() []Ablation {
	// Without a prediction of what comes back there is nothing that the prior could predict, either.
	noPrediction := []string{"train.stage1.predict=0", "train.stage1.prior=0"}
	return []Ablation{
		{Name: fullModel, What: "nothing"},
		{Name: "no-world-model", What: "the recurrent world model: the heads read call, features and task alone", Settings: []string{"train.without=state", "train.stage1.steps=0", "train.stage2.world=0"}},
		{Name: "no-prediction", What: "the prediction of the successor in stage 1, whose divergences stay", Settings: noPrediction},
		{Name: "no-hazard-head", What: "the hazard head", Settings: []string{"train.stage2.hazard=0"}},
		{Name: "no-prefix-head", What: "the prefix head", Settings: []string{"train.stage2.prefix=0"}},
		{Name: "no-aggregation", What: "the aggregation over steps: the risk of a call is of that call", Settings: []string{"calibrate.beta=0", "calibrate.window=1"}},
		{Name: "no-pretraining", What: "stage 1: the world model starts at random, its cell stays so", Settings: []string{"train.stage1.steps=0"}},
		{Name: "no-risk-stage", What: "the supervision of the world model by risk: stage 2 trains the heads alone", Settings: []string{"train.world_scale=0", "train.adapter_scale=0"}},
		{Name: "no-features", What: "the call features", Settings: []string{"train.without=features", "train.stage2.drop_state=0"}},
		{Name: "no-texts", What: "the embeddings of task, calls and results, and so their prediction", Settings: append([]string{"train.without=texts"}, noPrediction...)},
		{Name: "no-trees", What: "the boosted trees of the heads", Settings: []string{"train.trees.count=0"}},
		{Name: "no-networks", What: "the networks of the heads, and so world model and texts: trees over the call features alone", Settings: []string{"train.trees.count=300", "train.trees.hazard=1", "train.trees.prefix=1"}},
		{Name: "no-recurrence", What: "what the state keeps of the steps before the last, at as many parameters", Settings: []string{"train.without=memory"}, SameSize: true},
	}
}

// AblateOptions say what [Ablate] trains.
type AblateOptions struct {
	Out     string         // folder of the runs and of ablate.json
	Config  configs.Config // of the full model; its seed is the first
	Only    []string       // names of ablations; empty for all. The full model is always there
	Seeds   int            // how many, counted up from the configuration's, 1 to 1000
	Resume  bool           // go on with the folder
	Options                // of each run
}

// Errors of [Ablate].
var (
	ErrAblateThere  = errors.New("the folder holds ablations already: go on with --resume, or choose another --out")
	ErrAblateOther  = errors.New("the folder holds ablations of other settings: choose another --out")
	ErrAblateOption = errors.New("ablate")
)

// Ablate trains and measures the full model and models without a part, each with
// several seeds, and compares them on the test sets that are not locked. Every model
// is a run folder OUT/seed-SEED/NAME; those of a seed share its data, its vectors and
// whatever else does not depend on what is missing. After each model ablate.json is
// written anew. If ctx ends, or the process is killed, it goes on with Resume: models
// with an up-to-date report are not touched again.
func Ablate(ctx context.Context, o AblateOptions) (AblateReport, error) {
	chosen, err := chosenAblations(o.Only)
	if err != nil {
		return AblateReport{}, err
	}
	if o.Seeds < 1 || o.Seeds > 1000 {
		return AblateReport{}, fmt.Errorf("%w: %d seeds: want 1 to 1000", ErrAblateOption, o.Seeds)
	}
	base := o.Config
	base.Eval.LockedSmoke = false // ablations are choices, and choices may not see the locked sets
	if base.Train.Without != "" {
		return AblateReport{}, fmt.Errorf("%w: the full model has train.without=%s: it must be without nothing", ErrAblateOption, base.Train.Without)
	}
	if err := base.Validate(); err != nil {
		return AblateReport{}, err
	}
	if _, err := sourceFiles(o.DataDir, base.Data.Protocol); err != nil && !o.Resume { // before the folder is claimed
		return AblateReport{}, err
	}
	if err := os.MkdirAll(o.Out, 0o777); err != nil {
		return AblateReport{}, err
	}
	unlock, err := claimFolder(o.Out, "on these ablations")
	if err != nil {
		return AblateReport{}, err
	}
	if unlock != nil {
		defer unlock()
		if err := atomicfile.Clean(o.Out); err != nil {
			return AblateReport{}, err
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &ablater{o: o, base: base}
	if err := a.open(); err != nil {
		return AblateReport{}, err
	}
	for i := range o.Seeds {
		if err := a.seed(ctx, base.Seed+uint64(i), chosen); err != nil {
			return AblateReport{}, err
		}
	}
	return a.report, nil
}

// chosenAblations returns those of the given names, the full model first.
func chosenAblations(names []string) ([]Ablation, error) {
	all := Ablations()
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(a Ablation) bool { return a.Name == name }) {
			var known []string
			for _, a := range all {
				known = append(known, a.Name)
			}
			hint := "the names are " + strings.Join(known, ", ")
			if near, ok := suggest.Nearest(name, known); ok {
				hint = "did you mean " + near + "?"
			}
			return nil, fmt.Errorf("%w: no ablation is called %q: %s", ErrAblateOption, name, hint)
		}
	}
	return slices.DeleteFunc(all, func(a Ablation) bool { return a.Name != fullModel && !slices.Contains(names, a.Name) }), nil
}

// ablater is an [Ablate] in progress.
type ablater struct {
	o      AblateOptions
	base   configs.Config
	report AblateReport
}

func (a *ablater) dir(seed uint64, name string) string {
	return filepath.Join(a.o.Out, fmt.Sprintf("seed-%d", seed), name)
}

// open reads or starts ablate.json.
func (a *ablater) open() error {
	a.report = newAblateReport(a.base, a.o.Version)
	former, err := ReadAblateReport(a.o.Out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a.report.save(a.o.Out)
	case err != nil:
		return err
	case !a.o.Resume:
		return fmt.Errorf("%s: %w", a.o.Out, ErrAblateThere)
	}
	same, err := sameJSON(former.Config, a.report.Config)
	if err != nil {
		return err
	}
	if !same {
		return fmt.Errorf("%s: %w", a.o.Out, ErrAblateOther)
	}
	a.report.Rows = former.Rows
	return nil
}

// seed runs the chosen ablations with one seed, the full model first: it makes what
// the others share.
func (a *ablater) seed(ctx context.Context, seed uint64, chosen []Ablation) error {
	var full *Run
	for i, ab := range chosen {
		cfg, err := a.config(ab, seed)
		if err != nil {
			return err
		}
		if ab.SameSize {
			if cfg.Model.Hidden, err = sameSize(cfg, full); err != nil {
				return err
			}
			if err := cfg.Validate(); err != nil {
				return err
			}
		}
		run, err := Open(a.dir(seed, ab.Name), cfg, a.o.Options)
		if err != nil {
			return err
		}
		if full == nil {
			full = run
		} else if err := run.inherit(full); err != nil {
			return fmt.Errorf("%s: %w", run.Dir, err)
		}
		if run.needs(Stages[len(Stages)-1]) == nil {
			a.o.Log.Info("up to date", "seed", seed, "model", ab.Name)
		} else {
			a.o.Log.Info("ablation", "seed", seed, "model", ab.Name, "number", fmt.Sprintf("%d of %d", i+1, len(chosen)), "folder", run.Dir)
			err = run.All(ctx)
		}
		outcome := AblateRun{Seed: seed, Folder: filepath.Join(fmt.Sprintf("seed-%d", seed), ab.Name)}
		switch {
		case err == nil:
			if err := outcome.read(run); err != nil {
				return err
			}
		case ctx.Err() == nil && refused(err): // of this model; the others may do
			a.o.Log.Warn("no figures", "seed", seed, "model", ab.Name, "error", err)
			outcome.Failed = err.Error()
		default:
			return fmt.Errorf("%s: %w", run.Dir, err)
		}
		a.report.add(ab, cfg, train.Summary(cfg, full.dims()).Learned, outcome)
		if err := a.report.save(a.o.Out); err != nil {
			return err
		}
	}
	return nil
}

// refused reports whether err is the verdict on a model rather than on the data or the
// machine: no level keeps its promise, or its training diverges.
func refused(err error) bool {
	var noLevel *calib.NoLevelError
	return errors.As(err, &noLevel) || errors.Is(err, train.ErrNotFinite)
}

// config is the configuration of a model without a part.
func (a *ablater) config(ab Ablation, seed uint64) (configs.Config, error) {
	cfg := a.base
	cfg.Seed = seed
	for _, s := range ab.Settings {
		if err := cfg.Set(s); err != nil {
			return configs.Config{}, fmt.Errorf("ablation %s: %w", ab.Name, err)
		}
	}
	if ab.Name != fullModel {
		const longest = 64 // of a configuration's name
		name := cfg.Name
		if limit := longest - len(ab.Name) - 1; len(name) > limit {
			name = strings.ToValidUTF8(name[:limit], "")
		}
		cfg.Name = name + "-" + ab.Name
	}
	return cfg, cfg.Validate()
}

func (r *Run) dims() train.Dims { return train.Dims{D: r.identity().Dims, F: features.Count()} }

// sameSize returns the least model.hidden with which as many values learn as in the
// full model.
func sameSize(cfg configs.Config, full *Run) (int, error) {
	d := full.dims()
	want := train.Summary(full.Config, d).Learned
	const widest = 4096
	narrow := cfg.Model.Hidden
	wider := sort.Search(widest-narrow+1, func(i int) bool {
		c := cfg
		c.Model.Hidden = narrow + i
		return train.Summary(c, d).Learned >= want
	})
	if narrow+wider > widest {
		return 0, fmt.Errorf("%w: no model.hidden up to %d makes up for what is missing", ErrAblateOption, widest)
	}
	return narrow + wider, nil
}
