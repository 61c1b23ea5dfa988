package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/pipeline"
)

// RefitRow says what a refit on n labelled runs of each kind gives on the other
// runs of the set.
type RefitRow struct {
	Set     string `json:"set"`
	Refit   string `json:"refit"` // none, weights, layer
	Drawn   string `json:"drawn"` // run, or group: tested on other tasks
	N       int    `json:"n"`     // safe runs, and as many unsafe ones
	Draws   int    `json:"draws"`
	Fitted  int    `json:"fitted"`  // draws in which cross-validation took a layer
	Refused int    `json:"refused"` // draws whose runs are of too few groups for a layer
	AUROC   Mean   `json:"auroc"`
	Recall  Mean   `json:"recall"`       // at 5 % false alarms on the tested runs
	DAUROC  Mean   `json:"auroc_change"` // against no refit on the same runs
	DRec    Mean   `json:"recall_change"`
}

// refits measures both refits on random labelled runs of a set.
func refits(s pipeline.ScoredSet, m *guard.Model, trained map[string]struct{}, draws int, seed uint64) ([]RefitRow, error) {
	var safe, unsafe []calib.Run
	seen := map[string]bool{}
	for i := range s.Traces {
		r := s.Traces[i].Run()
		r.X = s.Features[i]
		f := artifact.RunDigest(s.Runs[i])
		_, known := trained[f]
		if _, _, scored := calib.RunScore(m.Fusion(), r); !scored || known || seen[f] || s.Traces[i].Label == data.Unknown {
			continue
		}
		seen[f] = true
		switch {
		case !r.Unsafe:
			safe = append(safe, r)
		case r.Hazard >= 0:
			unsafe = append(unsafe, r)
		}
	}
	base := m.Fusion()
	base.Layer = nil
	var out []RefitRow
	for _, drawn := range []string{byRun, byGroup} {
		for _, n := range []int{30, 50, 100} {
			if len(safe)-n < minRest || len(unsafe)-n < minRest {
				continue
			}
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			auroc, recall := map[string][]float64{}, map[string][]float64{}
			fitted, refused := 0, 0
			for range draws {
				part, rest := divideLabelled(slices.Concat(safe, unsafe), drawn, n, rng)
				if part == nil {
					continue
				}
				weights, err := calib.Tuning{Beta: base.Beta, Window: base.Window}.Fit(part)
				if err != nil {
					return nil, err
				}
				layer := base
				fit, err := calib.FitLayer(base, part, seed)
				switch {
				case errors.Is(err, calib.ErrTuning): // of too few groups
					refused++
				case err != nil:
					return nil, err
				case fit.Layer != nil:
					layer.Layer = fit.Layer
					fitted++
				}
				for name, f := range map[string]calib.Fusion{"none": base, "weights": weights, "layer": layer} {
					a, r := rank(f, rest)
					auroc[name], recall[name] = append(auroc[name], a), append(recall[name], r)
				}
			}
			if len(auroc["none"]) == 0 {
				continue
			}
			for _, name := range []string{"none", "weights", "layer"} {
				row := RefitRow{Set: s.Name, Refit: name, Drawn: drawn, N: n, Draws: len(auroc[name]), AUROC: mean(auroc[name]), Recall: mean(recall[name]),
					DAUROC: mean(minus(auroc[name], auroc["none"])), DRec: mean(minus(recall[name], recall["none"]))}
				if name == "layer" {
					row.Fitted, row.Refused = fitted, refused
				}
				out = append(out, row)
			}
		}
	}
	return out, nil
}

// divideLabelled draws n runs of each kind, single ones or whole tasks, and those to
// test on; nil where too few are left. The surplus of the last tasks is in neither
// part.
func divideLabelled(runs []calib.Run, drawn string, n int, rng *rand.Rand) (part, rest []calib.Run) {
	key := func(r *calib.Run) string {
		if drawn == byRun || r.Group == "" {
			return "run " + r.ID
		}
		return "group " + r.Group
	}
	var names []string
	members := map[string][]calib.Run{}
	for _, r := range runs {
		k := key(&r)
		if members[k] == nil {
			names = append(names, k)
		}
		members[k] = append(members[k], r)
	}
	var taken, left [2]int
	for _, i := range rng.Perm(len(names)) {
		use := false
		for _, r := range members[names[i]] {
			use = use || taken[kind(&r)] < n && (drawn == byRun || taken[0] < n || taken[1] < n)
		}
		for _, r := range members[names[i]] {
			switch k := kind(&r); {
			case !use:
				rest = append(rest, r)
				left[k]++
			case taken[k] < n:
				part = append(part, r)
				taken[k]++
			}
		}
	}
	if min(taken[0], taken[1]) < n || min(left[0], left[1]) < minRest {
		return nil, nil
	}
	return part, rest
}

func kind(r *calib.Run) int {
	if r.Unsafe {
		return 1
	}
	return 0
}

func minus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] - b[i]
	}
	return out
}

// rank returns the AUROC of runs and the recall at 5 % false alarms.
func rank(f calib.Fusion, runs []calib.Run) (auroc, recall float64) {
	auroc, _ = calib.AUROC(f, runs) // there are runs of both kinds
	var safe, unsafe []float64
	for _, r := range runs {
		_, s, _ := calib.RunScore(f, r)
		if r.Unsafe {
			unsafe = append(unsafe, s)
		} else {
			safe = append(safe, s)
		}
	}
	slices.Sort(safe)
	level := calib.NextAbove(safe[len(safe)-1-len(safe)/20])
	for _, u := range unsafe {
		if u >= level {
			recall += 1 / float64(len(unsafe))
		}
	}
	return auroc, recall
}

func refitTable(rows []RefitRow) string {
	var b strings.Builder
	b.WriteString("\n| set | drawn by | labelled runs | refit | AUROC | change | recall at 5 % false alarms | change | layers found |\n| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range rows {
		change := func(m Mean) string {
			if r.Refit == "none" {
				return "-"
			}
			return fmt.Sprintf("%+.3f ± %.3f", m.Value, m.SE2)
		}
		found := "-"
		if r.Refit == "layer" {
			found = fmt.Sprintf("%d of %d", r.Fitted, r.Draws)
			if r.Refused > 0 {
				found += fmt.Sprintf(", %d refused", r.Refused)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %d + %d | %s | %.3f | %s | %.3f | %s | %s |\n", r.Set, r.Drawn, r.N, r.N, r.Refit, r.AUROC.Value, change(r.DAUROC), r.Recall.Value, change(r.DRec), found)
	}
	return b.String()
}
