package main

import (
	"context"
	"log/slog"

	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

// options are what every stage verb gives the pipeline.
func (a *app) options(dataDir string) pipeline.Options {
	opts := pipeline.Options{DataDir: dataDir, Progress: a.progress(), Version: readBuildInfo().Version}
	if !a.quiet {
		opts.Log = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	}
	return opts
}

func withoutTime(_ []string, at slog.Attr) slog.Attr {
	if at.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return at
}

// stageCommand makes the verb of one stage: it opens the run folder of --run and
// runs the stage unless it is up to date.
func (a *app) stageCommand(name, short, long string, do func(*pipeline.Run, context.Context) error) *cobra.Command {
	var (
		dir    string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     name + " --run DIR",
		Short:   short,
		Long:    long,
		Example: "  dreamguard " + name + " --run runs/p1",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			run, err := openRun(dir, a.options(""))
			if err == nil {
				run, err = onBackend(cmd, run, a.options(""))
			}
			if err != nil {
				return err
			}
			before := run.Record(name)
			if err := do(run, cmd.Context()); err != nil {
				return err
			}
			return a.showStage(name, run.Record(name), run.Record(name) == before, asJSON)
		},
	}
	runFlag(cmd, &dir)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func runFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "run", "", "run folder `DIR`, made by dreamguard run")
}

// openRun opens the run folder that a flag names.
func openRun(dir string, opts pipeline.Options) (*pipeline.Run, error) {
	if dir == "" {
		return nil, usagef("name the run folder with --run DIR")
	}
	return pipeline.Reopen(dir, opts)
}

// onBackend applies --backend of a verb that has it: the run folder is opened anew
// with that setting, which it keeps.
func onBackend(cmd *cobra.Command, run *pipeline.Run, opts pipeline.Options) (*pipeline.Run, error) {
	cfg := run.Config
	if err := setBackend(cmd, &cfg); err != nil || cfg.Backend == run.Config.Backend {
		return run, err
	}
	return pipeline.Open(run.Dir, cfg, opts)
}

// showStage prints what a stage did.
func (a *app) showStage(name string, rec *pipeline.StageRecord, skipped, asJSON bool) error {
	if asJSON {
		return a.printJSON(struct {
			Stage   string `json:"stage"`
			Skipped bool   `json:"skipped"` // up to date: nothing was done
			*pipeline.StageRecord
		}{name, skipped, rec})
	}
	if skipped {
		return a.printf("%s: up to date\n", name)
	}
	return a.printf("%s: %.1f s, %.0f MiB at most\n", name, rec.Seconds, rec.PeakMiB)
}
