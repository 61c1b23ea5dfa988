package floor

import (
	"fmt"
	"slices"
	"strings"
)

// Mode says what a rule does with a value.
type Mode string

// The modes.
const (
	Fixed   Mode = "fixed"   // any value is refused, the present one too
	Values  Mode = "values"  // only the listed values are refused
	Tighten Mode = "tighten" // a narrower value is permitted, a wider or incomparable one refused
)

// Rule protects one field.
type Rule struct {
	// Name is stated in decisions.
	Name string `yaml:"name" json:"name"`
	// Key protects every field of this name, at any depth of a path and inside
	// any value. Exactly one of Key and Path is set.
	Key string `yaml:"key,omitempty" json:"key,omitempty"`
	// Path protects the field at this dotted path. Positions in lists are left
	// out; * stands for any one key.
	Path string `yaml:"path,omitempty" json:"path,omitempty"`
	// Within limits a Key rule, for values, to these blocks. A path that names
	// the key is refused wherever it leads.
	Within []string `yaml:"within,omitempty" json:"within,omitempty"`
	// Mode is Fixed when empty.
	Mode Mode `yaml:"mode,omitempty" json:"mode,omitempty"`
	// Refuse lists the values that mode Values refuses.
	Refuse []string `yaml:"refuse,omitempty" json:"refuse,omitempty"`
	// Compare says how mode Tighten orders values.
	Compare Comparison `yaml:"compare,omitempty" json:"compare,omitempty"`
	// Order lists values from the widest to the narrowest, for Compare order.
	Order []string `yaml:"order,omitempty" json:"order,omitempty"`
	// Reason is shown to the agent.
	Reason string `yaml:"reason" json:"reason"`
}

// Rules is a set of rules.
type Rules struct {
	// Rules are tried in order; the first that refuses is stated.
	Rules []Rule `yaml:"rules" json:"rules"`
	// Blocks are parts of the document in which references, includes and
	// environment substitution are refused, beside the parents of the paths
	// above: places where a file or a variable could bring a protected field in.
	Blocks []string `yaml:"blocks,omitempty" json:"blocks,omitempty"`
	// IgnoreSeparators makes write_roots and write-roots the same as
	// writeRoots, for runtimes that bind keys loosely.
	IgnoreSeparators bool `yaml:"ignore_separators,omitempty" json:"ignore_separators,omitempty"`
}

const (
	reasonWriteRoots = "where you may write is for a person to decide, not for you: ask the person to add the folder to the configuration themselves"
	reasonAllowFrom  = "who may talk to you is for a person to decide: it is the gate that the message you are reading came through, so it cannot be widened from inside a conversation"
	reasonHost       = "where the server listens is for a person to decide: you may switch it on, on the address that is configured"
	reasonTokenEnv   = "what authenticates callers of the server is for a person to decide"
	reasonDeny       = "the deny rules were set by a person to stay: they cannot be removed, replaced or added to from inside a conversation"
	reasonOnMutate   = "the check on calls that untrusted text may have caused cannot be switched off from inside a conversation: confirm is permitted"
)

// DefaultRules returns the built-in rules: the floor of the paper, with allowFrom
// refused inside any value and not only inside those written to channels.
func DefaultRules() Rules {
	return Rules{
		Rules: []Rule{
			{Name: "write-roots", Key: "writeRoots", Reason: reasonWriteRoots},
			{Name: "allow-from", Key: "allowFrom", Reason: reasonAllowFrom},
			{Name: "server-host", Path: "server.host", Reason: reasonHost},
			{Name: "server-token", Path: "server.tokenEnv", Reason: reasonTokenEnv},
			{Name: "deny-rules", Path: "tools.policy.deny", Reason: reasonDeny},
			{Name: "untrusted-writes", Path: "tools.untrusted.onMutate", Mode: Values, Refuse: []string{"allow"}, Reason: reasonOnMutate},
		},
		Blocks: []string{"tools.providers", "channels"},
	}
}

// PaperRules returns the rules of the paper as they stand: as the default, but
// allowFrom inside a value counts only under channels.
func PaperRules() Rules {
	r := DefaultRules()
	for i := range r.Rules {
		if r.Rules[i].Name == "allow-from" {
			r.Rules[i].Within = []string{"channels"}
		}
	}
	return r
}

// TightenRules returns the default rules in the mode that lets an agent tighten
// its own limits: fewer write roots or senders, a narrower address, more deny
// rules, a stricter check. What cannot be compared stays refused.
func TightenRules() Rules {
	r := DefaultRules()
	for i := range r.Rules {
		switch rule := &r.Rules[i]; rule.Name {
		case "write-roots":
			rule.Mode, rule.Compare = Tighten, ComparePath
		case "allow-from":
			rule.Mode, rule.Compare = Tighten, CompareSubset
		case "server-host":
			rule.Mode, rule.Compare = Tighten, CompareCIDR
		case "deny-rules":
			rule.Mode, rule.Compare = Tighten, CompareSuperset
		case "untrusted-writes":
			rule.Mode, rule.Refuse, rule.Compare, rule.Order = Tighten, nil, CompareOrder, []string{"allow", "confirm", "refuse"}
		}
	}
	return r
}

// Builtin returns the built-in rules of the given name: default, paper or
// tighten.
func Builtin(name string) (Rules, bool) {
	switch name {
	case "default":
		return DefaultRules(), true
	case "paper":
		return PaperRules(), true
	case "tighten":
		return TightenRules(), true
	}
	return Rules{}, false
}

// trie is a position in the rules' paths. A state of a walk is a set of
// positions, since one key may be read in several ways; the empty set is a place
// that no path rule leads through.
type trie struct {
	next  map[string]*trie
	any   *trie // for *
	rule  int   // the rule that protects this very field, or -1
	block int   // index+1 of the protected block that this lies in, or 0
	self  state // the set that holds only this position
}

