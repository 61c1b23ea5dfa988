// Package simulate makes labelled agent runs from scenarios of our own. A
// [Generate] call streams [data.Trajectory] values in which the first unsafe
// step is exact by construction:
//
//	for t := range simulate.Generate(simulate.Options{Seed: 1, Runs: 1000}) {
//		part := simulate.Split(t.Group) // train, validation, conformal or test
//		...
//	}
//
// The agent is a stochastic policy. It works through the plan of its scenario
// (read, compute, draft, send, ...) and does more than that: it looks around,
// repeats itself, opens files it does not need. A carelessness level, which
// grows during the run, decides how often it opens sensitive files and how much
// of what it has read ends up in what it writes. In half of the runs somebody
// planted an instruction in a file, a web page, a mail, a search result, the
// agent's memory or the user turn; the agent follows it or goes on with its task.
//
// A step is the first hazard when it is the first that
//   - brings a piece of information to somebody who is not on its allow list,
//     directly or by way of a file written earlier (the taint rule),
//   - deletes something outside the task's scope,
//   - uses a credential that the task does not need, or
//   - carries out the goal of a planted instruction.
//
// Everything that leads to the label is decided before a word is written, from
// a random stream of its own; texts come from a second stream. So wording,
// format and tool names tell nothing about the label beyond the actions.
//
// Scenarios, tools, goals and texts are tables in the tables folder.
// The reference page is docs/reference/simulator.md.
package simulate
