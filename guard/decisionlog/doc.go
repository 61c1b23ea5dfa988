// Package decisionlog keeps what a guard decided: one line of canonical JSON
// (RFC 8785) per event, in a file that only grows. Every line holds the hash of
// the line before, so that [Verify] finds one that was changed, removed or moved.
//
//	log, err := decisionlog.Open("decisions.jsonl", decisionlog.Options{})
//	if err != nil { ... }
//	defer log.Close()
//	v := session.Judge(ctx, call)
//	err = log.Append(decisionlog.Record{Run: "4711", Event: decisionlog.Judged(v), Enforced: v.Decision, Verdict: &v, Call: &call})
//	if err != nil { ... } // not recorded: what may not happen unrecorded must not happen
//
//	report, err := decisionlog.Verify("decisions.jsonl")
//	fmt.Println(report.OK(), report.Problems)
//
// A record is on disk when Append returns, unless [Options.NoSync] says that the
// file system's word is enough. Several processes may write to one log; records of
// goroutines that wait at the same time share one sync. A line that a kill or a
// full disk cut short was never acknowledged: the next writer cuts it off and says
// so in an event of its own.
//
// Texts (arguments, results, the agent's words) are kept as HMAC-SHA-256 under a
// key in a file that only its owner can read, so that equal texts can be found and
// short ones cannot be guessed. [Options.Payloads] keeps them in the clear as well.
//
// The chain is not signed. Who may write to the file can cut records off its end,
// or write all of it anew: keep [Report.Head] in another place now and then, and
// have a [Verifier] look for it.
//
// The lines are those of docs/reference/decision-log.md; "dreamguard monitor"
// reads them.
package decisionlog
