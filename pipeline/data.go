package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/audit"
	"github.com/dreamguard/dreamguard/data/augment"
	"github.com/dreamguard/dreamguard/data/clean"
	"github.com/dreamguard/dreamguard/data/simulate"
	"github.com/dreamguard/dreamguard/data/split"
	"github.com/dreamguard/dreamguard/data/store"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
)

// DataReport is data/report.json.
type DataReport struct {
	Load       split.Report            `json:"load"`       // read and dropped, with reasons
	Augmented  map[string]int          `json:"augmented"`  // training copies by channel
	Cleaned    map[string]int          `json:"cleaned"`    // changes by leak rule
	Sets       map[string]split.Counts `json:"sets"`       // runs, safe, unsafe per set
	Digests    map[string]string       `json:"digests"`    // of the sorted ids per set
	Duplicates audit.Report            `json:"duplicates"` // across sets
}

// Data reads the trajectories of the protocol, splits them, makes the training
// copies, applies the leak rules, and writes one file per set.
func (r *Run) Data(ctx context.Context) error {
	cfg := r.Config
	in := &inputs{settings: map[string]any{"data": cfg.Data, "seed": cfg.Seed, "code": dataCode}}
	if cfg.Data.Protocol != "simulator" {
		if r.opts.DataDir == "" {
			settings, err := in.sum()
			if err != nil {
				return err
			}
			if old := r.ledger.Stages["data"]; old != nil && old.Settings == settings && r.intact(old.Outputs) {
				return nil // the sets are there: the source is not needed again
			}
		}
		files, err := sourceFiles(r.opts.DataDir, cfg.Data.Protocol)
		if err != nil {
			return err
		}
		in.files = files
	}
	return r.stage(ctx, "data", in, r.makeSets)
}

