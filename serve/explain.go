package serve

import (
	"fmt"
	"strings"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/verdict"
)

// Explain says why a call is held or blocked, for the agent and for the person
// who may be asked. It holds nothing of the call.
func Explain(v guard.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "dreamguard: %v", v.Decision)
	what, advice := make([]string, 0, len(v.Reasons)), verdict.Repairable
	for _, r := range v.Reasons {
		what = append(what, describe(r, v))
		switch r.Disposition() { // the one that leaves the agent least to do
		case verdict.Final:
			advice = verdict.Final
		case verdict.Wait:
			if advice == verdict.Repairable {
				advice = verdict.Wait
			}
		}
	}
	if len(what) > 0 {
		b.WriteString(": " + strings.Join(what, "; "))
	}
	switch {
	case v.Decision == guard.Pass:
	case v.Decision == guard.Hold || advice == verdict.Wait:
		b.WriteString(". A person has to decide about this call: do not try it another way.")
	case advice == verdict.Repairable:
		b.WriteString(". Change the call so that this does not apply, or ask the user.")
	default:
		b.WriteString(". The call stays refused: do not try it another way, tell the user.")
	}
	return b.String()
}

// describe says what a reason means.
func describe(r guard.Reason, v guard.Verdict) string {
	switch r {
	case verdict.ReasonHazard:
		return fmt.Sprintf("this call looks like harm to the user (hazard %.3f, the limit is %.3f)", v.Hazard, v.Thresholds.Block)
	case verdict.ReasonRisk:
		return fmt.Sprintf("this run looks risky (risk %.3f, the limit is %.3f)", v.Risk, v.Thresholds.Hold)
	case verdict.ReasonRefusals:
		return "too many calls of this run were refused"
	case verdict.ReasonDeadline:
		return "the verdict did not come in time"
	case verdict.ReasonEncoder:
		return "the call could not be read by the text encoder"
	case verdict.ReasonTooLarge:
		return fmt.Sprintf("the call is larger than the guard reads (%d bytes of arguments)", guard.MaxCall)
	case verdict.ReasonPolicy:
		return "a stated rule forbids it"
	case verdict.ReasonContained:
		return "it would change the agent's own limits"
	case verdict.ReasonWithdrawn:
		return "the calibration of the guard no longer stands"
	case verdict.ReasonUncovered:
		return "there is no valid threshold for runs of this kind"
	case verdict.ReasonIncomplete:
		return "the call cannot be understood"
	}
	return string(r)
}
