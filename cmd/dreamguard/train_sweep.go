package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dreamguard/dreamguard/internal/oneline"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) trainSweepCommand() *cobra.Command {
	var (
		o       pipeline.SweepOptions
		dataDir string
		over    []string
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:   "sweep --out DIR --over KEY=VALUES...",
		Short: "Try other values of some keys, and keep the best on validation runs",
		Long: `Sweep trains a model for every combination of values, or, with --trials N, for N drawn
at random, and measures each on the validation runs of the training: recall at 5 % false
positives, then AUROC. No test set is read. Each line of OUT/sweep.jsonl is a trial;
OUT/best.yaml is the configuration of the best one, for "run --config".

A value list is KEY=A,B,C; a range, for --trials, is KEY=LOW..HIGH, of whole numbers if
both ends are, and KEY=LOW..HIGH,log is drawn evenly on a logarithmic scale.

The best of many trials looks better on the validation runs than it is: measure it on
other runs before you believe the figure.`,
		Example: `  dreamguard train sweep --config protocol-p1 --data DIR --out runs/sweep --over train.trees.leaves=15,31,63 --over train.trees.rate=0.05,0.1
  dreamguard train sweep --config quickstart --out runs/sweep --trials 20 --over train.lr=0.0002..0.002,log --over model.hidden=64..160`,
		Args: args(cobra.NoArgs),
	}
	config := configFlags(cmd, "quickstart")
	f := cmd.Flags()
	f.StringVar(&dataDir, "data", "", "folder of real trajectories")
	f.StringVar(&o.Out, "out", "", "folder for the trials")
	f.StringArrayVar(&over, "over", nil, "`KEY=VALUES` to try; may be repeated")
	f.IntVar(&o.Trials, "trials", 0, "how many to draw at random; left out: every combination")
	f.Uint64Var(&o.Seed, "seed", 1, "of the draws; models have the seed of the configuration")
	f.BoolVar(&o.Resume, "resume", false, "go on with the folder: trials that are done stay; --trials may be raised")
	backendFlag(cmd, backendUsage)
	jsonFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Out == "" {
			return usagef("train sweep: name the folder with --out DIR")
		}
		if cmd.Flags().Changed("trials") && o.Trials < 1 {
			return usagef("train sweep: --trials is %d: want 1 or more", o.Trials)
		}
		for _, s := range over {
			r, err := pipeline.ParseRange(s)
			if err != nil {
				return usagef("%v", err)
			}
			o.Over = append(o.Over, r)
		}
		var err error
		if o.Config, err = config(); err == nil {
			err = setBackend(cmd, &o.Config)
		}
		if err != nil {
			return err
		}
		o.Options = a.options(dataDir)
		trials, err := pipeline.Sweep(cmd.Context(), o)
		switch {
		case errors.Is(err, pipeline.ErrSweep):
			return usagef("%v", err)
		case err != nil:
			return err
		case asJSON:
			return a.printJSON(trials)
		}
		t := a.table()
		t.row("trial", "recall at 5 %", "AUROC", "seconds", "settings")
		for _, x := range trials {
			recall, auroc := "failed", oneline.Of(x.Failed, 60)
			if x.Failed == "" {
				recall, auroc = fmt.Sprintf("%.3f", x.Recall), fmt.Sprintf("%.3f", x.AUROC)
			}
			t.row(fmt.Sprint(x.Trial), recall, auroc, fmt.Sprintf("%.1f", x.Seconds), strings.Join(x.Settings, " "))
		}
		if err := t.flush(); err != nil {
			return err
		}
		return a.printf("\n%d validation runs, %d of them unsafe; best configuration: %s\n", trials[0].Runs, trials[0].Unsafe, filepath.Join(o.Out, pipeline.BestFile))
	}
	return cmd
}
