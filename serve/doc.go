// Package serve puts a guard in front of agents that do not link package guard:
// each adapter speaks the words of one host.
//
//   - [ClaudeCode] answers the hooks of Claude Code, one process per event.
//   - [Lines] answers JSON lines of any program, one process for many runs.
//   - [Proxy] stands between a client and a server of the Model Context Protocol.
//
// All of them turn a decision of the guard into one of three actions by the same
// [Settings], and explain it in the same words:
//
//	h := &serve.ClaudeCode{
//		Settings: serve.Settings{Mode: serve.Enforce, OnError: serve.DenyOnError, OnHold: serve.AskOnHold},
//		Sessions: serve.Store{Dir: "/home/me/.local/state/dreamguard"},
//		Open:     func(context.Context, string) (*guard.Model, error) { return guard.Open("artifact") },
//	}
//	reply := h.Handle(ctx, os.Stdin) // never fails: a failure is a reply too
//	os.Stdout.Write(reply.Stdout)
//	os.Stderr.WriteString(reply.Stderr)
//	os.Exit(reply.Exit)
//
// What each host is told is written down in docs/reference/adapters.md.
package serve
