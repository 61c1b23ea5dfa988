package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
	"github.com/dreamguard/dreamguard/serve"
)

// log records an event of a session.
func (s *Server) log(id string, e decisionlog.Record) error {
	if s.c.Record == nil {
		return nil
	}
	e.Run, e.Mode = serve.RunID(id), s.c.Settings.Mode
	if err := s.c.Record(e); err != nil {
		return errors.Join(fail(http.StatusServiceUnavailable, "log", "the decision could not be logged"), err)
	}
	return nil
}

// update calls f with a session of who, brought up to date.
func (s *Server) update(ctx context.Context, who Principal, id string, f func(*Session) error) error {
	if !validID(id) {
		return ErrNoSession
	}
	return s.c.Store.Update(ctx, id, func(x *Session) error {
		if x.Owner != who.Name && who.Role != Admin {
			return ErrNoSession // nobody learns which ids others use
		}
		if err := s.models.attach(x); err != nil {
			return err
		}
		s.settleHolds(x)
		return f(x)
	})
}

// outcome is what a held call's state means for the call.
func (s *Server) outcome(h *Hold) (State, serve.Action) {
	switch {
	case h.State == HoldPending:
		return StateHeld, serve.Ask
	case h.State == HoldApproved && s.now().Sub(*h.Answered) <= s.c.HoldFor: // an approval does not last
		return StateOpen, serve.Allow
	case h.State == HoldExpired && s.c.OnExpiry == serve.AllowOnError:
		return StateOpen, serve.Allow
	}
	return StateDenied, serve.Deny
}

// settleHolds brings the answers to held calls into the session.
func (s *Server) settleHolds(x *Session) {
	for i := range x.Judgements {
		j := &x.Judgements[i]
		if j.Hold == "" || j.settled() {
			continue
		}
		h, _, _, known := s.holds.get(j.Hold)
		if !known {
			if s.now().After(j.Until.Add(2 * s.c.HoldFor)) {
				j.State = StateDenied
			}
			continue
		}
		if j.State, _ = s.outcome(&h); j.State == StateDenied {
			// A call whose words were shortened cannot be shown to the guard again.
			if c := h.call(); serve.HashCall(c) == j.Call {
				_ = x.skip(c) // a refusal more or less; the call stays denied
			}
		}
	}
}

// judge answers a call.
func (s *Server) judge(ctx context.Context, who Principal, id string, req judgeRequest) (*judgeAnswer, error) {
	call, err := req.Call.call()
	if err != nil {
		return nil, err
	}
	if len(req.Key) > maxKey || req.WaitMS < 0 {
		return nil, fail(http.StatusBadRequest, "bad_request", "key has at most %d bytes, wait_ms is not below 0", maxKey)
	}
	hash := serve.HashCall(call)
	var a *judgeAnswer
	begin := s.now()
	ctx, span := s.tracer.Start(ctx, spanVerdict, trace.WithAttributes(attrSession.String(head(id, maxID))))
	err = s.update(ctx, who, id, func(x *Session) error {
		if a != nil && a.Hold != nil {
			s.holds.withdraw(id, a.Hold.ID) // of a try that another process overtook
		}
		a = nil
		if j := x.byKey(req.Key); j != nil {
			switch {
			case j.Call != hash:
				return fail(http.StatusConflict, "key_reused", "the key was used for another call")
			case j.Answer == nil:
				return fail(http.StatusConflict, "forgotten", "the call of this key was judged too long ago: judge it again under another key")
			}
			a = j.Answer
			return nil
		}
		if req.IfStep != nil && *req.IfStep != x.run.Step() {
			return fail(http.StatusConflict, "out_of_order", "if_step is %d, committed are %d steps", *req.IfStep, x.run.Step())
		}
		if x.open() >= maxOpen {
			return fail(http.StatusConflict, "too_many_open", "%d calls of this session wait for their result: commit or skip some", maxOpen)
		}
		var err error
		a, err = s.verdict(ctx, x, call, req.Key)
		return err
	})
	endVerdict(span, a, err)
	if err != nil {
		if a != nil && a.Hold != nil {
			s.holds.withdraw(id, a.Hold.ID)
		}
		return nil, err
	}
	s.metrics.verdict(a, s.now().Sub(begin))
	if a.Hold != nil {
		return s.await(ctx, a, time.Duration(min(req.WaitMS, int(s.c.HoldFor/time.Millisecond)))*time.Millisecond), nil
	}
	return a, nil
}

