package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dreamguard/dreamguard/floor"
	"github.com/dreamguard/dreamguard/verdict"
	"github.com/spf13/cobra"
)

// floorOptions are the flags that the verbs of floor share.
type floorOptions struct {
	rules  string
	format string
	asJSON bool
}

func (o *floorOptions) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.rules, "rules", "default", "rules: default, paper, tighten, or a YAML file")
	cmd.Flags().StringVar(&o.format, "format", "", "yaml, json, jsonc or toml; from the file's name if left out")
	jsonFlag(cmd, &o.asJSON)
}

// floor compiles the rules. Wrong rules are a mistake of the configuration.
func (o *floorOptions) floor() (*floor.Floor, error) {
	f, err := floor.Load(o.rules)
	var rule *floor.RuleError
	if errors.As(err, &rule) {
		return nil, usagef("--rules: %v", err)
	}
	return f, err
}

// documentFormat returns the format of a document in a file.
func (o *floorOptions) documentFormat(name string) (floor.Format, error) {
	if o.format != "" {
		f := floor.Format(o.format)
		if f == "yml" {
			f = floor.YAML
		}
		if !f.IsDocument() {
			return "", usagef("--format: %q: want yaml, json, jsonc or toml", o.format)
		}
		return f, nil
	}
	f, ok := floor.FormatOf(name)
	if !ok {
		return "", usagef("%s: the name says no format: give --format yaml, json, jsonc or toml", name)
	}
	return f, nil
}

func (a *app) floorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "floor",
		Short: "Keep an agent from changing its own limits",
		Long: `Floor checks changes of an agent's configuration against rules: fields that grant
abilities may be changed, fields that set limits may not.

Exit codes of "floor check":
  0  permitted
  1  the change cannot be read
  2  usage
  4  held: a person decides
  5  refused`,
		Example: `  dreamguard floor check --path server.host --value '"0.0.0.0"'
  dreamguard floor check --before agent.yaml new.yaml
  dreamguard floor check --batch changes.jsonl --json
  dreamguard floor lint agent.yaml`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.floorCheckCommand(), a.floorDiffCommand(), a.floorLintCommand(), a.floorSealCommand(),
		a.floorVerifyCommand(), a.floorApplyCommand(), a.floorMCPCommand(), a.floorStudyCommand())
	return cmd
}

// changeOptions are the flags that describe one change.
type changeOptions struct {
	path, value, valueText string
	remove                 bool
	patch, mergePatch      string
	before                 string
}

func (c *changeOptions) register(cmd *cobra.Command, before bool) {
	f := cmd.Flags()
	f.StringVar(&c.path, "path", "", "path of one field: dotted, JSON Pointer or JSONPath")
	f.StringVar(&c.value, "value", "", "its new value, as JSON")
	f.StringVar(&c.valueText, "value-text", "", "its new value, as text")
	f.BoolVar(&c.remove, "remove", false, "remove the field at --path")
	f.StringVar(&c.patch, "patch", "", "file with a JSON Patch (RFC 6902)")
	f.StringVar(&c.mergePatch, "merge-patch", "", "file with a JSON Merge Patch (RFC 7396)")
	if before {
		f.StringVar(&c.before, "before", "", "file with the present document; left out: there is none, or it is not known")
	}
}

