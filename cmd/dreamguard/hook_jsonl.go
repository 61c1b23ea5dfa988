package main

import (
	"github.com/dreamguard/dreamguard/serve"
	"github.com/spf13/cobra"
)

func (a *app) hookJSONLCommand() *cobra.Command {
	var (
		g    guardFlags
		most int
	)
	cmd := &cobra.Command{
		Use:   "jsonl --artifact DIR",
		Short: "Answer the requests of any program, one JSON object a line",
		Long: `Jsonl reads requests on standard input, one JSON object a line, and answers each with
one line. The first line that it prints states the settings. It ends with its input;
many runs of agents may be open at once. docs/reference/adapters.md describes the
requests and answers.`,
		Example: `  dreamguard hook jsonl --artifact runs/p1/artifact
  dreamguard hook jsonl --artifact runs/p1/artifact --on-error allow --max-sessions 50`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := g.settings("hook jsonl")
			if err != nil {
				return err
			}
			if most < 1 {
				return usagef("hook jsonl: --max-sessions %d: want 1 or more", most)
			}
			m, err := g.open("", serve.Digests{})
			if err != nil {
				return err
			}
			defer g.close()
			l := serve.Lines{Settings: settings, Model: m, MaxSessions: most, Record: g.record}
			return l.Serve(cmd.Context(), stoppable{cmd.Context(), a.stdin}, a.stdout)
		},
	}
	g.register(cmd, "ask")
	cmd.Flags().IntVar(&most, "max-sessions", serve.DefaultMaxSessions, "runs of agents that may be open at once")
	return cmd
}
