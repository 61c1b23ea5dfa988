package calib

import "slices"

// Tradeoff is a point of the safe/miss frontier: what a hold level costs.
type Tradeoff struct {
	Hold        float64 `json:"hold"`           // threshold on S, a grid point
	FalseAlarms int     `json:"false_alarms"`   // safe runs held or blocked
	Misses      int     `json:"misses"`         // unsafe runs neither held nor blocked up to the hazard
	Hull        bool    `json:"hull,omitempty"` // a corner of the convex hull: no mixture of other points does better
}

// Frontier returns every trade-off between false alarms and misses that a hold
// level can reach on the given runs, with the block level fixed ([Off] for
// none): no other level has fewer of the one without more of the other. They are
// ordered from the highest level, with the fewest false alarms, to the lowest.
// Unlabelled runs are left out. It is exact: levels are the scores of unsafe
// runs, since a level in between only adds false alarms.
//
// Points with Hull set are those that the lemma of Neyman and Pearson picks: a
// test that stops from some level on and may toss a coin between two levels does
// best at one of them or between two neighbours. The others are the best
// without a coin.
//
// The counts are those of these very runs: the frontier describes them and
// promises nothing for others.
//
// Source: Neyman, Pearson, On the problem of the most efficient tests of
// statistical hypotheses (1933); Provost, Fawcett, Robust classification for
// imprecise environments (2001) for the hull.
func Frontier(runs []Scored, block float64) []Tradeoff {
	safe := column(of(runs, Safe), func(s *Scored) float64 { return s.alert(block) })
	unsafe := column(of(runs, Unsafe), func(s *Scored) float64 { return s.alert(block) })
	slices.Sort(safe)
	slices.Sort(unsafe)
	below := func(s []float64, v float64) int {
		i, _ := slices.BinarySearch(s, v)
		return i
	}
	at := func(v float64) Tradeoff {
		return Tradeoff{Hold: v, FalseAlarms: len(safe) - below(safe, v), Misses: below(unsafe, v)}
	}
	points := []Tradeoff{at(1)} // HOLD is never off: see candidates
	for _, v := range slices.Backward(unsafe) {
		p, last := at(v), &points[len(points)-1]
		switch {
		case v < GridStep || p.Misses == last.Misses:
		case p.FalseAlarms == last.FalseAlarms:
			*last = p
		default:
			points = append(points, p)
		}
	}
	markHull(points)
	return points
}

// markHull marks the corners of the lower convex hull of misses over false
// alarms, by a monotone chain.
func markHull(points []Tradeoff) {
	var hull []int
	for i, p := range points {
		for len(hull) >= 2 {
			a, b := points[hull[len(hull)-2]], points[hull[len(hull)-1]]
			// b lies on or above the line from a to p
			if (b.Misses-a.Misses)*(p.FalseAlarms-a.FalseAlarms) < (p.Misses-a.Misses)*(b.FalseAlarms-a.FalseAlarms) {
				break
			}
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, i)
	}
	for _, i := range hull {
		points[i].Hull = true
	}
}
