package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/dreamguard/dreamguard/checkpoints/shipped"
	"github.com/dreamguard/dreamguard/internal/backend"
	"github.com/dreamguard/dreamguard/internal/doctor"
	"github.com/spf13/cobra"
)

// What doctor was asked about by name and found missing or broken.
var (
	errBackendMissing = errors.New("not available")
	errEncoderBroken  = errors.New("not usable")
)

func (a *app) doctorCommand() *cobra.Command {
	var (
		probe    string
		hook     bool
		artifact string
		encoders []string
		asJSON   bool
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what this build and this machine can compute with, and how fast",
		Long: `Doctor prints which backends are available, why the others are not and what to do
about it, how many training steps per second each takes on a small model (which
takes a few seconds per backend), whether vector instructions are on, cores,
memory, free disk, the static encoder of this build, and whether the files of
others are complete.

With --backend it looks at one backend only and exits with 1 if it is missing.

With --encoder it reads the files of an encoder and exits with 1 if one is missing
or broken. Weights of a transformer are checked as far as their headers.

With --hook it proves that the hook of Claude Code can deny a call here: it runs the
hook on calls that it makes up, and exits with 1 if one that must be denied is not.`,
		Example: `  dreamguard doctor
  dreamguard doctor --backend xla:cpu && dreamguard run --backend xla:cpu --out runs/demo
  dreamguard doctor --encoder models/all-MiniLM-L6-v2 --json
  dreamguard doctor --hook --artifact runs/p1/artifact`,
		Args: args(cobra.NoArgs),
	}
	backendFlag(cmd, "look at this backend only and fail if it is missing")
	cmd.Flags().StringArrayVar(&encoders, "encoder", nil, "folder of an encoder, static or transformer, whose files to check; may be repeated")
	cmd.Flags().StringVar(&probe, "probe", "", "") // what doctor starts itself with, once per backend
	if err := cmd.Flags().MarkHidden("probe"); err != nil {
		panic(err) // the flag was defined a line above
	}
	cmd.Flags().BoolVar(&hook, "hook", false, "prove that \"hook claude-code\" can deny a call on this machine")
	cmd.Flags().StringVar(&artifact, "artifact", "", "with --hook: the artifact that it runs on")
	jsonFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if hook || artifact != "" {
			return a.doctorHook(cmd, hook, artifact, asJSON)
		}
		if probe != "" {
			return a.printJSON(doctor.Here(cmd.Context(), probe))
		}
		name, err := backendName(cmd)
		if err != nil {
			return err
		}
		names := backend.Names
		if name != "" {
			names = []string{name}
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		r := doctor.Examine(cmd.Context(), doctor.Options{
			Backends: names, Probe: doctor.Child(self, "doctor", "--probe"), BuiltIn: shipped.FS, Encoders: encoders,
		})
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		if asJSON {
			err = a.printJSON(r)
		} else {
			err = r.WriteText(a.stdout)
		}
		if err != nil {
			return err
		}
		if name != "" && !r.Backends[0].Available {
			err = fmt.Errorf("backend %s is %w", name, errBackendMissing)
		}
		for _, e := range r.Encoders {
			if slices.Contains(encoders, e.Path) && !e.Usable {
				err = errors.Join(err, fmt.Errorf("encoder %s is %w: %s", e.Path, errEncoderBroken, e.Reason))
			}
		}
		return err
	}
	return cmd
}

// errNoDeny is the outcome of --hook where a call would pass that must not.
var errNoDeny = errors.New("the hook does not deny what it must: do not rely on it on this machine")

func (a *app) doctorHook(cmd *cobra.Command, hook bool, artifact string, asJSON bool) error {
	if !hook || artifact == "" {
		return usagef("doctor: --hook and --artifact DIR go together")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r, err := doctor.Hook(cmd.Context(), self, "hook", "claude-code", "--artifact", artifact)
	if err != nil {
		return err
	}
	if asJSON {
		err = a.printJSON(r)
	} else {
		err = r.WriteText(a.stdout)
	}
	if err == nil && !r.OK {
		err = errNoDeny
	}
	return err
}
