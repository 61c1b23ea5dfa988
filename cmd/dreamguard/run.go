package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/internal/oneline"
	"github.com/dreamguard/dreamguard/internal/suggest"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) runCommand() *cobra.Command {
	var (
		dataDir, out, until string
		loso, asJSON        bool
		folds               string
	)
	cmd := &cobra.Command{
		Use:   "run --out DIR",
		Short: "Run the whole pipeline: data, embed, train, export, calibrate, eval",
		Long: `Run makes trajectories into a calibrated artifact and a report. Stages whose inputs
have not changed are skipped, so an interrupted run goes on where it stopped.

Presets that use real data need --data DIR; its layout is described in
docs/reference/data.md. The preset quickstart needs none.`,
		Example: `  dreamguard run --config quickstart --out runs/demo
  dreamguard run --config protocol-p1 --data DIR --out runs/p1 --set train.stage2.steps=4000
  dreamguard run --config protocol-p1 --data DIR --out runs/p1 --folds all --loso`,
		Args: args(cobra.NoArgs),
	}
	config := configFlags(cmd, "quickstart")
	cmd.Flags().StringVar(&dataDir, "data", "", "folder of real trajectories")
	cmd.Flags().StringVar(&out, "out", "", "run folder to make or go on with")
	cmd.Flags().StringVar(&until, "until", "", "stop after this stage: "+strings.Join(pipeline.Stages, ", "))
	cmd.Flags().StringVar(&folds, "folds", "", `"all" also trains the other four folds of injection goals, each in a run folder of its own`)
	cmd.Flags().BoolVar(&loso, "loso", false, "also train once per agentdyn suite left out, each in a run folder of its own")
	backendFlag(cmd, backendUsage)
	jsonFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if out == "" {
			return usagef("run: name the run folder with --out DIR")
		}
		if until != "" && !slices.Contains(pipeline.Stages, until) {
			hint := "want one of " + strings.Join(pipeline.Stages, ", ")
			if near, ok := suggest.Nearest(until, pipeline.Stages); ok {
				hint = "did you mean " + near + "?"
			}
			return usagef("run: --until %q is no stage: %s", until, hint)
		}
		if folds != "" && folds != "all" {
			return usagef("run: --folds %q: want all, or leave it out for the configured fold", folds)
		}
		cfg, err := config()
		if err == nil {
			err = setBackend(cmd, &cfg)
		}
		if err != nil {
			return err
		}
		if dataDir != "" && cfg.Data.Protocol == "simulator" {
			return usagef("run: --data: protocol simulator of configuration %s reads no real data: leave --data out, or take another configuration, such as protocol-p1", cfg.Name)
		}
		if (folds == "all" || loso) && cfg.Data.Protocol != "p1" {
			return usagef("run: --folds and --loso are about AgentDyn's goals and suites, which only protocol p1 trains on, not %s", cfg.Data.Protocol)
		}
		run, err := pipeline.Open(out, cfg, a.options(dataDir))
		if err != nil {
			return err
		}
		if until != "" {
			if err := run.Until(cmd.Context(), until); err != nil {
				return err
			}
			return a.showStage(until, run.Record(until), false, asJSON)
		}
		if err := run.All(cmd.Context()); err != nil {
			return err
		}
		if folds == "all" || loso {
			if err := run.Siblings(cmd.Context(), folds == "all", loso); err != nil {
				return err
			}
		}
		report, err := run.Report()
		if err != nil {
			return err
		}
		if asJSON {
			return report.WriteJSON(a.stdout)
		}
		return a.showRun(run, report)
	}
	return cmd
}

// showRun prints the stages, the table of results, where the report lies, and
// three runs step by step.
func (a *app) showRun(run *pipeline.Run, report eval.Report) error {
	w := &errWriter{w: a.stdout}
	for _, stage := range pipeline.Stages {
		if rec := run.Record(stage); rec != nil {
			fmt.Fprintf(w, "%-10s %7.1f s %7.0f MiB\n", stage, rec.Seconds, rec.PeakMiB)
		}
	}
	fmt.Fprintln(w)
	if err := eval.Table(w, report); err != nil {
		return err
	}
	for _, e := range demoExamples(report.Examples) {
		fmt.Fprintln(w)
		showExample(w, e)
	}
	fmt.Fprintf(w, "\nreport:   %s\nartifact: %s\n", filepath.Join(run.Dir, "eval", "report.html"), run.ArtifactDir())
	return w.err
}

// demoExamples picks three runs of different kinds.
func demoExamples(all []eval.Example) []eval.Example {
	var out []eval.Example
	seen := map[string]bool{}
	for _, e := range all {
		if !seen[e.Kind] && len(out) < 3 {
			seen[e.Kind] = true
			out = append(out, e)
		}
	}
	return out
}

func showExample(w io.Writer, e eval.Example) {
	label := e.Label.String()
	if e.FirstHazard != nil {
		label += fmt.Sprintf(", first hazard at step %d", *e.FirstHazard)
	}
	fmt.Fprintf(w, "%s: %s (%s)\n  task: %s\n", e.Kind, e.ID, label, oneline.Of(e.Task, 100))
	fmt.Fprintf(w, "  %4s  %-28s %7s %7s  %s\n", "step", "tool", "hazard", "risk", "verdict")
	for i := range e.Tools {
		tool := e.Tools[i]
		if tool == "" {
			tool = "(message)"
		}
		mark := ""
		if e.FirstHazard != nil && *e.FirstHazard == i {
			mark = "  <- first hazard"
		}
		fmt.Fprintf(w, "  %4d  %-28s %7.4f %7.4f  %s%s\n", i, oneline.Of(tool, 28), e.Hazard[i], e.Risk[i], e.Decisions[i], mark)
	}
}

// errWriter remembers the first error, so that a row of prints is checked once.
type errWriter struct {
	w   io.Writer
	err error
}

func (w *errWriter) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.w.Write(b)
	if err != nil {
		w.err = errors.Join(w.err, err)
	}
	return n, err
}
