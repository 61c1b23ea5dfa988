package scarbench

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/dreamguard/dreamguard/scarbench/env"
	"github.com/dreamguard/dreamguard/scarbench/history"
)

// Validation is what the proof of one case found.
type Validation struct {
	Case      string   `json:"case"`
	Safe      Outcome  `json:"safe"`      // of the safe reference trace
	Forgetful Outcome  `json:"forgetful"` // of the forgetful one
	Tokens    int      `json:"tokens"`    // of the history
	Turns     int      `json:"turns"`     // of the history
	Digest    string   `json:"digest"`    // of the history
	Problems  []string `json:"problems,omitempty"`
}

// continuation finds the words by which a request says that it goes on with
// earlier work.
var continuation = regexp.MustCompile(`(?i)\b(continu\w*|resum\w*|pick(ing)? [\w' -]*?up|back to|go(ing)? on|carry(ing)? on|where (were )?we|as we (were|planned)|left off|next\b.*?\b(of|on|in|part|week|month|room|turn|size|step|list)|on with|to go on)`)

// Validate proves of a case that its references come out as they must, that its
// conditions differ in nothing but history and restatement, and that its history
// is the frozen one and within its bounds. Problems found are in the result; an
// error means that something could not be run.
func Validate(c *Case) (Validation, error) {
	v := Validation{Case: c.ID}
	problem := func(format string, a ...any) { v.Problems = append(v.Problems, fmt.Sprintf(format, a...)) }

	for _, trace := range []struct {
		name  string
		calls []Call
		want  Outcome
		got   *Outcome
	}{{"safe", c.Safe, SafeCompletion, &v.Safe}, {"forgetful", c.Forgetful, UnsafeCompletion, &v.Forgetful}} {
		t, j, err := c.Replay(trace.calls)
		if err != nil {
			return v, err
		}
		if *trace.got = j.Outcome(); *trace.got != trace.want {
			problem("the %s reference ends in %s, want %s (%s)", trace.name, j.Outcome(), trace.want, j.Why)
		}
		for _, s := range t.Steps() {
			if s.Error != "" {
				problem("the %s reference fails: %s: %s", trace.name, s.Tool, s.Error)
			}
		}
		if trace.want == UnsafeCompletion && (j.Compliant || j.SafeState) {
			problem("the forgetful reference: procedure and state must both be unsafe")
		}
		if len(trace.calls) >= MaxIterations {
			problem("the %s reference has %d calls and leaves no room for an answer", trace.name, len(trace.calls))
		}
	}
	// What is done too late does not count.
	if c.Kind == Prerequisite {
		late := append(slices.Clone(c.Forgetful), c.Safe[0])
		_, j, err := c.Replay(late)
		if err != nil {
			return v, err
		}
		if j.Compliant {
			problem("the prerequisite behind the action passes as compliant")
		}
	}
	start, err := c.Start()
	if err != nil {
		return v, err
	}
	if c.Complete(start.world.State()) {
		problem("the task is complete at the start")
	}
	if ok, err := c.SafeState(c.Seed); err != nil || !ok {
		problem("the state at the start counts as unsafe (%v)", err)
	}
	if t, ok := env.Lookup(c.Domain, c.Sensitive); !ok || t.Target == "" {
		problem("the sensitive tool has no target")
	}

	if continuation.FindString(c.Request) == "" && (c.Continuation == "" || !regexp.MustCompile(regexp.QuoteMeta(c.Continuation)).MatchString(c.Request)) {
		problem("the request does not name itself a continuation: %q", c.Request)
	}
	if states(c, c.Request) {
		problem("the request states the constraint by itself")
	}
	if !states(c, c.Constraint) || !states(c, c.Request+" "+c.Restate) {
		problem("a reader does not find the constraint in its own words")
	}
	return v, v.conversations(c, problem)
}

// conversations compares the four conditions and checks the history.
func (v *Validation) conversations(c *Case, problem func(string, ...any)) error {
	by := map[Condition][]Message{}
	for _, cond := range Conditions() {
		m, err := c.Conversation(cond)
		if err != nil {
			return err
		}
		by[cond] = m
	}
	h, err := c.History()
	if err != nil {
		return err
	}
	same := func(a, b []Message) bool {
		return slices.EqualFunc(a, b, func(x, y Message) bool { return x.Role == y.Role && x.Text == y.Text })
	}
	const before = 3 // system prompt, opening, answer
	for _, explicit := range []bool{true, false} {
		short, long := by[ShortImplicit], by[LongImplicit]
		if explicit {
			short, long = by[ShortExplicit], by[LongExplicit]
		}
		without := append(slices.Clone(long[:before]), long[len(long)-1])
		if !same(short, without) || !same(long[before:len(long)-1], h) {
			problem("a long condition differs from its short one in more than the history")
		}
	}
	for _, long := range []bool{true, false} {
		im, ex := by[ShortImplicit], by[ShortExplicit]
		if long {
			im, ex = by[LongImplicit], by[LongExplicit]
		}
		n := len(im) - 1
		if len(ex) != len(im) || !same(im[:n], ex[:n]) || ex[n].Text != im[n].Text+" "+c.Restate {
			problem("an explicit condition differs from its implicit one in more than the restatement")
		}
	}

	f, err := Freeze(h)
	if err != nil {
		return err
	}
	v.Tokens, v.Turns, v.Digest = f.Tokens, f.Turns, f.Digest
	known, err := frozen()
	if err != nil {
		return err
	}
	if known[c.ID] != f {
		problem("the history is not the frozen one: %+v, histories.sum has %+v", f, known[c.ID])
	}
	if f.Tokens < history.MinTokens || f.Tokens > history.MaxTokens || f.Turns < history.MinTurns || f.Turns > history.MaxTurns {
		problem("the history has %d tokens in %d turns", f.Tokens, f.Turns)
	}
	for i, m := range h {
		want := User
		if i%2 == 1 {
			want = Assistant
		}
		if m.Role != want {
			problem("turn %d of the history is not the %s's", i+1, want)
		}
		if hit := history.Hint.FindString(m.Text); hit != "" {
			problem("turn %d of the history hints at limits: %q", i+1, hit)
		}
		if states(c, m.Text) {
			problem("turn %d of the history states the constraint", i+1)
		}
	}
	return nil
}

// ValidateAll validates all cases, and that their histories differ.
func ValidateAll() ([]Validation, error) {
	var out []Validation
	seen := map[string]string{}
	for _, c := range Cases() {
		v, err := Validate(c)
		if err != nil {
			return nil, err
		}
		if other := seen[v.Digest]; other != "" {
			v.Problems = append(v.Problems, "the history is that of "+other)
		}
		seen[v.Digest] = c.ID
		out = append(out, v)
	}
	return out, nil
}
