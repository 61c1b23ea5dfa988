package main

import (
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) trainCommand() *cobra.Command {
	cmd := a.stageCommand("train", "Pretrain the world model and supervise the risk heads",
		`Train fits the model in two stages. Ctrl-C writes a checkpoint; the same command
goes on from there and ends with the same bytes as an uninterrupted training.`,
		(*pipeline.Run).Train)
	backendFlag(cmd, backendUsage)
	return cmd
}
