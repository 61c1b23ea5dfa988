package formats

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dreamguard/dreamguard/data"
)

// Anthropic reads conversations in the message format of Anthropic's Messages
// API (docs.anthropic.com/en/api/messages): content as text or as blocks, with
// calls in tool_use and results in tool_result blocks.
//
// Calls of one turn become steps one after the other, the turn's text and
// thinking with the first; a result finds its call by tool_use_id, and is_error
// makes it the step's error. Labels: the format has none, so runs stay unknown;
// every field beside messages, system, model and tools is kept unread in the
// extra field source. Runs with the same task share a group.
type Anthropic struct{}

// Name implements [Format].
func (Anthropic) Name() string { return "anthropic" }

// Detect implements [Format].
func (Anthropic) Detect(head []byte) bool {
	k := look(head)
	for _, p := range [...]string{"", ".messages"} {
		if k[p+".role"] && (k[p+".content.type=tool_use"] || k[p+".content.type=tool_result"] || k[p+".content.type=thinking"]) {
			return true
		}
	}
	return k[".messages.role"] && (k[".tools.input_schema"] || k[".system"])
}

// Import implements [Format].
func (a Anthropic) Import(r io.Reader, name string, emit func(*data.Trajectory) error) (Report, error) {
	return importMessages(a, a.Name(), r, name, emit)
}

type anthropicMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"` // only to notice the other format
}

func (Anthropic) turn(c *chat, raw json.RawMessage, where string) error {
	var m anthropicMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return field(where, "is not an Anthropic message: %w", err)
	}
	if len(m.ToolCalls) > 0 && string(m.ToolCalls) != "null" {
		return field(where+".tool_calls", "belongs to OpenAI's format: name the format openai, or if only part of the file is of it: %w", ErrMixed)
	}
	bs, err := blocks(m.Content, where+".content")
	if err != nil {
		return err
	}
	switch m.Role {
	case "user":
		return c.userBlocks(bs, where)
	case "assistant":
		return c.assistantBlocks(bs, where)
	case "system":
		return c.system(m.Content)
	}
	return field(where+".role", "is %.40q: want user or assistant; if only part of the file is of this format: %w", m.Role, ErrMixed)
}

// userBlocks adds the blocks of a user turn: results first, which the API
// demands as well, then what the user says.
func (c *chat) userBlocks(bs []block, where string) error {
	text := ""
	for i, b := range bs {
		switch {
		case b.Type == "text":
			text = join(text, b.Text)
		case strings.HasSuffix(b.Type, "tool_result"):
			if err := c.resultBlock(b, fmt.Sprintf("%s.content[%d]", where, i)); err != nil {
				return err
			}
		case b.Type == "tool_use":
			return field(fmt.Sprintf("%s.content[%d]", where, i), "is a tool_use block in a user turn: only the assistant calls tools")
		default:
			text = join(text, mark(b.Type, c))
		}
	}
	c.user(text)
	return nil
}

// assistantBlocks adds the blocks of an agent turn. Tools that run on the
// vendor's side have their results within it. What the agent says after such a
// result is a turn of its own: it must not be seen with the call.
func (c *chat) assistantBlocks(bs []block, where string) error {
	text := ""
	var calls []call
	said := false // something waits in text or calls
	end := func() {
		if said {
			c.assistant(text, calls)
		}
		text, calls, said = "", nil, false
	}
	for i, b := range bs {
		path := fmt.Sprintf("%s.content[%d]", where, i)
		switch {
		case b.Type == "text":
			text, said = join(text, b.Text), true
		case b.Type == "thinking":
			text, said = join(text, b.Thinking), true
		case b.Type == "redacted_thinking":
		case strings.HasSuffix(b.Type, "tool_use"):
			one := call{b.ID, b.Name, argsText(b.Input)}
			if err := named(one, path+".name"); err != nil {
				return err
			}
			calls, said = append(calls, one), true
		case strings.HasSuffix(b.Type, "tool_result"):
			end()
			if err := c.resultBlock(b, path); err != nil {
				return err
			}
		default:
			text, said = join(text, mark(b.Type, c)), true
		}
	}
	if len(bs) == 0 {
		said = true // an empty turn is counted
	}
	end()
	return nil
}

func (c *chat) resultBlock(b block, where string) error {
	var text string
	if b.Type == "tool_result" {
		var err error
		if text, err = blockText(b.Content, where+".content", c); err != nil {
			return err
		}
	} else {
		text = argsText(b.Content) // a search result and the like: JSON of its own
	}
	if b.IsError {
		c.result(b.ToolUseID, "", text)
	} else {
		c.result(b.ToolUseID, text, "")
	}
	return nil
}

func (Anthropic) tools(raw json.RawMessage) ([]data.Tool, error) { return OpenAI{}.tools(raw) }
