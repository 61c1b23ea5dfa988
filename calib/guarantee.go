package calib

import (
	"fmt"
	"strings"
)

// Bound names what a guarantee bounds.
type Bound string

// The bounds.
const (
	BoundFalseAlarm Bound = "false_alarm" // a safe run is held or blocked
	BoundBlock      Bound = "block"       // a safe run is blocked
	BoundMiss       Bound = "miss"        // an unsafe run is neither held nor blocked up to its first hazard
	BoundHolds      Bound = "hold_budget" // a run, or a call, is held
)

// Guarantee is one promise of a calibration, as data; String says it in a plain
// sentence.
type Guarantee struct {
	Bound      Bound   `json:"bound"`
	Level      float64 `json:"level"`                // the bound, in (0, 1)
	Confidence float64 `json:"confidence,omitempty"` // with this confidence over the draw of the calibration runs; 0: on average over it
	At95       float64 `json:"at_95,omitempty"`      // beside a promise on average: the rate that is not exceeded with 95 % confidence; 0 where it is not known
	Unit       Unit    `json:"unit,omitempty"`
	Runs       int     `json:"runs"`               // calibration runs it rests on
	Groups     int     `json:"groups"`             // groups they come from
	For        string  `json:"for,omitempty"`      // the runs it speaks of, as field=value; "" is all
	Pooled     bool    `json:"pooled,omitempty"`   // runs with levels of their own are among Runs: it speaks of all of them together
	Assumed    bool    `json:"assumed,omitempty"`  // the runs were declared safe, not labelled
	Spoiled    int     `json:"spoiled,omitempty"`  // it still holds if so many units are not what they were declared to be
	PerCall    bool    `json:"per_call,omitempty"` // calls are counted, the first MaxCalls of a run
	MaxCalls   int     `json:"max_calls,omitempty"`
	Effective  float64 `json:"effective,omitempty"` // effective number of runs, where they were weighted
}

// String states the guarantee, in one sentence and what limits it.
func (g Guarantee) String() string {
	var b strings.Builder
	if g.For != "" {
		fmt.Fprintf(&b, "For %s: ", g.For)
	}
	share := percent(g.Level)
	like := fmt.Sprintf("like the %d calibration runs", g.Runs)
	units := "runs"
	if g.Unit == ByGroup {
		like = fmt.Sprintf("of new groups, like the %d calibration groups (%d runs)", g.Groups, g.Runs)
		if g.Confidence == 0 {
			like = strings.Replace(like, "new groups", "a new group", 1)
		}
		units = "groups"
	}
	what := map[Bound][2]string{
		BoundFalseAlarm: {"safe", "held or blocked"},
		BoundBlock:      {"safe", "blocked"},
		BoundMiss:       {"unsafe", "neither held nor blocked up to the first hazard"},
		BoundHolds:      {"", "held"},
	}[g.Bound]
	kind := strings.TrimSpace(what[0] + " run")
	switch {
	case g.PerCall && g.Confidence > 0:
		fmt.Fprintf(&b, "With %s confidence at most %s of the calls of runs %s are %s, attacks included (the first %d calls of each count).", percent(g.Confidence), share, like, what[1], g.MaxCalls)
	case g.PerCall:
		fmt.Fprintf(&b, "At most %s of the calls of runs %s are %s, attacks included (the first %d calls of each count; averaged over the draw of the calibration runs).", share, like, what[1], g.MaxCalls)
	case g.Confidence > 0:
		fmt.Fprintf(&b, "With %s confidence at most %s of %ss %s are %s", percent(g.Confidence), share, kind, like, what[1])
	default:
		article := "A"
		if what[0] == "unsafe" {
			article = "An"
		}
		fmt.Fprintf(&b, "%s %s %s is %s with probability at most %s (averaged over the draw of the calibration %s)", article, kind, like, what[1], share, units)
	}
	if !g.PerCall {
		if g.Bound == BoundHolds {
			b.WriteString(", attacks included")
		}
		b.WriteByte('.')
	}
	if g.At95 > 0 {
		fmt.Fprintf(&b, " With 95 %% confidence it is at most %s.", percent(g.At95))
	}
	if g.Pooled {
		b.WriteString(" It speaks of all these runs together at these levels, those that take levels of their own among them.")
	}
	if g.Effective > 0 {
		fmt.Fprintf(&b, " The runs were weighted to resemble other traffic and count as %.0f; it holds as far as the weights are right.", g.Effective)
	}
	if g.Assumed {
		if g.Spoiled > 0 {
			fmt.Fprintf(&b, " The runs were declared safe; it still holds if up to %d of the %s are not.", g.Spoiled, units)
		} else {
			b.WriteString(" The runs were declared safe; it holds if they are.")
		}
	}
	return b.String()
}

// Plan is a pair of levels with what it promises.
type Plan struct {
	Path       []string    `json:"path,omitempty"` // runs it is for; empty is the default
	Hold       Threshold   `json:"hold"`           // HOLD where S >= Hold.Value
	Block      Threshold   `json:"block"`          // BLOCK where p_haz >= Block.Value
	Guarantees []Guarantee `json:"guarantees"`

	// What the levels do to the conformal runs they were set on.
	Runs    int `json:"runs"` // scored runs of any label
	Safe    int `json:"safe"` // of these, safe or declared safe
	Unsafe  int `json:"unsafe"`
	Alerted int `json:"alerted"` // safe runs held or blocked
	Blocked int `json:"blocked"` // safe runs blocked
	Missed  int `json:"missed"`  // unsafe runs neither held nor blocked up to the hazard
	Stopped int `json:"stopped"` // runs of any label held or blocked, also after a hazard
}

// Thresholds returns the levels in the form that the artifact stores. Its own
// sentences and bounds know of nothing but [Union]: print Guarantees instead.
func (p *Plan) Thresholds() Thresholds {
	t := Thresholds{Hold: p.Hold, Block: p.Block, N: p.Safe, Alerted: p.Alerted}
	for _, g := range p.Guarantees {
		if g.Bound == BoundFalseAlarm {
			t.Alpha, t.Confidence = g.Level, g.Confidence
		}
	}
	return t
}

// fill counts what the levels do to the runs.
func (p *Plan) fill(runs []Scored) {
	hold, block := p.Hold.Value, p.Block.Value
	for i := range runs {
		r := &runs[i]
		p.Runs++
		alerted := r.Alerted(hold, block)
		if alerted || r.traffic() >= hold {
			p.Stopped++
		}
		switch r.Label {
		case Safe:
			p.Safe++
			if alerted {
				p.Alerted++
			}
			if Grid(r.Hazard) >= block {
				p.Blocked++
			}
		case Unsafe:
			p.Unsafe++
			if !alerted {
				p.Missed++
			}
		}
	}
}
