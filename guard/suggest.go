package guard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/internal/oneline"
	"github.com/dreamguard/dreamguard/verdict"
)

// SuggestionKind says what may be done instead of a call that was not let through.
// The list is closed.
type SuggestionKind string

// The kinds.
const (
	ConfirmRecipient SuggestionKind = "confirm_recipient" // ask the user to confirm who receives
	DropArgument     SuggestionKind = "drop_argument"     // leave out what an untrusted text supplied
	DropSecret       SuggestionKind = "drop_secret"       // leave out a secret or personal value
	StayInScope      SuggestionKind = "stay_in_scope"     // touch only what the task names
	ConfirmCall      SuggestionKind = "confirm_call"      // ask the user whether this may be done at all
	ShortenCall      SuggestionKind = "shorten_call"      // the call is larger than the guard reads
	UsePlan          SuggestionKind = "use_plan"          // the verdict's Repair holds calls to execute instead
	AskUser          SuggestionKind = "ask_user"          // nothing better is known
)

// Suggestion is something that the agent, or a person, may do instead. It is data:
// nothing here executes it, and what is done instead is judged like any call. Text
// and Value quote the call, which an attacker may have had a hand in.
type Suggestion struct {
	Kind     SuggestionKind `json:"kind"`
	Argument string         `json:"argument,omitempty"` // JSON pointer (RFC 6901) into the arguments
	Value    string         `json:"value,omitempty"`    // what stands there, on one line, cut; never a secret
	Result   *int           `json:"result,omitempty"`   // step whose result it came from
	Text     string         `json:"text"`
}

// Bounds of what is looked at and proposed.
const (
	maxLeaves        = 8
	maxSuggestions   = 6
	maxQuoted        = 120 // characters
	maxArgumentDepth = 16
)

// featureIndex finds a call feature by name.
var featureIndex = sync.OnceValue(func() map[string]int {
	index := map[string]int{}
	for i, d := range features.Definitions() {
		index[d.Name] = i
	}
	return index
})

// reading are the call features of a call or of one of its arguments.
type reading []float32

func (r reading) of(name string) float64 {
	if i, ok := featureIndex()[name]; ok {
		return float64(r[i])
	}
	return 0
}

func (r reading) any(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return r.of(n) > 0 })
}

// suggest fills in what may be done about a call that is not let through. What an
// argument is told by its call features when it stands alone.
func (s *Session) suggest(v *Verdict, c Call) {
	if v.Decision == Pass || c.IsMessage() {
		return
	}
	add := func(x Suggestion) {
		if len(v.Suggestions) < maxSuggestions {
			v.Suggestions = append(v.Suggestions, x)
		}
	}
	if len(v.Repair) > 0 {
		add(Suggestion{Kind: UsePlan, Text: fmt.Sprintf("Execute the plan of %d calls that the verdict carries instead; each is judged again.", len(v.Repair))})
	}
	if slices.Contains(v.Reasons, verdict.ReasonTooLarge) {
		add(Suggestion{Kind: ShortenCall, Text: fmt.Sprintf("Make the call shorter: at most %d bytes of arguments are read.", MaxCall)})
	}
	if v.Scored {
		c = validCall(c)
		row := reading(make([]float32, features.Count()))
		for _, l := range argumentLeaves(c.Arguments) {
			s.tracker.Compute(row, Call{Tool: c.Tool, Arguments: l.arguments()})
			if x, ok := s.aboutArgument(row, l); ok {
				add(x)
			}
		}
		s.tracker.Compute(row, c)
		if x, ok := aboutCall(row, c); ok {
			add(x)
		}
	}
	if len(v.Suggestions) == 0 {
		add(Suggestion{Kind: AskUser, Text: "Ask the user how to go on."})
	}
}

