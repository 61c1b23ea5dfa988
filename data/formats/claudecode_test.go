package formats_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/formats"
	"github.com/dreamguard/dreamguard/internal/lines"
)

func sessionLine(session, kind, id, content string, more string) string {
	return fmt.Sprintf(`{"type":%q,"sessionId":%q,"uuid":"u","message":{"id":%q,"role":%q,"content":%s}%s}`+"\n", kind, session, id, kind, content, more)
}

func TestClaudeCodeSessions(t *testing.T) {
	const side = `,"isSidechain":true`
	in := sessionLine("s1", "user", "", `"first"`, "") +
		sessionLine("s1", "assistant", "m1", `[{"type":"tool_use","id":"1","name":"a","input":{}}]`, "") +
		sessionLine("s1", "assistant", "m1", `[{"type":"tool_use","id":"2","name":"b","input":{}}]`, "") +
		sessionLine("s1", "user", "", `[{"type":"tool_result","tool_use_id":"2","content":"two"}]`, "") +
		sessionLine("s1", "user", "", `[{"type":"tool_result","tool_use_id":"1","content":"one"}]`, "") +
		// a session of a subagent alone
		sessionLine("s2", "user", "", `"second"`, side) +
		sessionLine("s2", "assistant", "m1", `[{"type":"text","text":"done"}]`, side) +
		// one in which the agent never answers
		sessionLine("s3", "user", "", `"third"`, "")
	var got []*data.Trajectory
	rep, err := formats.ClaudeCode{}.Import(strings.NewReader(in), "x", func(tr *data.Trajectory) error {
		got = append(got, tr)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(formats.Report{Format: "claude-code", Read: 3, Kept: 2, Dropped: map[string]int{formats.NoSteps: 1}, Repaired: map[string]int{}}, rep); d != "" {
		t.Error(d)
	}
	want := []data.Step{{Type: data.ToolCall, Tool: "a", Args: "{}", Result: "one"}, {Type: data.ToolCall, Tool: "b", Args: "{}", Result: "two"}}
	if d := cmp.Diff(want, got[0].Steps); d != "" || got[0].Task != "first" {
		t.Errorf("%+v %s", got[0], d)
	}
	if got[1].ID != "claude-code/s2" || got[1].Task != "second" || got[1].Steps[0].Text != "done" {
		t.Errorf("got %+v", got[1])
	}
}

// Each line is small; the session that they make is not.
func TestClaudeCodeSessionIsBounded(t *testing.T) {
	line := sessionLine("s", "assistant", "", `[{"type":"text","text":"`+strings.Repeat("x", 1<<20)+`"}]`, "")
	_, err := formats.ClaudeCode{}.Import(strings.NewReader(strings.Repeat(line, lines.Max>>20+1)), "x", discard)
	if err == nil || !strings.Contains(err.Error(), `session "s" is too long`) {
		t.Errorf("got %v", err)
	}
}

// What the agent says after a result that came within its own turn must not
// stand with the call, where a guard would see it before the call runs.
func TestTextAfterResultIsAnotherStep(t *testing.T) {
	const in = `{"messages":[{"role":"user","content":"t"},{"role":"assistant","content":[
		{"type":"text","text":"before"},{"type":"server_tool_use","id":"1","name":"web_search","input":{}},
		{"type":"web_search_tool_result","tool_use_id":"1","content":[]},{"type":"text","text":"after"}]}]}`
	_, err := formats.Anthropic{}.Import(strings.NewReader(in), "x", func(tr *data.Trajectory) error {
		if len(tr.Steps) != 2 || tr.Steps[0].Text != "before" || tr.Steps[0].Result != "[]" || tr.Steps[1].Text != "after" {
			t.Errorf("got %+v", tr.Steps)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
