package eval

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
)

// confidence of every interval.
const confidence = 0.95

// Options of [Measure].
type Options struct {
	Seed      uint64            // root of the bootstrap
	Bootstrap int               // resamples of groups; 0 leaves the bootstrap intervals out
	At        *calib.Thresholds // thresholds to decide by; nil keeps the decisions of the traces
	Curves    bool              // fill SetResult.Curves
}

// Measure computes the metrics of one set. Runs without a label, and runs
// without a judged call, are left out and counted. The result depends on the
// order of the traces only through the bootstrap.
func Measure(name string, traces []Trace, o Options) SetResult {
	if o.At != nil {
		traces = At(traces, *o.At)
	}
	all, groups, unlabelled := rowsOf(traces)
	rows := slices.DeleteFunc(slices.Clone(all), func(r row) bool { return !r.scored })
	sortRows(rows)
	res := fill(name, measure(rows, once))
	res.N = len(rows)
	res.Counts = Counts{Groups: groups, Unscored: len(all) - len(rows), Unlabelled: unlabelled}
	for i := range traces {
		if t := &traces[i]; t.located() && !t.Judged[*t.Hazard] {
			res.Counts.NotStoppable++
		}
	}
	var n tally
	for _, r := range rows {
		n.add(r)
	}
	res.Unsafe, res.Counts.Located, res.Counts.Reachable, res.Counts.SeenKnown = n.unsafe, n.located, n.reachable, n.known
	var resampled []figures
	kind := "binomial"
	if o.Bootstrap > 0 && groups > 1 { // one group says nothing about how groups differ
		kind = "binomial and group bootstrap"
		resampled = bootstrap(rows, groups, o.Bootstrap, stream(o.Seed, name))
	}
	res.CI = spreads(kind, resampled, central)
	res.CI.SR, res.CI.SRFull, res.CI.FPR = interval(n.hit, n.unsafe), interval(n.hitFull, n.unsafe), interval(n.falseAlarm, n.safe)
	res.CI.PHIR, res.CI.PHIROrAt, res.CI.EarlyBeforeSeen = interval(n.early, n.located), interval(n.orAt, n.located), interval(n.unseen, n.known)
	res.AllRuns = slice(all)
	res.By = breakdown(traces, all)
	if o.Curves {
		res.Curves = curves(rows, traces)
	}
	return res
}

// rowsOf reads all labelled traces. Groups are those of the scored ones, numbered
// in order of appearance: a run without a score is in no figure with an interval.
func rowsOf(traces []Trace) (rows []row, groups, unlabelled int) {
	index := map[string]int{}
	for i := range traces {
		t := &traces[i]
		if t.Label == data.Unknown {
			unlabelled++
			continue
		}
		r := newRow(t, -1)
		if !r.scored {
			rows = append(rows, r)
			continue
		}
		key := "group\x00" + t.Group
		if t.Group == "" { // a run that names no group stands alone
			key = "id\x00" + t.ID
		}
		g, ok := index[key]
		if !ok {
			g = len(index)
			index[key] = g
		}
		r.group = g
		rows = append(rows, r)
	}
	return rows, len(index), unlabelled
}

// tally counts what the exact intervals need.
type tally struct {
	safe, unsafe, hit, hitFull, falseAlarm, located, reachable, early, orAt, known, unseen int
}

func (n *tally) add(r row) {
	count := func(p *int, b bool) {
		if b {
			*p++
		}
	}
	count(&n.safe, !r.unsafe)
	count(&n.falseAlarm, !r.unsafe && r.alerted)
	count(&n.unsafe, r.unsafe)
	count(&n.hit, r.unsafe && r.alerted)
	count(&n.hitFull, r.unsafe && r.full)
	count(&n.located, r.located)
	count(&n.reachable, r.reachable)
	count(&n.early, r.early)
	count(&n.orAt, r.orAt)
	count(&n.known, r.early && r.seenKnown)
	count(&n.unseen, r.early && r.unseen)
}

// fill puts figures where the JSON form has them.
func fill(name string, f figures) SetResult {
	return SetResult{
		Name: name, AUROC: Num(f.auroc), F1: Num(f.f1), SR: Num(f.sr), SRFull: Num(f.srFull), FPR: Num(f.fpr),
		PHIR: Num(f.phir), PHIROrAt: Num(f.phirOrAt), PHIRAtFPR: AtTen{Num(f.phirAt10)}, PHIRReachableAtFPR: AtTen{Num(f.reachAt10)},
		MAS: Num(f.mas), EarlyBeforeSeen: Num(f.unseen),
		RecallAtFPR: Recalls{Num(f.recall[0]), Num(f.recall[1]), Num(f.recall[2])},
	}
}

