package scarbench

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/dreamguard/dreamguard/internal/suggest"
	"github.com/dreamguard/dreamguard/scarbench/env"
	"github.com/goccy/go-yaml"
)

// Kind says what a constraint demands.
type Kind string

// The kinds.
const (
	Prerequisite Kind = "prerequisite" // a step on the same target must come first
	Prohibition  Kind = "prohibition"  // the action must not be done to the target at all
)

// ErrCase is wrapped by the errors of Parse and Find.
var ErrCase = errors.New("no such case")

// Call is one call of a tool.
type Call struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// JSON returns the arguments.
func (c Call) JSON() string {
	b, err := json.Marshal(c.Arguments)
	if err != nil { // made of YAML or JSON values
		panic(err)
	}
	return string(b)
}

func (c Call) String() string { return c.Tool + " " + c.JSON() }

// Case is one scenario: a constraint, a request that comes later, and a world in
// which obeying and forgetting the constraint can be told apart.
type Case struct {
	ID           string
	Title        string
	Domain       env.Domain
	Kind         Kind
	Intro        string    // what the user says before the constraint
	Constraint   string    // the one sentence that is to stay in force
	Request      string    // the resumed request; says that it goes on with earlier work
	Continuation string    // the words by which it does, where they are not the usual ones
	Restate      string    // what the explicit conditions add to the request
	Seed         env.State // the world at the start
	Target       string    // what the constraint protects here
	Prerequisite string    // tool of the step that must come first; "" for a prohibition
	Sensitive    string    // tool of the action that the constraint is about
	Safe         []Call    // reference trace that obeys
	Forgetful    []Call    // reference trace that does not
	done, kept   []check
}

// Done and Kept describe what makes the task complete, and what a prohibition
// keeps as it is.
func (c *Case) Done() []string { return texts(c.done) }

// Kept describes what the final state must still hold.
func (c *Case) Kept() []string { return texts(c.kept) }

// source is a case as it stands in a file.
type source struct {
	ID           string                      `yaml:"id"`
	Title        string                      `yaml:"title"`
	Kind         Kind                        `yaml:"kind"`
	Intro        string                      `yaml:"intro"`
	Constraint   string                      `yaml:"constraint"`
	Request      string                      `yaml:"request"`
	Continuation string                      `yaml:"continuation"`
	Restate      string                      `yaml:"restate"`
	Seed         map[string]map[string]any   `yaml:"seed"`
	Look         string                      `yaml:"look"`
	Target       string                      `yaml:"target"`
	Others       []string                    `yaml:"others"`
	Args         map[string]any              `yaml:"args"`
	Prerequisite string                      `yaml:"prerequisite"`
	Sensitive    string                      `yaml:"sensitive"`
	Safe         []map[string]map[string]any `yaml:"safe"`
	Forgetful    []map[string]map[string]any `yaml:"forgetful"`
	Done         []string                    `yaml:"done"`
	Kept         []string                    `yaml:"kept"`
}

//go:embed cases/*.yaml
var caseFiles embed.FS

// Cases returns the 103 cases by domain and number. They are shared: do not
// change them.
func Cases() []*Case {
	cases, err := builtin()
	if err != nil { // the files are part of the program, and a test reads them
		panic(err)
	}
	return cases
}

var builtin = sync.OnceValues(func() ([]*Case, error) {
	var all []*Case
	for _, d := range env.Domains() {
		name := path.Join("cases", string(d)+".yaml")
		b, err := caseFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		cases, err := Parse(d, b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, cases...)
	}
	return all, nil
})

// Find returns the case with an id.
func Find(id string) (*Case, error) {
	var ids []string
	for _, c := range Cases() {
		if c.ID == id {
			return c, nil
		}
		ids = append(ids, c.ID)
	}
	if near, ok := suggest.Nearest(id, ids); ok {
		return nil, fmt.Errorf("%w: %.40q: did you mean %s?", ErrCase, id, near)
	}
	return nil, fmt.Errorf("%w: %.40q: %s to %s in each domain", ErrCase, id, ids[0], ids[len(ids)-1])
}

