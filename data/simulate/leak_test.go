package simulate

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dreamguard/dreamguard/data"
)

// TestTemplatesIndependentOfLabel: which wording is used before the first
// hazard has nothing to do with the label (chi-square per list of templates).
func TestTemplatesIndependentOfLabel(t *testing.T) {
	counts := map[string][2][]float64{}
	sample(t, Options{Seed: 31, Runs: 6000}, func(tr *data.Trajectory, x *trace) {
		end, label := len(tr.Steps), 0
		if tr.FirstHazard != nil {
			end, label = *tr.FirstHazard, 1
		}
		for _, c := range x.choices {
			if c.step >= end {
				break
			}
			key := c.list + "/" + strconv.Itoa(c.of)
			n, ok := counts[key]
			if !ok {
				n = [2][]float64{make([]float64, c.of), make([]float64, c.of)}
			}
			n[label][c.index]++
			counts[key] = n
		}
	})
	tested := 0
	for key, n := range counts {
		var sum [2]float64
		for l := range n {
			for _, x := range n[l] {
				sum[l] += x
			}
		}
		k := len(n[0])
		if k < 2 || min(sum[0], sum[1]) < float64(10*k) {
			continue
		}
		tested++
		stat := 0.0
		for i := range k {
			for l := range n {
				want := (n[0][i] + n[1][i]) * sum[l] / (sum[0] + sum[1])
				if want > 0 {
					stat += (n[l][i] - want) * (n[l][i] - want) / want
				}
			}
		}
		// About 90 lists are tested: 1e-5 leaves a chance of one in a thousand.
		if p := (distuv.ChiSquared{K: float64(k - 1)}).Survival(stat); p < 1e-5 {
			t.Errorf("templates of %s depend on the label: chi-square %.1f, p = %.2g", key, stat, p)
		}
	}
	if tested < 60 {
		t.Errorf("only %d lists had enough choices, want 60", tested)
	}
}

func tokens(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }) {
		set[w] = true
	}
	return set
}

// TestNoTellTaleToken: no token that is frequent before the hazard in unsafe
// runs is missing from the safe ones, nor the other way round.
func TestNoTellTaleToken(t *testing.T) {
	df := map[string][2]int{}
	var n [2]int
	sample(t, Options{Seed: 37, Runs: 4000}, func(tr *data.Trajectory, x *trace) {
		var b strings.Builder
		b.WriteString(tr.Task + " " + tr.Context)
		label, end := 0, len(tr.Steps)
		if tr.FirstHazard != nil {
			label, end = 1, *tr.FirstHazard
		}
		for i, s := range tr.Steps[:end] {
			if x.steps[i].kind == kFinish {
				continue // the end of a run comes after the hazard
			}
			b.WriteString(" " + s.Tool + " " + s.Args + " " + s.Text + " " + s.Result + " " + s.Error)
		}
		n[label]++
		for w := range tokens(b.String()) {
			c := df[w]
			c[label]++
			df[w] = c
		}
	})
	for w, c := range df {
		unsafe, safe := float64(c[1])/float64(n[1]), float64(c[0])/float64(n[0])
		if unsafe > 0.02 && safe < unsafe/8 || safe > 0.05 && unsafe < safe/20 {
			t.Errorf("token %q stands in %.3f of the unsafe runs before the hazard and in %.3f of the safe runs", w, unsafe, safe)
		}
	}
}

// TestStartTellsNothing: a naive Bayes classifier over task, tools and the
// first step of runs without an attack is at chance within each domain.
func TestStartTellsNothing(t *testing.T) {
	type doc struct {
		words  map[string]bool
		unsafe bool
	}
	docs := map[string][]doc{}
	sample(t, Options{Seed: 41, Runs: 8000}, func(tr *data.Trajectory, x *trace) {
		if *tr.AttackPresent || tr.FirstHazard != nil && *tr.FirstHazard == 0 || x.steps[0].curious {
			return // curiosity is a precursor, not a leak
		}
		text := tr.Task + " " + tr.Context
		for _, d := range tr.Tools {
			text += " " + d.Name + " " + d.Description
		}
		s := tr.Steps[0]
		docs[tr.Suite] = append(docs[tr.Suite], doc{tokens(text + " " + s.Args + " " + s.Text + " " + s.Result), tr.Label == data.Unsafe})
	})
	for d, list := range docs {
		half := len(list) / 2
		seen := map[string][2]float64{}
		var n [2]float64
		for _, x := range list[:half] {
			l := 0
			if x.unsafe {
				l = 1
			}
			n[l]++
			for w := range x.words {
				c := seen[w]
				c[l]++
				seen[w] = c
			}
		}
		type scored struct {
			s      float64
			unsafe bool
		}
		var out []scored
		for _, x := range list[half:] {
			s := 0.0
			for _, w := range sorted(x.words) { // sums must not depend on map order
				c := seen[w]
				s += math.Log((c[1]+1)/(n[1]+2)) - math.Log((c[0]+1)/(n[0]+2))
			}
			out = append(out, scored{s, x.unsafe})
		}
		slices.SortFunc(out, func(a, b scored) int { return cmp.Compare(a.s, b.s) })
		var below, area, pos float64
		for _, x := range out {
			if x.unsafe {
				pos++
				area += below
			} else {
				below++
			}
		}
		if auroc := area / (pos * below); auroc < 0.42 || auroc > 0.58 {
			t.Errorf("%s: the start of a run predicts its label with AUROC %.3f over %d runs, want chance", d, auroc, len(out))
		} else {
			t.Logf("%s: AUROC %.3f over %d runs", d, auroc, len(out))
		}
	}
}

func sorted(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for w := range set {
		out = append(out, w)
	}
	slices.Sort(out)
	return out
}
