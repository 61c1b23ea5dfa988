package main

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/simulate"
	"github.com/dreamguard/dreamguard/data/store"
	"github.com/dreamguard/dreamguard/internal/progress"
	"github.com/spf13/cobra"
)

// written is what the verbs that write a file of trajectories report.
type written struct {
	Out     string `json:"out"`
	Runs    int    `json:"runs"`
	Safe    int    `json:"safe"`
	Unsafe  int    `json:"unsafe"`
	Unknown int    `json:"unknown"`
	Steps   int    `json:"steps"`
}

func (w *written) count(t *data.Trajectory) {
	w.Runs++
	w.Steps += len(t.Steps)
	switch t.Label {
	case data.Safe:
		w.Safe++
	case data.Unsafe:
		w.Unsafe++
	default:
		w.Unknown++
	}
}

func (a *app) simulateCommand() *cobra.Command {
	var (
		o      simulate.Options
		out    string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "simulate --out FILE",
		Short: "Make labelled trajectories from our own scenarios",
		Long: `Simulate plays our own scenarios with a stochastic agent and writes the runs, about
half of them unsafe unless --unsafe-share says otherwise, with the first hazard exact
by construction. The same seed gives the same file.`,
		Example: `  dreamguard simulate --runs 1000 --out simulated.jsonl.gz
  dreamguard simulate --runs 200 --domain "` + simulate.Domains()[0] + `" --seed 7 --out some.parquet`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usagef("simulate: name the file to write with --out FILE (.jsonl, .jsonl.gz or .parquet)")
			}
			if o.Runs < 1 {
				return usagef("simulate: --runs is %d: want at least 1", o.Runs)
			}
			if err := simulateOptions(&o); err != nil {
				return err
			}
			w := written{Out: out}
			task := a.progress().Start("simulate", o.Runs)
			_, err := store.Write(out, counted(cmd.Context(), simulate.Generate(o), task, &w))
			task.End(err)
			if err != nil {
				return badName(err)
			}
			if asJSON {
				return a.printJSON(w)
			}
			return a.printf("%s: %d runs, %d safe, %d unsafe, %d steps\n", w.Out, w.Runs, w.Safe, w.Unsafe, w.Steps)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Runs, "runs", 1000, "how many runs")
	f.IntVar(&o.First, "first", 0, "number of the first run, to make one set in several parts")
	f.Uint64Var(&o.Seed, "seed", 20260701, "root of every random choice")
	f.StringArrayVar(&o.Domains, "domain", nil, "only this domain ("+strings.Join(simulate.Domains(), ", ")+"); may be repeated")
	f.StringVar(&o.Part, "part", "", "only the scenarios of this part ("+strings.Join(simulate.Parts, ", ")+")")
	f.Float64Var(&o.UnsafeShare, "unsafe-share", 0.5, "expected share of unsafe runs, from 0 (none) to below 1")
	f.StringVar(&out, "out", "", "file to write: .jsonl, .jsonl.gz or .parquet")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// simulateFlags are the flags of the options that [simulate.Options.Validate]
// checks.
var simulateFlags = map[string]string{"Runs": "first", "Domains": "domain", "Part": "part", "UnsafeShare": "unsafe-share"}

// simulateOptions turns what the flags say into what the simulator wants. Its
// errors name flags.
func simulateOptions(o *simulate.Options) error {
	if u := o.UnsafeShare; u != -1 && !(u >= 0 && u < 1) {
		return usagef("simulate: --unsafe-share is %v: want a share from 0 (no unsafe runs) to below 1; all unsafe cannot be made, 0.99 comes close", u)
	}
	if o.UnsafeShare == 0 {
		o.UnsafeShare = -1 // a zero in the options stands for the default
	}
	err := o.Validate()
	var wrong *simulate.OptionError
	if errors.As(err, &wrong) {
		return usagef("simulate: --%s: %s", cmp.Or(simulateFlags[wrong.Option], wrong.Option), wrong.Msg)
	}
	return err
}

// badName makes the error of a file name that says no format a usage error.
func badName(err error) error {
	if errors.Is(err, store.ErrFormat) {
		return usagef("%v", err)
	}
	return err
}

// counted passes trajectories on, counts them, and ends with the context's error
// when it is over.
func counted(ctx context.Context, seq iter.Seq[*data.Trajectory], task *progress.Task, w *written) iter.Seq2[*data.Trajectory, error] {
	return func(yield func(*data.Trajectory, error) bool) {
		for t := range seq {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			w.count(t)
			task.Add(1)
			if !yield(t, nil) {
				return
			}
		}
	}
}