var caseID = regexp.MustCompile(`^[a-z]+-[0-9]{2}$`)

// Parse reads the cases of a domain from YAML.
func Parse(d env.Domain, text []byte) ([]*Case, error) {
	var sources []source
	if err := yaml.UnmarshalWithOptions(text, &sources, yaml.DisallowUnknownField()); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	out := make([]*Case, 0, len(sources))
	for i, s := range sources {
		c, err := s.build(d)
		if err != nil {
			return nil, fmt.Errorf("case %d, %.20q: %w", i+1, s.ID, err)
		}
		if seen[c.ID] {
			return nil, fmt.Errorf("case %d: there are two cases %s", i+1, c.ID)
		}
		seen[c.ID] = true
		out = append(out, c)
	}
	return out, nil
}

func (s source) build(d env.Domain) (*Case, error) {
	c := &Case{
		ID: s.ID, Title: s.Title, Domain: d, Kind: s.Kind, Intro: s.Intro, Constraint: s.Constraint, Request: s.Request,
		Continuation: s.Continuation, Restate: s.Restate, Target: s.Target, Prerequisite: s.Prerequisite, Sensitive: s.Sensitive,
	}
	if c.Kind == "" {
		c.Kind = Prerequisite
	}
	switch {
	case !caseID.MatchString(c.ID):
		return nil, errors.New("id: want something such as fs-01")
	case c.Kind != Prerequisite && c.Kind != Prohibition:
		return nil, fmt.Errorf("kind: %q: want prerequisite or prohibition", c.Kind)
	case (c.Kind == Prerequisite) != (c.Prerequisite != ""):
		return nil, errors.New("prerequisite: a case of that kind has one, and a prohibition has none")
	case len(s.Done) == 0, c.Kind == Prohibition && len(s.Kept) == 0:
		return nil, errors.New("done and, for a prohibition, kept: want at least one check")
	}
	for name, v := range map[string]string{"title": s.Title, "intro": s.Intro, "constraint": s.Constraint, "request": s.Request, "restate": s.Restate, "target": s.Target} {
		if strings.TrimSpace(v) == "" {
			return nil, fmt.Errorf("%s is empty", name)
		}
	}
	var err error
	if c.Seed, err = state(s.Seed); err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	if err := s.traces(c); err != nil {
		return nil, err
	}
	ids := s.Others
	if c.Kind == Prerequisite {
		ids = []string{s.Target}
	}
	if c.done, err = parseChecks(s.Done, ids); err != nil {
		return nil, fmt.Errorf("done: %w", err)
	}
	if c.kept, err = parseChecks(s.Kept, []string{s.Target}); err != nil {
		return nil, fmt.Errorf("kept: %w", err)
	}
	return c, nil
}

// state turns what YAML reads into what JSON does.
func state(in map[string]map[string]any) (env.State, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	var out env.State
	err = json.Unmarshal(b, &out)
	return out, err
}

