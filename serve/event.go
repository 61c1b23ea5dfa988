package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
)

// Judged records a verdict and what is done about it.
func Judged(run string, action Action, v guard.Verdict, c guard.Call) decisionlog.Record {
	e := decisionlog.Record{Event: decisionlog.Refusal, Run: RunID(run), Enforced: action.Decision(), Verdict: &v, Call: &c, Message: c.IsMessage()}
	if action == Allow {
		e.Event = decisionlog.Verdict
	}
	return e
}

// Crash records that there is no verdict, and what is done instead.
func Crash(run string, s Settings, action Action, err error) decisionlog.Record {
	return decisionlog.Record{Event: decisionlog.Crash, Run: RunID(run), Mode: s.Mode, Enforced: action.Decision(), Cause: err.Error()}
}

// write records an event with the mode it happened in, where there is a log. What may
// not happen unrecorded must not happen: its error is one of the guard.
func write(record func(decisionlog.Record) error, mode Mode, e decisionlog.Record) error {
	if record == nil {
		return nil
	}
	e.Mode = mode
	if err := record(e); err != nil {
		return fmt.Errorf("the decision could not be logged: %w", err)
	}
	return nil
}

// maxRun is how much of an id the log keeps, in bytes.
const maxRun = 256

// RunID is the id of a run in the log. Two long ones stay two.
func RunID(id string) string {
	if len(id) <= maxRun {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}
