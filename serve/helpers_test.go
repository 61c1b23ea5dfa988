package serve

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
	"github.com/dreamguard/dreamguard/verdict"
)

// byName is a layer that decides by the tool's name, since the weights of the
// tests' artifact are random.
type byName struct{}

func (byName) Name() string { return "by-name" }
func (byName) Judge(_ context.Context, _ guard.SessionView, c guard.Call) (guard.Decision, []guard.Reason, []guard.Call) {
	switch {
	case strings.HasPrefix(c.Tool, "block"):
		return guard.Block, []guard.Reason{verdict.ReasonContained}, nil
	case strings.HasPrefix(c.Tool, "hold"):
		return guard.Hold, []guard.Reason{verdict.ReasonPolicy}, nil
	}
	return guard.Pass, nil, nil
}
func (byName) Commit(guard.SessionView, guard.Call, guard.Result) {}

// openTest opens the artifact of package guard's tests, scores only, so that the
// layer alone decides.
func openTest(t testing.TB, opts ...guard.Option) *guard.Model {
	t.Helper()
	m, err := guard.Open("../guard/testdata/v1", append(opts, guard.ScoresOnly(), guard.WithLayers(byName{}))...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var enforced = Settings{Mode: Enforce, OnError: DenyOnError, OnHold: AskOnHold}

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []decisionlog.Record
}

func (r *recorder) record(e decisionlog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	return nil
}

func (r *recorder) kinds() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, e := range r.events {
		s := string(e.Event)
		switch e.Event {
		case decisionlog.Verdict, decisionlog.Refusal, decisionlog.Crash:
			s += ":" + Action(e.Enforced).String()
		}
		list = append(list, s)
	}
	return strings.Join(list, " ")
}

// hook makes an adapter with a folder of its own.
func hook(t testing.TB, s Settings) (*ClaudeCode, *recorder) {
	t.Helper()
	m, r := openTest(t), new(recorder)
	h := &ClaudeCode{
		Settings: s, Sessions: Store{Dir: t.TempDir() + "/state"}, Record: r.record,
		Open: func(context.Context, string) (*guard.Model, error) { return m, nil },
	}
	return h, r
}

// event is the JSON of an event: pairs of field and value beside the usual ones.
func event(name string, fields ...any) string {
	m := map[string]any{"session_id": "s1", "transcript_path": "/t.jsonl", "cwd": "/", "permission_mode": "default", "hook_event_name": name}
	for i := 0; i < len(fields); i += 2 {
		m[fields[i].(string)] = fields[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func pre(tool, id string) string {
	return event("PreToolUse", "tool_name", tool, "tool_input", map[string]any{"path": "invoice.txt"}, "tool_use_id", id)
}

func post(tool, id, output string) string {
	return event("PostToolUse", "tool_name", tool, "tool_input", map[string]any{"path": "invoice.txt"}, "tool_use_id", id, "tool_response", output)
}

func prompt(text string) string { return event("UserPromptSubmit", "prompt", text) }

// answer is what a reply's JSON says.
func (r Reply) answer(t testing.TB) hookAnswer {
	t.Helper()
	var a hookAnswer
	if len(r.Stdout) > 0 {
		if err := json.Unmarshal(r.Stdout, &a); err != nil {
			t.Fatalf("%v in %q", err, r.Stdout)
		}
	}
	if a.Specific == nil {
		a.Specific = new(hookSpecific)
	}
	return a
}

// handle answers one event.
func handle(t testing.TB, h *ClaudeCode, text string) Reply {
	t.Helper()
	return h.Handle(context.Background(), strings.NewReader(text))
}

// pass is handle of an event that nothing is said about.
func pass(t testing.TB, h *ClaudeCode, text string) {
	t.Helper()
	if r := handle(t, h, text); r.Exit != 0 || len(r.Stdout) > 0 || r.Stderr != "" {
		t.Fatalf("%.100s: exit %d, stdout %q, stderr %q; want silence", text, r.Exit, r.Stdout, r.Stderr)
	}
}

// sessionOf is the session that a hook has kept.
func sessionOf(t testing.TB, h *ClaudeCode, id string) (*record, *guard.Session) {
	t.Helper()
	r, err := h.Sessions.load(id)
	if err != nil || r == nil {
		t.Fatalf("session %q: %v, %v", id, r, err)
	}
	m, err := h.Open(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Resume(r.state)
	if err != nil {
		t.Fatal(err)
	}
	return r, s
}

var errTest = errors.New("the disk is on fire")
