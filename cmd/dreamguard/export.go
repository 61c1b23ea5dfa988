package main

import (
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) exportCommand() *cobra.Command {
	cmd := a.stageCommand("export", "Freeze the trained weights into an artifact",
		`Export writes DIR/artifact, which the guard package loads. It is not calibrated:
until "calibrate" has set thresholds, the guard refuses it.

With --artifact default it copies the artifact in the program, which is trained and
calibrated, to a folder of its own, where it can be recalibrated.`,
		(*pipeline.Run).Export)
	cmd.Use = "export --run DIR | --artifact default --out DIR"
	cmd.Example += "\n  dreamguard export --artifact default --out guard"
	var name, out string
	cmd.Flags().StringVar(&name, "artifact", "", "default: copy the artifact in the program")
	cmd.Flags().StringVar(&out, "out", "", "folder to copy to, which must not be there yet")
	ofRun := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, list []string) error {
		switch {
		case name == "" && out == "":
			return ofRun(cmd, list)
		case cmd.Flags().Changed("run") || cmd.Flags().Changed("json"):
			return usagef("export: --artifact and --out exclude --run and --json")
		case name != pipeline.BuiltIn:
			return usagef("export: --artifact is %q: want %s, the artifact in the program", name, pipeline.BuiltIn)
		case out == "":
			return usagef("export: name the folder to copy to with --out DIR")
		}
		if err := pipeline.CopyBuiltIn(out); err != nil {
			return err
		}
		return a.printf("%s: a copy of the artifact in the program; README.md there says what it is\n", out)
	}
	return cmd
}
