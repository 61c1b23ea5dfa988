package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dreamguard/dreamguard/internal/oneline"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/dreamguard/dreamguard/verdict"
	"github.com/spf13/cobra"
)

func (a *app) judgeCommand() *cobra.Command {
	var (
		o           pipeline.JudgeOptions
		all         bool
		asJSON      bool
		source      func() error
		checkFormat func() error
	)
	cmd := &cobra.Command{
		Use:   "judge --artifact DIR FILE",
		Short: "Judge one action of a recorded run",
		Long: `Judge replays a run up to one action, the last tool call unless --step names
another, and prints the verdict on it. What came back from that action plays no part.

The exit code is that of the verdict: 0 PASS, 4 HOLD, 5 BLOCK; with --all that of the
strictest verdict on any action up to it. --json prints one object per verdict, with
--all one per line.`,
		Example: `  dreamguard judge --artifact runs/demo/artifact run.json
  dreamguard judge --artifact runs/demo/artifact --id simulator/x/7 --all runs/demo/data/test-simulator.jsonl.gz`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			if o.Artifact == "" {
				return usagef("judge: name the artifact with --artifact DIR")
			}
			if err := cmp.Or(checkFormat(), source()); err != nil {
				return err
			}
			if o.Step < -1 {
				return usagef("judge: --step %d: steps are numbered from 0; -1 is the last tool call", o.Step)
			}
			o.File = files[0]
			j, err := pipeline.Judge(cmd.Context(), o)
			if err != nil {
				return err
			}
			shown := j.Verdicts
			if !all {
				shown = shown[len(shown)-1:]
			}
			strictest := verdict.Pass
			for _, v := range shown {
				strictest = max(strictest, v.Decision)
			}
			w := &errWriter{w: a.stdout}
			if asJSON {
				if !all {
					if err := a.printJSON(shown[0]); err != nil {
						return err
					}
					shown = nil
				}
				for _, v := range shown {
					if err := json.NewEncoder(a.stdout).Encode(v); err != nil {
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
					line := fmt.Sprintf("%4d  %-28s %7.4f %7.4f  %-5s  %s", step, oneline.Of(tool, 28), v.Hazard, v.Risk, v.Decision, strings.Join(reasons, ", "))
					fmt.Fprintln(w, strings.TrimRight(line, " "))
				}
				if w.err != nil {
					return w.err
				}
			}
			if strictest == verdict.Pass {
				return nil
			}
			return decided(strictest)
		},
	}
	source = encoderFlags(cmd, &o.Encoder)
	f := cmd.Flags()
	f.StringVar(&o.Artifact, "artifact", "", "artifact folder, or an uncompressed tar of it; default: the one in the program")
	f.StringVar(&o.Calibration, "calibration", "", "calibration.json to use instead of the artifact's own")
	checkFormat = formatFlag(cmd, &o.Format, "import format of the file; detected if left out")
	f.StringVar(&o.ID, "id", "", "which run, where the file holds several")
	f.IntVar(&o.Step, "step", -1, "index of the action to judge; -1 is the last tool call")
	f.BoolVar(&all, "all", false, "print the verdicts on all actions up to it")
	jsonFlag(cmd, &asJSON)
	return cmd
}
