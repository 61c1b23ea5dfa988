package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
	"github.com/dreamguard/dreamguard/internal/oneline"
)

// ClaudeCode answers the hooks of Claude Code. Each event is a process of its own,
// so a run lives in a file of Sessions. The events, their fields and what an
// answer means are those of https://code.claude.com/docs/en/hooks; the types are
// those of the official SDK (claude-agent-sdk-python, claude_agent_sdk/types.py:
// PreToolUseHookInput and the others, SyncHookJSONOutput).
//
//	SessionStart         checks that all is in place and tells the user the settings
//	UserPromptSubmit     the first prompt is the task, later ones are the user's replies
//	PreToolUse           judges the call
//	PostToolUse          commits the call with its result
//	PostToolUseFailure   commits the call with its error
//	Stop                 keeps what the agent said last
//
// Other events are none of the guard's business and get no answer.
//
// PASS is no decision, so that the user's own permission rules still apply:
// "allow" would skip them. BLOCK is "deny" and, since that has held in every
// version, exit code 2 with the reason on standard error as well. HOLD is "ask".
type ClaudeCode struct {
	Settings Settings
	Sessions Store
	// Open opens the model, once it is needed. dir is where the agent works.
	Open    func(ctx context.Context, dir string) (*guard.Model, error)
	Record  func(decisionlog.Record) error // nil: nothing is logged
	Timeout time.Duration                  // DefaultTimeout if 0

	working sync.WaitGroup // what Handle started, which may go on after its answer
}

// DefaultTimeout is far below the time after which Claude Code ends a hook, since
// it then executes the call (https://github.com/anthropics/claude-code/issues/84302).
const DefaultTimeout = 10 * time.Second

// MaxEvent bounds an event, with a tool's result in it, in bytes.
const MaxEvent = 64 << 20

// ErrEvent is wrapped by the errors about an event that cannot be read.
var ErrEvent = errors.New("serve: bad hook event")

// Reply is what the process answers.
type Reply struct {
	Stdout []byte
	Stderr string
	Exit   int // 0 or 2
}

// hookEvent holds the fields that are read of any event.
type hookEvent struct {
	SessionID   string          `json:"session_id"`
	Event       string          `json:"hook_event_name"`
	CWD         string          `json:"cwd"`
	Tool        string          `json:"tool_name"`
	Input       json.RawMessage `json:"tool_input"`
	ToolUseID   string          `json:"tool_use_id"`
	Response    json.RawMessage `json:"tool_response"`
	Error       string          `json:"error"`
	Prompt      string          `json:"prompt"`
	LastMessage string          `json:"last_assistant_message"`
}

// hookAnswer is the JSON that Claude Code reads from standard output.
type hookAnswer struct {
	SystemMessage string        `json:"systemMessage,omitempty"` // shown to the user
	Decision      string        `json:"decision,omitempty"`      // "block", of events other than PreToolUse
	Reason        string        `json:"reason,omitempty"`
	Specific      *hookSpecific `json:"hookSpecificOutput,omitempty"`
}

type hookSpecific struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision,omitempty"` // "deny" or "ask"
	Reason   string `json:"permissionDecisionReason,omitempty"`
}

// Names of the events.
const (
	eventSessionStart = "SessionStart"
	eventPrompt       = "UserPromptSubmit"
	eventPre          = "PreToolUse"
	eventPost         = "PostToolUse"
	eventPostFailure  = "PostToolUseFailure"
	eventStop         = "Stop"
)

// Handle reads one event and answers it. Whatever goes wrong, a panic included, is
// mapped in this one place: the answer is then that of Settings.OnError, and
// nothing is enforced in mode Audit.
func (h *ClaudeCode) Handle(ctx context.Context, in io.Reader) Reply {
	timeout := h.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type outcome struct {
		event  hookEvent
		answer hookAnswer
		err    error
	}
	done := make(chan outcome, 1)
	events := make(chan hookEvent, 1)
	h.working.Go(func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				o.err = fmt.Errorf("internal error: %v", p)
			}
			done <- o
		}()
		// A file that is mapped and cut short by somebody is a failure like others.
		debug.SetPanicOnFault(true)
		if o.err = h.Settings.Validate(); o.err != nil {
			return
		}
		if o.event, o.err = readEvent(in); o.err != nil {
			return
		}
		events <- o.event
		o.answer, o.err = h.handle(ctx, o.event)
	})
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done(): // whatever hangs, hangs without us
		select {
		case o.event = <-events:
		default:
		}
		o.err = fmt.Errorf("no answer within %v", timeout)
		if errors.Is(ctx.Err(), context.Canceled) {
			o.err = errors.New("interrupted")
		}
	}
	if o.err != nil {
		return h.failed(o.event, o.err)
	}
	return reply(o.answer)
}

