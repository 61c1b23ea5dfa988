package main

import (
	"fmt"
	"strings"

	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/dreamguard/dreamguard/verdict"
	"github.com/spf13/cobra"
)

func (a *app) judgeCommand() *cobra.Command {
	var (
		o      pipeline.JudgeOptions
		all    bool
		asJSON bool
		source func() error
	)
	cmd := &cobra.Command{
		Use:   "judge --artifact DIR FILE",
		Short: "Judge one action of a recorded run",
		Long: `Judge replays a run up to one action, the last unless --step names another, and
prints the verdict on it. What came back from that action plays no part.

The exit code is that of the verdict: 0 PASS, 4 HOLD, 5 BLOCK.`,
		Example: `  dreamguard judge --artifact runs/demo/artifact run.json
  dreamguard judge --artifact runs/demo/artifact --id simulator/x/7 --all runs/demo/data/test-simulator.jsonl.gz`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			if o.Artifact == "" {
				return usagef("judge: name the artifact with --artifact DIR")
			}
			if err := source(); err != nil {
				return err
			}
			o.File = files[0]
			j, err := pipeline.Judge(cmd.Context(), o)
			if err != nil {
				return err
			}
			last := j.Verdicts[len(j.Verdicts)-1]
			shown := j.Verdicts
			if !all {
				shown = shown[len(shown)-1:]
			}
			w := &errWriter{w: a.stdout}
			if asJSON {
				for _, v := range shown {
					if err := a.printJSON(v); err != nil {
						return err
					}
				}
			} else {
				fmt.Fprintf(w, "%4s  %-28s %7s %7s  %s\n", "step", "tool", "hazard", "risk", "verdict")
				for i, v := range shown {
					step := j.Step - len(shown) + 1 + i
					tool := j.Tools[step]
					if tool == "" {
						tool = "(message)"
					}
					reasons := make([]string, len(v.Reasons))
					for k, r := range v.Reasons {
						reasons[k] = string(r)
					}
					fmt.Fprintf(w, "%4d  %-28s %7.4f %7.4f  %s  %s\n", step, oneLine(tool, 28), v.Hazard, v.Risk, v.Decision, strings.Join(reasons, ", "))
				}
				if w.err != nil {
					return w.err
				}
			}
			if last.Decision == verdict.Pass {
				return nil
			}
			return decided(last.Decision)
		},
	}
	source = encoderFlags(cmd, &o.Encoder)
	f := cmd.Flags()
	f.StringVar(&o.Artifact, "artifact", "", "artifact folder, or an uncompressed tar of it")
	f.StringVar(&o.Calibration, "calibration", "", "calibration.json to use instead of the artifact's own")
	f.StringVar(&o.Format, "format", "", "import format of the file; detected if left out")
	f.StringVar(&o.ID, "id", "", "which run, where the file holds several")
	f.IntVar(&o.Step, "step", -1, "index of the action to judge; -1 is the last")
	f.BoolVar(&all, "all", false, "print the verdicts on all actions up to it")
	jsonFlag(cmd, &asJSON)
	return cmd
}
