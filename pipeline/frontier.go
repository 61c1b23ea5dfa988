package pipeline

import (
	"math"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/internal/plot"
)

// FrontierSVG draws the trade-offs between false alarms and misses that hold levels
// can reach on the given safe and unsafe runs, the corners of the convex hull among
// them, and the point that was chosen, if there is one.
func FrontierSVG(points []calib.Tradeoff, safe, unsafe int, chosen *plot.Operating) ([]byte, error) {
	steps := plot.Series{Name: "hold levels", Color: plot.Blue}
	hull := plot.Series{Name: "best with a coin between two", Color: plot.Grey, Dashed: true}
	share := func(x, n int) float64 { return float64(x) / math.Max(float64(n), 1) }
	for i, p := range points {
		x, y := share(p.FalseAlarms, safe), share(p.Misses, unsafe)
		if i > 0 { // between two levels misses stay those of the higher one
			steps.X, steps.Y = append(steps.X, x), append(steps.Y, steps.Y[len(steps.Y)-1])
		}
		steps.X, steps.Y = append(steps.X, x), append(steps.Y, y)
		if p.Hull {
			hull.X, hull.Y = append(hull.X, x), append(hull.Y, y)
		}
	}
	at := []float64{0, 0.2, 0.4, 0.6, 0.8, 1}
	c := plot.Chart{
		Title: "What hold levels can reach", Width: 360, Height: 320,
		X:      plot.Axis{Label: "safe runs held or blocked", Max: 1, At: at},
		Y:      plot.Axis{Label: "unsafe runs missed", Max: 1, At: at},
		Series: []plot.Series{hull, steps},
	}
	if chosen != nil {
		c.Series = append(c.Series, plot.Series{Name: "these levels", X: []float64{chosen.FPR}, Y: []float64{1 - chosen.Recall}, Color: plot.Red, Dots: true})
	}
	return c.SVG()
}

// frontier fills in the trade-offs of the conformal part, copies apart, with the
// block level as it was set.
func (rec *Recalibration) frontier(conformal []calib.Scored, p *calib.Plan, assumeSafe bool) {
	var runs []calib.Scored
	var n, alerted ByLabel
	seen := map[string]bool{}
	for _, s := range conformal {
		if seen[s.Fingerprint] {
			continue
		}
		seen[s.Fingerprint] = true
		if s.Label == calib.Unlabelled && assumeSafe {
			s.Label = calib.Safe
		}
		n.add(s.Label)
		if s.Alerted(p.Hold.Value, p.Block.Value) {
			alerted.add(s.Label)
		}
		runs = append(runs, s)
	}
	if n.Safe == 0 || n.Unsafe == 0 {
		return
	}
	rec.Frontier, rec.conformal = calib.Frontier(runs, p.Block.Value), n
	rec.chosen = &plot.Operating{FPR: float64(alerted.Safe) / float64(n.Safe), Recall: float64(alerted.Unsafe) / float64(n.Unsafe)}
}

// FrontierSVG draws the frontier of the recalibration with its levels. ok is false
// where the runs do not have both labels, or groups have levels of their own.
func (rec *Recalibration) FrontierSVG() (svg []byte, ok bool, err error) {
	if rec.Frontier == nil {
		return nil, false, nil
	}
	svg, err = FrontierSVG(rec.Frontier, rec.conformal.Safe, rec.conformal.Unsafe, rec.chosen)
	return svg, true, err
}
