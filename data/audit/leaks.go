package audit

import (
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/clean"
)

// Leak counts what one rule of package clean finds in a set.
type Leak struct {
	Found   int `json:"found"`   // places that the rule would change
	Runs    int `json:"runs"`    // runs that hold one at least
	Safe    int `json:"safe"`    // of these, by label
	Unsafe  int `json:"unsafe"`  //
	Unknown int `json:"unknown"` //
}

// Leaks counts, by rule name, what the leak rules would change in ts, which stay
// as they are. Rules that find nothing are left out. How Safe and Unsafe differ
// says how much the leak gives away.
func Leaks(ts []*data.Trajectory) map[string]Leak {
	out := map[string]Leak{}
	for _, t := range ts {
		for rule, n := range clean.Leaks(t) {
			l := out[rule]
			l.Found += n
			l.Runs++
			switch t.Label {
			case data.Safe:
				l.Safe++
			case data.Unsafe:
				l.Unsafe++
			default:
				l.Unknown++
			}
			out[rule] = l
		}
	}
	return out
}
