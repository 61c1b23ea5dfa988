package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/scarbench"
	"github.com/dreamguard/dreamguard/scarbench/env"
	"github.com/spf13/cobra"
)

// resultsFile is the name of the results in a folder.
const resultsFile = "results.jsonl"

// scarRun are the flags of scarbench run.
type scarRun struct {
	out                                 string
	agents, defences, cases, conditions []string
	baseURL, model, keyEnv              string
	temperature                         float64
	window, repetitions, workers        int
	timeout                             time.Duration
	asJSON                              bool
}

func (a *app) scarRunCommand() *cobra.Command {
	var o scarRun
	names := make([]string, 0, len(scarbench.Defences()))
	for _, d := range scarbench.Defences() {
		names = append(names, d.Name)
	}
	cmd := &cobra.Command{
		Use:   "run --out DIR (--agent NAME,... | --base-url URL --model NAME)",
		Short: "Run agents through the cases",
		Long: `Run puts agents through the cases behind each defence and adds one line a run to
DIR/results.jsonl. What is there already is not run again: after an interruption, or
where an endpoint failed at times, the same command goes on.

Agents are scripted (` + strings.Join(scarbench.ScriptedNames(), ", ") + `), to see what
reaches an agent's view, or a language model behind an OpenAI-compatible endpoint. Memory
defences have a model write for them where there is one, and else a deterministic form.`,
		Example: `  dreamguard scarbench run --agent forgetful,bounded,compacting --repetitions 1 --out runs/scar
  dreamguard scarbench run --base-url http://127.0.0.1:11434/v1 --model qwen3:8b --defence none,bm25 --out runs/qwen`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.scarRun(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.out, "out", "", "folder of the results, to make or go on with")
	f.StringSliceVar(&o.agents, "agent", nil, "scripted agents: "+strings.Join(scarbench.ScriptedNames(), ", "))
	f.StringSliceVar(&o.defences, "defence", nil, "defences, all if left out: "+strings.Join(names, ", "))
	f.StringSliceVar(&o.cases, "case", nil, "cases or domains, all if left out")
	f.StringSliceVar(&o.conditions, "condition", nil, "conditions, all if left out")
	f.StringVar(&o.baseURL, "base-url", "", "base URL of an OpenAI-compatible endpoint")
	f.StringVar(&o.model, "model", "", "model at that endpoint")
	f.StringVar(&o.keyEnv, "key-env", "", "environment variable with the API key")
	f.Float64Var(&o.temperature, "temperature", scarbench.Temperature, "sampling temperature")
	f.DurationVar(&o.timeout, "timeout", 2*time.Minute, "longest time of one request")
	f.IntVar(&o.window, "window", 0, fmt.Sprintf("memory of the agents bounded and compacting, in tokens (%d, %d)", scarbench.DefaultWindow, scarbench.DefaultCompact))
	f.IntVar(&o.repetitions, "repetitions", scarbench.Repetitions, "runs of each instance; scripted agents do the same each time")
	f.IntVar(&o.workers, "workers", 0, "runs at the same time; as many as processors if left out")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

// build turns the flags into what is run.
func (o scarRun) build() ([]scarbench.Agent, scarbench.Options, error) {
	opts := scarbench.Options{Repetitions: o.repetitions, Workers: o.workers, Conditions: scarbench.Conditions()}
	var agents []scarbench.Agent
	switch {
	case o.out == "":
		return nil, opts, usagef("run: name the folder of the results with --out DIR")
	case (len(o.agents) == 0) == (o.model == ""):
		return nil, opts, usagef("run: give either --agent or --model")
	case o.repetitions < 1 || o.repetitions > 1000:
		return nil, opts, usagef("run: --repetitions %d: want 1 to 1000", o.repetitions)
	case o.workers < 0 || o.workers > 1000:
		return nil, opts, usagef("run: --workers %d: want up to 1000", o.workers)
	}
	for _, name := range o.agents {
		agent, err := scarbench.Scripted(name, o.window)
		if err != nil {
			return nil, opts, usagef("run: --agent: %v", err)
		}
		agents = append(agents, agent)
	}
	if o.model != "" {
		e := scarbench.EndpointOptions{BaseURL: o.baseURL, Model: o.model, Temperature: o.temperature, Timeout: o.timeout}
		if o.keyEnv != "" {
			if e.Key = os.Getenv(o.keyEnv); e.Key == "" {
				return nil, opts, usagef("run: --key-env: %s is not set", o.keyEnv)
			}
		}
		agent, err := scarbench.Endpoint(e)
		if err != nil {
			return nil, opts, usagef("run: %v", err)
		}
		agents = append(agents, agent)
	}
	if opts.Defences = scarbench.Defences(); len(o.defences) > 0 {
		opts.Defences = nil
		for _, name := range o.defences {
			d, err := scarbench.FindDefence(name)
			if err != nil {
				return nil, opts, usagef("run: --defence: %v", err)
			}
			opts.Defences = append(opts.Defences, d)
		}
	}
	if len(o.conditions) > 0 {
		var err error
		if opts.Conditions, err = scarConditions(o.conditions); err != nil {
			return nil, opts, err
		}
	}
	var err error
	opts.Cases, err = scarCases(o.cases)
	return agents, opts, err
}

// scarCases reads names of cases and domains.
func scarCases(names []string) ([]*scarbench.Case, error) {
	if len(names) == 0 {
		return scarbench.Cases(), nil
	}
	chosen := map[string]bool{}
	for _, name := range names {
		if slices.Contains(env.Domains(), env.Domain(name)) {
			chosen[name] = true
			continue
		}
		if _, err := scarbench.Find(name); err != nil {
			return nil, usagef("run: --case: %v", err)
		}
		chosen[name] = true
	}
	var out []*scarbench.Case
	for _, c := range scarbench.Cases() {
		if chosen[c.ID] || chosen[string(c.Domain)] {
			out = append(out, c)
		}
	}
	return out, nil
}

func (a *app) scarRun(ctx context.Context, o scarRun) (err error) {
	agents, opts, err := o.build()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	path := filepath.Join(o.out, resultsFile)
	results, err := scarbench.OpenResults(path)
	if err != nil {
		return err
	}
	var all scarbench.Tally
	for _, agent := range agents {
		opts.Agent = agent
		task := a.progress().Start("scarbench "+agent.Name(), len(opts.Cases)*len(opts.Defences)*len(opts.Conditions)*opts.Repetitions)
		last := 0
		opts.Progress = func(done, _ int) { task.Add(done - last); last = done }
		var tally scarbench.Tally
		tally, err = scarbench.Run(ctx, results, opts)
		task.Done()
		all.Known += tally.Known
		all.Done += tally.Done
		all.Failed += tally.Failed
		if all.First == nil {
			all.First = tally.First
		}
		if err != nil {
			break
		}
	}
	if err := errors.Join(err, results.Close()); err != nil {
		return err
	}
	report, err := scarReport([]string{o.out})
	if errors.Is(err, scarbench.ErrNoResults) && all.First != nil {
		return fmt.Errorf("all %d runs failed: %w", all.Failed, all.First)
	}
	if err != nil {
		return err
	}
	if err := a.printScar(report, o.asJSON); err != nil {
		return err
	}
	if all.Failed > 0 {
		return fmt.Errorf("%d runs failed and have no result, run the same command again: %w", all.Failed, all.First)
	}
	return nil
}

// scarReport reads the results of folders.
func scarReport(dirs []string) (*scarbench.Report, error) {
	var all []scarbench.Record
	for _, dir := range dirs {
		path := filepath.Join(dir, resultsFile)
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", dir, scarbench.ErrNoResults)
		}
		if err != nil {
			return nil, err
		}
		records, err := scarbench.ReadResults(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, records...)
	}
	return scarbench.NewReport(all, 1)
}

func (a *app) scarReportCommand() *cobra.Command {
	var (
		out    string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "report DIR...",
		Short: "Make tables of results",
		Long: `Report reads the results of one or more folders and prints outcomes, GHOST and DiD with
95 % intervals. With --out it also writes report.json and report.html.`,
		Example: "  dreamguard scarbench report runs/scar --out runs/scar",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, dirs []string) error {
			r, err := scarReport(dirs)
			if err != nil {
				return err
			}
			if out != "" {
				if err := os.MkdirAll(out, 0o755); err != nil {
					return err
				}
				b, err := json.MarshalIndent(r, "", "  ")
				if err != nil {
					return err
				}
				if err := atomicfile.WriteFile(filepath.Join(out, "report.json"), append(b, '\n')); err != nil {
					return err
				}
				if err := atomicfile.Write(filepath.Join(out, "report.html"), func(w io.Writer) error { return r.HTML(w) }); err != nil {
					return err
				}
			}
			return a.printScar(r, asJSON)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder for report.json and report.html")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// printScar prints the first table of a report.
func (a *app) printScar(r *scarbench.Report, asJSON bool) error {
	if asJSON {
		return a.printJSON(r)
	}
	percent := func(i scarbench.Interval) string {
		if !i.Valid {
			return "-"
		}
		return fmt.Sprintf("%.1f", 100*i.Value)
	}
	t := a.table()
	t.row("agent", "defence", "SC SE", "SC SI", "SC LE", "SC LI", "UC LI", "GHOST", "95 %", "DiD", "runs")
	for _, row := range r.Rows {
		title, interval, runs := row.Title, "", fmt.Sprint(row.Runs)
		if row.Oracle {
			title += " *"
		}
		if row.GHOST.Valid {
			interval = fmt.Sprintf("%.1f-%.1f", 100*row.GHOST.Low, 100*row.GHOST.High)
		}
		if row.Missing > 0 {
			runs += fmt.Sprintf(" (%d missing)", row.Missing)
		}
		cells := []string{row.Agent, title}
		for _, c := range row.Conditions {
			cells = append(cells, percent(c.Safe))
		}
		t.row(append(cells, percent(row.Conditions[len(row.Conditions)-1].Unsafe), percent(row.GHOST), interval, percent(row.DiD), runs)...)
	}
	return t.flush()
}
