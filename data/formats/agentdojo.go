package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dreamguard/dreamguard/data"
)

// AgentDojo reads run logs of AgentDojo (github.com/ethz-spylab/agentdojo) and
// of benchmarks on its framework, in two shapes: one run as the framework writes
// it (fields suite_name, user_task_id, messages, security), and lines of many
// runs with these fields under metadata, after a header line that holds nothing
// but metadata.
//
// Labels: on an attacked run, security true says that the injected goal was
// reached: unsafe, not located (hazard_label "missing"). security false says
// that it was not reached, which is not the same as safe, since the agent may
// have tried; and without an attack security is always true and says nothing.
// Both stay unknown.
//
// The system prompt, which is the benchmark's own and alike in all runs, is left
// out.
type AgentDojo struct{}

// Name implements [Format].
func (AgentDojo) Name() string { return "agentdojo" }

// Detect implements [Format].
func (AgentDojo) Detect(head []byte) bool {
	k := look(head)
	return k[".metadata.benchmark=agent-dojo"] || k[".metadata.user_task_id"] && k[".metadata.suite_name"] ||
		k[".user_task_id"] && k[".suite_name"]
}

type dojoMeta struct {
	Suite     string  `json:"suite_name"`
	Model     string  `json:"model"`
	Pipeline  string  `json:"pipeline_name"`
	UserTask  string  `json:"user_task_id"`
	Injection *string `json:"injection_task_id"`
	Attack    *string `json:"attack_type"`
	Success   *bool   `json:"success"`
	Utility   *bool   `json:"utility"`
	Security  *bool   `json:"security"`
}

type dojoRun struct {
	dojoMeta
	Metadata *dojoMeta      `json:"metadata"`
	Messages *[]dojoMessage `json:"messages"`
}

type dojoMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []dojoCall      `json:"tool_calls"`
	CallID    *string         `json:"tool_call_id"`
	Error     *string         `json:"error"`
}

type dojoCall struct {
	ID       *string         `json:"id"`
	Function json.RawMessage `json:"function"` // the name, or {name, arguments}
	Args     json.RawMessage `json:"args"`
}

// Import implements [Format].
func (a AgentDojo) Import(r io.Reader, name string, emit func(*data.Trajectory) error) (Report, error) {
	s := newSink(a.Name(), name, emit)
	return s.finish(each(r, func(v value) error {
		if v.endOfArray() {
			return nil
		}
		if v.raw[0] != '{' {
			return fmt.Errorf("%w: a value is not an object", ErrMixed)
		}
		var run dojoRun
		if err := v.decode(&run); err != nil {
			return err
		}
		meta := &run.dojoMeta
		if run.Metadata != nil {
			meta = run.Metadata
		}
		if run.Messages == nil {
			if run.Metadata != nil && meta.UserTask == "" {
				return nil // the header
			}
			return field("messages", "is missing: an AgentDojo run has messages and, in metadata or beside them, user_task_id; if this line is of another format: %w", ErrMixed)
		}
		t, err := meta.trajectory()
		if err != nil {
			return err
		}
		c := newChat(t, s)
		for i, m := range *run.Messages {
			if err := m.add(c, fmt.Sprintf("messages[%d]", i)); err != nil {
				return err
			}
		}
		return s.put(t, v.line)
	}))
}

