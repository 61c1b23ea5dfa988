package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dreamguard/dreamguard/scarbench"
	"github.com/spf13/cobra"
)

func (a *app) scarbenchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scarbench",
		Short: "Measure whether agents obey what the user said long ago",
		Long: `Scarbench runs agents through 103 cases in six domains. In each, the user states a
constraint and asks later, after a short or long talk about other things, for something
to which it applies.`,
		Example: `  dreamguard scarbench show fs-01
  dreamguard scarbench validate
  dreamguard scarbench run --agent forgetful,bounded --repetitions 1 --out runs/scar`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.scarRunCommand(), a.scarReportCommand(), a.scarValidateCommand(), a.scarShowCommand())
	return cmd
}

// errCases ends a validation that found problems.
var errCases = errors.New("cases have problems")

func (a *app) scarValidateCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Prove that the cases are sound",
		Long: `Validate runs the reference traces of each case and compares its conditions: the safe
trace ends in Safe Completion, the forgetful one in Unsafe Completion, the conditions
differ in history and restatement alone, and the history is the frozen one, has 6,000 to
6,176 tokens in 56 to 160 turns, and says nothing of limits.`,
		Example: "  dreamguard scarbench validate --json",
		Args:    args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			found, err := scarbench.ValidateAll()
			if err != nil {
				return err
			}
			problems := 0
			for _, v := range found {
				problems += len(v.Problems)
			}
			if asJSON {
				err = a.printJSON(map[string]any{"cases": found, "problems": problems})
			} else {
				t := a.table()
				t.row("case", "safe reference", "forgetful reference", "tokens", "turns", "history")
				for _, v := range found {
					t.row(v.Case, string(v.Safe), string(v.Forgetful), fmt.Sprint(v.Tokens), fmt.Sprint(v.Turns), v.Digest[:12])
				}
				if err = t.flush(); err == nil {
					for _, v := range found {
						for _, p := range v.Problems {
							if err = a.printf("%s: %s\n", v.Case, p); err != nil {
								return err
							}
						}
					}
					err = a.printf("%d cases, %d instances, %d problems\n", len(found), len(found)*len(scarbench.Conditions()), problems)
				}
			}
			if err == nil && problems > 0 {
				err = errCases
			}
			return err
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) scarShowCommand() *cobra.Command {
	var (
		condition string
		asJSON    bool
	)
	cmd := &cobra.Command{
		Use:   "show CASE",
		Short: "Print one case",
		Long: `Show prints what a case is about, its reference traces and what they are judged by, and
the conversation in one condition.`,
		Example: `  dreamguard scarbench show fs-01
  dreamguard scarbench show cloud-02 --condition long-implicit`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, ids []string) error {
			c, err := scarbench.Find(ids[0])
			if err != nil {
				return usagef("show: %v", err)
			}
			cond := scarbench.Condition(condition)
			if _, err := scarConditions([]string{condition}); err != nil {
				return err
			}
			talk, err := c.Conversation(cond)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(map[string]any{"case": c, "done": c.Done(), "kept": c.Kept(), "condition": cond, "conversation": talk})
			}
			return a.printf("%s", showCase(c, cond, talk))
		},
	}
	cmd.Flags().StringVar(&condition, "condition", string(scarbench.ShortImplicit), "short-explicit, short-implicit, long-explicit or long-implicit")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// scarConditions reads names of conditions.
func scarConditions(names []string) ([]scarbench.Condition, error) {
	var out []scarbench.Condition
	for _, name := range names {
		found := false
		for _, c := range scarbench.Conditions() {
			if string(c) == name {
				out, found = append(out, c), true
			}
		}
		if !found {
			return nil, usagef("there is no condition %.40q: want short-explicit, short-implicit, long-explicit or long-implicit", name)
		}
	}
	return out, nil
}

func showCase(c *scarbench.Case, cond scarbench.Condition, talk []scarbench.Message) string {
	var b strings.Builder
	line := func(label, text string) { fmt.Fprintf(&b, "%-14s%s\n", label, text) }
	line(c.ID, c.Title)
	line("domain", string(c.Domain))
	line("kind", string(c.Kind))
	line("constraint", c.Constraint)
	line("restated", c.Restate)
	line("target", c.Target)
	if c.Prerequisite != "" {
		line("first", c.Prerequisite)
	}
	line("sensitive", c.Sensitive)
	for _, x := range c.Done() {
		line("done when", x)
	}
	for _, x := range c.Kept() {
		line("to be kept", x)
	}
	for i, trace := range [][]scarbench.Call{c.Safe, c.Forgetful} {
		fmt.Fprintf(&b, "\n%s\n", [...]string{"safe trace", "forgetful trace"}[i])
		for _, call := range trace {
			fmt.Fprintf(&b, "  %s\n", call)
		}
	}
	fmt.Fprintf(&b, "\nconversation, %s\n", cond)
	for _, m := range talk {
		fmt.Fprintf(&b, "  %s: %s\n", m.Role, strings.ReplaceAll(m.Text, "\n", "\n    "))
	}
	return b.String()
}
