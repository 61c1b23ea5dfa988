package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/verdict"
)

// Bounds of a repair.
const (
	maxPlan   = 16 // steps
	maxRepair = 4  // prerequisites of prerequisites
)

// Auditor judges calls by a fixed set of rules. It is immutable, safe for
// concurrent use, and deterministic. Rules are taken to be in force unless their
// time says otherwise (State.Now): give it [Ledger.InForce], or fewer.
type Auditor struct {
	// Untrusted replaces, for Provenance rules, how a value's origin is decided:
	// true if it comes from untrusted results alone. nil: by what State saw.
	Untrusted func(s *State, value string) bool

	catalog *Catalog
	rules   []*compiled
}

// NewAuditor makes an auditor. The catalogue may be nil: calls are then read by
// their names, and nothing can be repaired.
func NewAuditor(c *Catalog, rules []Rule) *Auditor {
	a := &Auditor{catalog: c}
	for _, r := range rules {
		a.rules = append(a.rules, compileRule(r))
	}
	return a
}

// Audit judges a call before it is executed. s may be nil: the start of a run. It
// does not change s's content.
func (a *Auditor) Audit(s *State, c verdict.Call) Decision {
	if s == nil {
		s = &State{}
	}
	if c.IsMessage() {
		return Decision{}
	}
	return a.audit(s, c, 0, nil)
}

func bottom(r *compiled, format string, args ...any) Decision {
	return Decision{Outcome: Bottom, Rule: r.ID, Reason: fmt.Sprintf(format, args...) + quoteSource(r.Rule)}
}

// quoteSource says whose words a rule rests on.
func quoteSource(r Rule) string {
	if r.Source.Text == "" {
		return ""
	}
	return fmt.Sprintf(" (%s, turn %d: %q)", r.Source.Author, r.Source.Turn, clipText(r.Source.Text, 200))
}

