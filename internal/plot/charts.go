package plot

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
)

// Operating is the point on a ROC curve where a guard works.
type Operating struct {
	FPR, Recall float64
}

var shares = []float64{0, 0.2, 0.4, 0.6, 0.8, 1}

// ROC draws recall over the false positive rate. at may be nil.
func ROC(title string, fpr, recall []float64, at *Operating) Chart {
	c := Chart{
		Title: title, Width: 300, Height: 280, LegendBottom: true,
		X: Axis{Label: "false positive rate", Max: 1, At: shares}, Y: Axis{Label: "recall on unsafe runs", Max: 1, At: shares},
		Series: []Series{
			{X: []float64{0, 1}, Y: []float64{0, 1}, Color: Grey, Dashed: true},
			{X: fpr, Y: recall, Color: Blue},
		},
	}
	if at != nil && !math.IsNaN(at.FPR) && !math.IsNaN(at.Recall) {
		c.Series = append(c.Series, Series{Name: "at the thresholds", X: []float64{at.FPR}, Y: []float64{at.Recall}, Color: Red, Dots: true})
	}
	return c
}

// Reliability draws how often something happened over the probability that was
// given for it.
func Reliability(title string, predicted, observed []float64) Chart {
	return Chart{
		Title: title, Width: 300, Height: 280,
		X: Axis{Label: "hazard probability given", Max: 1, At: shares}, Y: Axis{Label: "share of steps that were the hazard", Max: 1, At: shares},
		Series: []Series{
			{X: []float64{0, 1}, Y: []float64{0, 1}, Color: Grey, Dashed: true},
			{X: predicted, Y: observed, Color: Blue, Both: true},
		},
	}
}

// Meaning draws the bounds of a probability over the score that it belongs to.
func Meaning(title string, score, low, high []float64) Chart {
	return Chart{
		Title: title, Width: 300, Height: 280, LegendBottom: true,
		X: Axis{Label: "highest risk of the run", Max: 1, At: shares}, Y: Axis{Label: "probability that it is unsafe", Max: 1, At: shares},
		Series: []Series{
			{Name: "at most", X: score, Y: high, Color: Red},
			{Name: "at least", X: score, Y: low, Color: Blue},
		},
	}
}

// Timeline is one run, step by step.
type Timeline struct {
	Title       string
	Tools       []string  // one per step; "" is a message
	Hazard      []float64 // p_haz
	Risk        []float64 // S
	Block, Hold float64   // thresholds; +Inf for off
	FirstHazard int       // negative if there is none
}

// labelRoom is the distance, in scores, from which on two labels of lines do not
// meet.
const labelRoom = 0.15

// Scores draws hazard probability and risk of a run over its steps, with both
// thresholds.
func Scores(t Timeline) Chart {
	n := len(t.Tools)
	ticks := make([]string, n)
	xs := make([]float64, n)
	for i, tool := range t.Tools {
		xs[i] = float64(i)
		ticks[i] = fmt.Sprintf("%d %s", i, tool)
		if tool == "" {
			ticks[i] = fmt.Sprintf("%d (message)", i)
		}
	}
	c := Chart{
		Title: t.Title, Width: 640, Height: 260, LegendLeft: true,
		X: Axis{Ticks: ticks}, Y: Axis{Label: "score", Max: 1.3, At: shares}, // room for the legend
		Series: []Series{
			{Name: "risk S", X: xs, Y: t.Risk, Color: Blue, Both: true},
			{Name: "hazard p", X: xs, Y: t.Hazard, Color: Orange, Both: true},
		},
	}
	line := func(name string, y, other float64, color Color) {
		if math.IsInf(y, 0) || math.IsNaN(y) {
			return
		}
		s := Series{Name: name, X: []float64{-0.5, float64(n) - 0.5}, Y: []float64{y, y}, Color: color, Dashed: true, Label: true}
		// Labels of lines that are close keep clear of each other: the lower
		// one's goes below its line, or to the other end where the axis is.
		if lower := y < other || y == other && color == Blue; lower && other-y < labelRoom {
			s.Below, s.First = y >= labelRoom/2, y < labelRoom/2
		}
		c.Series = append(c.Series, s)
	}
	line("HOLD from here (S)", t.Hold, t.Block, Blue)
	line("BLOCK from here (p)", t.Block, t.Hold, Orange)
	if t.FirstHazard >= 0 && t.FirstHazard < n {
		x := float64(t.FirstHazard)
		c.Series = append(c.Series, Series{Name: "first hazard", X: []float64{x, x}, Y: []float64{0, 1.06}, Color: Red, Label: true})
	}
	return c
}

// maxLossPoints bounds the points of one loss curve: longer ones are averaged.
const maxLossPoints = 300

// maxLine bounds one line of metrics.jsonl.
const maxLine = 1 << 20

// Loss reads metrics.jsonl, one {"stage", "step", "terms": {name: value}} per
// line, and draws the terms of each stage, ascending. Lines without terms, values
// that are not numbers and terms that are always zero are left out.
func Loss(r io.Reader) ([]Chart, error) {
	type curve struct{ x, y []float64 }
	stages := map[int]map[string]*curve{}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	for n := 1; sc.Scan(); n++ {
		if len(sc.Bytes()) == 0 {
			continue
		}
		var rec struct {
			Stage int                 `json:"stage"`
			Step  float64             `json:"step"`
			Terms map[string]*float64 `json:"terms"`
		}
		if err := json.Unmarshal(sc.Bytes(), &rec); err != nil {
			return nil, fmt.Errorf("metrics line %d: %w", n, err)
		}
		for name, v := range rec.Terms {
			if v == nil {
				continue
			}
			if stages[rec.Stage] == nil {
				stages[rec.Stage] = map[string]*curve{}
			}
			c := stages[rec.Stage][name]
			if c == nil {
				c = &curve{}
				stages[rec.Stage][name] = c
			}
			c.x, c.y = append(c.x, rec.Step), append(c.y, *v)
		}
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	var out []Chart
	for _, stage := range slices.Sorted(maps.Keys(stages)) {
		c := Chart{Title: fmt.Sprintf("Stage %d", stage), Width: 520, LegendOutside: true, X: Axis{Label: "step"}, Y: Axis{Label: "loss"}}
		for _, name := range slices.Sorted(maps.Keys(stages[stage])) {
			v := stages[stage][name]
			if !slices.ContainsFunc(v.y, func(y float64) bool { return y != 0 }) {
				continue // a term that is switched off
			}
			i := len(c.Series)
			x, y := average(v.x, v.y, maxLossPoints)
			c.Series = append(c.Series, Series{Name: name, X: x, Y: y, Color: Color(i % (int(Grey) + 1)), Dashed: i > int(Grey)})
		}
		out = append(out, c)
	}
	return out, nil
}

// average reduces a curve to at most limit points, each the mean of its
// neighbours.
func average(x, y []float64, limit int) (ax, ay []float64) {
	if len(x) <= limit {
		return x, y
	}
	for k := range limit {
		lo, hi := k*len(x)/limit, (k+1)*len(x)/limit
		var sx, sy float64
		for i := lo; i < hi; i++ {
			sx, sy = sx+x[i], sy+y[i]
		}
		ax, ay = append(ax, sx/float64(hi-lo)), append(ay, sy/float64(hi-lo))
	}
	return ax, ay
}
