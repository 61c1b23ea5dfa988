package main

import (
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