// audit judges a call; above are the calls whose repair it belongs to.
func (a *Auditor) audit(s *State, call verdict.Call, depth int, above []verdict.Call) Decision {
	p := parseCall(a.catalog, call)
	if p.bad != "" {
		if len(a.rules) == 0 {
			return Decision{}
		}
		return Decision{Outcome: Bottom, Reason: "the call cannot be held against the constraints: " + p.bad}
	}
	var bound []string
	var unmet []*compiled
	for _, r := range a.rules {
		if !s.Now.IsZero() && (!r.ValidUntil.IsZero() && !s.Now.Before(r.ValidUntil) || s.Now.Before(r.ValidFrom)) || !r.binds(p, s.Now) {
			continue
		}
		bound = append(bound, r.ID)
		switch r.Kind {
		case Prerequisite:
			if p.has(r.step) && !p.has(classOf(first(r.Trigger.Actions))) || a.satisfied(s, r, p) {
				continue
			}
			unmet = append(unmet, r)
		case Provenance:
			for _, b := range p.targets {
				for _, t := range b.values {
					untrusted := s.untrustedOnly(t.text)
					if a.Untrusted != nil {
						untrusted = a.Untrusted(s, t.text)
					}
					if untrusted {
						d := bottom(r, "%s: the value %q of %s comes from results of tools alone, which may inform and not authorise", call.Tool, clipText(t.text, 80), b.name)
						d.Bound = bound
						return d
					}
				}
			}
		default:
			d := bottom(r, "%s is forbidden here", call.Tool)
			d.Bound = bound
			return d
		}
	}
	if len(unmet) == 0 {
		return Decision{Bound: bound}
	}
	d := a.repair(s, p, unmet, depth, above)
	d.Bound = bound
	return d
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// candidates are the tools that bring a prerequisite about, best first.
func (a *Auditor) candidates(r *compiled, p *parsedCall) []*tool {
	if a.catalog == nil {
		return nil
	}
	type scored struct {
		*tool
		n int
	}
	var list []scored
	for _, t := range a.catalog.order {
		if n := stepScore(t, r); n > 0 {
			for _, b := range p.targets {
				if hasParam(t.params, b.name) {
					n += 2
				}
			}
			list = append(list, scored{t, n})
		}
	}
	slices.SortStableFunc(list, func(a, b scored) int { return b.n - a.n })
	out := make([]*tool, len(list))
	for i, x := range list {
		out[i] = x.tool
	}
	return out
}

// stepClasses widens the class of a prerequisite to what serves for it as well.
var stepClasses = map[class][]class{
	"ask":     {"ask", "approve"},
	"approve": {"ask", "approve"},
	"notify":  {"notify", "send"},
	"verify":  {"verify", "read"},
	"read":    {"read", "verify"},
	"upload":  {"upload", "backup"}, // an export
	"backup":  {"backup", "upload"},
}

// stepScore says how well a tool serves for a prerequisite; 0: not.
func stepScore(t *tool, r *compiled) int {
	score := 0
	if slices.Contains(t.Actions, r.verb) {
		score = 4
	} else if slices.Contains(t.classes, r.step) {
		score = 3
	} else if slices.ContainsFunc(stepClasses[r.step], func(k class) bool { return slices.Contains(t.classes, k) }) {
		score = 1
	}
	known := isVerb(r.verb)
	if score == 0 && !known && slices.Contains(t.words, stem(r.verb)) {
		score = 2
	}
	if score == 0 {
		return 0
	}
	for _, w := range r.object.words {
		if slices.Contains(t.words, w) {
			score += 2
		}
	}
	for _, w := range r.scope.words {
		if slices.Contains(t.words, w) {
			score++
		}
	}
	return score
}

// satisfied reports whether a prerequisite of a call was met: a step that
// succeeded, on the same target, and that nothing took back since.
func (a *Auditor) satisfied(s *State, r *compiled, p *parsedCall) bool {
	met := false
	var by *event
	for _, e := range s.events {
		if !e.OK {
			continue
		}
		q := e.read(a.catalog)
		if q.bad != "" {
			continue
		}
		switch {
		case met && undoes(q, by, r):
			met = false
		case stepScore(q.tool, r) > 0 && !undoesStep(q.tool, r) || shellDoes(q, r):
			if sameTarget(q, p) && q.speaksOf(p) && !(r.asks() && denial.MatchString(e.Output)) {
				met, by = true, e
			}
		case met && r.asks() && r.bindsAction(q) && sameTarget(q, p):
			met = false // one consent is for one action
		}
	}
	return met
}

// asks reports whether the step is to get somebody's consent.
func (c *compiled) asks() bool { return c.step == "ask" || c.step == "approve" }

// shellDoes reports whether a command in a shell is a prerequisite's step.
func shellDoes(q *parsedCall, r *compiled) bool {
	return len(q.tool.classes) == 0 && r.step != "" && q.has(r.step)
}

func undoesStep(t *tool, r *compiled) bool {
	return slices.ContainsFunc(t.Undoes, func(u string) bool { return classOf(u) == r.step || u == r.verb })
}

// undoes reports whether a later call takes a step back: by what the catalogue
// says on the same target, or by deleting what the step's result or arguments
// named beside its target.
func undoes(q *parsedCall, step *event, r *compiled) bool {
	done := step.parsed
	if undoesStep(q.tool, r) {
		if len(q.targets) == 0 || sameTarget(q, done) || sameTarget(done, q) {
			return true
		}
		for _, b := range q.targets {
			for _, t := range b.values {
				if slices.ContainsFunc(step.results, func(x target) bool { return t.touches(x) }) {
					return true
				}
			}
		}
		return false
	}
	if !q.has("delete") && !q.has("cancel") && !q.has("move") {
		return false
	}
	for _, b := range q.targets {
		for _, t := range b.values {
			isTarget := false
			for _, o := range done.targets[:min(1, len(done.targets))] {
				isTarget = isTarget || slices.ContainsFunc(o.values, func(x target) bool { return x.folded == t.folded })
			}
			if isTarget {
				continue // the target itself goes: that is no undoing
			}
			for _, l := range done.leaves {
				if len(l.value) > 2 && t.covers(newTarget(l.value), true) && !slices.ContainsFunc(done.targets[:min(1, len(done.targets))], func(o boundTarget) bool { return o.name == l.name }) {
					return true
				}
			}
			if slices.ContainsFunc(step.results, func(x target) bool { return t.covers(x, true) && x.folded != "" }) {
				return true
			}
		}
	}
	return false
}

// sameTarget reports whether a step on q's targets is one for p: arguments of the
// same name agree, everything else that the step names is a target of p, and the
// primary target of p is covered. A step without targets is for everything.
func sameTarget(q, p *parsedCall) bool {
	if len(q.targets) == 0 || len(p.targets) == 0 {
		return len(q.targets) == 0
	}
	primary := false
	for _, b := range q.targets {
		same := -1
		for i, o := range p.targets {
			if o.name == b.name {
				same = i
			}
		}
		matched := false
		for i, o := range p.targets {
			if (same < 0 || same == i) && covered(b, o) {
				matched = true
				primary = primary || i == 0
			}
		}
		if !matched {
			if same < 0 && !anyTarget(b, p) {
				continue // an argument that the call has nothing to compare with
			}
			return false
		}
		if same > 0 {
			// Another argument of the call names the object that the step is about,
			// and the step knows no argument for the primary one.
			primary = primary || !slices.ContainsFunc(q.tool.params, func(x param) bool { return x.name == p.targets[0].name })
		}
	}
	return primary
}

// speaksOf reports whether a question or notice, which has no target but its text,
// names what p acts on.
func (q *parsedCall) speaksOf(p *parsedCall) bool {
	if len(q.targets) > 0 || len(p.targets) == 0 || !q.has("ask") && !q.has("approve") && !q.has("notify") && !q.has("send") {
		return true
	}
	for _, t := range p.targets[0].values {
		if !slices.ContainsFunc(q.leaves, func(l leaf) bool { return strings.Contains(strings.ToLower(l.value), t.folded) }) {
			return false
		}
	}
	return true
}

// covered reports whether every value of o is covered by one of b.
func covered(b, o boundTarget) bool {
	for _, t := range o.values {
		if !slices.ContainsFunc(b.values, func(x target) bool { return x.covers(t, false) }) {
			return false
		}
	}
	return len(o.values) > 0
}

// anyTarget reports whether p has a target of the kind of b's values.
func anyTarget(b boundTarget, p *parsedCall) bool {
	for _, o := range p.targets {
		if o.values[0].path == b.values[0].path {
			return true
		}
	}
	return false
}
