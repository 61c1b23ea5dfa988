package main

import (
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) exportCommand() *cobra.Command {
	return a.stageCommand("export", "Freeze the trained weights into an artifact",
		`Export writes DIR/artifact, which the guard package loads. It is not calibrated:
until "calibrate" has set thresholds, the guard refuses it.`,
		(*pipeline.Run).Export)
}
