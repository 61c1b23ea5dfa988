package main

import (
	"errors"
	"path/filepath"

	"github.com/dreamguard/dreamguard/floor"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/verdict"
	"github.com/spf13/cobra"
)

// guardOptions are the flags of the verbs that work on a guarded file.
type guardOptions struct {
	floorOptions
	seal, keyFile string
	require       bool
}

func (o *guardOptions) register(cmd *cobra.Command) {
	o.floorOptions.register(cmd)
	cmd.Flags().StringVar(&o.seal, "seal", "", "seal file; FILE.seal if left out")
	cmd.Flags().StringVar(&o.keyFile, "key-file", "", "file with a key of the seal, which the agent must not be able to read")
}

func (o *guardOptions) options() (floor.GuardOptions, error) {
	g := floor.GuardOptions{Format: floor.Format(o.format), SealFile: o.seal, RequireSeal: o.require}
	if o.keyFile == "" {
		return g, nil
	}
	key, err := boundedfile.Read(o.keyFile, 1<<16)
	if err == nil && len(key) < 16 {
		err = usagef("--key-file: %s: a key has at least 16 bytes", o.keyFile)
	}
	g.Key = key
	return g, err
}

// guard opens a configuration file under the rules and the seal of the flags.
func (o *guardOptions) guard(path string) (*floor.Guarded, error) {
	f, err := o.floor()
	if err != nil {
		return nil, err
	}
	opts, err := o.options()
	if err != nil {
		return nil, err
	}
	return floor.Guard(path, f, opts)
}

func (a *app) floorSealCommand() *cobra.Command {
	var o guardOptions
	cmd := &cobra.Command{
		Use:   "seal FILE",
		Short: "Write a digest of the limits in a configuration",
		Long: `Seal pins down the protected fields of a configuration. "floor verify" and every
guarded write fail once they differ, however the file was written. Keep the seal, or the
key of it (--key-file), where the agent cannot write or read.`,
		Example: "  dreamguard floor seal agent.yaml\n  dreamguard floor seal --seal /etc/dreamguard/agent.seal agent.yaml",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, files []string) error {
			f, err := o.floor()
			if err != nil {
				return err
			}
			g, err := o.options()
			if err != nil {
				return err
			}
			s, err := floor.SealFile(files[0], f, g)
			if err != nil {
				return err
			}
			if o.asJSON {
				return a.printJSON(s)
			}
			fields := "fields"
			if len(s.Fields) == 1 {
				fields = "field"
			}
			return a.printf("sealed %d protected %s of %s: %s\n", len(s.Fields), fields, files[0], s.Digest)
		},
	}
	o.register(cmd)
	return cmd
}

func (a *app) floorVerifyCommand() *cobra.Command {
	o := guardOptions{require: true}
	cmd := &cobra.Command{
		Use:     "verify FILE",
		Short:   "Check that the limits in a configuration are those that were sealed",
		Long:    "Verify has the exit code 0 where the limits are as sealed, 5 where they are not, and 1 where the file cannot be read.",
		Example: "  dreamguard floor verify agent.yaml",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, files []string) error {
			_, err := o.guard(files[0])
			broken := errors.Is(err, floor.ErrSealBroken) || errors.Is(err, floor.ErrNotPlain)
			if err != nil && !broken {
				return err
			}
			text := "intact"
			if broken {
				text = err.Error()
			}
			if o.asJSON {
				err = a.printJSON(map[string]any{"file": filepath.Clean(files[0]), "intact": !broken, "reason": text})
			} else {
				err = a.printf("%s\n", text)
			}
			if err == nil && broken {
				err = decided(verdict.Block)
			}
			return err
		},
	}
	o.register(cmd)
	return cmd
}

func (a *app) floorApplyCommand() *cobra.Command {
	var (
		o   guardOptions
		c   changeOptions
		doc string
	)
	cmd := &cobra.Command{
		Use:   "apply FILE (--document NEW | --path PATH --value JSON | --patch FILE | --merge-patch FILE)",
		Short: "Change a configuration file, if the floor permits it",
		Long: `Apply checks a change and writes it: at once, with the old content in FILE.bak, and
never through a link. Nothing is written where the check refuses (exit code 5) or the
seal does not hold.`,
		Example: `  dreamguard floor apply agent.yaml --path limits.maxSteps --value 60
  dreamguard floor apply agent.yaml --document new.yaml`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			g, err := o.guard(files[0])
			if err != nil {
				return err
			}
			var change floor.Change
			if doc == "" {
				change, err = c.change(a, cmd, &o.floorOptions, nil)
			} else {
				change.Format = g.Format()
				change.Text, err = a.readFile(doc)
			}
			if err != nil {
				return err
			}
			d, err := g.Apply(change)
			if err != nil && !errors.Is(err, floor.ErrRefused) {
				return err
			}
			return a.printDecision(d, o.asJSON)
		},
	}
	o.register(cmd)
	c.register(cmd, false)
	cmd.Flags().StringVar(&doc, "document", "", "file with the whole new document")
	return cmd
}
