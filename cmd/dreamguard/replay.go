package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/dreamguard/dreamguard/internal/oneline"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) replayCommand() *cobra.Command {
	var (
		o           pipeline.ReplayOptions
		out         string
		asJSON      bool
		source      func() error
		checkFormat func() error
	)
	cmd := &cobra.Command{
		Use:   "replay --artifact DIR --traces FILE...",
		Short: "Show what a guard would have stopped in recorded runs",
		Long: `Replay runs recorded runs, which need no labels, through a calibrated artifact: which
calls would have been held or blocked, by tool and reason, how long a verdict takes, the
share of runs that would have been disturbed with its interval, and the ten runs most
worth reading. Files are streamed.`,
		Example: `  dreamguard replay --artifact runs/p1/artifact --traces last-week.jsonl --out report
  dreamguard replay --artifact runs/p1/artifact --traces last-week.jsonl --log decisions.jsonl`,
		Args: args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, more []string) error {
			o.Files = append(o.Files, more...) // --traces FILE FILE...
			switch {
			case o.Artifact == "":
				return usagef("replay: name the artifact with --artifact DIR")
			case len(o.Files) == 0:
				return usagef("replay: name the recorded runs with --traces FILE...")
			}
			if err := cmp.Or(checkFormat(), source()); err != nil {
				return err
			}
			o.Progress = a.progress()
			r, err := pipeline.Replay(cmd.Context(), o)
			if err != nil {
				return err
			}
			if out != "" {
				if err := r.Save(out); err != nil {
					return err
				}
			}
			if asJSON {
				return a.printJSON(r)
			}
			return a.showReplay(r, out)
		},
	}
	source = encoderFlags(cmd, &o.Encoder)
	f := cmd.Flags()
	f.StringVar(&o.Artifact, "artifact", "", "artifact folder, or an uncompressed tar of it; default: the one in the program")
	f.StringVar(&o.Calibration, "calibration", "", "calibration.json to use instead of the artifact's own")
	f.StringArrayVar(&o.Files, "traces", nil, "`FILE` of recorded runs, in any format of import; may be repeated, and more files may follow")
	checkFormat = formatFlag(cmd, &o.Format, "import format of the traces; detected if left out")
	f.StringVar(&out, "out", "", "folder for replay.json and replay.html")
	f.StringVar(&o.Log, "log", "", "new `FILE` for a decision log, as dreamguard monitor reads it")
	jsonFlag(cmd, &asJSON)
	return cmd
}

const toolsShown = 20

func (a *app) showReplay(r *pipeline.ReplayReport, out string) error {
	w := &errWriter{w: a.stdout}
	p := func(format string, args ...any) { fmt.Fprintf(w, format, args...) }
	p("%d runs, %d without a tool call, %d copies; %d calls\n", r.Runs, r.Uncalled, r.Copies, r.Calls)
	p("alert rate %.2f %% of runs, 95 %% interval %.2f to %.2f %%: %d held, %d blocked\n", 100*r.AlertRate, 100*r.AlertLower, 100*r.AlertUpper, r.RunsHeld, r.RunsBlocked)
	p("calls: %d held, %d blocked\n", r.Held, r.Blocked)
	p("verdict: %.2f ms median, %.2f ms 90 %%, %.2f ms 99 %%, %.2f ms at most, with all cores at work\n\n", r.Latency.P50, r.Latency.P90, r.Latency.P99, r.Latency.Max)
	for _, s := range r.Promise {
		p("%s\n", oneline.Of(s, 1000))
	}
	p("\n")
	t := a.table()
	if len(r.Reasons) > 0 {
		t.row("reason", "held", "blocked")
		for _, s := range r.Reasons {
			t.row(s.Reason, strconv.Itoa(s.Held), strconv.Itoa(s.Blocked))
		}
		t.row("")
	}
	t.row("tool", "calls", "held", "blocked")
	for _, s := range r.Tools[:min(len(r.Tools), toolsShown)] {
		t.row(oneline.Of(s.Tool, 50), strconv.Itoa(s.Calls), strconv.Itoa(s.Held), strconv.Itoa(s.Blocked))
	}
	if w.err == nil {
		w.err = t.flush()
	}
	if n := len(r.Tools) - toolsShown; n > 0 {
		p("and %d more tools\n", n)
	}
	p("\nRuns most worth reading\n")
	for _, s := range r.Read {
		p("  %-5s risk %.4f  %s  %s\n", s.Decision, s.Risk, oneline.Of(s.ID, 80), oneline.Of(s.Task, 100))
	}
	if out != "" {
		p("\nreport: %s\n", filepath.Join(out, "replay.html"))
	}
	return w.err
}
