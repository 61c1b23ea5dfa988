package calib

import (
	"cmp"
	"math"
	"slices"
)

// Suspect is a run to look at before it is taken for safe.
type Suspect struct {
	Index   int     // into the runs that were given
	Z       float64 // robust z-score of the log-odds of its risk
	Outlier bool    // Z is above 3.5
}

// Suspects returns the runs with the highest risk, at most limit, highest first:
// those that an operator who declares traces safe should read first. Z compares
// a run with all of them without being moved by a minority of attacks:
//
//	z = (x - median) / (1.4826 median|x - median|),   x = ln(s/(1-s))
//
// with s kept half a grid step away from 0 and 1. Where half of the runs share
// one x the scale is 0, and every higher run is an outlier with infinite Z.
//
// It finds runs that stand out and cannot find attacks that score like the rest:
// what a share of those does to the promise is [Request.Contamination].
//
// Source: Iglewicz, Hoaglin, How to Detect and Handle Outliers (1993).
func Suspects(runs []Scored, limit int) []Suspect {
	if len(runs) == 0 || limit <= 0 {
		return nil
	}
	x := column(runs, func(s *Scored) float64 {
		r := min(max(Grid(s.Risk), GridStep/2), 1-GridStep/2)
		return math.Log(r) - math.Log1p(-r)
	})
	centre := median(slices.Clone(x))
	away := make([]float64, len(x))
	for i, v := range x {
		away[i] = math.Abs(v - centre)
	}
	scale := 1.4826 * median(away)
	out := make([]Suspect, len(runs))
	for i, v := range x {
		out[i] = Suspect{Index: i}
		if v != centre {
			out[i].Z = (v - centre) / scale
		}
		out[i].Outlier = out[i].Z > 3.5
	}
	slices.SortStableFunc(out, func(a, b Suspect) int { return cmp.Compare(x[b.Index], x[a.Index]) })
	return out[:min(limit, len(out))]
}

// median sorts x, which is not empty.
func median(x []float64) float64 {
	slices.Sort(x)
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}
