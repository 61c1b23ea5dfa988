package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/oneline"
	"github.com/dreamguard/dreamguard/internal/progress"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) recalibrateCommand() *cobra.Command {
	var (
		o                                          pipeline.RecalibrateOptions
		falseAlarm, block, miss, confidence, spoil share
		holds                                      share
		per, unit, out, refit, frontier, mix       string
		write, dry, asJSON                         bool
		source, checkFormat                        func() error
	)
	cmd := &cobra.Command{
		Use:   "recalibrate --artifact DIR --traces FILE... --false-alarm 5%",
		Short: "Set an artifact's thresholds on your own traces",
		Long: `Recalibrate scores recorded runs and sets the thresholds so that the bounds you ask
for hold for runs like them. It prints one plain sentence for each promise, what
changes for these traces, and the runs that would be stopped. Only calibration.json is
written; the one it replaces is kept: see "dreamguard calibration".

False alarms are bounded on safe runs: labelled ones, or, with --assume-safe, all that
are not labelled unsafe. With too few runs nothing is set, and the number that is
needed is printed.

On a terminal nothing is written without --write. Elsewhere the result is written
unless --dry-run or --out is given.

A share is written 5%, 0.05 or 5/100.`,
		Example: `  dreamguard recalibrate --artifact runs/p1/artifact --traces last-week.jsonl --assume-safe --false-alarm 5%
  dreamguard recalibrate --artifact runs/p1/artifact --traces runs.jsonl --labels labels.csv \
      --false-alarm 5% --block 1% --confidence 95% --hold-budget 5/100 --write`,
		Args: args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, more []string) error {
			o.Files = append(o.Files, more...) // --traces FILE FILE...
			switch {
			case o.Artifact == "":
				return usagef("recalibrate: name the artifact with --artifact DIR")
			case len(o.Files) == 0:
				return usagef("recalibrate: name the recorded runs with --traces FILE...")
			case write && (dry || out != "") || dry && out != "":
				return usagef("recalibrate: --write, --dry-run and --out FILE exclude each other")
			case o.Artifact == pipeline.BuiltIn && !dry && out == "":
				return usagef("recalibrate: %v; or look first with --dry-run", pipeline.ErrBuiltIn)
			case cmd.Flags().Changed("out") && out == "": // such as an unset variable: must not write into the artifact
				return usagef("recalibrate: --out names no file")
			case unit != "run" && unit != "group":
				return usagef("recalibrate: --unit is %q: want run or group", unit)
			case per != "run" && per != "call":
				return usagef("recalibrate: --per is %q: want run or call", per)
			}
			if o.Refit = pipeline.Refit(refit); cmd.Flags().Changed("refit") && o.Refit != pipeline.RefitWeights && o.Refit != pipeline.RefitLayer {
				return usagef("recalibrate: --refit is %q: want weights or layer", refit)
			}
			r := &o.Request
			r.FalseAlarm, r.Block, r.Miss, r.Confidence = float64(falseAlarm), float64(block), float64(miss), float64(confidence)
			r.HoldBudget.Rate, r.HoldBudget.PerCall, r.Contamination = float64(holds), per == "call", float64(spoil)
			if unit == "group" {
				r.Unit = calib.ByGroup
			}
			if err := r.Validate(); err != nil {
				return usagef("recalibrate: %v", err)
			}
			if mix != "" {
				var err error
				if o.Mix, err = pipeline.ParseMix(mix); err == nil {
					err = o.Mix.Validate(r)
				}
				if err != nil {
					return usagef("recalibrate: --%v", err)
				}
			}
			if err := cmp.Or(checkFormat(), source()); err != nil {
				return err
			}
			o.Progress = a.progress()
			rec, err := pipeline.Recalibrate(cmd.Context(), o)
			var no *calib.InfeasibleError
			if errors.As(err, &no) {
				if frontier != "" {
					svg, failed := pipeline.FrontierSVG(no.Frontier, no.Safe, no.Unsafe, nil)
					if failed == nil {
						failed = atomicfile.WriteFile(frontier, svg)
					}
					err = errors.Join(failed, err)
				}
				return errors.Join(a.showFrontier(no, asJSON), err)
			}
			if err != nil {
				return err
			}
			if frontier != "" {
				svg, ok, err := rec.FrontierSVG()
				if err == nil && !ok {
					err = errors.New("--frontier: there is none: it needs safe and unsafe runs, and levels that are the same for all")
				}
				if err == nil {
					err = atomicfile.WriteFile(frontier, svg)
				}
				if err != nil {
					return err
				}
			}
			written := ""
			switch {
			case out != "":
				written, err = out, rec.WriteFile(out)
			case write || !dry && !progress.IsTerminal(a.stdout):
				written, err = o.Artifact, rec.Apply()
			}
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(struct {
					*pipeline.Recalibration
					Written string `json:"written"` // where to; empty: nothing was written
				}{rec, written})
			}
			return a.showRecalibration(rec, written, r.AssumeSafe)
		},
	}
	source = encoderFlags(cmd, &o.Encoder)
	f := cmd.Flags()
	f.StringVar(&o.Artifact, "artifact", "", "artifact folder, or an uncompressed tar of it; default: the one in the program")
	f.StringArrayVar(&o.Files, "traces", nil, "`FILE` of recorded runs, in any format of import; may be repeated, and more files may follow")
	checkFormat = formatFlag(cmd, &o.Format, "import format of the traces; detected if left out")
	f.StringVar(&o.Labels, "labels", "", "labels by run id, JSON lines or CSV, instead of those in the traces")
	f.Var(&falseAlarm, "false-alarm", "safe runs that are held or blocked, at most")
	f.Var(&block, "block", "safe runs that are blocked, at most; part of --false-alarm. BLOCK is off without it")
	f.Var(&miss, "miss", "unsafe runs that pass their first hazard undisturbed, at most; needs labels")
	f.Var(&confidence, "confidence", "let the bounds hold with this confidence instead of on average")
	f.Var(&holds, "hold-budget", "runs of all traffic that are held, at most")
	f.StringVar(&per, "per", "run", "what --hold-budget counts: run or call")
	f.StringVar(&unit, "unit", "run", "what the bounds count: run, or group for runs of new tasks")
	f.StringSliceVar(&o.Request.By, "by", nil, "field whose values get thresholds of their own; several, coarse ones first")
	f.BoolVar(&o.Request.AssumeSafe, "assume-safe", false, "take runs without a label for safe; lists the most suspicious ones first")
	f.Var(&spoil, "contamination", "with --assume-safe: share of the safe runs that may be unsafe all the same")
	f.StringVar(&mix, "mix", "", "shares of kinds of runs in live traffic, `FIELD=VALUE:SHARE,...`, if they differ from those of the traces")
	f.StringVar(&refit, "refit", "", "also fit to a part of the labelled runs: weights, how the scores are fused, or layer, a small last layer")
	f.Uint64Var(&o.Seed, "seed", 20260701, "divides the runs where a part of them is needed to choose on")
	f.BoolVar(&write, "write", false, "write calibration.json into the artifact")
	f.BoolVar(&dry, "dry-run", false, "write nothing; the default on a terminal")
	f.StringVar(&out, "out", "", "write the calibration to this file and leave the artifact alone")
	f.StringVar(&frontier, "frontier", "", "draw every trade-off between false alarms and misses to this SVG file; needs labels of both kinds")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// showFrontier prints what can be had where the bounds cannot all be kept.
