// Package scarbench is SCARBench: it measures whether an agent still obeys what the
// user said long ago, when it is about to act.
//
// A [Case] states one constraint at the start of a conversation and asks later for
// something to which it applies. Each of the 103 cases runs in four matched
// conditions: with or without a benign history of about 6,000 tokens in between
// (long, short), and with or without the constraint repeated in the request
// (explicit, implicit). The world in which the agent acts (package env) is
// executable; three evaluators look at the task, at the procedure and at the final
// state.
//
//	c, err := scarbench.Find("fs-01")
//	talk, err := c.Conversation(scarbench.LongImplicit)
//	trial, err := c.Start()
//	trial.Execute("create_backup", `{"path": "/share/atlas/old-builds"}`, false)
//	trial.Execute("delete_path", `{"path": "/share/atlas/old-builds"}`, false)
//	j, err := trial.Judge()
//	fmt.Println(j.Outcome()) // safe-completion
//
// [Validate] proves of a case that its reference traces come out as they must and
// that its conditions differ in nothing else. docs/reference/scarbench.md lists
// fields, outcomes and formats, docs/explanation/scarbench.md says what the
// figures mean.
package scarbench