func (r *Run) makeSets(ctx context.Context, rec *StageRecord) ([]string, error) {
	cfg := r.Config
	var report DataReport
	all := map[string][]*data.Trajectory{}
	var evalIDs map[string][]string
	if cfg.Data.Protocol != "simulator" {
		task := r.opts.Progress.Start("read", 0)
		loaded, loadReport, err := split.Load(r.opts.DataDir, cfg.Data.Protocol, split.LoadOptions{Progress: func(n int) { task.Add(n) }})
		task.End(err)
		if err != nil {
			return nil, err
		}
		if evalIDs, err = split.EvalIDs(r.opts.DataDir); err != nil {
			return nil, err
		}
		all, report.Load = loaded, loadReport
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	task := r.opts.Progress.Start("simulate", cfg.Data.SimulatorRuns)
	for t := range simulate.Generate(simulate.Options{Seed: cfg.Seed, Runs: cfg.Data.SimulatorRuns}) {
		all["simulator"] = append(all["simulator"], t)
		task.Add(1)
	}
	task.Done()

	assigned, err := split.Assign(split.Options{
		Protocol: cfg.Data.Protocol, Fold: cfg.Data.Fold, LeaveOut: cfg.Data.LeaveOut, Seed: cfg.Seed, MaxRuns: cfg.Data.MaxRuns,
	}, all, evalIDs)
	if err != nil {
		return nil, err
	}
	sets := assigned.Sets
	report.Digests, report.Sets = assigned.Digests, assigned.Counts
	if err := sufficient(report.Sets); err != nil {
		return nil, err
	}

	// Copies are made from raw text, in which the planted block is still marked.
	copies := augmented(sets["train"], cfg.Seed)
	report.Augmented = map[string]int{}
	for _, c := range copies {
		report.Augmented[c.ID[strings.LastIndexByte(c.ID, '#')+1:]]++
	}
	sets["train"] = append(slices.Clone(sets["train"]), copies...)

	report.Cleaned = map[string]int{}
	cleaned := map[*data.Trajectory]bool{} // a run may stand in validation and in tuning
	task = r.opts.Progress.Start("clean", 0)
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		for _, t := range sets[name] {
			if cleaned[t] {
				continue
			}
			cleaned[t] = true
			for rule, n := range clean.Apply(t) {
				report.Cleaned[rule] += n
			}
			task.Add(1)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	task.Done()
	report.Duplicates = audit.Duplicates(sets)

	if err := os.MkdirAll(r.path("data"), 0o777); err != nil {
		return nil, err
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		p := filepath.Join("data", name+".jsonl.gz")
		if err := store.WriteAll(r.path(p), sets[name]); err != nil {
			return nil, err
		}
		out = append(out, p)
		rec.Counts[name] = len(sets[name])
	}
	// Sets of an earlier configuration of the folder must not linger. Files that no
	// stage has written are left alone.
	if old := r.ledger.Stages["data"]; old != nil {
		for p := range old.Outputs {
			if name, ok := strings.CutSuffix(filepath.Base(p), ".jsonl.gz"); ok && sets[name] == nil && filepath.Dir(p) == "data" {
				if err := removeIfThere(r.path(p)); err != nil {
					return nil, err
				}
			}
		}
	}
	b, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return nil, err
	}
	p := filepath.Join("data", "report.json")
	return append(out, p), atomicfile.WriteFile(r.path(p), append(b, '\n'))
}

// ErrTooFewRuns is wrapped by the error about a set that lacks what a later stage
// cannot do without.
var ErrTooFewRuns = errors.New("add trajectories, or raise data.simulator_runs or data.max_runs")

// sufficient reports what the later stages cannot do without.
func sufficient(sets map[string]split.Counts) error {
	if sets["validation"].Runs == 0 {
		return fmt.Errorf("set validation is empty: %w", ErrTooFewRuns)
	}
	for _, need := range []struct {
		set    string
		unsafe bool
	}{{"train", true}, {"tuning", true}, {"conformal", false}} {
		switch c := sets[need.set]; {
		case c.Runs == 0:
			return fmt.Errorf("set %s is empty: %w", need.set, ErrTooFewRuns)
		case c.Safe == 0:
			return fmt.Errorf("set %s has %d runs and none that is labelled safe: %w", need.set, c.Runs, ErrTooFewRuns)
		case need.unsafe && c.Unsafe == 0:
			return fmt.Errorf("set %s has %d runs and none that is labelled unsafe: %w", need.set, c.Runs, ErrTooFewRuns)
		}
	}
	return nil
}

// augmented returns the training copies (package augment) of the attacked runs.
func augmented(train []*data.Trajectory, seed uint64) []*data.Trajectory {
	goals := augment.FindGoals(train)
	rng := rand.New(rand.NewPCG(seed, 0xa09e667f3bcc908))
	var out []*data.Trajectory
	for _, t := range train {
		if t.InjectionTask == "" || t.Dataset == "simulator" {
			continue
		}
		if c := augment.Copy(t, goals, rng); c != nil {
			out = append(out, c)
		}
	}
	return out
}

// Set reads one set of the run folder.
func (r *Run) Set(name string) ([]*data.Trajectory, error) {
	if err := r.needs("data"); err != nil {
		return nil, err
	}
	return store.ReadAll(r.path("data", name+".jsonl.gz"))
}

// testSets lists the test sets of the run folder, in the order of the report.
func (r *Run) testSets() []string {
	var out []string
	for p := range r.ledger.Stages["data"].Outputs {
		if name := strings.TrimSuffix(filepath.Base(p), ".jsonl.gz"); strings.HasPrefix(name, "test-") || strings.HasPrefix(name, "dev-") {
			out = append(out, name)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return setRank(a) - setRank(b) })
	return out
}

var setOrder = []string{"test-agentdyn", "test-agentdyn-loso", "test-agentdojo", "test-asb", "test-asse-security", "test-tau-bench", "test-simulator", "dev-agentdojo", "dev-asb"}

func setRank(name string) int {
	if i := slices.Index(setOrder, name); i >= 0 {
		return i
	}
	return len(setOrder)
}
