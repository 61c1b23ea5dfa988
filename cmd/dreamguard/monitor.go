package main

import (
	"fmt"
	"os"

	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) monitorCommand() *cobra.Command {
	var (
		o                  pipeline.MonitorOptions
		delta              = share(0.01)
		prometheus, asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "monitor --artifact DIR [FILE...]",
		Short: "Tell from a decision log whether a calibration's certificate still stands",
		Long: `Monitor reads verdicts as JSON lines, from files or from standard input, and tells
whether the certificate of the calibration still stands. It is withdrawn when live scores
are not like those that were calibrated on, or when safe runs are stopped more often than
promised. Monitor ends with the log, or as soon as the certificate is withdrawn: the exit
code is then 3, and stays 3 for a monitor that goes on from the same --state.`,
		Example: `  dreamguard monitor --artifact runs/p1/artifact decisions.jsonl
  tail -n +1 -F decisions.jsonl | dreamguard monitor --artifact runs/p1/artifact --state monitor.json --metrics /var/lib/node_exporter/dreamguard.prom`,
		Args: args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, files []string) error {
			switch {
			case o.Artifact == "":
				return usagef("monitor: name the artifact with --artifact DIR")
			case prometheus && asJSON:
				return usagef("monitor: --prometheus and --json exclude each other")
			}
			o.Delta, o.Logs = float64(delta), []pipeline.LogFile{{Name: "standard input", Reader: a.stdin}}
			if len(files) > 0 && !(len(files) == 1 && files[0] == "-") {
				o.Logs = nil
				for _, name := range files {
					f, err := os.Open(name)
					if err != nil {
						return err
					}
					defer f.Close() // read only
					o.Logs = append(o.Logs, pipeline.LogFile{Name: name, Reader: f})
				}
			}
			r, err := pipeline.Monitor(cmd.Context(), o)
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				err = a.printJSON(r)
			case prometheus:
				err = r.WritePrometheus(a.stdout)
			default:
				err = a.showMonitor(r)
			}
			if err == nil && r.Withdrawn {
				return errWithdrawn
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Artifact, "artifact", "", "artifact folder, or an uncompressed tar of it; default: the one in the program")
	f.StringVar(&o.Calibration, "calibration", "", "calibration.json to use instead of the artifact's own")
	f.Var(&delta, "delta", "chance that a certificate which holds is ever withdrawn, for each of the two tests")
	f.Uint64Var(&o.Seed, "seed", 20260701, "of the numbers that break ties between scores")
	f.StringVar(&o.State, "state", "", "file in which the monitor goes on where it stopped")
	f.StringVar(&o.Metrics, "metrics", "", "file that is kept up to date with the Prometheus text")
	f.BoolVar(&prometheus, "prometheus", false, "print the result as Prometheus text")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) showMonitor(r *pipeline.MonitorReport) error {
	w := &errWriter{w: a.stdout}
	fmt.Fprintf(w, "%s\n", r.Why)
	fmt.Fprintf(w, "scores: %d live runs against %d calibration runs; log of the martingale %.2f, withdrawn at %.2f\n", r.Runs, r.Reference, r.LogDrift, r.LogLimit)
	if r.Labelled > 0 {
		fmt.Fprintf(w, "alert rate: %d of %d runs known to be safe; between %.2f %% and %.2f %%, promised at most %.4g %%\n", r.Alerts, r.Labelled, 100*r.RateLower, 100*r.RateUpper, 100*r.Level)
	} else {
		fmt.Fprintf(w, "alert rate: no run is known to be safe yet; promised at most %.4g %%\n", 100*r.Level)
	}
	if r.Other > 0 {
		fmt.Fprintf(w, "%d verdicts are of other calibrations and count for nothing\n", r.Other)
	}
	if r.Repeated > 0 {
		fmt.Fprintf(w, "%d verdicts are on runs that have ended, and were left out: the log was read before, or an id was used twice\n", r.Repeated)
	}
	if r.Open > 0 {
		fmt.Fprintf(w, "%d runs have not ended and count once they do\n", r.Open)
	}
	if r.CutShort > 0 {
		fmt.Fprintf(w, "the last line is cut short, and was left out: %d logs\n", r.CutShort)
	}
	if r.Forgotten > 0 {
		fmt.Fprintf(w, "%d labels are of runs that are not known, or not any more\n", r.Forgotten)
	}
	return w.err
}
