package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
)

// ask runs Lines on the given lines and returns the answers after the first.
func ask(t *testing.T, l *Lines, in ...string) []map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := l.Serve(context.Background(), strings.NewReader(strings.Join(in, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	var answers []map[string]any
	for dec := json.NewDecoder(&out); dec.More(); {
		var a map[string]any
		if err := dec.Decode(&a); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	if len(answers) == 0 || answers[0]["schema"] != LinesSchema || answers[0]["on_error"] != string(l.Settings.OnError) {
		t.Fatalf("the first line is %v", answers)
	}
	return answers[1:]
}

func TestLines(t *testing.T) {
	log := new(recorder)
	l := &Lines{Settings: enforced, Model: openTest(t), Record: log.record, MaxSessions: 2}
	in := []string{
		`{"id":1,"op":"start","session":"a","task":{"instruction":"pay the rent","tools":[{"name":"read","description":"reads a file"}]}}`,
		`{"id":2,"op":"judge","session":"a","call":{"tool":"read","arguments":{"path":"x"}}}`,
		`{"id":3,"op":"judge","session":"a","call":{"tool":"list","arguments":"{}"}}`,
		`{"id":4,"op":"commit","session":"a","call":{"tool":"read","arguments":{"path":"x"}},"result":{"output":"Rent, 950."}}`,
		`{"id":5,"op":"judge","session":"a","call":{"tool":"hold_it","arguments":{}}}`,
		`{"id":6,"op":"skip","session":"a","call":{"tool":"hold_it","arguments":{}}}`,
		`{"id":7,"op":"judge","session":"a","call":{"tool":"block_it","arguments":{}}}`,
		`{"id":8,"op":"commit","session":"a","call":{"tool":"block_it","arguments":{}},"result":{"output":"done"}}`,
		`{"id":"nine","op":"start","session":"b"}`,
		`{"id":10,"op":"start","session":"c"}`,
		`{"id":11,"op":"start","session":"b"}`,
		`{"id":12,"op":"judge","session":"zzz","call":{"tool":"read"}}`,
		`{"id":13,"op":"fly","session":"a","call":{"tool":"read"}}`,
		`{"id":14,"op":"judge","session":"a"}`,
		`{"id":15,"op":"judge","session":"a","call":{"tool":"read"},"more":1}`,
		`{"id":16`,
		"a\x00b",
		"\xff",
		`{"id":17,"op":"judge","session":"","call":{"tool":"read"}}`,
		`{"id":18,"op":"commit","session":"a","call":{"tool":"list","arguments":"{}"}}`,
		`{"id":19,"op":"end","session":"b"}`,
		`{"id":20,"op":"judge","session":"a","call":{"text":"I am done."}}`,
	}
	want := []struct {
		action, cause, text string // text stands in the error or the reason
		decision            string
	}{
		{"", "", "", ""},
		{"allow", "verdict", "", "PASS"},
		{"allow", "verdict", "", "PASS"},
		{"", "", "", ""},
		{"ask", "refusal", "a stated rule forbids it", "HOLD"},
		{"", "", "", ""},
		{"deny", "refusal", "change the agent's own limits", "BLOCK"},
		{"deny", "crash", "judge it first", ""},
		{"", "", "", ""},
		{"deny", "crash", "2 sessions are open", ""},
		{"deny", "crash", "open already", ""},
		{"deny", "crash", "unknown session", ""},
		{"deny", "crash", `op is "fly"`, ""},
		{"deny", "crash", "without a call", ""},
		{"deny", "crash", `unknown field "more"`, ""},
		{"deny", "crash", "not a request", ""},
		{"deny", "crash", "NUL", ""},
		{"deny", "crash", "UTF-8", ""},
		{"deny", "crash", "session has 0 bytes", ""},
		{"deny", "crash", "without a result", ""},
		{"", "", "", ""},
		{"allow", "verdict", "", "PASS"},
	}
	got := ask(t, l, in...)
	if len(got) != len(want) {
		t.Fatalf("%d answers to %d lines", len(got), len(in))
	}
	text := func(v any) string { s, _ := v.(string); return s }
	for i, w := range want {
		a := got[i]
		decision := ""
		if v, ok := a["verdict"].(map[string]any); ok {
			decision = text(v["decision"])
		}
		if text(a["action"]) != w.action || text(a["cause"]) != w.cause || decision != w.decision || !strings.Contains(text(a["error"])+text(a["reason"]), w.text) {
			t.Errorf("%s\n  got %v, want %+v", in[i], a, w)
		}
	}
	if got[0]["id"] != 1.0 || got[8]["id"] != "nine" || got[15]["id"] != nil {
		t.Errorf("ids are %v, %v, %v", got[0]["id"], got[8]["id"], got[15]["id"])
	}
	if k := log.kinds(); !strings.HasPrefix(k, "start verdict:allow verdict:allow commit refusal:ask skip refusal:deny crash:deny start") || !strings.HasSuffix(k, "verdict:allow end") {
		t.Errorf("logged %s", k)
	}
}

// It is the same session as in a program that links package guard.
func TestLinesIsTheSession(t *testing.T) {
	m := openTest(t)
	l := &Lines{Settings: enforced, Model: m}
	call := guard.Call{Tool: "read", Arguments: `{"path":"x"}`}
	s := m.Start(guard.Task{Instruction: "pay the rent"})
	got := ask(t, l,
		`{"op":"start","session":"a","task":{"instruction":"pay the rent"}}`,
		`{"op":"judge","session":"a","call":{"tool":"read","arguments":{"path":"x"}}}`,
		`{"op":"commit","session":"a","call":{"tool":"read","arguments":{"path":"x"}},"result":{"output":[{"type":"text","text":"Rent, 950."}]}}`,
		`{"op":"judge","session":"a","call":{"tool":"read","arguments":{"path":"x"}}}`)
	for _, i := range []int{1, 3} {
		want, err := json.Marshal(s.Judge(context.Background(), call))
		if err != nil {
			t.Fatal(err)
		}
		have, err := json.Marshal(got[i]["verdict"])
		if err != nil {
			t.Fatal(err)
		}
		var x any
		if err := json.Unmarshal(want, &x); err != nil {
			t.Fatal(err)
		}
		if want, err = json.Marshal(x); err != nil || !bytes.Equal(have, want) {
			t.Errorf("verdict %s, want %s", have, want)
		}
		if i == 1 {
			if err := s.Commit(call, guard.Result{Output: "Rent, 950."}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestLinesFailures(t *testing.T) {
	m := openTest(t)
	broken := func(decisionlog.Record) error { return errTest }
	panics := func(decisionlog.Record) error { panic("out of cheese") }
	for _, c := range []struct {
		settings Settings
		record   func(decisionlog.Record) error
		action   string
	}{
		{enforced, broken, "deny"}, {enforced, panics, "deny"},
		{Settings{Enforce, AllowOnError, AskOnHold}, broken, "allow"},
		{Settings{Audit, DenyOnError, AskOnHold}, broken, "allow"},
	} {
		l := &Lines{Settings: c.settings, Model: m}
		l.runs = map[string]*run{"a": newRun("a", c.settings, m.Start(guard.Task{}), c.record)}
		a := l.answer(context.Background(), []byte(`{"op":"judge","session":"a","call":{"tool":"read"}}`), nil)
		if a.Action == nil || a.Action.String() != c.action || a.Cause != "crash" {
			t.Errorf("%v: %+v", c.settings, a)
		}
	}
	if err := (&Lines{Model: m}).Serve(context.Background(), strings.NewReader(""), &bytes.Buffer{}); err == nil {
		t.Error("settings that are not complete were taken")
	}
	audit := &Lines{Settings: Settings{Audit, DenyOnError, DenyOnHold}, Model: m}
	got := ask(t, audit, `{"op":"start","session":"a"}`, `{"op":"judge","session":"a","call":{"tool":"block_it"}}`, `{"op":"commit","session":"a","call":{"tool":"block_it"},"result":{"output":"x"}}`)
	if v := got[1]["verdict"].(map[string]any); got[1]["action"] != "allow" || v["decision"] != "BLOCK" || got[2]["step"] != 1.0 {
		t.Errorf("audit: %v", got)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"op":"start","session":"a"}` + "\n" + `{"op":"judge","session":"a","call":{"tool":"block","arguments":"{}"}}`))
	f.Add([]byte("{\n[]\nnull\n\"\"\n"))
	m := openTest(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		l := &Lines{Settings: enforced, Model: m}
		_ = l.Serve(context.Background(), bytes.NewReader(in), &out)
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) {
				t.Fatalf("%q was answered with %q", in, line)
			}
		}
	})
}
