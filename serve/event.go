package serve

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
)

// judged records a verdict and what is done about it.
func judged(run string, action Action, v guard.Verdict, c guard.Call) decisionlog.Record {
	e := decisionlog.Record{Event: decisionlog.Refusal, Run: runID(run), Enforced: action.Decision(), Verdict: &v, Call: &c, Message: c.IsMessage()}
	if action == Allow {
		e.Event = decisionlog.Verdict
	}
	return e
}

// crash records that there is no verdict, and what is done instead.
func crash(run string, s Settings, action Action, err error) decisionlog.Record {
	return decisionlog.Record{Event: decisionlog.Crash, Run: runID(run), Mode: s.Mode, Enforced: action.Decision(), Cause: err.Error()}
}

// maxRun is how much of an id the log keeps, in bytes.
const maxRun = 256

// runID is the id of a run in the log. Two long ones stay two.
func runID(id string) string {
	if len(id) <= maxRun {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}
