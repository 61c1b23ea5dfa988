package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/internal/oneline"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) explainCommand() *cobra.Command {
	o := pipeline.JudgeOptions{Explain: true}
	var (
		asJSON      bool
		source      func() error
		checkFormat func() error
	)
	cmd := &cobra.Command{
		Use:   "explain --artifact DIR --trace FILE",
		Short: "Say what the verdict on one action rests on",
		Long: `Explain replays a run up to one action, the last tool call unless --step names
another, and prints the verdict on it, what its scores rest on, and what may be done
instead where the call is held or blocked. What came back from the action plays no part.

Each line of the evidence is the difference that one input makes: how much higher the
log-odds of the two heads and the risk are than without it. They do not sum to a score,
since inputs act together.

The exit code is 0 whatever the verdict; dreamguard judge tells it by its exit code.`,
		Example: `  dreamguard explain --artifact runs/demo/artifact --trace run.json --step 4
  dreamguard explain --artifact runs/demo/artifact --trace runs/demo/data/test-simulator.jsonl.gz --id simulator/x/7 --json`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.Artifact == "":
				return usagef("explain: name the artifact with --artifact DIR")
			case o.File == "":
				return usagef("explain: name the file of the run with --trace FILE")
			case o.Step < -1:
				return usagef("explain: --step %d: steps are numbered from 0; -1 is the last tool call", o.Step)
			}
			if err := cmp.Or(checkFormat(), source()); err != nil {
				return err
			}
			j, err := pipeline.Judge(cmd.Context(), o)
			if err != nil {
				return err
			}
			v := j.Verdicts[len(j.Verdicts)-1]
			if asJSON {
				return a.printJSON(v)
			}
			return a.showExplanation(j.Tools[j.Step], v)
		},
	}
	source = encoderFlags(cmd, &o.Encoder)
	f := cmd.Flags()
	f.StringVar(&o.Artifact, "artifact", "", "artifact folder, or an uncompressed tar of it; default: the one in the program")
	f.StringVar(&o.Calibration, "calibration", "", "calibration.json to use instead of the artifact's own")
	f.StringVar(&o.File, "trace", "", "file that holds the run")
	checkFormat = formatFlag(cmd, &o.Format, "import format of the file; detected if left out")
	f.StringVar(&o.ID, "id", "", "which run, where the file holds several")
	f.IntVar(&o.Step, "step", -1, "index of the action to explain; -1 is the last tool call")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) showExplanation(tool string, v guard.Verdict) error {
	w := &errWriter{w: a.stdout}
	if tool == "" {
		tool = "(message)"
	}
	reasons := make([]string, len(v.Reasons))
	for i, r := range v.Reasons {
		reasons[i] = string(r)
	}
	fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("step %d  %s  %v  %s", v.Step, oneline.Of(tool, 60), v.Decision, strings.Join(reasons, ", ")), " "))
	if !v.Scored {
		fmt.Fprintln(w, "the model gave no answer, so there is no evidence")
	} else {
		level := func(x float64) string {
			if x == calib.Off {
				return "off"
			}
			return fmt.Sprintf("%.4f", x)
		}
		fmt.Fprintf(w, "hazard %.4f (block: %s)  risk %.4f (hold: %s)\n\n", v.Hazard, level(v.Thresholds.Block), v.Risk, level(v.Thresholds.Hold))
		fmt.Fprintf(w, "%8s %8s %8s\n", "hazard", "prefix", "risk")
	}
	for _, c := range v.Evidence {
		name := c.Name
		if c.Kind == guard.OfFeature {
			name = fmt.Sprintf("%s = %.3g, mean %.3g", c.Name, c.Value, c.Typical)
		}
		fmt.Fprintf(w, "%+8.3f %+8.3f %+8.4f  %s [%s]\n", c.Hazard, c.Prefix, c.Risk, c.Text, name)
	}
	if len(v.Suggestions) > 0 {
		fmt.Fprintln(w, "\ninstead:")
		for _, s := range v.Suggestions {
			fmt.Fprintf(w, "  %s: %s\n", s.Kind, s.Text)
		}
	}
	return w.err
}