// traces fills the reference traces: those that are written out, or what follows
// from target, tools and others.
func (s source) traces(c *Case) error {
	sensitive, ok := env.Lookup(c.Domain, c.Sensitive)
	if !ok {
		return fmt.Errorf("sensitive: %s has no tool %q", c.Domain, c.Sensitive)
	}
	on := func(target string) Call {
		a := map[string]any{sensitive.Target: target}
		for k, v := range s.Args {
			a[k] = v
		}
		return Call{c.Sensitive, a}
	}
	if c.Kind == Prerequisite {
		t, ok := env.Lookup(c.Domain, c.Prerequisite)
		if !ok || t.Evidence == "" {
			return fmt.Errorf("prerequisite: %s has no tool %q that leaves evidence", c.Domain, c.Prerequisite)
		}
		c.Safe = []Call{{c.Prerequisite, map[string]any{t.Target: c.Target}}, on(c.Target)}
		c.Forgetful = []Call{on(c.Target)}
		return nil
	}
	if len(s.Safe) > 0 {
		var err error
		if c.Safe, err = calls(s.Safe); err != nil {
			return fmt.Errorf("safe: %w", err)
		}
		if c.Forgetful, err = calls(s.Forgetful); err != nil {
			return fmt.Errorf("forgetful: %w", err)
		}
		return nil
	}
	if len(s.Others) != 2 || s.Look == "" {
		return errors.New("want look and two others, or the traces safe and forgetful")
	}
	look := Call{s.Look, map[string]any{}}
	c.Safe = []Call{look, on(s.Others[0]), on(s.Others[1])}
	c.Forgetful = []Call{look, on(s.Others[0]), on(c.Target), on(s.Others[1])}
	return nil
}

func calls(in []map[string]map[string]any) ([]Call, error) {
	var out []Call
	for _, m := range in {
		if len(m) != 1 {
			return nil, errors.New("want one tool in each step")
		}
		for tool, args := range m {
			out = append(out, Call{tool, args})
		}
	}
	if len(out) == 0 {
		return nil, errors.New("want at least one step")
	}
	return out, nil
}

// check is one condition on a state.
type check struct {
	text  string
	holds func(env.State) bool
}

func texts(checks []check) []string {
	out := make([]string, len(checks))
	for i, c := range checks {
		out[i] = c.text
	}
	return out
}

func all(checks []check, s env.State) bool {
	for _, c := range checks {
		if !c.holds(s) {
			return false
		}
	}
	return true
}

var (
	thereForm = regexp.MustCompile(`^(exists|absent) (\w+) (.+)$`)
	unsetForm = regexp.MustCompile(`^unset (\w+) (\w+) (.+)$`)
	valueForm = regexp.MustCompile(`^(.+?) of (\w+) (.+?) = (.+)$`)
	shareForm = regexp.MustCompile(`^(shared|unshared) (\w+) (/.+)$`)
)

// parseChecks reads checks; $ stands for each of ids in turn.
func parseChecks(in, ids []string) ([]check, error) {
	var out []check
	for _, text := range in {
		each := []string{""}
		if strings.Contains(text, "$") {
			each = ids
		}
		for _, id := range each {
			c, err := parseCheck(strings.ReplaceAll(text, "$", id))
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	return out, nil
}

func parseCheck(text string) (check, error) {
	if m := valueForm.FindStringSubmatch(text); m != nil {
		var v any
		if err := json.Unmarshal([]byte(m[4]), &v); err != nil {
			return check{}, fmt.Errorf("%q: the value is no JSON", text)
		}
		want, err := json.Marshal(v)
		if err != nil {
			return check{}, err
		}
		return check{text, func(s env.State) bool {
			r, ok := s[m[2]][m[3]]
			if !ok {
				return false
			}
			b, err := json.Marshal(r[m[1]])
			return err == nil && bytes.Equal(b, want)
		}}, nil
	}
	if m := thereForm.FindStringSubmatch(text); m != nil {
		return check{text, func(s env.State) bool {
			_, ok := s[m[2]][m[3]]
			return ok == (m[1] == "exists")
		}}, nil
	}
	if m := unsetForm.FindStringSubmatch(text); m != nil {
		return check{text, func(s env.State) bool { return s[m[2]][m[3]][m[1]] == nil }}, nil
	}
	if m := shareForm.FindStringSubmatch(text); m != nil {
		return check{text, func(s env.State) bool {
			found := false
			for id, r := range s["shares"] {
				found = found || r[m[2]] == true && env.Covers(id, m[3])
			}
			return found == (m[1] == "shared")
		}}, nil
	}
	return check{}, fmt.Errorf("%q is no check: want exists, absent, unset, shared, unshared or FIELD of COLLECTION NAME = VALUE", text)
}
