package policy

import "slices"

// effect of a revocation on a rule.
type effect int8

const (
	untouched effect = iota
	lifted           // the rule ends
	excepted         // the rule goes on, with an exception
)

// on says what a revocation does to a rule. What it frees less of than the rule
// forbids becomes an exception.
func (x Lift) on(r Rule) (Rule, effect) {
	if !sharesAction(x.Trigger, r) {
		return r, untouched
	}
	free, ruled := newPhrase(x.Scope.Text, x.Scope.Values), newPhrase(r.Scope.Text, r.Scope.Values)
	if len(free.words) == 0 && len(free.values) == 0 || free.contains(ruled) {
		return r, lifted
	}
	if len(ruled.words) > 0 && len(free.words) > 0 && len(ruled.values) == 0 && len(free.values) == 0 && !ruled.contains(free) && free.head == ruled.head && len(free.words) == len(ruled.words) {
		return r, untouched // "old logs" are free, and the rule is about new ones
	}
	r.Supersedes = []string{r.ID}
	r.ID = ""
	r.Scope.Except = append(slices.Clone(r.Scope.Except), x.Scope.Text)
	return r, excepted
}

// contains reports whether all that o names is among what p names: p has fewer
// words, or values that cover.
func (p phrase) contains(o phrase) bool {
	for _, v := range p.values {
		if !slices.ContainsFunc(o.values, func(t target) bool { return v.covers(t, true) }) {
			return false
		}
	}
	for _, w := range p.words {
		if !slices.Contains(o.words, w) {
			return false
		}
	}
	return len(o.words)+len(o.values) > 0
}

// sharesAction reports whether a revocation's actions are a rule's: those it
// forbids, or the step that it demands ("you need not ask any more").
func sharesAction(t Trigger, r Rule) bool {
	if len(t.Actions) == 0 || len(r.Trigger.Actions) == 0 {
		return true
	}
	for _, a := range t.Actions {
		k := classOf(a)
		if k == classOf(r.Requires.Action) && r.Kind == Prerequisite && !slices.Contains(r.Trigger.Actions, a) {
			return true
		}
		for _, b := range r.Trigger.Actions {
			if k == classOf(b) || k == "touch" || classOf(b) == "touch" && !readsOnly[k] {
				return true
			}
		}
	}
	return false
}

// same reports whether two rules say the same.
func same(a, b Rule) bool {
	return a.Kind == b.Kind && slices.Equal(a.Trigger.Actions, b.Trigger.Actions) && a.Scope.Text == b.Scope.Text && slices.Equal(a.Scope.Values, b.Scope.Values) &&
		slices.Equal(a.Scope.Except, b.Scope.Except) && a.Requires == b.Requires && a.Condition == b.Condition && a.UntilText == b.UntilText &&
		a.ValidUntil.Equal(b.ValidUntil) && a.ValidFrom.Equal(b.ValidFrom) && a.Source.Session == b.Source.Session && a.Source.Author == b.Source.Author
}

// replaces reports whether a rule that narrows or updates takes the place of an
// older one: both are about the same action, and their objects meet.
func (r Rule) replaces(old Rule, how Relation) bool {
	if !sharesAction(r.Trigger, Rule{Kind: old.Kind, Trigger: old.Trigger}) {
		return false
	}
	a, b := newPhrase(r.Scope.Text, r.Scope.Values), newPhrase(old.Scope.Text, old.Scope.Values)
	empty := func(p phrase) bool { return len(p.words)+len(p.values) == 0 }
	switch {
	case empty(a) || empty(b), how == Narrows && r.Kind == old.Kind:
		return true
	case r.Kind != old.Kind:
		return false
	}
	return a.head == b.head || a.contains(b) || b.contains(a)
}