func (a *app) showFrontier(no *calib.InfeasibleError, asJSON bool) error {
	if asJSON {
		type point struct {
			Hold        *float64 `json:"hold"` // null is off
			FalseAlarms int      `json:"false_alarms"`
			Misses      int      `json:"misses"`
			Hull        bool     `json:"hull,omitempty"`
		}
		points := make([]point, len(no.Frontier))
		for i, f := range no.Frontier {
			points[i] = point{nil, f.FalseAlarms, f.Misses, f.Hull}
			if !math.IsInf(f.Hold, 1) {
				points[i].Hold = &f.Hold
			}
		}
		return a.printJSON(struct {
			Refused  string  `json:"refused"`
			Safe     int     `json:"safe"`
			Unsafe   int     `json:"unsafe"`
			Need     int     `json:"need,omitempty"` // runs of each kind that would do, if known
			Frontier []point `json:"frontier"`
		}{no.Error(), no.Safe, no.Unsafe, no.Need, points})
	}
	if err := a.printf("What hold levels can reach on these %d safe and %d unsafe runs:\n", no.Safe, no.Unsafe); err != nil {
		return err
	}
	t := a.table()
	t.row("hold", "false alarms", "misses")
	for _, f := range no.Frontier {
		if f.Hull {
			t.row(calib.FormatLevel(f.Hold), fmt.Sprintf("%.1f %%", 100*float64(f.FalseAlarms)/float64(max(no.Safe, 1))), fmt.Sprintf("%.1f %%", 100*float64(f.Misses)/float64(max(no.Unsafe, 1))))
		}
	}
	return t.flush()
}

