// Package features computes the call features: where each part of a proposed
// tool call comes from. They are the provenance signals of docs/reference/features.md and
// carry most of the transfer between domains.
//
// A [Tracker] follows one run. Compute judges a call against everything that was
// committed before it and changes nothing; Commit records an executed call and
// what came back. State is bounded, and the cost of a step does not grow with
// the length of the run.
//
//	tr := features.NewTracker(vocab, verdict.Task{Instruction: "Pay the rent"})
//	f := make([]float32, features.Count())
//	tr.Compute(f, call)      // before execution
//	tr.Commit(call, result)  // after it
//
// Training and runtime call the same code, so a feature cannot differ between
// them. [Version] names the definition: an artifact trained with another version
// is refused.
package features

// Version is the version of the feature definitions. It changes whenever any
// feature can take another value on some run.
const Version = 3
