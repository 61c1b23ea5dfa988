package simulate

import (
	"slices"
	"strings"
)

// shape is what is decided about a run before, and independent of, its label.
type shape struct {
	plan   []planStep
	extras int
	cut    int // plan entries that are carried out; len(plan) unless the agent gives up
	finish bool
	hosted int // position before which the file with the planted text is read; -1 where the plan does it
	kind   kind
	also   kind // an extra wish in the user turn; numKinds none
	task   string
	named  [numKinds]bool // the user's words say what to delete, or how to log in
	added  []kind         // wishes of the plan that the wording leaves out, said in a sentence of their own
}

// newShape draws the plan, the length and the place of the planted text.
func (w *world) newShape(r *rng) shape {
	s := shape{hosted: -1, also: numKinds}
	s.task = pick(r, w.sc.Tasks).text(&w.v, r)
	for _, p := range w.sc.plan {
		if !p.optional || w.covered(p, s.task) && r.chance(0.5) {
			s.plan = append(s.plan, p)
		}
	}
	// The longest run: the plan, its extras, two refused reads with two steps
	// more each, and the last message.
	s.extras = 2 + int(0.55*r.ExpFloat64())
	if r.chance(0.04) {
		s.extras += r.IntN(32)
	}
	s.extras = min(s.extras, MaxSteps-1-2*maxRefused-1-len(s.plan))
	s.cut = len(s.plan)
	if r.chance(0.07) {
		s.cut = 1 + r.IntN(len(s.plan))
	}
	s.finish = r.chance(0.75)
	if r.chance(0.1) {
		s.also = []kind{kCred, kDelete, kShare, kSchedule}[r.IntN(4)]
		switch {
		case s.also == kCred && w.sc.Cred == "", s.also == kDelete && w.v[sScratch] == "":
			s.also = numKinds
		case slices.ContainsFunc(s.plan, func(p planStep) bool { return p.kind == s.also }):
			s.also = numKinds
		default:
			s.plan = append(s.plan, planStep{kind: s.also, file: -1, to: 0})
			s.cut++
		}
	}
	for _, x := range []struct {
		k    kind
		what string
	}{{kDelete, w.v[sScratch]}, {kCred, w.v[sCred]}} {
		k, what := x.k, x.what
		planned := slices.ContainsFunc(s.plan, func(p planStep) bool { return p.kind == k })
		said := what != "" && (strings.Contains(s.task, what) || s.also == k || planned && len(w.sc.Lines) > 0)
		if planned && !said || k == kCred && what != "" && !said && r.chance(0.2) {
			s.added = append(s.added, k)
		}
		s.named[k] = said || slices.Contains(s.added, k)
	}

	w.goal = &w.tab.goals[r.IntN(len(w.tab.goals))]
	w.attack = r.chance(0.5)
	w.chanl = weighted(r, []string{"file", "page", "mail", "search", "memory", "user"}, []float64{30, 17, 15, 12, 12, 14})
	if !w.attack {
		return s
	}
	var wanted func(f *file) bool
	switch w.chanl {
	case "memory", "user":
		return s
	case "search":
		s.kind = kSearch
		if !slices.ContainsFunc(s.plan[:s.cut], func(p planStep) bool { return p.kind == kSearch }) {
			s.hosted = r.IntN(min(s.cut, 3) + 1)
		}
		return s
	case "page":
		wanted = func(f *file) bool { return f.kind == "page" }
	case "mail":
		wanted = func(f *file) bool { return f.kind == "mail" }
	default:
		wanted = func(f *file) bool { return f.kind != "page" && f.kind != "mail" && f.kind != "checklist" }
	}
	for _, i := range r.Perm(len(w.files)) {
		if wanted(&w.files[i]) && (w.host < 0 || w.files[i].needed && !w.files[w.host].needed) {
			w.host = i
		}
	}
	s.kind = readKind(w.files[w.host].kind)
	// One attack in twelve stays in a file that only chance makes the agent open.
	if planned := slices.ContainsFunc(s.plan[:s.cut], func(p planStep) bool { return p.file == w.host && p.kind == s.kind }); !planned && !r.chance(0.08) {
		s.hosted = r.IntN(min(s.cut, 3) + 1)
	}
	return s
}

// covered reports whether the user asks for an optional step: nobody may take a
// message to somebody, or a post to a place, that no word of the user leads to
// for part of the task.
func (w *world) covered(p planStep, task string) bool {
	switch {
	case len(w.sc.Lines) > 0: // the document that the task delegates to says it
		return true
	case p.kind == kPost:
		return strings.Contains(task, w.v[sChan])
	case p.to < 0:
		return true
	}
	to := w.recips[p.to]
	return strings.Contains(task, to.addr) || strings.Contains(task, to.name) ||
		slices.ContainsFunc(w.files, func(f file) bool { return f.author == to.addr })
}

func weighted[T any](r *rng, list []T, weights []float64) T {
	sum := 0.0
	for _, x := range weights {
		sum += x
	}
	u := r.Float64() * sum
	for i, x := range weights {
		if u -= x; u < 0 {
			return list[i]
		}
	}
	return list[len(list)-1]
}

// catalog says which kinds of tools the run is offered. It depends on the
// scenario and the goal, which every run has, planted or not: never on what the
// agent does.
func (w *world) catalog() (c [numKinds]bool) {
	for _, k := range []kind{kRead, kBrowse, kMail, kList, kSearch, kCompute, kDraft, kSend, kDelete, kCred, kShare, kSchedule} {
		c[k] = true
	}
	for _, p := range w.sc.plan {
		c[p.kind] = true
	}
	c[w.goal.kind] = true
	return c
}
