package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/internal/progress"
	"github.com/dreamguard/dreamguard/internal/suggest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// root builds the command tree. Every verb has its own file.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "dreamguard",
		Short: "A learned guard in front of the tool calls of language-model agents",
		Long: `DreamGuard trains, calibrates and freezes a guard that answers PASS, HOLD or BLOCK
before each tool call of a language-model agent.

` + exitCodesHelp,
		Example:       "  dreamguard run --config quickstart --out runs/demo\n  dreamguard inspect runs/demo",
		SilenceErrors: true, // main prints them, once
		SilenceUsage:  true,
	}
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "show no progress")
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return noEmpty(cmd) }
	root.AddCommand(
		a.runCommand(),
		a.importCommand(),
		a.simulateCommand(),
		a.embedCommand(),
		a.encoderCommand(),
		a.trainCommand(),
		a.exportCommand(),
		a.calibrateCommand(),
		a.recalibrateCommand(),
		a.calibrationCommand(),
		a.replayCommand(),
		a.monitorCommand(),
		a.logCommand(),
		a.evalCommand(),
		a.ablateCommand(),
		a.judgeCommand(),
		a.explainCommand(),
		a.floorCommand(),
		a.scarbenchCommand(),
		a.hookCommand(),
		a.mcpProxyCommand(),
		a.serveCommand(),
		a.holdsCommand(),
		a.inspectCommand(),
		a.doctorCommand(),
		a.versionCommand(),
	)
	return root
}

// noEmpty refuses a flag that was given an empty text: a variable that is not set, most
// likely, and what a flag that was left out means is something else.
func noEmpty(cmd *cobra.Command) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.Type() == "string" && f.Value.String() == "" && f.Name != "value-text" { // a text to write may be empty
			err = usagef("%s: --%s is empty: leave it out, or give it a value", cmd.Name(), f.Name)
		}
	})
	return err
}

// execute runs one command line.
func (a *app) execute(ctx context.Context, args []string) error {
	root := a.root()
	root.SetArgs(args)
	// Before flags are parsed: the flags of a mistyped verb would be reported as
	// unknown instead of the verb.
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	completing := len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) // added by Execute
	if _, _, err := root.Find(args); err != nil && !completing {
		return unknownVerb(root, err)
	}
	return root.ExecuteContext(ctx)
}

func unknownVerb(root *cobra.Command, err error) error {
	var word string
	if _, scanErr := fmt.Sscanf(err.Error(), "unknown command %q", &word); scanErr != nil {
		return usagef("%v", err)
	}
	var verbs []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			verbs = append(verbs, c.Name())
		}
	}
	if near, ok := suggest.Nearest(word, verbs); ok {
		return usagef("unknown verb %q: did you mean %s?", word, near)
	}
	return usagef("unknown verb %q: the verbs are %s", word, strings.Join(verbs, ", "))
}

// flagError makes a wrong flag a usage error and suggests the nearest one.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near, ok := suggest.Nearest(unknown.GetSpecifiedName(), names); ok {
			return usagef("%s: %v: did you mean --%s?", cmd.Name(), err, near)
		}
	}
	return usagef("%s: %v: see %s --help", cmd.Name(), err, cmd.CommandPath())
}

// args makes a wrong number of arguments a usage error.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usagef("%s: %v: see %s --help", cmd.Name(), err, cmd.CommandPath())
		}
		return nil
	}
}

// progress returns the reporter for long tasks.
func (a *app) progress() *progress.Reporter { return progress.New(a.stderr, a.quiet) }

// printf writes to standard output.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.stdout, format, args...)
	return err
}

// printJSON writes v as indented JSON to standard output.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// jsonFlag adds --json.
func jsonFlag(cmd *cobra.Command, into *bool) {
	cmd.Flags().BoolVar(into, "json", false, "print the result as JSON")
}

// configFlags adds --config and --set, and returns what they amount to.
func configFlags(cmd *cobra.Command, preset string) func() (configs.Config, error) {
	name := cmd.Flags().String("config", preset, "preset ("+strings.Join(configs.Presets(), ", ")+") or YAML file")
	sets := cmd.Flags().StringArray("set", nil, "override one key, for example train.stage1.steps=500; may be repeated")
	// Both names exist, so registering cannot fail.
	_ = cmd.RegisterFlagCompletionFunc("config", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return configs.Presets(), cobra.ShellCompDirectiveDefault
	})
	_ = cmd.RegisterFlagCompletionFunc("set", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		keys := configs.Keys()
		for i := range keys {
			keys[i] += "="
		}
		return keys, cobra.ShellCompDirectiveNoSpace
	})
	return func() (configs.Config, error) {
		c, err := configs.Load(*name)
		if err != nil {
			return configs.Config{}, err
		}
		for _, s := range *sets {
			if err := c.Set(s); err != nil {
				return configs.Config{}, fmt.Errorf("--set: %w", err)
			}
		}
		return c, c.Validate()
	}
}
