package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
)

// Whatever comes in, the answer is one that Claude Code understands, and no input
// makes a call pass that would be denied.
func FuzzClaudeCode(f *testing.F) {
	for _, s := range []string{prompt("x"), pre("Read", "t"), pre("block_it", "t"), post("Read", "t", "text"), event("Stop", "last_assistant_message", "x"),
		event("SessionStart"), "{", `{"hook_event_name":"PreToolUse","session_id":"../x","tool_name":"Read","tool_input":"\ud800"}`, `{"session_id":null}`, "[]", `"x"`} {
		f.Add([]byte(s))
	}
	h, _ := hook(f, enforced)
	h.Record = nil
	f.Fuzz(func(t *testing.T, in []byte) {
		r := h.Handle(context.Background(), bytes.NewReader(in))
		if r.Exit != 0 && r.Exit != 2 || (r.Exit == 2) != (r.Stderr != "") {
			t.Fatalf("%q: %+v", in, r)
		}
		if len(r.Stdout) > 0 && !json.Valid(r.Stdout) {
			t.Fatalf("%q: stdout %q", in, r.Stdout)
		}
		var e hookEvent
		if json.Unmarshal(in, &e) != nil && r.Exit != 2 {
			t.Fatalf("%q cannot be read and passed", in)
		}
		if e.Event == eventPre && len(e.Tool) > 5 && e.Tool[:5] == "block" && r.Exit != 2 {
			t.Fatalf("%q: a call that is blocked passed: %+v", in, r)
		}
	})
}

func FuzzRecord(f *testing.F) {
	r := &record{Session: "s", Settings: enforced, Open: []openCall{{ID: "a", Tool: "Read"}}, Settled: []string{"x"}, Said: "y", state: []byte("state")}
	b, err := r.format()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(sessionMagic + " \n{}\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := parseRecord(in)
		if err != nil {
			return
		}
		again, err := r.format()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseRecord(again); err != nil {
			t.Fatalf("%q was read and written as %q: %v", in, again, err)
		}
	})
}

func FuzzResultText(f *testing.F) {
	for _, s := range []string{`"a"`, `[{"type":"text","text":"x"}]`, `{"a":{"b":[1,2]}}`, `{`, `]`, `{"a"}`, `[1 2]`, `{"type":"type"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if got := ResultText(in); len(got) > 3*len(in)+3 { // a byte that is no UTF-8 becomes three
			t.Fatalf("%d bytes became %d", len(in), len(got))
		}
	})
}