// change makes the change that the flags and the file argument describe.
func (c *changeOptions) change(a *app, cmd *cobra.Command, o *floorOptions, files []string) (floor.Change, error) {
	var out floor.Change
	kinds := 0
	for _, set := range []bool{cmd.Flags().Changed("path"), c.patch != "", c.mergePatch != "", len(files) == 1} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		whole := "a FILE"
		if cmd.Name() == "apply" {
			whole = "--document"
		}
		return out, usagef("%s: give one change: %s, --path, --patch or --merge-patch", cmd.Name(), whole)
	}
	var err error
	if o.format != "" {
		if _, err := o.documentFormat(""); err != nil {
			return out, err
		}
	}
	if c.before != "" {
		if out.Before, err = a.readFile(c.before); err != nil {
			return out, err
		}
		if o.format != "" || len(files) == 0 {
			if f, err := o.documentFormat(c.before); err == nil {
				out.BeforeFormat = f
			}
		}
	}
	switch {
	case len(files) == 1:
		if out.Format, err = o.documentFormat(files[0]); err != nil {
			return out, err
		}
		out.Text, err = a.readFile(files[0])
	case c.patch != "":
		out.Format = floor.JSONPatch
		out.Text, err = a.readFile(c.patch)
	case c.mergePatch != "":
		out.Format = floor.MergePatch
		out.Text, err = a.readFile(c.mergePatch)
	default:
		out.Format, out.Path, out.Delete = floor.PathWrite, c.path, c.remove
		text := cmd.Flags().Changed("value-text")
		switch given := cmd.Flags().Changed("value"); {
		case c.remove && (given || text), given && text, !c.remove && !given && !text:
			return out, usagef("%s: --path wants one of --value, --value-text and --remove", cmd.Name())
		case text:
			out.Value, err = json.Marshal(c.valueText)
		case given:
			if !json.Valid([]byte(c.value)) {
				return out, usagef("%s: --value: %.60q is not JSON: text goes to --value-text", cmd.Name(), c.value)
			}
			out.Value = json.RawMessage(c.value)
		}
	}
	return out, err
}

// readFile reads a file, or standard input for "-": at most a byte more than the floor
// takes, which then says so. A pipe is as good as a file (process substitution).
func (a *app) readFile(name string) ([]byte, error) {
	const most = 16<<20 + 1
	if name == "-" {
		return io.ReadAll(io.LimitReader(a.stdin, most))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	return io.ReadAll(io.LimitReader(f, most))
}

// printDecision prints a decision and turns it into the error that carries its
// exit code.
func (a *app) printDecision(d floor.Decision, asJSON bool) error {
	if d.Err != nil && !asJSON {
		return d.Err
	}
	var err error
	if asJSON {
		err = a.printJSON(d)
	} else if d.Outcome == floor.Permit {
		err = a.printf("permit\n")
	} else {
		err = a.printf("%v  %s\n%s\n", d.Outcome, d.Rule, d.Reason)
	}
	if err != nil {
		return err
	}
	switch {
	case d.Err != nil:
		return d.Err
	case d.Outcome == floor.Hold:
		return decided(verdict.Hold)
	case d.Outcome == floor.Refuse:
		return decided(verdict.Block)
	}
	return nil
}

func (a *app) floorCheckCommand() *cobra.Command {
	var (
		o      floorOptions
		c      changeOptions
		batch  string
		call   string
		sealed []string
	)
	cmd := &cobra.Command{
		Use:   "check [FILE | --path PATH --value JSON | --patch FILE | --merge-patch FILE | --batch FILE | --call FILE]",
		Short: "Check one change, many changes, or a tool call",
		Long: `Check answers permit or refuse. A whole document (FILE) is judged by what it changes
against --before; a patch or path by what it writes.

--batch reads one change a line, {"id", "format", "before", "change"}, and writes one
decision a line, {"id", "decision", "rule", "reason"}; its exit code is 0 once all
lines were read. --call judges a tool call, {"tool", "arguments"}, which may also be
held (exit code 4).`,
		Example: `  dreamguard floor check --path server.host --value '"0.0.0.0"'
  dreamguard floor check --before agent.yaml new.yaml
  dreamguard floor check --batch changes.jsonl --json
  dreamguard floor check --call call.json --sealed agent.yaml`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			f, err := o.floor()
			if err != nil {
				return err
			}
			switch {
			case batch != "" && (len(files) > 0 || call != "" || cmd.Flags().Changed("path") || c.patch != "" || c.mergePatch != ""):
				return usagef("check: --batch goes alone")
			case batch != "":
				return a.floorBatch(cmd.Context(), f, batch, o.asJSON)
			case call != "":
				return a.floorCall(f, call, sealed, o.asJSON)
			}
			change, err := c.change(a, cmd, &o, files)
			if err != nil {
				return err
			}
			return a.printDecision(f.Check(change), o.asJSON)
		},
	}
	o.register(cmd)
	c.register(cmd, true)
	cmd.Flags().StringVar(&batch, "batch", "", "JSONL file of changes, - for standard input")
	cmd.Flags().StringVar(&call, "call", "", "JSON file of one tool call, - for standard input")
	cmd.Flags().StringArrayVar(&sealed, "sealed", nil, "with --call: a configuration file that the agent may not write; may be repeated")
	return cmd
}