// aboutArgument says what may be done about one argument.
func (s *Session) aboutArgument(r reading, l argument) (Suggestion, bool) {
	x := Suggestion{Argument: l.pointer}
	name := "the arguments"
	if l.pointer != "" {
		name = "argument " + oneline.Of(l.pointer, maxQuoted)
	}
	source := s.source(r, &x)
	untrusted := r.of("arg_untrusted") >= 0.5 || r.any("value_any_directive", "contact_any_directive")
	switch {
	case r.any("taint_any", "personal_labels", "personal_shapes") && r.any("is_effect"):
		x.Kind, x.Result = DropSecret, nil // the directive that it matches is not where it was read
		x.Text = fmt.Sprintf("Leave the secret or personal value out of %s.", name)
	case r.of("contact_count") > 0 && !r.any("contact_any_task"):
		x.Kind, x.Value = ConfirmRecipient, oneline.Of(l.value, maxQuoted)
		x.Text = fmt.Sprintf("Ask the user to confirm the recipient %q, whom the task does not name", x.Value)
		if untrusted {
			x.Text += " and who comes from " + source
		} else {
			x.Result = nil
		}
		x.Text += "."
	case untrusted:
		x.Kind, x.Value = DropArgument, oneline.Of(l.value, maxQuoted)
		x.Text = fmt.Sprintf("Leave out %s: it comes from %s, not from the user.", name, source)
	default:
		return x, false
	}
	return x, true
}

// source names where the order comes from that an argument matches best.
func (s *Session) source(r reading, x *Suggestion) string {
	age := r.of("match_age")
	switch {
	case r.any("match_planted"):
		return "text that was there before the run"
	case age > 0:
		if step := s.steps - int(math.Round(1/age)); step >= 0 && step < s.steps { // age 1: the last one
			x.Result = &step
			return fmt.Sprintf("the result of step %d", step)
		}
	}
	return "a result"
}

// aboutCall says what may be done about a call as a whole.
func aboutCall(r reading, c Call) (Suggestion, bool) {
	switch {
	case r.any("delete_outside"):
		return Suggestion{Kind: StayInScope, Text: "Delete only inside the folders that the task names, or ask the user."}, true
	case r.any("is_effect") && !r.any("verb_in_task", "tool_literal_task"):
		return Suggestion{Kind: ConfirmCall, Text: fmt.Sprintf("Ask the user whether %q may be called: the task asks for nothing of its kind.", oneline.Of(c.Tool, maxQuoted))}, true
	}
	return Suggestion{}, false
}

// argument is one text or number among the arguments.
type argument struct {
	pointer string
	key     string // nearest name
	value   string
}

// arguments returns arguments in which it stands alone.
func (a argument) arguments() string {
	if a.pointer == "" {
		return a.value
	}
	b, err := json.Marshal(map[string]string{a.key: a.value})
	if err != nil { // strings can always be written
		return a.value
	}
	return string(b)
}

// argumentLeaves returns the shortest arguments of three bytes or more: addresses,
// ids and paths are short, and a long text among the arguments is no single thing.
func argumentLeaves(text string) []argument {
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil || d.More() {
		return []argument{{value: text}}
	}
	var list []argument
	var walk func(pointer, key string, v any, depth int)
	leaf := func(pointer, key, value string) {
		if len(value) >= 3 {
			list = append(list, argument{pointer, key, value})
		}
	}
	walk = func(pointer, key string, v any, depth int) {
		if depth > maxArgumentDepth {
			return
		}
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(k), k, v[k], depth+1)
			}
		case []any:
			for i, x := range v {
				walk(pointer+"/"+strconv.Itoa(i), key, x, depth+1)
			}
		case string:
			leaf(pointer, key, v)
		case json.Number:
			leaf(pointer, key, v.String())
		}
	}
	walk("", "", v, 0)
	slices.SortStableFunc(list, func(a, b argument) int { return cmp.Compare(len(a.value), len(b.value)) })
	return list[:min(len(list), maxLeaves)]
}
