package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dreamguard/dreamguard/guard/decisionlog"
	"github.com/spf13/cobra"
)

// errLog ends the verification of a log of which something is not as written.
var errLog = errors.New("the log is not what was written")

func (a *app) logCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "log",
		Short:   "Check a decision log",
		Example: "  dreamguard log verify decisions.jsonl",
		Args:    args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.logVerifyCommand())
	return cmd
}

func (a *app) logVerifyCommand() *cobra.Command {
	var (
		v      decisionlog.Verifier
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "verify FILE...",
		Short: "Find lines of a decision log that were changed, removed or moved",
		Long: `Verify checks that every line of a decision log is what was written, in its place.
Files that were rotated out of a named one are checked with it, in the order of their
records.

A chain of hashes cannot tell that its end was cut off. Keep the head that verify prints
in another place, and give it with --head next time: the log must still hold it.

Exit code 0: nothing is wrong; 1: something is, or a file cannot be read.`,
		Example: `  dreamguard log verify decisions.jsonl
  dreamguard log verify --head "$(cat /mnt/elsewhere/head)" decisions.jsonl`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			var all []string
			for _, f := range files {
				names, err := decisionlog.Files(f)
				if err != nil {
					return err
				}
				all = append(append(all, names...), f) // f again, if only for the error about one that is not there
			}
			slices.Sort(all)
			r, err := v.Files(slices.Compact(all)...)
			if err != nil {
				return err
			}
			if asJSON {
				err = a.printJSON(r)
			} else {
				err = a.showLog(r)
			}
			if err == nil && !r.OK() {
				return fmt.Errorf("%w: %d problems", errLog, len(r.Problems)+r.More)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&v.Head, "head", "", "hash of a record, noted earlier, that must stand in the log")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) showLog(r *decisionlog.Report) error {
	w := &errWriter{w: a.stdout}
	for _, p := range r.Problems {
		fmt.Fprintln(w, p)
	}
	if r.More > 0 {
		fmt.Fprintf(w, "and %d more\n", r.More)
	}
	if r.Records == 0 {
		fmt.Fprintln(w, "no records")
	} else {
		fmt.Fprintf(w, "%d records, %d to %d\nhead %s\n", r.Records, r.First, r.Last, r.Head)
	}
	if r.First > 1 {
		fmt.Fprintf(w, "records 1 to %d are in files that were not named\n", r.First-1)
	}
	if r.Recovered > 0 {
		fmt.Fprintf(w, "%d times a line that a kill had cut short was removed\n", r.Recovered)
	}
	if r.Torn > 0 {
		fmt.Fprintf(w, "the last %d bytes are no whole line: a kill cut it short, or it is being written\n", r.Torn)
	}
	if r.OK() && r.Records > 0 {
		fmt.Fprintln(w, "every line is what was written, in its place")
	}
	return w.err
}
