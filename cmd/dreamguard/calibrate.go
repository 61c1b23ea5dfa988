package main

import (
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) calibrateCommand() *cobra.Command {
	return a.stageCommand("calibrate", "Set thresholds with a stated guarantee",
		`Calibrate scores the tuning and the conformal set with the exported artifact,
chooses how the scores are fused on the first, sets the thresholds on the second,
and writes DIR/artifact/calibration.json. With too few safe runs for the promise
it refuses (exit code 3) and says how many are needed.`,
		(*pipeline.Run).Calibrate)
}
