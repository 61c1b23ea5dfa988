// Package data defines the agent trajectory: the one record that every stage
// of DreamGuard reads and writes. It holds types and their JSON form only;
// files are read by data/store and data/formats, split by data/split and
// cleaned by data/clean.
//
//	var t data.Trajectory
//	if err := json.Unmarshal(line, &t); err != nil { ... }
//	for i, step := range t.Steps {
//		call := t.Call(i)       // a_t: what a guard may see before the step runs
//		result := t.Result(i)   // o_{t+1}: what came back, never shown with a_t
//	}
package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dreamguard/dreamguard/verdict"
)

// Label says whether a trajectory contains an unsafe agent step. The zero
// value is [Unknown]. In JSON: null, 0 and 1.
type Label int8

// The three labels.
const (
	Unknown Label = iota
	Safe
	Unsafe
)

func (l Label) String() string {
	switch l {
	case Safe:
		return "safe"
	case Unsafe:
		return "unsafe"
	}
	return "unknown"
}

// MarshalJSON writes null, 0 or 1.
func (l Label) MarshalJSON() ([]byte, error) {
	switch l {
	case Safe:
		return []byte("0"), nil
	case Unsafe:
		return []byte("1"), nil
	}
	return []byte("null"), nil
}

// ErrLabel is returned for a label that is not 0, 1 or null.
var ErrLabel = errors.New("label must be 0 (safe), 1 (unsafe) or null (unknown)")

// UnmarshalJSON reads null, 0 or 1 and refuses everything else.
func (l *Label) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "null":
		*l = Unknown
	case "0":
		*l = Safe
	case "1":
		*l = Unsafe
	default:
		return fmt.Errorf("%w, not %.20s", ErrLabel, b)
	}
	return nil
}

// Step types.
const (
	ToolCall = "tool_call" // the agent called a tool
	Message  = "message"   // the agent wrote a message; Args is empty
)

// UserPrefix marks a Result that is the user's reply rather than tool output.
// Only on a step of type [Message] does it carry the user's authority: tool
// output can contain any text, this prefix included.
const UserPrefix = "[user] "

// Step is one action of the agent and what came back.
type Step struct {
	Type   string `json:"type"`             // ToolCall or Message
	Tool   string `json:"tool,omitempty"`   // name of the called tool; on a Message at most the channel it went through ("finish", "think"), which Call leaves out
	Args   string `json:"args,omitempty"`   // arguments as the agent wrote them, normally a JSON object
	Text   string `json:"text,omitempty"`   // thought or message that came with the action
	Result string `json:"result,omitempty"` // what came back AFTER the action
	Error  string `json:"error,omitempty"`  // error that came back instead of, or beside, Result
}

// Tool describes a tool that was offered to the agent.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Trajectory is one run of an agent on one task. Pointers are nil where the
// source does not say. Fields of the source that have no place here are kept
// verbatim in Extra.
type Trajectory struct {
	ID         string `json:"id"`                    // unique
	Dataset    string `json:"dataset"`               // source
	Group      string `json:"group"`                 // same task: the unit of a leakage-free split
	AgentModel string `json:"agent_model,omitempty"` // model (and defence) that produced the run
	Task       string `json:"task"`                  // user instruction, e
	Context    string `json:"context,omitempty"`     // text planted or remembered before the task (ASB memory)
	Tools      []Tool `json:"tools,omitempty"`       // tool catalogue, where the source has one
	Steps      []Step `json:"steps"`

	Label       Label  `json:"label"`
	FirstHazard *int   `json:"first_hazard"`           // index of the first unsafe step; nil if none or not located
	HazardLabel string `json:"hazard_label,omitempty"` // how FirstHazard was found: see HazardExact

	AttackPresent   *bool `json:"attack_present,omitempty"`
	InjectionSeen   *int  `json:"injection_seen,omitempty"` // first step whose Result shows the planted text; -1 = before step 0
	AttackSucceeded *bool `json:"attack_succeeded,omitempty"`
	TaskSucceeded   *bool `json:"task_succeeded,omitempty"`

	Suite         string `json:"suite,omitempty"`
	UserTask      string `json:"user_task,omitempty"`
	InjectionTask string `json:"injection_task,omitempty"` // the injection goal: hold out as well as Group
	Attack        string `json:"attack,omitempty"`         // kind of attack
	AttackTool    string `json:"attack_tool,omitempty"`

	Extra map[string]json.RawMessage `json:"-"`
}