// reply renders an answer. Exit code 2 goes with each form of refusal.
func reply(a hookAnswer) Reply {
	var r Reply
	switch {
	case a.Specific != nil && a.Specific.Decision == "deny":
		r.Exit, r.Stderr = 2, a.Specific.Reason+"\n"
	case a.Decision == "block":
		r.Exit, r.Stderr = 2, a.Reason+"\n"
	}
	if a == (hookAnswer{}) {
		return r // silence is no objection
	}
	b, err := json.Marshal(a)
	if err != nil { // strings alone: it cannot fail
		return Reply{Exit: 2, Stderr: "dreamguard: " + err.Error() + "\n"}
	}
	r.Stdout = append(b, '\n')
	return r
}

// failed answers an event that could not be handled.
func (h *ClaudeCode) failed(e hookEvent, err error) Reply {
	action := h.Settings.Failed()
	h.recordFailure(e, err, action)
	reason := fmt.Sprintf("dreamguard could not judge: %s", oneline.Of(err.Error(), 1000))
	if action == Allow {
		return Reply{Stderr: reason + "; it fails open, so nothing is stopped\n"}
	}
	reason += "; it fails closed, so nothing passes until this is mended"
	if e.Event == eventPre || e.Event == "" {
		return reply(hookAnswer{Specific: &hookSpecific{Event: eventPre, Decision: "deny", Reason: reason}})
	}
	return reply(hookAnswer{Decision: "block", Reason: reason})
}

// recordFailure logs a failure, unless that is what hangs.
func (h *ClaudeCode) recordFailure(e hookEvent, err error, action Action) {
	if h.Record == nil {
		return
	}
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		defer func() { _ = recover() }() // it may be what failed in the first place
		_ = h.Record(Crash(e.SessionID, h.Settings, action, err))
	}()
	select {
	case <-logged:
	case <-time.After(time.Second):
	}
}