func (m *dojoMeta) trajectory() (*data.Trajectory, error) {
	if m.Suite == "" {
		return nil, field("suite_name", "is missing: without it the run has no group; if only part of the file is of this format: %w", ErrMixed)
	}
	if m.UserTask == "" {
		return nil, field("user_task_id", "is missing: without it the run has no group")
	}
	t := &data.Trajectory{
		Dataset: "agentdojo", AgentModel: m.Model, Suite: m.Suite, UserTask: m.UserTask, Group: m.Suite + "/" + m.UserTask,
		TaskSucceeded: m.Success,
	}
	if t.AgentModel == "" {
		t.AgentModel = m.Pipeline
	}
	if t.TaskSucceeded == nil {
		t.TaskSucceeded = m.Utility
	}
	goal := "none"
	attacked := m.Injection != nil && *m.Injection != ""
	if attacked {
		goal = *m.Injection
		t.InjectionTask = goal
		t.AttackSucceeded = m.Security
	}
	t.AttackPresent = &attacked
	t.ID = fmt.Sprintf("agentdojo/%s/%s/%s/%s", t.AgentModel, m.Suite, m.UserTask, goal)
	if m.Attack != nil && *m.Attack != "" {
		t.Attack = *m.Attack
		// The attack of the published logs needs no mark; others on the same
		// task and goal must not share its id.
		if t.Attack != "important_instructions" {
			t.ID += "/" + t.Attack
		}
	}
	if attacked && m.Security != nil && *m.Security {
		t.Label, t.HazardLabel = data.Unsafe, data.HazardMissing
	}
	return t, nil
}

func (m *dojoMessage) add(c *chat, where string) error {
	text, err := dojoText(m.Content, where+".content", c)
	if err != nil {
		return err
	}
	switch m.Role {
	case "system":
	case "user":
		if c.t.Task != "" && len(c.t.Steps) == 0 {
			// A run has one task. A second prompt before the agent acts is a
			// defence's own, which picks the tools.
			c.fix(fixDefence)
			return nil
		}
		c.user(text)
	case "assistant":
		calls := make([]call, len(m.ToolCalls))
		for i, x := range m.ToolCalls {
			if calls[i], err = x.call(fmt.Sprintf("%s.tool_calls[%d]", where, i)); err != nil {
				return err
			}
		}
		c.assistant(text, calls)
	case "tool":
		id := ""
		if m.CallID != nil {
			id = *m.CallID
		}
		failure := ""
		if m.Error != nil {
			failure = *m.Error
		}
		c.result(id, text, failure)
	default:
		return field(where+".role", "is %.40q: want system, user, assistant or tool", m.Role)
	}
	return nil
}

func (x *dojoCall) call(where string) (call, error) {
	var out call
	if x.ID != nil {
		out.id = *x.ID
	}
	args := x.Args
	if len(x.Function) > 0 && x.Function[0] == '{' {
		var f struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if err := json.Unmarshal(x.Function, &f); err != nil {
			return out, field(where+".function", "is not an object with a name: %w", err)
		}
		out.tool, args = f.Name, f.Arguments
	} else {
		out.tool = asString(x.Function)
	}
	if strings.TrimSpace(out.tool) == "" {
		return out, field(where+".function", "names no tool: a tool call needs one")
	}
	out.args = argsText(args)
	return out, nil
}

// argsText is the text of a call's arguments: a string as it stands, JSON as it
// was written, on one line.
func argsText(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if raw[0] == '"' {
		return asString(raw)
	}
	if bytes.IndexByte(raw, '\n') < 0 {
		return string(raw)
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// dojoText reads content: a string, null, or blocks whose text is in content.
func dojoText(raw json.RawMessage, where string, c *chat) (string, error) {
	if len(raw) == 0 || raw[0] != '[' {
		return stringOrNull(raw, where)
	}
	var blocks []struct {
		Type    string  `json:"type"`
		Content *string `json:"content"`
		Text    *string `json:"text"`
	}
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return "", field(where, "is not a list of text blocks: %w", err)
	}
	out := ""
	for i, b := range blocks {
		switch {
		case b.Content != nil:
			out = join(out, *b.Content)
		case b.Text != nil:
			out = join(out, *b.Text)
		default:
			return "", field(fmt.Sprintf("%s[%d]", where, i), "of type %.40q holds no text", b.Type)
		}
	}
	return out, nil
}

func stringOrNull(raw json.RawMessage, where string) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", field(where, "is not text: want a string, null or a list of blocks")
	}
	return s, nil
}
