package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/internal/oneline"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) ablateCommand() *cobra.Command {
	var (
		o       pipeline.AblateOptions
		dataDir string
		asJSON  bool
	)
	var list strings.Builder
	for _, ab := range pipeline.Ablations()[1:] {
		fmt.Fprintf(&list, "  %-16s without %s\n", ab.Name, ab.What)
	}
	cmd := &cobra.Command{
		Use:   "ablate --out DIR",
		Short: "Train models without one of their parts, and compare them with the full one",
		Long: `Ablate trains the full model of a configuration and models without a part, each with
several seeds, measures them on the test sets that are not locked, and prints mean and
standard deviation over the seeds, with a paired test against the full model. It may take
hours: interrupted, it goes on with --resume.

` + list.String() + `
docs/how-to/ablate.md says how to read the tables.`,
		Example: `  dreamguard ablate --config protocol-p1 --data DIR --out runs/ablate
  dreamguard ablate --config protocol-p1 --data DIR --out runs/ablate --resume
  dreamguard ablate --config quickstart --out runs/ablate --only no-features,no-texts --seeds 1`,
		Args: args(cobra.NoArgs),
	}
	config := configFlags(cmd, "quickstart")
	f := cmd.Flags()
	f.StringVar(&dataDir, "data", "", "folder of real trajectories")
	f.StringVar(&o.Out, "out", "", "folder for the runs and ablate.json")
	f.StringSliceVar(&o.Only, "only", nil, "`NAMES` of ablations, separated by commas; all if left out")
	f.IntVar(&o.Seeds, "seeds", 3, "how many seeds, counted up from that of the configuration")
	f.BoolVar(&o.Resume, "resume", false, "go on with the folder: what has its report is not done again")
	backendFlag(cmd, backendUsage)
	jsonFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Out == "" {
			return usagef("ablate: name the folder with --out DIR")
		}
		var err error
		if o.Config, err = config(); err == nil {
			err = setBackend(cmd, &o.Config)
		}
		if err != nil {
			return err
		}
		o.Options = a.options(dataDir)
		report, err := pipeline.Ablate(cmd.Context(), o)
		switch {
		case cmd.Context().Err() != nil && errors.Is(err, context.Canceled):
			return errAblateInterrupted
		case errors.Is(err, pipeline.ErrAblateThere), errors.Is(err, pipeline.ErrAblateOther), errors.Is(err, pipeline.ErrAblateOption):
			return usagef("%v", err)
		case err != nil:
			return err
		case asJSON:
			return a.printJSON(report)
		}
		return a.showAblation(report, filepath.Join(o.Out, "ablate.json"))
	}
	return cmd
}

// errAblateInterrupted is [errInterrupted] of a verb that does not go on by itself.
var errAblateInterrupted = errors.New("interrupted: run the same command again with --resume to go on from where it stopped")

// ablateTitles are what the tables of figures are headed with.
var ablateTitles = map[string]string{
	"auroc":              "AUROC",
	"recall_at_fpr_0.05": "recall at 5 % false positives",
	"phir_at_fpr_0.10":   "hazards foreseen at 10 % false positives",
}

// showAblation prints one table per figure, then what could not be measured.
func (a *app) showAblation(r pipeline.AblateReport, path string) error {
	for _, figure := range pipeline.AblateFigures {
		if err := a.printf("%s, mean ± standard deviation over the seeds\n", ablateTitles[figure]); err != nil {
			return err
		}
		t := a.table()
		head := []string{"model", "parameters", "seeds"}
		t.row(append(append(head, r.Sets...), "difference", "pairs", "p")...)
		for i := range r.Rows {
			row := &r.Rows[i]
			f := row.Figures[figure]
			measured := 0
			for _, run := range row.Runs {
				if run.Failed == "" {
					measured++
				}
			}
			cells := []string{row.Name, fmt.Sprint(row.Learned), fmt.Sprint(measured)}
			for _, set := range r.Sets {
				cells = append(cells, spread(f.Sets[set]))
			}
			t.row(append(cells, signed(f.Difference), pairs(f.Test), pValue(f.Test.P))...)
		}
		if err := t.flush(); err != nil {
			return err
		}
		if err := a.printf("\n"); err != nil {
			return err
		}
	}
	w := &errWriter{w: a.stdout}
	for i := range r.Rows {
		for _, run := range r.Rows[i].Runs {
			if run.Failed != "" {
				fmt.Fprintf(w, "%s, seed %d: %s\n", r.Rows[i].Name, run.Seed, oneline.Of(run.Failed, 300))
			}
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "%s\n", note)
	}
	fmt.Fprintf(w, "\nreport: %s\n", path)
	return w.err
}

func spread(s pipeline.Spread) string {
	switch {
	case s.N == 0 || !s.Mean.OK():
		return "-"
	case !s.SD.OK():
		return fmt.Sprintf("%.3f", s.Mean)
	}
	return fmt.Sprintf("%.3f ± %.3f", s.Mean, s.SD)
}

func signed(x eval.Num) string {
	if !x.OK() {
		return "-"
	}
	return fmt.Sprintf("%+.3f", float64(x))
}

// pairs is how many pairs the test counts, without those that do not differ.
func pairs(t eval.SignedRankTest) string {
	if t.N+t.Zeros == 0 {
		return "-"
	}
	return fmt.Sprint(t.N + t.Zeros)
}

func pValue(p eval.Num) string {
	if !p.OK() {
		return "-"
	}
	return fmt.Sprintf("%.4f", float64(p))
}
