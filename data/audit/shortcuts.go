package audit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/data"
)

// Shortcut is a phrase that stands in runs of one label only: a guard could
// learn the phrase in place of the danger.
type Shortcut struct {
	Phrase string     `json:"phrase"` // one to three words, lower case
	Label  data.Label `json:"label"`  // the label of all its runs
	Runs   int        `json:"runs"`   // runs that hold it
	Groups int        `json:"groups"` // groups these runs belong to: in one group it may be just the topic
}

const (
	slots         = 1 << 21 // counters of the first pass
	maxCandidates = 100_000 // phrases counted exactly in the second
	maxWords      = 3
	maxPhrase     = 80 // bytes: longer ones are data, not language
)

// Shortcuts returns the phrases of at most three words that occur in at least
// minRuns runs of one label and in none of the other, at most top of them, those
// of the most groups first. It looks at what a guard may see: task, context,
// actions and results, of a located unsafe run only up to and including the
// hazard's action. Unlabelled runs are left out.
//
// Memory is bounded: a first pass counts hashes in a fixed table, a second
// counts the phrases that may qualify. A collision in the table can hide a
// phrase, never invent one.
func Shortcuts(ts []*data.Trajectory, minRuns, top int) []Shortcut {
	minRuns = max(minRuns, 1)
	counts := make([][2]uint32, slots)
	for _, t := range ts {
		if t.Label == data.Unknown {
			continue
		}
		seen := map[uint64]struct{}{}
		phrases(t, func(p []byte) {
			slot := mix(hash64(p)) % slots
			if _, ok := seen[slot]; !ok {
				seen[slot] = struct{}{}
				counts[slot][t.Label-data.Safe]++
			}
		})
	}
	type tally struct {
		Shortcut
		groups map[string]struct{}
		last   *data.Trajectory
	}
	found := map[string]*tally{}
	for _, t := range ts {
		if t.Label == data.Unknown {
			continue
		}
		phrases(t, func(p []byte) {
			c := counts[mix(hash64(p))%slots]
			if c[0] > 0 && c[1] > 0 || int(c[0]+c[1]) < minRuns {
				return
			}
			x := found[string(p)]
			if x == nil {
				if len(found) >= maxCandidates {
					return
				}
				x = &tally{Shortcut: Shortcut{Phrase: string(p), Label: t.Label}, groups: map[string]struct{}{}}
				found[x.Phrase] = x
			}
			if x.last != t {
				x.last = t
				x.Runs++
				x.groups[t.Group] = struct{}{}
			}
		})
	}
	var out []Shortcut
	for _, x := range found {
		if x.Runs >= minRuns {
			x.Groups = len(x.groups)
			out = append(out, x.Shortcut)
		}
	}
	slices.SortFunc(out, func(a, b Shortcut) int {
		return cmp.Or(cmp.Compare(b.Groups, a.Groups), cmp.Compare(b.Runs, a.Runs), strings.Compare(a.Phrase, b.Phrase))
	})
	return out[:min(max(top, 0), len(out))]
}

// phrases calls f with every sequence of one to maxWords words within one text.
// The slice is valid until the next call.
func phrases(t *data.Trajectory, f func([]byte)) {
	var words, line []byte
	var starts []int
	one := func(s string) {
		line, starts = line[:0], starts[:0]
		words = tokens(s, words, func(w []byte) {
			if len(line) > 0 {
				line = append(line, ' ')
			}
			starts = append(starts, len(line))
			line = append(line, w...)
			for n := 1; n <= min(maxWords, len(starts)); n++ {
				if p := line[starts[len(starts)-n]:]; len(p) <= maxPhrase {
					f(p)
				}
			}
		})
	}
	one(t.Task)
	one(t.Context)
	for i := range t.Steps {
		s := &t.Steps[i]
		one(s.Tool)
		one(s.Args)
		one(s.Text)
		if t.Located() && i >= *t.FirstHazard {
			return
		}
		one(s.Result)
		one(s.Error)
	}
}