// verdict judges a new call of a session.
func (s *Server) verdict(ctx context.Context, x *Session, call guard.Call, key string) (*judgeAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	v := x.run.Judge(ctx, call)
	j := Judgement{N: x.Next + 1, Key: key, Call: serve.HashCall(call), Tool: head(call.Tool, 64), State: StateOpen}
	action := s.c.Settings.Action(v.Decision)
	a := &judgeAnswer{Session: x.ID, Judgement: j.N, Step: v.Step, Action: action, Cause: "verdict", Verdict: &v}
	unshown := action == serve.Ask && (len(call.Arguments) > guard.MaxCall || len(call.Tool) > guard.MaxTool)
	if unshown {
		action = serve.Deny // nobody can agree to what he was not shown
	}
	if err := s.log(x.ID, serve.Judged(x.ID, action, v, call)); err != nil {
		return nil, err
	}
	if action != serve.Allow {
		a.Cause, a.Reason = "refusal", serve.Explain(v)
	}
	if action == serve.Ask {
		h, err := s.holds.add(Hold{
			Session: x.ID, Label: x.Label, Owner: x.Owner, Judgement: j.N, Tool: call.Tool, Arguments: call.Arguments,
			Text: head(call.Text, shownText), Task: head(x.run.Task().Instruction, shownTask), Hash: hashText(call), Reason: a.Reason, Verdict: v,
		})
		switch {
		case errors.Is(err, errHolds):
			action, a.Reason = serve.Deny, a.Reason+" Too many held calls wait for a person: this one is refused."
			if err := s.log(x.ID, decisionlog.Record{Event: decisionlog.Release, Enforced: guard.Block, Cause: "the queue is full"}); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		default:
			j.State, j.Hold, j.Until = StateHeld, h.ID, h.Expires
			a.Hold = &holdBrief{ID: h.ID, State: h.State, Expires: h.Expires}
		}
	}
	if unshown {
		a.Reason += " It is too large to be shown to a person."
	}
	if action == serve.Deny {
		j.State = StateDenied
		if err := x.run.Skip(call); err != nil {
			return nil, err
		}
	}
	a.Action, j.Answer = action, a
	x.Next++
	x.add(j, v, call.IsMessage())
	return a, nil
}

// await waits for a person's answer and returns the verdict's answer with it.
func (s *Server) await(ctx context.Context, a *judgeAnswer, wait time.Duration) *judgeAnswer {
	h, _ := s.awaitHold(ctx, a.Hold.ID, wait)
	if h == nil {
		return a
	}
	out := *a // the one that is kept stays as it is
	_, out.Action = s.outcome(h)
	out.Hold = &holdBrief{ID: h.ID, State: h.State, Expires: h.Expires, By: h.By}
	if out.Action == serve.Allow {
		out.Cause, out.Reason = "verdict", ""
	}
	return &out
}

// awaitHold waits until a held call is answered, for wait at most and as long as the
// service runs.
func (s *Server) awaitHold(ctx context.Context, id string, wait time.Duration) (*Hold, error) {
	h, done, deadline, known := s.holds.get(id)
	if !known {
		return nil, errNoHold
	}
	if wait > 0 && h.State == HoldPending {
		t := time.NewTimer(min(wait, time.Until(deadline)))
		defer t.Stop()
		select {
		case <-done:
		case <-t.C:
		case <-ctx.Done():
		case <-s.draining:
		}
	}
	if h.State == HoldPending && !s.now().Before(deadline) {
		if err := s.holds.expire(); err != nil {
			s.c.Logger.Error("a held call could not be ended", "error", err)
		}
	}
	h, _, _, _ = s.holds.get(id)
	return &h, nil
}

