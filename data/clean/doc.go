// Package clean removes from trajectories what would let a guard score well
// for the wrong reason: line folding of a benchmark's YAML printer, wrapper
// text around planted instructions, and strings that name the label. The main
// entry is [Apply]; [Leaks] counts what Apply would still find:
//
//	before := clean.Leaks(t)    // for a report: rule name -> occurrences
//	changed := clean.Apply(t)   // in place
//	clean.Leaks(t)              // empty
//
// [UnfoldYAML] is the one transform that the runtime shares: a guard applies it
// to every tool result, so that text it sees at run time has the form that it
// was trained on. All functions are pure, linear in the length of the text and
// safe for concurrent use on different trajectories.
package clean
