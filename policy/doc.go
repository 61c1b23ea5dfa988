// Package policy keeps what a user said in force: it has constraints read out of
// messages when they arrive, by a [Compiler], keeps them in a ledger that no compaction of the
// conversation touches, puts those that matter back into the prompt, and audits
// each tool call against them before it is executed. It is deterministic (a
// language model may help to read, never to decide) and knows nothing of the
// learned model.
//
//	ledger, err := policy.OpenLedger("constraints.jsonl") // policy.NewLedger() keeps it in memory
//	defer ledger.Close()
//
//	// 1. Ingestion: every complete message, as it comes.
//	_, err = ledger.Ingest(ctx, compiler, policy.Message{ // of the host: this package has none yet
//		Author: policy.User, Turn: 1, Text: "Never delete a table without a backup of it.",
//	})
//
//	// 2. Restoration: what matters for a request, as text for the prompt.
//	rules := ledger.InForce(time.Now(), session)
//	gate, err := policy.NewGate(encoder) // nil: words only
//	active, err := gate.Active(ctx, "Go on with the clean-up: drop the orders table", rules)
//	prompt = policy.Restore(active) + prompt
//
//	// 3. Audit, before a call is executed.
//	catalog, err := policy.NewCatalog(
//		policy.Tool{Name: "backup_table", Schema: schema},
//		policy.Tool{Name: "drop_table", Schema: schema},
//	)
//	auditor := policy.NewAuditor(catalog, rules)
//	var state policy.State
//	d := auditor.Audit(&state, verdict.Call{Tool: "drop_table", Arguments: `{"table": "orders"}`})
//	// d.Outcome == policy.Repair, d.Plan == [backup_table {"table": "orders"}]
//	state.Record(d.Plan[0], result) // after the host executed it
//	d = auditor.Audit(&state, call) // d.Outcome == policy.Permit
//
// [Layer] joins the three behind verdict.Layer. The parts work alone: restoration
// without audit, and audit without restoration, are ablations of the whole.
//
// # What is promised
//
// The guarantee is local to an action: a call that the audit permits violates
// none of the rules it was given, as far as rule, call and recorded state say.
// It promises nothing about rules that ingestion missed, effects that a tool has
// beside what its catalogue entry says, or harm that no rule names.
package policy
