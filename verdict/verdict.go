// Package verdict holds the vocabulary that the parts of DreamGuard share: what
// a tool call is, what a decision is, why it was taken, and how a deterministic
// layer takes part. It is a leaf: package guard aliases these types, packages
// policy and floor import them and know nothing of the learned model.
//
//	type noDelete struct{}
//
//	func (noDelete) Judge(_ context.Context, _ verdict.SessionView, c verdict.Call) (verdict.Decision, []verdict.Reason, []verdict.Call) {
//		if c.Tool == "delete_file" {
//			return verdict.Block, []verdict.Reason{verdict.ReasonPolicy}, nil
//		}
//		return verdict.Pass, nil, nil
//	}
//
//	func (noDelete) Commit(verdict.SessionView, verdict.Call, verdict.Result) {}
package verdict

import (
	"context"
	"fmt"
)

// Decision is what the guard answers. Stricter decisions are larger, so the
// strictest of several is their maximum.
type Decision int8

// The decisions.
const (
	Pass  Decision = iota // execute the call
	Hold                  // wait for a person
	Block                 // do not execute the call
)

func (d Decision) String() string {
	switch d {
	case Pass:
		return "PASS"
	case Hold:
		return "HOLD"
	case Block:
		return "BLOCK"
	}
	return fmt.Sprintf("Decision(%d)", int8(d))
}

// MarshalText writes PASS, HOLD or BLOCK.
func (d Decision) MarshalText() ([]byte, error) {
	if d < Pass || d > Block {
		return nil, fmt.Errorf("verdict: %v is not a decision", d)
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads PASS, HOLD or BLOCK.
func (d *Decision) UnmarshalText(b []byte) error {
	switch string(b) {
	case "PASS":
		*d = Pass
	case "HOLD":
		*d = Hold
	case "BLOCK":
		*d = Block
	default:
		return fmt.Errorf("verdict: %.20q is not a decision: want PASS, HOLD or BLOCK", b)
	}
	return nil
}

// Task is what the guard is told when a run starts.
type Task struct {
	Instruction string // the user's instruction, e
	Context     string // text present before the run that the user did not write now: memory, planted notes
	Tools       []Tool // the tool catalogue, where the host knows it
}

// Tool describes one tool of the catalogue.
type Tool struct {
	Name        string
	Description string
}

// Call is a proposed action, a_t. A plain message of the agent has an empty
// Tool: it is scored, and never stopped.
type Call struct {
	Tool      string
	Arguments string // as the agent wrote them, normally a JSON object
	Text      string // the agent's own words that came with the call; optional
}

// IsMessage reports whether the action is a plain message.
func (c Call) IsMessage() bool { return c.Tool == "" }

// Result is what came back after a call was executed, o_{t+1}.
type Result struct {
	Output string
	Error  string
	User   bool // Output is a reply of the user, who has authority, not of a tool, which has none
}

// SessionView is what a layer may read of the running session.
type SessionView interface {
	Task() Task
	Step() int // number of committed steps
}

// Layer is a deterministic rule set that judges beside the learned model. The
// strictest decision wins; no layer loosens another.
type Layer interface {
	// Name is stated in the verdict.
	Name() string
	// Judge must not change the layer's state. The returned calls are a repair
	// plan for the host to execute, each judged again.
	Judge(ctx context.Context, s SessionView, c Call) (Decision, []Reason, []Call)
	// Commit records an executed call.
	Commit(s SessionView, c Call, r Result)
}

// Reason says why a decision was taken. The list is closed.
type Reason string

// The reasons.
const (
	ReasonHazard     Reason = "hazard"     // the hazard head's probability reached the block threshold
	ReasonRisk       Reason = "risk"       // the fused risk score reached the hold threshold
	ReasonRefusals   Reason = "refusals"   // too many stopped calls in this session
	ReasonDeadline   Reason = "deadline"   // the verdict did not come in time
	ReasonEncoder    Reason = "encoder"    // the text encoder failed
	ReasonTooLarge   Reason = "too_large"  // the call is larger than the guard reads
	ReasonPolicy     Reason = "policy"     // a stated constraint forbids the call
	ReasonContained  Reason = "contained"  // the call would move the agent's own limits
	ReasonWithdrawn  Reason = "withdrawn"  // the calibration certificate no longer stands
	ReasonUncovered  Reason = "uncovered"  // no valid threshold exists for this group
	ReasonIncomplete Reason = "incomplete" // the call cannot be understood
)

// Disposition says what the agent or its host may do about a reason.
type Disposition string

// The dispositions.
const (
	Final      Disposition = "final"      // the call stays refused
	Repairable Disposition = "repairable" // the agent may change the call and ask again
	Wait       Disposition = "wait"       // a person decides
)

// Disposition returns what may be done about r. A reason outside the closed
// list is final.
func (r Reason) Disposition() Disposition {
	switch r {
	case ReasonRisk, ReasonRefusals, ReasonWithdrawn, ReasonUncovered, ReasonDeadline, ReasonEncoder:
		return Wait // changing the call would not help
	case ReasonTooLarge, ReasonIncomplete, ReasonPolicy:
		return Repairable
	}
	return Final
}