func hashResult(r guard.Result) [sha256.Size]byte {
	var b []byte
	for _, part := range [...]string{r.Output, r.Error} {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	if r.User {
		b = append(b, 1)
	}
	return sha256.Sum256(b)
}

// settle records what came of a call, or with result nil that it was not executed.
func (s *Server) settle(ctx context.Context, who Principal, id string, req commitRequest, result *guard.Result) (*commitAnswer, error) {
	call, err := req.Call.call()
	if err != nil {
		return nil, err
	}
	a := &commitAnswer{Session: id, Judgement: req.Judgement}
	ctx, span := s.tracer.Start(ctx, spanCommit, trace.WithAttributes(attrSession.String(head(id, maxID)), attrJudgement.Int(req.Judgement)))
	defer span.End()
	err = s.update(ctx, who, id, func(x *Session) (err error) {
		a.Duplicate, err = s.settleIn(x, call, req, result)
		a.Step, a.State = x.run.Step(), StateCommitted
		if result == nil {
			a.State = StateSkipped
		}
		return err
	})
	if err != nil {
		endFailed(span, err)
		return nil, err
	}
	span.SetAttributes(attrStep.Int(a.Step), attrDuplicate.Bool(a.Duplicate))
	return a, nil
}

func (s *Server) settleIn(x *Session, call guard.Call, req commitRequest, result *guard.Result) (duplicate bool, err error) {
	j := x.find(req.Judgement)
	switch {
	case req.Judgement == 0 && result != nil && s.c.Settings.Failed() == serve.Allow:
		// It was made without a verdict, as is configured for a failure. What came
		// back must be known all the same.
		if err := x.commit(call, *result); err != nil {
			return false, err
		}
		return false, s.log(x.ID, decisionlog.Record{Event: decisionlog.Commit, Call: &call, Result: result})
	case req.Judgement <= 0 || req.Judgement > x.Next:
		return false, fail(http.StatusConflict, "not_judged", "there is no such judgement: judge the call first")
	case j == nil:
		return false, fail(http.StatusConflict, "forgotten", "the call was judged, and dealt with, too long ago")
	case j.Call != serve.HashCall(call):
		return false, fail(http.StatusConflict, "other_call", "the call is not the one that was judged: send tool, arguments and text as they were")
	}
	want := StateSkipped
	var sum [sha256.Size]byte
	if result != nil {
		want, sum = StateCommitted, hashResult(*result)
	}
	record := func() error {
		e := decisionlog.Record{Event: decisionlog.Skip, Call: &call, Result: result}
		if result != nil {
			e.Event = decisionlog.Commit
		}
		err := s.log(x.ID, e)
		j.Unlogged = err != nil
		return err
	}
	switch {
	case j.State == want && j.Result == sum:
		if j.Unlogged {
			return true, record()
		}
		return true, nil
	case j.State == StateHeld:
		return false, fail(http.StatusConflict, "held", "the call waits for a person")
	case j.State == StateDenied && result == nil:
		return true, nil // a refused call was not executed: that is known
	case j.State == StateDenied:
		s.c.Logger.Warn("a call was executed that was refused", "session", x.ID, "judgement", j.N)
		return false, fail(http.StatusConflict, "denied", "the call was refused and must not be executed")
	case j.settled():
		return false, fail(http.StatusConflict, "settled", "the call was %s before, with another outcome", j.State)
	case req.IfStep != nil && *req.IfStep != x.run.Step():
		return false, fail(http.StatusConflict, "out_of_order", "if_step is %d, committed are %d steps", *req.IfStep, x.run.Step())
	}
	if result == nil {
		err = x.skip(call)
	} else {
		err = x.commit(call, *result)
	}
	if err != nil {
		return false, err
	}
	j.State, j.Result = want, sum
	return false, record()
}
