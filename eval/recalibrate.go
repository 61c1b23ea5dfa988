package eval

import (
	"fmt"
	"math"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
)

// RecalibratedSuffix ends the name of rows with thresholds from the set itself.
const RecalibratedSuffix = "+recalibrated"

// Recalibration asks for thresholds from the target set itself.
type Recalibration struct {
	Seed       uint64
	N          int // safe runs per draw, at most half of the scored safe ones; 0 means 200
	Draws      int // 0 means 20
	Alpha      float64
	AlphaBlock float64
}

// Recalibrated measures what an operator gets who sets the thresholds on own
// safe traffic: N scored safe runs, drawn at random, set the thresholds, all
// other runs are tested, and the figures are means over the draws; intervals
// are the central 95 % of the draws. Figures that need no threshold are those
// of the tested runs.
//
// The draw is by run, since a run is the unit of exchangeability: a task may
// stand on both sides, as it does in one's own traffic. With too few safe runs
// for alpha the row says so in NotRun and holds no figures.
func Recalibrated(name string, traces []Trace, o Recalibration) SetResult {
	name += RecalibratedSuffix
	if o.N == 0 {
		o.N = 200
	}
	if o.Draws == 0 {
		o.Draws = 20
	}
	var safe []int
	for i := range traces {
		if _, _, scored := traces[i].Maxima(); scored && traces[i].Label == data.Safe {
			safe = append(safe, i)
		}
	}
	n := min(o.N, len(safe)/2)
	info := &Recalibrate{N: n, Draws: o.Draws, Alpha: o.Alpha, AlphaBlock: o.AlphaBlock}
	rng := stream(o.Seed, name)
	var draws []figures
	var mean SetResult
	for range o.Draws {
		rng.Shuffle(len(safe), func(i, j int) { safe[i], safe[j] = safe[j], safe[i] })
		calibration := make(map[int]bool, n)
		for _, i := range safe[:n] {
			calibration[i] = true
		}
		var set, rest []Trace
		for i := range traces {
			if calibration[i] {
				set = append(set, traces[i])
			} else {
				rest = append(rest, traces[i])
			}
		}
		haz, risk := SafeMaxima(set)
		th, err := calib.Union(haz, risk, o.Alpha, o.AlphaBlock, false)
		if err != nil {
			return NotRun(name, fmt.Sprintf("%d safe runs to calibrate on: %v", n, err))
		}
		all, groups, unlabelled := rowsOf(At(rest, th))
		rows := all[:0:0]
		for _, r := range all {
			if r.scored {
				rows = append(rows, r)
			}
		}
		sortRows(rows)
		draws = append(draws, measure(rows, once))
		if len(draws) == 1 { // the counts are the same in every draw, groups apart
			mean.N, mean.Unsafe = len(rows), slice(rows).Unsafe
			mean.Counts = Counts{Groups: groups, Unscored: len(all) - len(rows), Unlabelled: unlabelled}
			for _, r := range rows {
				mean.Counts.Located += int(b2f(r.located))
				mean.Counts.Reachable += int(b2f(r.reachable))
			}
		}
	}
	out := fill(name, meanOf(draws))
	out.N, out.Unsafe, out.Counts, out.Recalibration = mean.N, mean.Unsafe, mean.Counts, info
	out.AllRuns = noSlice()
	out.By = map[string]map[string]Slice{}
	out.CI = spreads("draws", draws, central)
	return out
}

// NotRun returns a row without figures that says why.
func NotRun(name, why string) SetResult {
	nan := math.NaN()
	s := fill(name, figures{nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, [3]float64{nan, nan, nan}})
	s.CI = spreads("none", nil, central)
	s.AllRuns, s.By, s.NotRun = noSlice(), map[string]map[string]Slice{}, why
	return s
}

func noSlice() Slice {
	nan := Num(math.NaN())
	return Slice{AUROC: nan, F1: nan, SR: nan, FPR: nan, PHIR: nan}
}

// meanOf averages each figure over the draws in which it exists.
func meanOf(draws []figures) figures {
	avg := func(get func(figures) float64) float64 {
		var sum, n float64
		for _, d := range draws {
			if x := get(d); !math.IsNaN(x) {
				sum, n = sum+x, n+1
			}
		}
		return ratio(sum, n)
	}
	f := figures{
		auroc:     avg(func(f figures) float64 { return f.auroc }),
		f1:        avg(func(f figures) float64 { return f.f1 }),
		sr:        avg(func(f figures) float64 { return f.sr }),
		srFull:    avg(func(f figures) float64 { return f.srFull }),
		fpr:       avg(func(f figures) float64 { return f.fpr }),
		phir:      avg(func(f figures) float64 { return f.phir }),
		phirOrAt:  avg(func(f figures) float64 { return f.phirOrAt }),
		phirAt10:  avg(func(f figures) float64 { return f.phirAt10 }),
		reachAt10: avg(func(f figures) float64 { return f.reachAt10 }),
		mas:       avg(func(f figures) float64 { return f.mas }),
		unseen:    avg(func(f figures) float64 { return f.unseen }),
	}
	for k := range f.recall {
		f.recall[k] = avg(func(f figures) float64 { return f.recall[k] })
	}
	return f
}
