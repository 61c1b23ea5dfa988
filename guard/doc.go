// Package guard loads a frozen artifact and judges the tool calls of running
// agents. It is the small runtime of DreamGuard: no training code, no cgo, no
// network, one forward pass per call.
//
// A [Model] is shared; every agent run has a [Session]:
//
//	m, err := guard.Open("artifact") // or guard.OpenFS(shipped.FS), of checkpoints/shipped
//	s := m.Start(guard.Task{Instruction: "pay the rent to the landlord"})
//	for {
//		call := agent.Propose()
//		v := s.Judge(ctx, call) // before execution; does not move the session
//		if v.Decision != guard.Pass {
//			err = s.Skip(call) // not executed
//			continue
//		}
//		result := tools.Execute(call)
//		err = s.Commit(call, result) // what came back shapes the next verdict
//	}
//
// A held call that a person releases is committed like any other. Results are
// never visible to the verdict on the call that produced them.
//
// Judge fails closed: what keeps the model from answering (an encoder that
// fails, a call larger than the guard reads, too many refusals) is HOLD with its
// [Reason]. Scores lie on the grid of package calib, so that a verdict does not
// hang on the last bit.
//
// [Session.Explain] judges and says what the verdict rests on and what may be done
// instead; "dreamguard explain" prints it.
//
// [Session.MarshalBinary] and [Model.Resume] carry a run to another process.
package guard