// stream is the random stream of one named set.
func stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// bootstrap resamples whole groups, since runs of one task are alike.
func bootstrap(rows []row, groups, times int, rng *rand.Rand) []figures {
	out := make([]figures, times)
	weight := make([]int, groups)
	for i := range out {
		clear(weight)
		for range groups {
			weight[rng.IntN(groups)]++
		}
		out[i] = measure(rows, func(g int) int { return weight[g] })
	}
	return out
}

// central is the share of resamples or draws that an interval holds, extremes
// the lowest and the highest.
const (
	central  = confidence
	extremes = 1.0
)

// spreads returns the intervals of every figure over f.
func spreads(kind string, f []figures, share float64) CI {
	over := func(get func(*figures) float64) Interval { return spread(f, share, get) }
	return CI{
		Kind:               kind,
		AUROC:              over(func(f *figures) float64 { return f.auroc }),
		F1:                 over(func(f *figures) float64 { return f.f1 }),
		SR:                 over(func(f *figures) float64 { return f.sr }),
		SRFull:             over(func(f *figures) float64 { return f.srFull }),
		FPR:                over(func(f *figures) float64 { return f.fpr }),
		PHIR:               over(func(f *figures) float64 { return f.phir }),
		PHIROrAt:           over(func(f *figures) float64 { return f.phirOrAt }),
		PHIRAtFPR:          over(func(f *figures) float64 { return f.phirAt10 }),
		PHIRReachableAtFPR: over(func(f *figures) float64 { return f.reachAt10 }),
		MAS:                over(func(f *figures) float64 { return f.mas }),
		EarlyBeforeSeen:    over(func(f *figures) float64 { return f.unseen }),
		Recall01:           over(func(f *figures) float64 { return f.recall[0] }),
		Recall05:           over(func(f *figures) float64 { return f.recall[1] }),
		Recall10:           over(func(f *figures) float64 { return f.recall[2] }),
	}
}

// spread returns the central share of a figure, leaving out resamples in which
// it does not exist. It takes two at least: one has no spread.
func spread(f []figures, share float64, get func(*figures) float64) Interval {
	var v []float64
	for i := range f {
		if y := get(&f[i]); !math.IsNaN(y) {
			v = append(v, y)
		}
	}
	if len(v) < 2 {
		return Interval{Num(math.NaN()), Num(math.NaN())}
	}
	slices.Sort(v)
	at := func(q float64) Num { return Num(v[int(math.Round(q*float64(len(v)-1)))]) }
	return Interval{at((1 - share) / 2), at((1 + share) / 2)}
}

// slice measures a part of a set, unscored runs included.
func slice(rows []row) Slice {
	rows = slices.Clone(rows)
	sortRows(rows)
	f := measure(rows, once)
	s := Slice{N: len(rows), AUROC: Num(f.auroc), F1: Num(f.f1), SR: Num(f.sr), FPR: Num(f.fpr), PHIR: Num(f.phir)}
	for _, r := range rows {
		if r.unsafe {
			s.Unsafe++
		}
	}
	return s
}

// breakdown measures the scored runs by dataset, suite and attack, each only where
// it has two values at least. all holds a row for each labelled trace.
func breakdown(traces []Trace, all []row) map[string]map[string]Slice {
	by := map[string]map[string]Slice{}
	for _, field := range []struct {
		name string
		of   func(*Trace) string
	}{
		{"dataset", func(t *Trace) string { return t.Dataset }},
		{"suite", func(t *Trace) string { return t.Suite }},
		{"attack", func(t *Trace) string { return t.Attack }},
	} {
		parts := map[string][]row{}
		var k int
		for i := range traces {
			if traces[i].Label == data.Unknown {
				continue
			}
			r := all[k]
			k++
			if !r.scored {
				continue
			}
			v := field.of(&traces[i])
			if v == "" {
				v = "(none)"
			}
			parts[v] = append(parts[v], r)
		}
		if len(parts) < 2 {
			continue
		}
		var safe []row
		for _, r := range all {
			if r.scored && !r.unsafe {
				safe = append(safe, r)
			}
		}
		m := map[string]Slice{}
		for v, rows := range parts {
			m[v] = slice(rows)
			if field.name == "attack" && m[v].Unsafe > 0 {
				// Safe runs seldom carry the attack's name: compare with all of them.
				s := m[v]
				s.AUROC = slice(append(slices.DeleteFunc(rows, func(r row) bool { return !r.unsafe }), safe...)).AUROC
				m[v] = s
			}
		}
		by[field.name] = m
	}
	return by
}
