package main

import (
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/internal/backend"
	"github.com/dreamguard/dreamguard/internal/suggest"
	"github.com/spf13/cobra"
)

const backendUsage = "what to compute on; it becomes the run's setting, and what another backend trained is trained again"

// backendFlag adds --backend.
func backendFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().String("backend", "", usage+": "+strings.Join(backend.Names, ", "))
	// The name exists, so registering cannot fail.
	_ = cmd.RegisterFlagCompletionFunc("backend", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return backend.Names, cobra.ShellCompDirectiveNoFileComp
	})
}

// backendName returns the value of --backend, "" if it was not given or the verb
// has no such flag. A mistyped name is a usage error.
func backendName(cmd *cobra.Command) (string, error) {
	f := cmd.Flag("backend")
	if f == nil || !f.Changed {
		return "", nil
	}
	name := f.Value.String()
	if slices.Contains(backend.Names, name) {
		return name, nil
	}
	hint := "want one of " + strings.Join(backend.Names, ", ")
	if near, ok := suggest.Nearest(name, backend.Names); ok {
		hint = "did you mean " + near + "?"
	}
	return "", usagef("%s: --backend %q: %s", cmd.Name(), name, hint)
}

// setBackend applies --backend to a configuration, after checking that it can be
// used: a stage in front of the training may take long.
func setBackend(cmd *cobra.Command, cfg *configs.Config) error {
	name, err := backendName(cmd)
	if err != nil || name == "" {
		return err
	}
	if _, err := backend.Open(name); err != nil {
		return err
	}
	cfg.Backend = name
	return nil
}
