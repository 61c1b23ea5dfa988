// Package floor is a containment floor: it lets an agent change the part of its
// own configuration that grants abilities, and never the part that sets its
// limits. It is deterministic, knows no model, and imports nothing of DreamGuard
// but package verdict.
//
//	f := floor.Default()
//
//	// One field, as a tool such as config_set writes it.
//	d := f.Check(floor.Write("server.host", "0.0.0.0"))
//	if d.Outcome != floor.Permit {
//		return errors.New(d.Reason) // text for the agent
//	}
//
//	// A whole new document, judged by what it changes against the old one.
//	d = f.Check(floor.Document(floor.YAML, before, after))
//
//	// A patch, judged by what it writes.
//	d = f.Check(floor.Change{Format: floor.JSONPatch, Before: before, Text: patch})
//
//	// A file that is only ever written through the check.
//	g, err := floor.Guard("agent.yaml", f)
//	d, err = g.Replace(after)
//
// The rules are data ([Rules], a YAML file for [Load]); [Default] protects who may
// reach the agent, where it may write, where its server listens and what
// authenticates it, what it must not run, and the check on untrusted content.
// docs/reference/floor.md lists every rule, normalisation and exit code.
//
// Sub-package layer judges tool calls, configmcp serves the floor as MCP tools,
// and study measures how often agents ask for what the floor refuses.
package floor
