package serve

import "github.com/dreamguard/dreamguard/guard"

// Kind says what an adapter records.
type Kind string

// The kinds. A refusal is a Judged event whose Action is not Allow; a crash is the
// lack of a verdict.
const (
	Started   Kind = "start"
	Judged    Kind = "judge"
	Crashed   Kind = "crash"
	Committed Kind = "commit"
	Skipped   Kind = "skip"
	Ended     Kind = "end"
)

// Event is what an adapter hands to the decision log.
type Event struct {
	Kind    Kind
	Run     string // id of the run, as the host gave it
	Mode    Mode
	Action  Action         // what is enforced, of Judged and Crashed
	Verdict *guard.Verdict // of Judged
	Call    *guard.Call
	Result  *guard.Result // of Committed
	Cause   string        // of Crashed; holds no payload
}