// stoppable ends a read that waits, such as one of a terminal, with its context.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	buf := make([]byte, len(p)) // the read may end after the caller has gone
	done := make(chan result, 1)
	go func() {
		n, err := s.r.Read(buf)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		return copy(p, buf[:r.n]), r.err
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func (a *app) floorBatch(ctx context.Context, f *floor.Floor, name string, asJSON bool) error {
	in := a.stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	out := a.stdout
	if !asJSON {
		out = io.Discard
	}
	n, err := f.Batch(stoppable{ctx, in}, out)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if asJSON {
		return nil
	}
	return a.printf("permitted %d, refused %d (%d of them unreadable)\n", n.Permitted, n.Refused, n.Unreadable)
}

func (a *app) floorDiffCommand() *cobra.Command {
	var o floorOptions
	cmd := &cobra.Command{
		Use:     "diff BEFORE AFTER",
		Short:   "List what a new document changes in protected fields",
		Example: "  dreamguard floor diff agent.yaml new.yaml",
		Args:    args(cobra.ExactArgs(2)),
		RunE: func(_ *cobra.Command, files []string) error {
			f, err := o.floor()
			if err != nil {
				return err
			}
			c := floor.Change{}
			if c.Format, err = o.documentFormat(files[1]); err != nil {
				return err
			}
			if c.Before, err = a.readFile(files[0]); err != nil {
				return err
			}
			if c.Text, err = a.readFile(files[1]); err != nil {
				return err
			}
			if o.format == "" {
				if before, ok := floor.FormatOf(files[0]); ok {
					c.BeforeFormat = before
				}
			}
			found, err := f.Findings(c)
			if err != nil {
				return err
			}
			if o.asJSON {
				err = a.printJSON(map[string]any{"changes": found})
			} else if len(found) == 0 {
				err = a.printf("no protected field changes\n")
			} else {
				for _, d := range found {
					if err = a.printf("%-18s %s\n", d.Rule, d.Reason); err != nil {
						break
					}
				}
			}
			if err == nil && len(found) > 0 {
				err = decided(verdict.Block)
			}
			return err
		},
	}
	o.register(cmd)
	return cmd
}

func (a *app) floorLintCommand() *cobra.Command {
	var (
		o      floorOptions
		strict bool
	)
	cmd := &cobra.Command{
		Use:   "lint FILE",
		Short: "Warn of fields that look like limits and that no rule covers",
		Long: `Lint looks at the names of the fields of a configuration (host, token, allow, deny,
roots, secret, sandbox, ...) and lists those that no rule covers, and rules that match
nothing. With --strict any warning makes the exit code 5.`,
		Example: "  dreamguard floor lint --rules my-rules.yaml agent.yaml",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, files []string) error {
			f, err := o.floor()
			if err != nil {
				return err
			}
			format, err := o.documentFormat(files[0])
			if err != nil {
				return err
			}
			text, err := a.readFile(files[0])
			if err != nil {
				return err
			}
			warnings, err := f.Lint(format, text)
			if err != nil {
				return fmt.Errorf("%s: %w", files[0], err)
			}
			if o.asJSON {
				if warnings == nil {
					warnings = []floor.Warning{}
				}
				err = a.printJSON(map[string]any{"warnings": warnings})
			} else if len(warnings) == 0 {
				err = a.printf("no warnings\n")
			} else {
				w := &errWriter{w: a.stdout}
				for _, x := range warnings {
					fmt.Fprintln(w, strings.TrimPrefix(x.Path+": "+x.Text, ": "))
				}
				err = w.err
			}
			if err == nil && strict && len(warnings) > 0 {
				err = decided(verdict.Block)
			}
			return err
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVar(&strict, "strict", false, "fail on a warning")
	return cmd
}
