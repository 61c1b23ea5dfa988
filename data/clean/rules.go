package clean

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/dreamguard/dreamguard/data"
)

// Names of the rules, in the order in which [Apply] runs them.
const (
	YAMLFolding    = "yaml-folding"
	HazardUnnamed  = "hazard-unnamed"
	AttackerPhrase = "attacker-phrase"
	WrapperText    = "wrapper"
	ToolList       = "tool-list"
	TriggerPhrase  = "trigger-phrase"
)

// Rule is one named transform.
type Rule struct {
	Name string
	Doc  string // one sentence for a report: what leaks and what is done

	fields field                        // which texts text is applied to
	text   func(s string) (string, int) // the new text and the number of changes
	run    func(t *data.Trajectory) int // a rule on more than one field
}

// field is a set of texts of a trajectory.
type field uint8

const (
	inTask   field = 1 << iota // Task, Context and texts in Extra
	inArgs                     // Step.Args
	inText                     // Step.Text
	inResult                   // Step.Result and Step.Error
)

const everywhere = inTask | inArgs | inText | inResult

var rules = []Rule{
	{
		Name:   YAMLFolding,
		Doc:    "Long lines that a YAML printer folded in results are joined again: planted text is folded otherwise in one tool than in another.",
		fields: inResult,
		text: func(s string) (string, int) {
			u := UnfoldYAML(s)
			return u, countIf(u != s)
		},
	},
	{
		Name: HazardUnnamed,
		Doc:  "A hazard located by the attack tool's own result, on a step that does not name that tool (parallel calls were merged), becomes missing: no guard could see it there.",
		run:  dropUnnamedHazard,
	},
	{
		Name:   AttackerPhrase,
		Doc:    "Results that say \"attacker tool\" and \"attacker goal\" get the form of ordinary results: the words name the label.",
		fields: everywhere,
		text:   maskAttacker,
	},
	{
		Name:   WrapperText,
		Doc:    "The fixed sentences and tags around a planted instruction are removed and the instruction stays on a line of its own: the wrapper is the same in all runs of a benchmark.",
		fields: everywhere,
		text:   stripWrapper,
	},
	{
		Name:   ToolList,
		Doc:    "Tool catalogues written into tasks and step texts are removed: they hold the attack tool, or lack it, with the label.",
		fields: inTask | inText,
		text:   stripToolList,
	},
	{
		Name:   TriggerPhrase,
		Doc:    "The trigger phrase of a backdoor is removed: it stands in unsafe runs only.",
		fields: everywhere,
		text:   stripTrigger,
	},
}

// Rules returns the rules in the order in which [Apply] runs them.
func Rules() []Rule { return slices.Clone(rules) }

// Apply runs all rules on t, in place, and returns the number of changes by
// rule name; rules that changed nothing are left out. Applying it again changes
// nothing.
func Apply(t *data.Trajectory) map[string]int {
	counts := map[string]int{}
	for i := range rules {
		if n := rules[i].apply(t); n > 0 {
			counts[rules[i].Name] = n
		}
	}
	return counts
}

// Leaks returns what [Apply] would change, by rule name, and leaves t as it is.
func Leaks(t *data.Trajectory) map[string]int {
	c := *t
	c.Steps = slices.Clone(t.Steps)
	c.Extra = maps.Clone(t.Extra)
	return Apply(&c)
}

func (r *Rule) apply(t *data.Trajectory) int {
	if r.run != nil {
		return r.run(t)
	}
	n := 0
	edit := func(s *string) {
		if *s == "" {
			return
		}
		out, k := r.text(*s)
		if k > 0 {
			*s = out
			n += k
		}
	}
	if r.fields&inTask != 0 {
		edit(&t.Task)
		edit(&t.Context)
		n += r.extra(t)
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		if r.fields&inArgs != 0 {
			edit(&s.Args)
		}
		if r.fields&inText != 0 {
			edit(&s.Text)
		}
		if r.fields&inResult != 0 {
			edit(&s.Result)
			edit(&s.Error)
		}
	}
	return n
}

// extra applies the rule to the texts that the source keeps beside the known
// fields, such as a profile of the agent.
func (r *Rule) extra(t *data.Trajectory) int {
	n := 0
	for key, raw := range t.Extra {
		var s string
		if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
			continue
		}
		out, k := r.text(s)
		if k == 0 {
			continue
		}
		b, err := json.Marshal(out)
		if err != nil {
			continue // cannot happen: out is a string
		}
		t.Extra[key] = b
		n += k
	}
	return n
}

func countIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