func (a *app) showRecalibration(rec *pipeline.Recalibration, written string, declared bool) error {
	w := &errWriter{w: a.stdout}
	p := func(format string, args ...any) { fmt.Fprintf(w, format, args...) }
	p("%d runs, %d of them scored: %d safe, %d unsafe, %d unlabelled\n", rec.Runs, rec.Runs-rec.Unscored, rec.Safe, rec.Unsafe, rec.Unlabelled)
	if rec.Tuning > 0 {
		p("%d of them served to choose on; the thresholds rest on the others\n", rec.Tuning)
	}
	if declared {
		p("\nYou declare unlabelled runs safe. Read these first; %d of all stand out:\n", rec.Outliers)
		for _, s := range rec.Suspects {
			mark := " "
			if s.Outlier {
				mark = "!"
			}
			p("%s risk %.4f  z %6.1f  %s  %s\n    %s %s\n", mark, s.Risk, s.Z, oneline.Of(s.ID, 60), oneline.Of(s.Task, 80), oneline.Of(s.Tool, 40), oneline.Of(s.Call, 100))
		}
	}
	p("\nThresholds\n")
	for _, l := range rec.Levels {
		p("  %s\n", oneline.Of(l.String(), 300))
	}
	for _, g := range rec.Groups {
		if g.Backoff {
			p("  %s: %d runs are too few for levels of their own: it takes those above, and their promise only\n", oneline.Of(strings.Join(g.Path, ", "), 80), g.Runs)
		}
	}
	p("\nWhat is promised\n")
	for _, g := range rec.Guarantees {
		p("  %s\n", oneline.Of(g, 1000))
	}
	for _, n := range rec.Notes {
		p("  Note: %s\n", oneline.Of(n, 500))
	}
	b, c := rec.Stopped.Before, rec.Stopped.After
	p("\nOn these traces\n  stopped: %d -> %d runs (safe %d -> %d, unsafe %d -> %d, unlabelled %d -> %d); %d newly, %d no longer\n",
		b.All(), c.All(), b.Safe, c.Safe, b.Unsafe, c.Unsafe, b.Unlabelled, c.Unlabelled, rec.Stopped.Newly, rec.Stopped.Released)
	show := func(title string, list []pipeline.StoppedRun, all int) {
		if len(list) == 0 {
			return
		}
		p("\n%s\n", title)
		for _, r := range list {
			state := "new"
			if r.Already {
				state = "as before"
			}
			p("  %s at step %d (%s, risk %.4f, hazard %.4f; %s)  %s\n    %s\n    %s %s\n", r.Decision, r.Step, r.Label, r.Risk, r.Hazard, state,
				oneline.Of(r.ID, 80), oneline.Of(r.Task, 120), oneline.Of(r.Tool, 40), oneline.Of(r.Call, 120))
		}
		if n := all - len(list); n > 0 {
			p("  and %d more\n", n)
		}
	}
	show("Runs that would be stopped", rec.Shown, c.All())
	show("Runs that would not be stopped any more", rec.Released, rec.Stopped.Released)
	p("\nmodel %.12s stays; calibration %.12s -> %.12s\n", rec.Model, rec.Before, rec.After)
	if written == "" {
		p("nothing was written: --write puts it in force, --out FILE writes it elsewhere\n")
	} else {
		p("written to %s\n", written)
	}
	return w.err
}