// Values of HazardLabel. Anything else is a weak label.
const (
	HazardRule    = "rule"    // exact: a predicate, or the simulator
	HazardMissing = "missing" // unsafe, not located
	HazardNone    = "n/a"     // safe
)

// Located reports whether the trajectory is unsafe with a known first hazard.
func (t *Trajectory) Located() bool { return t.Label == Unsafe && t.FirstHazard != nil }

// HazardExact reports whether FirstHazard was found by an exact rule.
func (t *Trajectory) HazardExact() bool { return t.Located() && t.HazardLabel == HazardRule }

// Call returns a_t, the action of step i as a guard sees it before it runs.
func (t *Trajectory) Call(i int) verdict.Call {
	s := &t.Steps[i]
	if s.Type == Message {
		return verdict.Call{Text: s.Text}
	}
	return verdict.Call{Tool: s.Tool, Arguments: s.Args, Text: s.Text}
}

// Result returns o_{i+1}, what came back after step i.
func (t *Trajectory) Result(i int) verdict.Result {
	s := &t.Steps[i]
	if s.Type == Message {
		if reply, ok := strings.CutPrefix(s.Result, UserPrefix); ok {
			return verdict.Result{Output: reply, Error: s.Error, User: true}
		}
	}
	return verdict.Result{Output: s.Result, Error: s.Error}
}

// StartTask returns what the guard is told when the run starts.
func (t *Trajectory) StartTask() verdict.Task {
	tools := make([]verdict.Tool, len(t.Tools))
	for i, d := range t.Tools {
		tools[i] = verdict.Tool(d)
	}
	return verdict.Task{Instruction: t.Task, Context: t.Context, Tools: tools}
}

// FieldError names the field of a trajectory that is wrong and what to do.
type FieldError struct {
	Field string // JSON path, for example steps[3].type
	Msg   string
	Err   error // the cause, for errors.Is; may be nil
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Msg }

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }

// Validate checks what every stage relies on. The error is a [*FieldError].
func (t *Trajectory) Validate() error {
	bad := func(field, format string, a ...any) error {
		return &FieldError{Field: field, Msg: fmt.Sprintf(format, a...)}
	}
	if t.ID == "" {
		return bad("id", "is empty: give every trajectory a unique id")
	}
	if len(t.Steps) == 0 {
		return bad("steps", "is empty: a trajectory needs at least one agent step")
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		field := func(name string) string { return fmt.Sprintf("steps[%d].%s", i, name) }
		switch s.Type {
		case ToolCall:
			if s.Tool == "" {
				return bad(field("tool"), "is empty: a step of type tool_call names its tool")
			}
		case Message:
			if s.Args != "" {
				return bad(field("args"), "is set on a step of type message: use type tool_call")
			}
		default:
			return bad(field("type"), "is %.40q: want tool_call or message", s.Type)
		}
	}
	if h := t.FirstHazard; h != nil {
		if t.Label != Unsafe {
			return bad("first_hazard", "is set although label is not 1: only an unsafe run has a first hazard")
		}
		if *h < 0 || *h >= len(t.Steps) {
			return bad("first_hazard", "is %d: want 0 to %d, or null where it is not located", *h, len(t.Steps)-1)
		}
	}
	if s := t.InjectionSeen; s != nil && (*s < -1 || *s >= len(t.Steps)) {
		return bad("injection_seen", "is %d: want -1 to %d, or null", *s, len(t.Steps)-1)
	}
	return nil
}
