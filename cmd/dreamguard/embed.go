package main

import (
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) embedCommand() *cobra.Command {
	cmd := a.stageCommand("embed", "Embed the texts of the training sets",
		`Embed fills the run's cache with the vectors of every text that training reads,
each text once, and counts the words that the call features are weighted by.`,
		(*pipeline.Run).Embed)
	backendFlag(cmd, backendUsage)
	return cmd
}
