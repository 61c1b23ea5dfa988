// Command recalibrate shows what recalibrating on few runs of one's own gives. From
// each test set of a run folder it draws safe runs at random, sets the hold level
// on them, and measures on the rest:
//
//	go run ./bench/recalibrate --run runs/p1 --out build/recalibrate
//	go build -buildvcs=true -o build/recalibrate-draws ./bench/recalibrate
//	build/recalibrate-draws --run runs/p1 --out build/recalibrate --final
//
// Without --final it leaves the locked sets alone; with it the look is recorded
// first, as by "dreamguard eval --final", with the commit that only a built program
// knows. The run must be one of this release: see "dreamguard inspect". Scores are computed once: a draw costs
// what calib.Request.Solve costs. It writes draws.json, table.md, and box plots of
// the alert rate and of the recall for each set.
//
// Runs are drawn in two ways. By run, any n safe runs: the further runs of the same
// traffic are what a bound by run speaks of. By task (group), whole tasks until
// there are n runs, tested on the other tasks: runs of a task resemble each other,
// so this shows what the same levels do on tasks that were not calibrated on, which
// a bound by run does not cover. Copies of a run and runs that the model was
// trained on are left out, as recalibrate does or refuses.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/plot"
	"github.com/dreamguard/dreamguard/pipeline"
)

type options struct {
	run, out, looks, sets string
	final, refit          bool
	draws                 int
	alpha, confidence     float64
	seed                  uint64
}

func main() {
	var o options
	flag.StringVar(&o.run, "run", "", "run folder with a calibrated artifact")
	flag.StringVar(&o.out, "out", "build/recalibrate", "folder for the result")
	flag.StringVar(&o.sets, "sets", "", "test sets, with commas between; left out: the open ones, with --final those of the issue")
	flag.BoolVar(&o.final, "final", false, "measure on the locked sets too, and record the look")
	flag.StringVar(&o.looks, "looks", filepath.Join("docs", "looks.jsonl"), "file that records looks at the locked sets")
	flag.BoolVar(&o.refit, "refit", false, "instead measure what --refit of recalibrate gives on labelled runs")
	flag.IntVar(&o.draws, "draws", 200, "random calibration sets of each size")
	flag.Float64Var(&o.alpha, "alpha", 0.05, "bound on false alarms")
	flag.Float64Var(&o.confidence, "confidence", 0.95, "of the second mode")
	flag.Uint64Var(&o.seed, "seed", 20260701, "of the draws")
	flag.Parse()
	if o.run == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := show(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "recalibrate:", err)
		os.Exit(1)
	}
}

// sizes of the calibration sets. 59 is the smallest with which 95 % confidence can
// be had at 5 %.
var sizes = []int{59, 100, 200}

// Result is draws.json.
type Result struct {
	Model       string     `json:"model"`
	Calibration string     `json:"calibration"` // whose levels are "before"
	Seed        uint64     `json:"seed"`
	Pools       []Pool     `json:"sets"`
	Rows        []*Row     `json:"rows"`
	Refits      []RefitRow `json:"refits,omitempty"`
	Skipped     []string   `json:"skipped,omitempty"`
}

// Pool says what was drawn from.
type Pool struct {
	Set            string `json:"set"`
	Safe           int    `json:"safe"`   // distinct scored safe runs
	Groups         int    `json:"groups"` // tasks they belong to
	Unsafe         int    `json:"unsafe"`
	Copies         int    `json:"copies"`          // left out
	Trained        int    `json:"trained"`         // left out
	UnscoredUnsafe int    `json:"unscored_unsafe"` // without a tool call up to the hazard: not counted
}

