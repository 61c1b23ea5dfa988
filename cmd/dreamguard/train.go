package main

import (
	"fmt"
	"io"

	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/dreamguard/dreamguard/train"
	"github.com/spf13/cobra"
)

func (a *app) trainCommand() *cobra.Command {
	cmd := a.stageCommand("train", "Pretrain the world model and supervise the risk heads",
		`Train fits the model in two stages. Ctrl-C writes a checkpoint; the same command
goes on from there and ends with the same bytes as an uninterrupted training.

With --dry-run it trains nothing, and prints the shapes of the model and of its batches,
how many parameters there are, and the memory that is known before.`,
		(*pipeline.Run).Train)
	backendFlag(cmd, backendUsage)
	dry := cmd.Flags().Bool("dry-run", false, "print shapes, parameters and memory, and train nothing")
	stage := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !*dry {
			return stage(cmd, args)
		}
		run, err := openRun(cmd.Flag("run").Value.String(), a.options(""))
		if err != nil {
			return err
		}
		if err := setBackend(cmd, &run.Config); err != nil { // of this plan alone
			return err
		}
		plan, err := run.PlanTraining()
		if err != nil {
			return err
		}
		if asJSON, err := cmd.Flags().GetBool("json"); err != nil || asJSON {
			if err != nil {
				return err
			}
			return a.printJSON(plan)
		}
		return a.showPlan(plan)
	}
	cmd.AddCommand(a.trainSweepCommand())
	return cmd
}

func (a *app) showPlan(p pipeline.TrainingPlan) error {
	w := &errWriter{w: a.stdout}
	fmt.Fprintf(w, "backend %s, embeddings of %d values, %d call features\n", p.Backend, p.Dims.D, p.Dims.F)
	fmt.Fprintf(w, "runs      train %d (%d steps), validation %d (%d steps)\n", p.Train.Runs, p.Train.Steps, p.Validation.Runs, p.Validation.Steps)
	for i, s := range p.Stages {
		fmt.Fprintf(w, "stage %d   %d steps of %d runs, of %d calls at most\n", i+1, s.Steps, p.Batch, p.MaxSteps)
	}
	m := p.Parameters
	fmt.Fprintf(w, "parameters %d; at run time %d, of which %d learn\n", m.Total, m.Runtime, m.Learned)
	fmt.Fprintf(w, "memory    %.1f MB at least: examples %.1f, weights, gradients and moments %.1f, a batch %.1f\n",
		megabytes(p.Memory.Total), megabytes(p.Memory.Examples), megabytes(p.Memory.Parameters), megabytes(p.Memory.Batch))
	fmt.Fprintln(w, "          and what a step holds in between, which grows with batch, steps and width")
	if w.err != nil {
		return w.err
	}
	for i, s := range p.Stages {
		if s.Steps == 0 {
			continue
		}
		fmt.Fprintf(w, "\nbatch of stage %d\n", i+1)
		printShapes(w, s.Batch)
	}
	fmt.Fprintln(w, "\nmodel")
	printShapes(w, p.Tensors)
	return w.err
}

func megabytes(n int64) float64 { return float64(n) / 1e6 }

func printShapes(w io.Writer, shapes []train.Shape) {
	for _, s := range shapes {
		fmt.Fprintf(w, "  %-22s %v\n", s.Name, s.Dims)
	}
}
