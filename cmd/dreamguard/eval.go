package main

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) evalCommand() *cobra.Command {
	var (
		dir, looks    string
		final, asJSON bool
		protocol      string
		dataDir       string
		traces        pipeline.TraceOptions
		source        func() error
		checkFormat   func() error
	)
	cmd := &cobra.Command{
		Use:   "eval (--run DIR | --artifact DIR (--traces FILE | --protocol p1|p2 --data DIR) --out DIR)",
		Short: "Measure a calibrated artifact, with intervals and baselines",
		Long: `Eval measures either the artifact of a run folder on the run's test sets, or any
artifact on labelled trajectories of your own or on the test sets of a protocol.

The locked test sets are measured only with --final, which first appends the look to
a file that is kept under version control.`,
		Example: `  dreamguard eval --run runs/p1
  dreamguard eval --artifact runs/p1/artifact --traces my-runs.jsonl --out report
  dreamguard eval --artifact runs/p1/artifact --protocol p1 --data DIR --out report`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case dir != "" && (traces.Artifact != "" || len(traces.Files) > 0 || protocol != ""):
				return usagef("eval: --run measures the run's own artifact on its own sets: leave out --artifact, --traces and --protocol")
			case dir != "" && (traces.Encoder != pipeline.EncoderSource{} || cmd.Flags().Changed("backend")):
				return usagef("eval: a run has its encoder in its configuration: leave out --encoder, --encoder-key and --backend")
			case dir != "":
				for _, name := range []string{"calibration", "format", "data", "out", "seed", "bootstrap"} {
					if cmd.Flags().Changed(name) {
						return usagef("eval: --%s goes with --artifact: a run has it in its configuration", name)
					}
				}
				if cmd.Flags().Changed("looks") && !final {
					return usagef("eval: --looks goes with --final")
				}
				return a.evalRun(cmd, dir, final, looks, asJSON)
			case traces.Artifact == "":
				return usagef("eval: name a run folder with --run DIR, or an artifact with --artifact DIR")
			case traces.Out == "":
				return usagef("eval: name the folder for the report with --out DIR")
			case (len(traces.Files) > 0) == (protocol != ""):
				return usagef("eval: name either --traces FILE (once for each file) or --protocol p1|p2 with --data DIR")
			case protocol != "" && protocol != "p1" && protocol != "p2":
				return usagef("eval: --protocol %q: want p1 or p2", protocol)
			case protocol != "" && dataDir == "":
				return usagef("eval: --protocol %s needs the folder of real trajectories: --data DIR", protocol)
			}
			if traces.Bootstrap < 0 {
				return usagef("eval: --bootstrap %d: want 0 or more resamples", traces.Bootstrap)
			}
			if err := cmp.Or(checkFormat(), source()); err != nil {
				return err
			}
			traces.Version, traces.Progress = readBuildInfo().Version, a.progress()
			var (
				report eval.Report
				err    error
			)
			if protocol != "" {
				report, err = pipeline.EvaluateProtocol(cmd.Context(), traces, protocol, dataDir, final, looks)
			} else {
				report, err = pipeline.EvaluateTraces(cmd.Context(), traces)
			}
			if err != nil {
				return err
			}
			return a.showReport(report, traces.Out, asJSON)
		},
	}
	source = encoderFlags(cmd, &traces.Encoder)
	f := cmd.Flags()
	runFlag(cmd, &dir)
	f.BoolVar(&final, "final", false, "also measure the locked test sets, and record the look")
	f.StringVar(&looks, "looks", filepath.Join("docs", "looks.jsonl"), "file that records looks at the locked sets")
	f.StringVar(&traces.Artifact, "artifact", "", "artifact folder, or an uncompressed tar of it; default: the one in the program")
	f.StringVar(&traces.Calibration, "calibration", "", "calibration.json to use instead of the artifact's own")
	f.StringArrayVar(&traces.Files, "traces", nil, "`FILE` of labelled trajectories, in any format of import; once for each file")
	checkFormat = formatFlag(cmd, &traces.Format, "import format of the traces; detected if left out")
	f.StringVar(&protocol, "protocol", "", "measure on the test sets of protocol p1 or p2")
	f.StringVar(&dataDir, "data", "", "folder of real trajectories, for --protocol")
	f.StringVar(&traces.Out, "out", "", "folder for report.json and report.html")
	f.Uint64Var(&traces.Seed, "seed", 20260701, "root of the bootstrap")
	f.IntVar(&traces.Bootstrap, "bootstrap", 1000, "resamples of groups for the intervals; 0 leaves them out")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) evalRun(cmd *cobra.Command, dir string, final bool, looks string, asJSON bool) error {
	run, err := openRun(dir, a.options(""))
	if err != nil {
		return err
	}
	folder, measure := "eval", run.Evaluate
	if final {
		folder = "final"
		if err := run.EvaluateFinal(cmd.Context(), looks); err != nil {
			return err
		}
	} else if err := measure(cmd.Context()); err != nil {
		return err
	}
	report, err := run.ReportIn(folder)
	if err != nil {
		return err
	}
	return a.showReport(report, filepath.Join(dir, folder), asJSON)
}

func (a *app) showReport(report eval.Report, dir string, asJSON bool) error {
	if asJSON {
		return report.WriteJSON(a.stdout)
	}
	w := &errWriter{w: a.stdout}
	if err := eval.Table(w, report); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nreport: %s\n", filepath.Join(dir, "report.html"))
	return w.err
}