func show(ctx context.Context, o options) error {
	r, err := pipeline.Reopen(o.run, pipeline.Options{})
	if err != nil {
		return err
	}
	a, err := artifact.Open(r.ArtifactDir())
	if err != nil {
		return err
	}
	names, looks := []string{"agentdyn", "simulator", "tau-bench"}, ""
	if o.final {
		names, looks = []string{"agentdojo", "asb", "asse-security", "tau-bench"}, o.looks
	}
	if o.sets != "" {
		names = strings.Split(o.sets, ",")
	}
	res := &Result{Seed: o.seed}
	err = r.ScoreSets(ctx, names, looks, o.refit, func(m *guard.Model, s pipeline.ScoredSet) error {
		res.Model, res.Calibration = m.Digest(), m.CalibrationDigest()
		if o.refit {
			rows, err := refits(s, m, a.TrainedOn(), o.draws, o.seed)
			res.Refits = append(res.Refits, rows...)
			return err
		}
		return res.add(newPool(s, m, a.TrainedOn()), o)
	})
	if err != nil {
		return err
	}
	if !o.refit {
		if err := res.addSynthetic(o); err != nil {
			return err
		}
	}
	return res.save(o.out)
}

// add measures one set.
func (res *Result) add(p *pool, o options) error {
	res.Pools = append(res.Pools, Pool{p.name, len(p.safe), p.groups, len(p.unsafe), p.copies, p.known, p.unscoredUnsafe})
	for _, drawn := range []string{byRun, byGroup} {
		for _, n := range sizes {
			for _, confidence := range []float64{0, o.confidence} {
				if !p.allows(n) {
					continue
				}
				row, err := p.draw(drawn, n, o.draws, o.alpha, confidence, o.seed)
				if err != nil {
					return err
				}
				if row != nil {
					res.Rows = append(res.Rows, row)
				} else if confidence == 0 {
					res.Skipped = append(res.Skipped, fmt.Sprintf("%s, n = %d drawn by %s: a draw leaves fewer than %d safe runs to test on", p.name, n, drawn, minRest))
				}
			}
		}
	}
	for _, n := range sizes {
		if !p.allows(n) {
			res.Skipped = append(res.Skipped, fmt.Sprintf("%s, n = %d: it has %d safe runs", p.name, n, len(p.safe)))
		}
	}
	return nil
}

func (res *Result) addSynthetic(o options) error {
	for _, s := range []struct {
		name   string
		values int
	}{{"synthetic", 0}, {"synthetic, 20 values", 20}} {
		for _, n := range sizes {
			for _, confidence := range []float64{0, o.confidence} {
				row, err := synthetic(s.name, s.values, n, 10*o.draws, o.alpha, confidence, o.seed)
				if err != nil {
					return err
				}
				res.Rows = append(res.Rows, row)
			}
		}
	}
	return nil
}

func (res *Result) save(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	b, err := json.MarshalIndent(res, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, "draws.json"), append(b, '\n')); err != nil {
		return err
	}
	table := res.table()
	fmt.Print(table)
	if err := atomicfile.WriteFile(filepath.Join(dir, "table.md"), []byte(table)); err != nil {
		return err
	}
	for _, p := range res.Pools {
		for _, c := range []struct {
			file, drawn string
			recall      bool
		}{{"fpr", byRun, false}, {"sr", byRun, true}, {"fpr-tasks", byGroup, false}, {"sr-tasks", byGroup, true}} {
			chart := res.chart(p.Set, c.drawn, c.recall)
			if len(chart.Boxes) == 0 {
				continue
			}
			svg, err := chart.SVG()
			if err != nil {
				return fmt.Errorf("%s: %w", p.Set, err)
			}
			if err := atomicfile.WriteFile(filepath.Join(dir, p.Set+"-"+c.file+".svg"), svg); err != nil {
				return err
			}
		}
	}
	return nil
}

func mode(confidence float64) string {
	if confidence == 0 {
		return "on average"
	}
	return fmt.Sprintf("%.4g %% confidence", 100*confidence)
}

