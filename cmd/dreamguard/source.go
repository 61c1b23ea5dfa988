package main

import (
	"github.com/dreamguard/dreamguard/data/formats"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

// encoderFlags adds the flags that say where the encoder of an artifact is, and
// returns what completes src from them.
func encoderFlags(cmd *cobra.Command, src *pipeline.EncoderSource) func() error {
	f := cmd.Flags()
	f.StringVar(&src.Location, "encoder", "", "where the artifact's encoder is, if it is not part of it: folder of a model, or URL of an embeddings server")
	f.StringVar(&src.KeyEnv, "encoder-key", "", "environment variable that holds the API key of that server")
	backendFlag(cmd, "what a transformer encoder computes on")
	return func() (err error) {
		if src.KeyEnv != "" && src.Location == "" {
			return usagef("%s: --encoder-key is for the server that --encoder names", cmd.Name())
		}
		src.Backend, err = backendName(cmd)
		return err
	}
}

// formatFlag adds --format and returns what checks it, before anything is opened.
func formatFlag(cmd *cobra.Command, into *string, usage string) func() error {
	cmd.Flags().StringVar(into, "format", "", usage)
	// The flag exists, so registering cannot fail.
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formatNames(), cobra.ShellCompDirectiveNoFileComp))
	return func() error {
		if *into == "" {
			return nil
		}
		if _, err := formats.Named(*into); err != nil {
			return usagef("%s: --format: %v", cmd.Name(), err)
		}
		return nil
	}
}

// formatNames lists the import formats.
func formatNames() []string {
	var names []string
	for _, f := range formats.All() {
		names = append(names, f.Name())
	}
	return names
}
