package main

import (
	"strings"

	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) calibrateCommand() *cobra.Command {
	cmd := a.stageCommand("calibrate", "Set thresholds with a stated guarantee",
		`Calibrate scores the tuning and the conformal set with the exported artifact,
chooses how the scores are fused on the first, sets the thresholds on the second,
and writes DIR/artifact/calibration.json. With too few safe runs for the promise
it refuses (exit code 3) and says how many are needed.`,
		(*pipeline.Run).Calibrate)
	stage := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := stage(cmd, args); err != nil {
			return err
		}
		if asJSON, err := cmd.Flags().GetBool("json"); err != nil || asJSON {
			return err
		}
		run, err := openRun(cmd.Flag("run").Value.String(), a.options(""))
		if err != nil {
			return err
		}
		lines, err := run.Promise()
		if err != nil {
			return err
		}
		return a.printf("%s\n", strings.Join(lines, "\n"))
	}
	return cmd
}