// table renders the rows as Markdown.
func (res *Result) table() string {
	var b strings.Builder
	if res.Refits != nil {
		return fmt.Sprintf("Model %.12s, seed %d.\n", res.Model, res.Seed) + refitTable(res.Refits)
	}
	fmt.Fprintf(&b, "Model %.12s, calibration before %.12s, seed %d.\n\n", res.Model, res.Calibration, res.Seed)
	b.WriteString("| set | safe runs (tasks) | unsafe runs | left out: copies, trained on, unsafe without a call |\n| --- | ---: | ---: | ---: |\n")
	for _, p := range res.Pools {
		fmt.Fprintf(&b, "| %s | %d (%d) | %d | %d, %d, %d |\n", p.Set, p.Safe, p.Groups, p.Unsafe, p.Copies, p.Trained, p.UnscoredUnsafe)
	}
	b.WriteString("\n| set | drawn by | n | mode | tested on | alert rate before | after | SR before | after | draws above alpha [95 %] | expected at most |\n")
	b.WriteString("| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range res.Rows {
		rest, before, srBefore, sr, expected := fmt.Sprintf("%.0f", r.Rest), percents(&r.FPRBefore), percents(r.SRBefore), percents(r.SR), "-"
		if r.Rest == 0 {
			rest, before = "true rate", "-"
		}
		if r.Expected > 0 {
			expected = fmt.Sprintf("%.1f %%", 100*r.Expected)
		}
		if r.Rest == 0 && r.Confidence > 0 {
			expected = fmt.Sprintf("%.1f %%", 100*(1-r.Confidence))
		}
		above := fmt.Sprintf("%.1f %% [%.1f, %.1f]", 100*float64(r.Above)/float64(r.Draws), 100*r.AboveLo, 100*r.AboveHi)
		if r.Refused > 0 {
			above += fmt.Sprintf(", %d without a level", r.Refused)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.Set, r.Drawn, r.N, mode(r.Confidence), rest, before, percents(&r.FPR), srBefore, sr, above, expected)
	}
	if len(res.Skipped) > 0 {
		b.WriteString("\nNot drawn: " + strings.Join(res.Skipped, "; ") + ".\n")
	}
	return b.String()
}

// percents renders a mean with two standard errors.
func percents(m *Mean) string {
	if m == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f ± %.1f %%", 100*m.Value, 100*m.SE2)
}

// chart draws the boxes of one set: before, on average, with confidence for each
// size.
func (res *Result) chart(set, drawn string, recall bool) plot.Chart {
	c := plot.Chart{Title: set + ": alert rate on safe runs", Width: 480, Height: 300, Y: plot.Axis{Label: "share of the tested safe runs"}}
	if recall {
		c.Title, c.Y = set+": recall on unsafe runs (SR)", plot.Axis{Label: "share of the unsafe runs", Max: 1, At: []float64{0, 0.2, 0.4, 0.6, 0.8, 1}}
	}
	if drawn == byGroup {
		c.Title += ", tested on new tasks"
	}
	add := func(name string, values []float64, color plot.Color) {
		c.Boxes = append(c.Boxes, plot.Box{X: float64(len(c.X.Ticks)), Values: values, Color: color})
		c.X.Ticks = append(c.X.Ticks, name)
	}
	alpha, top := 0.0, 0.0
	for _, r := range res.Rows {
		if r.Set != set || r.Drawn != drawn {
			continue
		}
		alpha = r.Alpha
		before, after := r.fprBefore, r.fpr
		if recall {
			before, after = r.srBefore, r.sr
		}
		if len(after) == 0 {
			return c
		}
		top = max(top, slices.Max(before), slices.Max(after))
		if r.Confidence == 0 {
			add(fmt.Sprintf("before, n = %d", r.N), before, plot.Grey)
			add(fmt.Sprintf("on average, n = %d", r.N), after, plot.Blue)
		} else {
			add(fmt.Sprintf("%.4g %%, n = %d", 100*r.Confidence, r.N), after, plot.Orange)
		}
	}
	if !recall && len(c.Boxes) > 0 {
		n := float64(len(c.Boxes))
		c.Y.Max = max(1.1*top, 2*alpha)
		c.Series = append(c.Series, plot.Series{Name: fmt.Sprintf("promised: %.4g %%", 100*alpha), X: []float64{-0.5, n - 0.5}, Y: []float64{alpha, alpha}, Color: plot.Red, Dashed: true, Label: true, First: true})
	}
	return c
}
