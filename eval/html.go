package eval

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/internal/plot"
	"github.com/dreamguard/dreamguard/verdict"
)

//go:embed report.tmpl
var reportTemplate string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"figure": figure, "count": count, "span": span, "printable": printable, "prose": prose,
	"short": func(s string) string {
		if len(s) > 16 {
			return s[:16] + "…"
		}
		return s
	},
	"level": calib.FormatLevel,
}).Parse(reportTemplate))

// view is what the template reads.
type view struct {
	Report
	Rows     []SetResult // with figures
	NotRun   []SetResult
	Compared []comparison
	Charts   []chartRow
	Parts    []part
	Stories  []story
}

type comparison struct {
	Set   string
	Guard cell
	Cells []cell
}

type cell struct {
	Result *SetResult
	Best   bool // highest AUROC of the row
}

type chartRow struct {
	Set  string
	SVG  []template.HTML
	ECE  Num
	None bool
}

// part is one breakdown table.
type part struct {
	Set, Field string
	Lines      []partLine
}

type partLine struct {
	Value string
	Slice Slice
}

type story struct {
	Example
	SVG   template.HTML
	Steps []storyStep
}

type storyStep struct {
	Index        int
	Tool         string
	Hazard, Risk string
	Decision     verdict.Decision
	IsHazard     bool
	Message      bool
}

// WriteHTML writes report.html: one file without scripts or outside resources.
func (r Report) WriteHTML(w io.Writer) error {
	r.Schema = Schema
	v := view{Report: r}
	for _, s := range r.Sets {
		if s.NotRun != "" {
			v.NotRun = append(v.NotRun, s)
			continue
		}
		v.Rows = append(v.Rows, s)
		if err := v.addSet(s); err != nil {
			return err
		}
	}
	for _, e := range r.Examples {
		if err := v.addExample(e); err != nil {
			return err
		}
	}
	if err := page.Execute(w, v); err != nil {
		return fmt.Errorf("eval: report.html: %w", err)
	}
	return nil
}

func (v *view) addSet(s SetResult) error {
	if len(v.Baselines) > 0 && !strings.HasSuffix(s.Name, RecalibratedSuffix) {
		c := comparison{Set: s.Name, Guard: cell{Result: &s}}
		best := &c.Guard
		for _, m := range v.Baselines {
			c.Cells = append(c.Cells, cell{Result: find(m.Sets, s.Name)})
		}
		for i := range c.Cells {
			if x := c.Cells[i].Result; x != nil && x.AUROC.OK() && (!best.Result.AUROC.OK() || x.AUROC > best.Result.AUROC) {
				best = &c.Cells[i]
			}
		}
		best.Best = best.Result.AUROC.OK()
		v.Compared = append(v.Compared, c)
	}
	if s.Curves != nil {
		row := chartRow{Set: s.Name, ECE: s.Curves.ECE}
		var charts []plot.Chart
		if len(s.Curves.ROC) > 0 {
			x, y := points(s.Curves.ROC)
			charts = append(charts, plot.ROC("ROC", x, y, &plot.Operating{FPR: float64(s.FPR), Recall: float64(s.SR)}))
		}
		if len(s.Curves.Reliability) > 0 {
			var p, rate []float64
			for _, b := range s.Curves.Reliability {
				p, rate = append(p, b.P), append(rate, b.Rate)
			}
			charts = append(charts, plot.Reliability("Reliability of the hazard probability", p, rate))
		}
		if len(s.Curves.Meaning) > 0 {
			var risk, p0, p1 []float64
			for _, m := range s.Curves.Meaning {
				risk, p0, p1 = append(risk, m.Risk), append(p0, m.P0), append(p1, m.P1)
			}
			charts = append(charts, plot.Meaning("What a run's risk means here", risk, p0, p1))
		}
		for _, c := range charts {
			svg, err := c.SVG()
			if err != nil {
				return fmt.Errorf("eval: report.html: set %q: %w", s.Name, err)
			}
			row.SVG = append(row.SVG, template.HTML(svg)) // written by internal/plot, which escapes all text
		}
		row.None = len(charts) == 0
		v.Charts = append(v.Charts, row)
	}
	for _, field := range slices.Sorted(maps.Keys(s.By)) {
		p := part{Set: s.Name, Field: field}
		for _, value := range slices.Sorted(maps.Keys(s.By[field])) {
			p.Lines = append(p.Lines, partLine{value, s.By[field][value]})
		}
		v.Parts = append(v.Parts, p)
	}
	return nil
}

func (v *view) addExample(e Example) error {
	n := len(e.Tools)
	if len(e.Hazard) != n || len(e.Risk) != n || len(e.Decisions) != n {
		return fmt.Errorf("eval: report.html: example %q has %d tools, %d hazard and %d risk scores and %d decisions: want one of each per step", e.ID, n, len(e.Hazard), len(e.Risk), len(e.Decisions))
	}
	t := plot.Timeline{Tools: e.Tools, Hazard: e.Hazard, Risk: e.Risk, Block: math.Inf(1), Hold: math.Inf(1), FirstHazard: -1}
	if v.Thresholds != nil {
		t.Block, t.Hold = v.Thresholds.Block.Value, v.Thresholds.Hold.Value
	}
	if e.FirstHazard != nil {
		t.FirstHazard = *e.FirstHazard
	}
	svg, err := plot.Scores(t).SVG()
	if err != nil {
		return fmt.Errorf("eval: report.html: example %q: %w", e.ID, err)
	}
	s := story{Example: e, SVG: template.HTML(svg)} // written by internal/plot, which escapes all text
	for i, tool := range e.Tools {
		s.Steps = append(s.Steps, storyStep{
			Index: i, Tool: printable(tool), Hazard: fmt.Sprintf("%.4f", e.Hazard[i]), Risk: fmt.Sprintf("%.4f", e.Risk[i]),
			Decision: e.Decisions[i], IsHazard: e.Label == data.Unsafe && i == t.FirstHazard, Message: tool == "",
		})
	}
	v.Stories = append(v.Stories, s)
	return nil
}

// prose is printable text in which `this` is code.
func prose(s string) template.HTML {
	var b strings.Builder
	parts := strings.Split(printable(s), "`")
	for i, part := range parts {
		text := template.HTMLEscapeString(part)
		switch {
		case i%2 == 0:
			b.WriteString(text)
		case i == len(parts)-1: // a backtick without its end
			b.WriteString("`" + text)
		default:
			b.WriteString("<code>" + text + "</code>")
		}
	}
	return template.HTML(b.String()) // all text in it is escaped above
}

func points(p []Point) (x, y []float64) {
	for _, q := range p {
		x, y = append(x, q.X), append(y, q.Y)
	}
	return x, y
}
