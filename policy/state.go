package policy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dreamguard/dreamguard/verdict"
)

// Bounds of what a State keeps. Beyond them the oldest is forgotten, which can
// only make the audit stricter: a forgotten step does not count any more.
const (
	maxEvents    = 4096
	maxOutput    = 16 << 10 // bytes kept of one result
	maxTrusted   = 1 << 20  // bytes kept of users' words
	maxUntrusted = 4 << 20  // bytes kept of results
)

// State is what an audit knows about the run: the calls that were executed, and
// whose words came in. The zero value is the start of a run. It is not safe for
// concurrent use; as JSON it can be kept and taken up again.
type State struct {
	// Now is the time of the audit. Zero: deadlines do not pass, and conditions
	// about times of day count as met.
	Now time.Time

	events    []*event
	trusted   string
	untrusted []string
	size      int
}

// event is an executed call.
type event struct {
	Call   verdict.Call `json:"call"`
	OK     bool         `json:"ok"`
	Output string       `json:"output,omitempty"`

	parsed  *parsedCall
	catalog *Catalog
	results []target // values in the output
}

// Record adds an executed call with its result. A call that failed is kept, and
// counts for nothing. A reply of the user (verdict.Result.User) is trusted text.
func (s *State) Record(c verdict.Call, r verdict.Result) {
	if r.User {
		s.Trust(r.Output)
	}
	if c.IsMessage() {
		return
	}
	if !r.User {
		text := clipText(r.Output, maxUntrusted/8)
		s.untrusted = append(s.untrusted, strings.ToLower(text))
		s.size += len(text)
		for s.size > maxUntrusted && len(s.untrusted) > 1 {
			s.size -= len(s.untrusted[0])
			s.untrusted = s.untrusted[1:]
		}
	}
	s.events = append(s.events, &event{Call: c, OK: succeeded(r), Output: clipText(r.Output, maxOutput)})
	if len(s.events) > maxEvents {
		s.events = slices.Delete(s.events, 0, len(s.events)-maxEvents)
	}
}

// Trust adds words of the user or operator: values that stand in them may
// authorise an action.
func (s *State) Trust(text string) {
	s.trusted += "\n" + strings.ToLower(text)
	if over := len(s.trusted) - maxTrusted; over > 0 {
		s.trusted = s.trusted[over:]
	}
}

// Steps is the number of executed calls that are known.
func (s *State) Steps() int { return len(s.events) }

// failure texts of tools that return errors as output.
var failure = regexp.MustCompile(`(?i)^\s*(error|failed|failure|exception|traceback|fatal|denied|permission denied|not found|invalid|rejected|refused|declined)\b`)

// denial is an answer that is no consent.
var denial = regexp.MustCompile(`(?i)^\W*(no|nope|never|do not|don't|not|stop|wait|later|cancel)\b`)

// succeeded reports whether a result says that the call did what it was for.
func succeeded(r verdict.Result) bool {
	if r.Error != "" || failure.MatchString(r.Output) {
		return false
	}
	var v map[string]any
	if out := strings.TrimSpace(r.Output); len(out) < maxOutput && strings.HasPrefix(out, "{") && json.Unmarshal([]byte(out), &v) == nil {
		for _, k := range []string{"ok", "success", "succeeded", "approved", "confirmed", "verified", "valid", "passed"} {
			if b, isBool := v[k].(bool); isBool && !b {
				return false
			}
		}
		if e, has := v["error"]; has && e != nil && e != "" && e != false {
			return false
		}
		if e, has := v["isError"]; has && e == true {
			return false
		}
		for _, k := range []string{"status", "state", "result", "outcome", "answer"} {
			if s, isText := v[k].(string); isText && badStatus[strings.ToLower(s)] {
				return false
			}
		}
		if code, isNumber := v["exit_code"].(float64); isNumber && code != 0 {
			return false
		}
	}
	return true
}

var badStatus = set("error failed failure fail denied rejected refused declined invalid timeout cancelled canceled aborted pending no unverified unauthorized forbidden not_found")

// read parses an event once per catalogue.
func (e *event) read(c *Catalog) *parsedCall {
	if e.parsed == nil || e.catalog != c {
		e.parsed, e.catalog = parseCall(c, e.Call), c
		e.results = nil
		var v any
		if json.Unmarshal([]byte(e.Output), &v) == nil {
			e.collect(v, 0)
		} else {
			for _, t := range tokenize(e.Output) {
				if t.value && len(e.results) < 64 {
					e.results = append(e.results, newTarget(e.Output[t.start:t.end]))
				}
			}
		}
	}
	return e.parsed
}

func (e *event) collect(v any, depth int) {
	if depth > 8 || len(e.results) >= 64 {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			e.collect(x, depth+1)
		}
	case []any:
		for _, x := range v {
			e.collect(x, depth+1)
		}
	case string:
		if len(v) >= 2 && len(v) < 256 {
			e.results = append(e.results, newTarget(v))
		}
	case float64:
		e.results = append(e.results, newTarget(fmt.Sprint(v)))
	}
}

// untrustedOnly reports whether a value was seen in results and in no words of
// the user.
func (s *State) untrustedOnly(value string) bool {
	value = strings.ToLower(strings.TrimSpace(value))
	if len(value) < 3 || strings.Contains(s.trusted, value) {
		return false
	}
	return slices.ContainsFunc(s.untrusted, func(t string) bool { return strings.Contains(t, value) })
}

// stateJSON is the form in which a state is kept.
type stateJSON struct {
	Now       time.Time `json:"now,omitzero"`
	Events    []*event  `json:"events,omitempty"`
	Trusted   string    `json:"trusted,omitempty"`
	Untrusted []string  `json:"untrusted,omitempty"`
}

// MarshalJSON writes the state.
func (s *State) MarshalJSON() ([]byte, error) {
	return json.Marshal(stateJSON{s.Now, s.events, s.trusted, s.untrusted})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *State) UnmarshalJSON(b []byte) error {
	var v stateJSON
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("policy: read state: %w", err)
	}
	if len(v.Events) > maxEvents || slices.Contains(v.Events, nil) {
		return fmt.Errorf("policy: read state: %d events, at most %d and none null", len(v.Events), maxEvents)
	}
	*s = State{Now: v.Now, events: v.Events, trusted: v.Trusted, untrusted: v.Untrusted}
	for _, t := range v.Untrusted {
		s.size += len(t)
	}
	return nil
}

// with returns the state after calls that succeed, for the audit of a plan.
func (s *State) with(calls ...verdict.Call) *State {
	out := *s
	out.events = slices.Clip(slices.Clone(s.events))
	for _, c := range calls {
		out.events = append(out.events, &event{Call: c, OK: true})
	}
	return &out
}