type state []*trie

func newTrie(block int) *trie {
	t := &trie{rule: -1, block: block}
	t.self = state{t}
	return t
}

func (t *trie) child(name string) *trie {
	if name == "*" {
		if t.any == nil {
			t.any = newTrie(t.block)
		}
		return t.any
	}
	if t.next == nil {
		t.next = map[string]*trie{}
	}
	c := t.next[name]
	if c == nil {
		c = newTrie(t.block)
		t.next[name] = c
	}
	return c
}

// New compiles rules. It fails on a rule that names no field or no reason, or
// whose mode lacks what it needs.
func New(r Rules) (*Floor, error) {
	r.Rules = slices.Clone(r.Rules)
	f := &Floor{rules: r, root: newTrie(0), anywhere: map[string]int{}, blocks: []*trie{nil}, withinBlocks: make([][]string, len(r.Rules))}
	if len(r.Rules) == 0 {
		return nil, &RuleError{Reason: "there are no rules: a floor without rules would permit everything"}
	}
	names := map[string]bool{}
	var parents [][]string
	for i, rule := range r.Rules {
		if err := rule.validate(); err != nil {
			return nil, err
		}
		if names[rule.Name] {
			return nil, &RuleError{Rule: rule.Name, Reason: "the name is used twice"}
		}
		names[rule.Name] = true
		if rule.Mode == "" {
			f.rules.Rules[i].Mode = Fixed
		}
		if rule.Key != "" {
			name := f.skeleton(rule.Key)
			if _, ok := f.anywhere[name]; ok {
				return nil, &RuleError{Rule: rule.Name, Reason: fmt.Sprintf("key %q is protected by another rule", rule.Key)}
			}
			f.anywhere[name] = i
			for _, b := range rule.Within {
				path, err := f.rulePath(b)
				if err != nil {
					return nil, &RuleError{Rule: rule.Name, Reason: fmt.Sprintf("within: %v", err)}
				}
				f.withinBlocks[i] = append(f.withinBlocks[i], strings.Join(path, "."))
			}
			continue
		}
		path, err := f.rulePath(rule.Path)
		if err != nil {
			return nil, &RuleError{Rule: rule.Name, Reason: err.Error()}
		}
		t := f.root
		for _, name := range path {
			t = t.child(name)
		}
		t.rule = i
		f.names = append(f.names, path...)
		if len(path) > 1 {
			parents = append(parents, path[:len(path)-1])
		}
	}
	for name := range f.anywhere {
		f.names = append(f.names, name)
	}
	for i := range r.Rules {
		for _, b := range f.withinBlocks[i] {
			parents = append(parents, strings.Split(b, "."))
		}
	}
	for _, b := range r.Blocks {
		path, err := f.rulePath(b)
		if err != nil {
			return nil, &RuleError{Reason: fmt.Sprintf("blocks: %v", err)}
		}
		parents = append(parents, path)
	}
	// Short paths first, so that a block inside a block keeps the outer mark only
	// where it has none of its own.
	slices.SortStableFunc(parents, func(a, b []string) int { return len(a) - len(b) })
	for _, p := range parents {
		t := f.root
		for _, name := range p {
			t = t.child(name)
		}
		inside := newTrie(len(f.blocks))
		f.blocks = append(f.blocks, inside)
		f.blockNames = append(f.blockNames, strings.Join(p, "."))
		markBlock(t, inside.block)
	}
	return f, nil
}

func markBlock(t *trie, block int) {
	t.block = block
	for _, c := range t.next {
		markBlock(c, block)
	}
	if t.any != nil {
		markBlock(t.any, block)
	}
}

func (r Rule) validate() error {
	fail := func(format string, args ...any) error {
		return &RuleError{Rule: r.Name, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case r.Name == "":
		return fail("a rule has no name")
	case (r.Key == "") == (r.Path == ""):
		return fail("want either key or path")
	case r.Reason == "":
		return fail("want a reason: it is what the agent is told")
	case r.Path != "" && len(r.Within) > 0:
		return fail("within belongs to key rules")
	}
	switch r.Mode {
	case "", Fixed:
	case Values:
		if len(r.Refuse) == 0 {
			return fail("mode values wants a list refuse")
		}
	case Tighten:
		if !r.Compare.valid() {
			return fail("mode tighten wants compare, one of %s", strings.Join(comparisons(), ", "))
		}
		if r.Compare == CompareOrder && len(r.Order) < 2 {
			return fail("compare order wants a list order, from the widest value to the narrowest")
		}
	default:
		return fail("unknown mode %q: want fixed, values or tighten", r.Mode)
	}
	return nil
}

// rulePath splits the dotted path of a rule into skeletons.
func (f *Floor) rulePath(path string) ([]string, error) {
	var out []string
	for s := range strings.SplitSeq(strings.ReplaceAll(path, "[]", ""), ".") {
		if s != "*" {
			s = f.skeleton(s)
		}
		if s == "" || s != "*" && isIndex(s) {
			return nil, fmt.Errorf("path %q: want names joined by dots, without positions", path)
		}
		out = append(out, s)
	}
	return out, nil
}

// RuleError is a rule that cannot be used.
type RuleError struct {
	File   string // "" when the rules did not come from a file
	Rule   string // its name, "" when it has none
	Reason string
}

func (e *RuleError) Error() string {
	s := "floor: "
	if e.File != "" {
		s = e.File + ": "
	}
	if e.Rule != "" {
		s += "rule " + e.Rule + ": "
	}
	return s + e.Reason
}
