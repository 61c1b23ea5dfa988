package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// buildInfo is what "version" prints.
type buildInfo struct {
	Version    string `json:"version"`  // module version, "(devel)" for a build from a working tree
	Revision   string `json:"revision"` // commit, "" when the build does not know it
	Modified   bool   `json:"modified"` // the working tree had changes
	Go         string `json:"go"`
	Experiment string `json:"goexperiment"` // simd where vector instructions are used
	Platform   string `json:"platform"`
}

func readBuildInfo() buildInfo {
	b := buildInfo{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "GOEXPERIMENT":
			b.Experiment = s.Value
		}
	}
	return b
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and of its build",
		Example: "  dreamguard version --json",
		Args:    args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			b := readBuildInfo()
			if asJSON {
				return a.printJSON(b)
			}
			revision := b.Revision
			if revision == "" {
				revision = "not recorded"
			}
			if b.Modified {
				revision += " (modified)"
			}
			experiment := b.Experiment
			if experiment == "" {
				experiment = "none"
			}
			return a.printf("dreamguard %s\nrevision     %s\ngo           %s\ngoexperiment %s\nplatform     %s\n",
				b.Version, revision, b.Go, experiment, b.Platform)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}
