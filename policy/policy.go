package policy

import (
	"context"
	"time"

	"github.com/dreamguard/dreamguard/verdict"
)

// Author is who wrote a message.
type Author string

// The authors.
const (
	User      Author = "user"
	Operator  Author = "operator" // system prompt, administrator
	Assistant Author = "assistant"
	FromTool  Author = "tool" // results, files, web pages: text of anybody
)

// Authoritative reports whether what a says can constrain the agent, or lift a
// constraint. Only users and operators have that authority.
func (a Author) Authoritative() bool { return a == User || a == Operator }

// Message is one complete message of a conversation.
type Message struct {
	ID      string
	Author  Author
	Text    string
	Session string    // rules of a session end with it; "" makes rules of the project
	Turn    int       // position in the conversation
	Time    time.Time // when it was said: deadlines such as "until Friday" are counted from it; zero: not known, and deadlines stay text
}

// Compiler reads the constraints out of one message, without a view of later
// ones. Rules of the result have no ID; their Source names message and span.
// Text of authors without authority yields nothing. It must be safe for
// concurrent use.
type Compiler interface {
	Compile(ctx context.Context, m Message) (Compiled, error)
}

// Compiled is what a message says about constraints. The zero value: nothing.
type Compiled struct {
	Rules []Rule
	// Relation says what the message does to rules that are in force already.
	Relation Relation
	// Lifts describes, for Revokes, which actions are free again. An empty
	// trigger stands for every action, an empty scope for every object.
	Lifts []Lift
}

// Relation of a message to earlier constraints.
type Relation string

// The relations.
const (
	NoRelation Relation = ""
	Revokes    Relation = "revokes" // lifts them
	Narrows    Relation = "narrows" // keeps them for fewer actions or objects
	Updates    Relation = "updates" // puts a new one in their place
)

// Lift is what a revocation frees.
type Lift struct {
	Trigger Trigger `json:"trigger,omitzero"`
	Scope   Scope   `json:"scope,omitzero"`
	Source  Source  `json:"source"`
}

// Kind is what a rule demands.
type Kind string

// The kinds.
const (
	// Prohibition: the action must not be executed on the object.
	Prohibition Kind = "prohibition"
	// Prerequisite: Requires must have succeeded on the same target before.
	Prerequisite Kind = "prerequisite"
	// Provenance: no target of the action may come from untrusted results alone.
	// Such values may inform the agent; they do not authorise.
	Provenance Kind = "provenance"
)

// Rule is one constraint with its life: made by a [Compiler] or by hand, given an
// ID by the [Ledger], replaced and revoked by later entries, never changed.
type Rule struct {
	ID      string  `json:"id,omitempty"`
	Kind    Kind    `json:"kind"`
	Trigger Trigger `json:"trigger"`
	Scope   Scope   `json:"scope"`
	// Requires is the step that a Prerequisite wants; empty otherwise.
	Requires Step `json:"requires,omitzero"`
	// Condition says when the rule applies, in the words of the message: "if the
	// amount is over 500". Empty: always. The audit evaluates amounts and
	// weekdays; a condition that it cannot evaluate counts as met.
	Condition string `json:"condition,omitempty"`
	// ValidFrom and ValidUntil bound the time in force, [from, until). Zero: no
	// bound. UntilText is the deadline in the words of the message; a deadline
	// that is no time ("until the audit is done") leaves ValidUntil zero, and
	// holds until it is revoked.
	ValidFrom  time.Time `json:"valid_from,omitzero"`
	ValidUntil time.Time `json:"valid_until,omitzero"`
	UntilText  string    `json:"until_text,omitempty"`
	// Supersedes holds IDs of rules that this one replaces.
	Supersedes []string `json:"supersedes,omitempty"`
	Source     Source   `json:"source"`
}

// Trigger says which actions a rule is about.
type Trigger struct {
	// Actions are verbs in their base form, as stated: "delete", "send". They are
	// compared by meaning: "erase" triggers a rule about "delete". Empty: every
	// action that changes something.
	Actions []string `json:"actions,omitempty"`
}

// Scope says which objects a rule is about. The zero value is every object.
type Scope struct {
	// Text is the object in the words of the message, without article:
	// "customer records", "files in /srv/prod". Its words must be found in the call
	// (tool, names and values of arguments), up to inflection and common synonyms.
	Text string `json:"text,omitempty"`
	// Values are the paths, globs, addresses, ids and ranges in Text. One of them
	// must cover, or lie inside, a target of the call.
	Values []string `json:"values,omitempty"`
	// Except are objects that the rule spares: "only write to /tmp" is a
	// prohibition to write with the exception /tmp.
	Except []string `json:"except,omitempty"`
}

// Step is an action that must come first.
type Step struct {
	Action string `json:"action"`           // verb in its base form: "backup", "confirm", "run"
	Object string `json:"object,omitempty"` // what it acts on where that is not the target itself: "tests"
	Text   string `json:"text,omitempty"`   // in the words of the message: "make a backup of it"
}

// Source is where a rule comes from.
type Source struct {
	Author  Author `json:"author"`
	Session string `json:"session,omitempty"`
	Message string `json:"message,omitempty"` // Message.ID
	Turn    int    `json:"turn"`
	Span    Span   `json:"span"` // of the message's text
	Text    string `json:"text"` // what stands there
}

// Span is a half-open range of bytes.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Tool is an entry of a [Catalog]. Only Name is needed; [NewCatalog] derives
// what is left empty from Name, Description and Schema.
type Tool struct {
	Name        string
	Description string
	Schema      []byte // JSON Schema of the arguments, an object
	// Actions are the verbs in base form that a successful call performs:
	// "backup". From the name: "backup_table" does "backup" to a "table".
	Actions []string
	// Objects are the kinds of object that it acts on: "table".
	Objects []string
	// Targets names the arguments that say what is acted on. The first is the
	// primary one: a prerequisite counts only if it covers that value. From the
	// names of the arguments if nil; an empty, non-nil list: a tool without target.
	Targets []string
	// Undoes are verbs whose effect on the same target, or on what their result
	// named, a successful call takes back: "backup" for delete_backup.
	Undoes []string
	// Defaults are argument values that a repair may use where neither the call
	// nor the schema gives one.
	Defaults map[string]any
	// ReadOnly: no prohibition about changes applies. From the verb if Actions is
	// empty.
	ReadOnly bool
}

// Outcome is what an audit comes to.
type Outcome int8

// The outcomes.
const (
	// Permit: no rule stands against the call.
	Permit Outcome = iota
	// Repair: prerequisites are missing, and Plan brings them about.
	Repair
	// Bottom: the call must not be executed, and no plan is known.
	Bottom
)

func (o Outcome) String() string {
	switch o {
	case Permit:
		return "permit"
	case Repair:
		return "repair"
	}
	return "bottom"
}

// MarshalText writes the outcome's name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Decision is the answer of an audit.
type Decision struct {
	Outcome Outcome `json:"outcome"`
	// Plan holds, for Repair, the calls to execute before the audited one, in
	// order. Each was audited by the same rules in the state that its
	// predecessors leave if they succeed, and so was the call itself after them.
	// The host executes and records each, and audits again: a step that failed
	// does not count.
	Plan []verdict.Call `json:"plan,omitempty"`
	// Rule is the ID of the rule that decided; empty for Permit.
	Rule string `json:"rule,omitempty"`
	// Reason is text for the agent; empty for Permit.
	Reason string `json:"reason,omitempty"`
	// Bound holds the IDs of all rules that apply to the call.
	Bound []string `json:"bound,omitempty"`
}
