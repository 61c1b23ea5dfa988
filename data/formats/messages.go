package formats

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/internal/lines"
)

// dialect is how one vendor writes a turn.
type dialect interface {
	// turn adds one message to c. where is its JSON path.
	turn(c *chat, raw json.RawMessage, where string) error
	// tools reads the catalogue that was offered to the agent.
	tools(raw json.RawMessage) ([]data.Tool, error)
}

// importMessages reads conversations in any of the wrappings in which they are
// stored: an object with messages, an array or lines of such objects, one array
// of messages, or lines of such arrays.
func importMessages(d dialect, format string, r io.Reader, name string, emit func(*data.Trajectory) error) (Report, error) {
	s := newSink(format, name, emit)
	base := stemOf(r, name)
	n := 0 // conversations so far
	begin := func(id string) *chat {
		n++
		if id == "" {
			id = fmt.Sprintf("%s/%d", base, n)
		}
		return newChat(&data.Trajectory{ID: format + "/" + id, Dataset: format}, s)
	}
	end := func(c *chat, line int) error {
		c.t.Group = taskGroup(c.t.Dataset, c.t.Task, c.t.ID)
		return s.put(c.t, line)
	}
	var bare *chat // the conversation of a top-level array of messages
	var bareLine, bareTurns, bareSize int
	err := each(r, func(v value) error {
		if v.endOfArray() {
			if bare == nil {
				return nil
			}
			c := bare
			bare = nil
			return end(c, bareLine)
		}
		if v.raw[0] == '[' { // an array of arrays of messages
			c := begin("")
			return addAll(d, c, v.raw, "", func() error { return end(c, v.line) })
		}
		obj, err := v.object()
		if err != nil {
			return err
		}
		if obj["role"] != nil {
			if bare == nil {
				bare, bareLine, bareTurns, bareSize = begin(""), v.line, 0, 0
			}
			// All of it is kept in memory, so it has the bound of one value.
			if bareSize += len(v.raw); bareSize > lines.Max {
				return fmt.Errorf("the conversation %w: more than %d bytes", lines.ErrTooLong, lines.Max)
			}
			where := fmt.Sprintf("[%d]", bareTurns)
			bareTurns++
			return d.turn(bare, v.raw, where)
		}
		if key := foreign(obj); key != "" {
			return field(key, "belongs to another format than %s: %w", format, ErrMixed)
		}
		if bare != nil || obj["messages"] == nil {
			return field("messages", "is missing: an %s conversation has messages with a role each; if this value is of another format: %w", format, ErrMixed)
		}
		c := begin(asString(obj["id"]))
		c.t.AgentModel = asString(obj["model"])
		if c.t.Tools, err = d.tools(obj["tools"]); err != nil {
			return err
		}
		if sys := obj["system"]; sys != nil {
			if err := c.system(sys); err != nil {
				return err
			}
		}
		rest := map[string]json.RawMessage{}
		for k, raw := range obj {
			switch k {
			case "id", "model", "tools", "system", "messages":
			default:
				rest[k] = raw
			}
		}
		if len(rest) > 0 {
			b, err := json.Marshal(rest)
			if err != nil {
				return err
			}
			if err := setExtra(c.t, "source", b); err != nil {
				return err
			}
		}
		return addAll(d, c, obj["messages"], "messages", func() error { return end(c, v.line) })
	})
	if err == nil && bare != nil { // where a run begins and ends is not said
		err = field("role", "stands at the top of a line: put the messages of a run into one list, or into one object as messages, a run a line")
	}
	return s.finish(err)
}

// foreign returns a field of obj that only other formats have.
func foreign(obj map[string]json.RawMessage) string {
	for _, key := range [...]string{"steps", "contents", "sessionId", "user_task_id"} {
		if obj[key] != nil {
			return key
		}
	}
	var meta struct {
		UserTask json.RawMessage `json:"user_task_id"`
	}
	if json.Unmarshal(obj["metadata"], &meta) == nil && meta.UserTask != nil {
		return "metadata.user_task_id"
	}
	return ""
}

func addAll(d dialect, c *chat, raw json.RawMessage, where string, done func() error) error {
	var turns []json.RawMessage
	if err := json.Unmarshal(raw, &turns); err != nil {
		return field(where, "is not a list of messages: %w", err)
	}
	for i, turn := range turns {
		if err := d.turn(c, turn, fmt.Sprintf("%s[%d]", where, i)); err != nil {
			return err
		}
	}
	return done()
}

// system keeps the operator's prompt: it is no task, and no planted context.
func (c *chat) system(raw json.RawMessage) error {
	text, err := blockText(raw, "system", c)
	if err != nil || text == "" {
		return err
	}
	if old := asString(c.t.Extra["system"]); old != "" {
		text = join(old, text)
	}
	b, err := json.Marshal(text)
	if err != nil {
		return err
	}
	c.fix(fixSystem)
	return setExtra(c.t, "system", b)
}

// block is a part of a message's content, of either vendor.
type block struct {
	Type string `json:"type"`
	Text string `json:"text"`

	Refusal  string `json:"refusal"`  // OpenAI
	Thinking string `json:"thinking"` // Anthropic, as all below

	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// blocks reads content: a string, null or a list of blocks.
func blocks(raw json.RawMessage, where string) ([]block, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	switch raw[0] {
	case '"':
		return []block{{Type: "text", Text: asString(raw)}}, nil
	case '[':
		var out []block
		var plain []json.RawMessage
		if err := json.Unmarshal(raw, &plain); err != nil {
			return nil, field(where, "is not a list of blocks: %w", err)
		}
		for i, p := range plain {
			b := block{Type: "text", Text: asString(p)}
			if len(p) == 0 || p[0] != '"' {
				b = block{}
				if err := json.Unmarshal(p, &b); err != nil {
					return nil, field(fmt.Sprintf("%s[%d]", where, i), "is not a block: %w", err)
				}
			}
			out = append(out, b)
		}
		return out, nil
	}
	return nil, field(where, "is not text: want a string, null or a list of blocks")
}

// blockText is the text of content that may hold nothing but text; other parts
// leave a mark.
func blockText(raw json.RawMessage, where string, c *chat) (string, error) {
	bs, err := blocks(raw, where)
	if err != nil {
		return "", err
	}
	out := ""
	for i, b := range bs {
		switch b.Type {
		case "text", "input_text", "output_text":
			out = join(out, b.Text)
		case "refusal":
			out = join(out, b.Refusal)
		case "tool_use", "tool_result":
			return "", field(fmt.Sprintf("%s[%d]", where, i), "is a block of type %s, which does not belong here: name the format anthropic, or if only part of the file is of it: %w", b.Type, ErrMixed)
		default:
			out = join(out, mark(b.Type, c))
		}
	}
	return out, nil
}

// mark stands for content that no text encoder can read.
func mark(kind string, c *chat) string {
	c.fix(fixNotText)
	return fmt.Sprintf("[%.40s]", kind)
}