// readEvent reads the JSON of one event.
func readEvent(in io.Reader) (hookEvent, error) {
	var e hookEvent
	b, err := io.ReadAll(io.LimitReader(in, MaxEvent+1))
	switch {
	case err != nil:
		return e, fmt.Errorf("%w: %w", ErrEvent, err)
	case len(b) > MaxEvent:
		return e, fmt.Errorf("%w: more than %d bytes", ErrEvent, MaxEvent)
	}
	if err := json.Unmarshal(b, &e); err != nil {
		return hookEvent{}, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	switch {
	case e.Event == "":
		return e, fmt.Errorf("%w: hook_event_name is missing", ErrEvent)
	case e.SessionID == "" || len(e.SessionID) > maxSessionID:
		return e, fmt.Errorf("%w: session_id has %d bytes: want 1 to %d", ErrEvent, len(e.SessionID), maxSessionID)
	case len(e.ToolUseID) > maxToolUseID:
		return e, fmt.Errorf("%w: tool_use_id has %d bytes: want at most %d", ErrEvent, len(e.ToolUseID), maxToolUseID)
	}
	if (e.Event == eventPre || e.Event == eventPost || e.Event == eventPostFailure) && e.Tool == "" {
		return e, fmt.Errorf("%w: tool_name is missing", ErrEvent)
	}
	return e, nil
}

// handle does what an event asks for.
func (h *ClaudeCode) handle(ctx context.Context, e hookEvent) (hookAnswer, error) {
	var do func(context.Context, hookEvent, *record) (hookAnswer, error)
	switch e.Event {
	case eventSessionStart:
		return h.sessionStart(ctx, e.CWD)
	case eventPrompt:
		do = h.prompt
	case eventPre:
		do = h.pre
	case eventPost, eventPostFailure:
		do = h.post
	case eventStop:
		do = h.stop
	default:
		return hookAnswer{}, nil
	}
	if err := h.Sessions.prepare(); err != nil {
		return hookAnswer{}, err
	}
	unlock, err := h.Sessions.lock(ctx, e.SessionID)
	if err != nil {
		return hookAnswer{}, err
	}
	defer unlock()
	r, err := h.Sessions.load(e.SessionID)
	if err != nil {
		return hookAnswer{}, err
	}
	changed := r != nil && r.Settings != h.Settings
	before := h.Settings
	if r == nil {
		r = &record{Session: e.SessionID}
	} else {
		before = r.Settings
	}
	r.Settings = h.Settings
	a, err := do(ctx, e, r)
	if err == nil && changed {
		// Whoever changes them, the user gets to know.
		a.SystemMessage = fmt.Sprintf("dreamguard: the settings changed within this session: they were %s, they are %s", before, h.Settings)
	}
	return a, err
}

// sessionStart proves that a call could be judged now.
func (h *ClaudeCode) sessionStart(ctx context.Context, dir string) (hookAnswer, error) {
	if err := h.Sessions.prepare(); err != nil {
		return hookAnswer{}, err
	}
	m, err := h.Open(ctx, dir)
	if err != nil {
		return hookAnswer{}, err
	}
	h.Sessions.sweep(time.Now())
	return hookAnswer{SystemMessage: fmt.Sprintf("dreamguard: %s; model %.12s", h.Settings, m.Digest())}, nil
}

// session goes on with the run of a record, or begins one. A run whose task is not
// known, because the hook was installed in the middle of it, has an empty one.
func (h *ClaudeCode) session(ctx context.Context, dir string, r *record, task guard.Task) (*guard.Session, error) {
	m, err := h.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	if r.state == nil {
		return m.Start(task), nil
	}
	s, err := m.Resume(r.state)
	if err != nil {
		return nil, fmt.Errorf("%w: remove %s to begin the session anew", err, h.Sessions.Path(r.Session))
	}
	return s, nil
}

// keep writes the session down.
func (h *ClaudeCode) keep(r *record, s *guard.Session) error {
	b, err := s.MarshalBinary()
	if err != nil {
		return err
	}
	r.state = b
	return h.Sessions.save(r)
}

// prompt takes the user's words: they carry authority, unlike a tool's.
func (h *ClaudeCode) prompt(ctx context.Context, e hookEvent, r *record) (hookAnswer, error) {
	begun := r.state != nil
	s, err := h.session(ctx, e.CWD, r, guard.Task{Instruction: e.Prompt})
	if err != nil {
		return hookAnswer{}, err
	}
	if begun {
		for _, o := range r.Open { // what was asked about and never executed, the user refused
			if o.Decision == guard.Pass {
				continue
			}
			call := guard.Call{Tool: o.Tool, Arguments: o.Arguments}
			s.Judge(ctx, call)
			if err := s.Skip(call); err != nil {
				return hookAnswer{}, err
			}
			r.settle(o.ID)
		}
		message := guard.Call{Text: r.Said}
		s.Judge(ctx, message)
		if err := s.Commit(message, guard.Result{Output: e.Prompt, User: true}); err != nil {
			return hookAnswer{}, err
		}
	}
	r.Open, r.Said = nil, ""
	if err := h.keep(r, s); err != nil {
		return hookAnswer{}, err
	}
	if begun {
		return hookAnswer{}, nil
	}
	return hookAnswer{}, h.record(decisionlog.Record{Event: decisionlog.Start, Run: RunID(e.SessionID)})
}

// pre judges a call.
func (h *ClaudeCode) pre(ctx context.Context, e hookEvent, r *record) (hookAnswer, error) {
	s, err := h.session(ctx, e.CWD, r, guard.Task{})
	if err != nil {
		return hookAnswer{}, err
	}
	call := guard.Call{Tool: e.Tool, Arguments: string(e.Input)}
	v := s.Judge(ctx, call)
	if err := ctx.Err(); err != nil {
		return hookAnswer{}, err // too late: the process has answered already
	}
	action := h.Settings.Action(v.Decision)
	if action == Deny {
		if !r.settled(e.ToolUseID) { // two hooks on one event count once
			if err := s.Skip(call); err != nil {
				return hookAnswer{}, err
			}
		}
		r.settle(e.ToolUseID)
	} else {
		r.open(e.ToolUseID, v.Decision, call)
	}
	if err := h.keep(r, s); err != nil {
		return hookAnswer{}, err
	}
	err = h.record(Judged(e.SessionID, action, v, call))
	if err != nil || action == Allow {
		return hookAnswer{}, err
	}
	return hookAnswer{Specific: &hookSpecific{Event: eventPre, Decision: action.String(), Reason: Explain(v)}}, nil
}

// post commits a call. Claude Code makes calls of one message in parallel, so it
// need not be the one that was judged last: it is judged again, which costs
// little and moves nothing.
func (h *ClaudeCode) post(ctx context.Context, e hookEvent, r *record) (hookAnswer, error) {
	executed := r.settled(e.ToolUseID)
	for _, o := range r.Open {
		executed = executed && o.ID != e.ToolUseID
	}
	if executed {
		return hookAnswer{}, nil // the same event for the second time
	}
	s, err := h.session(ctx, e.CWD, r, guard.Task{})
	if err != nil {
		return hookAnswer{}, err
	}
	call := guard.Call{Tool: e.Tool, Arguments: string(e.Input)}
	result := guard.Result{Output: ResultText(e.Response), Error: e.Error}
	s.Judge(ctx, call)
	if err := s.Commit(call, result); err != nil {
		return hookAnswer{}, err
	}
	r.settle(e.ToolUseID)
	if err := h.keep(r, s); err != nil {
		return hookAnswer{}, err
	}
	return hookAnswer{}, h.record(decisionlog.Record{Event: decisionlog.Commit, Run: RunID(e.SessionID), Call: &call, Result: &result})
}

// stop keeps the agent's message: a reply of the user that only repeats it grants
// nothing.
func (h *ClaudeCode) stop(_ context.Context, e hookEvent, r *record) (hookAnswer, error) {
	if r.state == nil || e.LastMessage == "" {
		return hookAnswer{}, nil
	}
	r.Said = clipTo(e.LastMessage, maxSaid)
	return hookAnswer{}, h.Sessions.save(r)
}

func (h *ClaudeCode) record(e decisionlog.Record) error {
	return write(h.Record, h.Settings.Mode, e)
}
