package formats

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dreamguard/dreamguard/data"
)

// OpenAI reads conversations in the message format of OpenAI's Chat Completions
// (platform.openai.com/docs/api-reference/chat), which most frameworks write:
// role, content, tool_calls and tool_call_id, or the older function_call.
//
// Parallel calls become steps one after the other; a result finds its call by
// tool_call_id. Labels: the format has none, so runs stay unknown; a field of
// the file called label, like every field beside messages, is kept unread in the
// extra field source. Runs with the same task share a group.
type OpenAI struct{}

// Name implements [Format].
func (OpenAI) Name() string { return "openai" }

// Detect implements [Format].
func (OpenAI) Detect(head []byte) bool {
	k := look(head)
	return k[".messages.role"] || k[".role"] && (k[".content"] || k[".tool_calls"])
}

// sure reports whether head holds what only this message format has.
func (OpenAI) sure(head []byte) bool {
	k := look(head)
	for _, p := range [...]string{"", ".messages"} {
		for _, own := range [...]string{".tool_calls", ".tool_call_id", ".function_call", ".role=system", ".role=developer", ".role=tool", ".role=function"} {
			if k[p+own] {
				return true
			}
		}
	}
	return false
}

// Import implements [Format].
func (o OpenAI) Import(r io.Reader, name string, emit func(*data.Trajectory) error) (Report, error) {
	return importMessages(o, o.Name(), r, name, emit)
}

type openAIMessage struct {
	Role         string          `json:"role"`
	Content      json.RawMessage `json:"content"`
	Refusal      string          `json:"refusal"`
	Name         string          `json:"name"`
	ToolCallID   string          `json:"tool_call_id"`
	ToolCalls    []openAICall    `json:"tool_calls"`
	FunctionCall *openAIFunction `json:"function_call"`
}

type openAICall struct {
	ID       string          `json:"id"`
	Function *openAIFunction `json:"function"`
	Custom   *struct {
		Name  string `json:"name"`
		Input string `json:"input"`
	} `json:"custom"`
}

type openAIFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // a string; some frameworks write the object
}

func (OpenAI) turn(c *chat, raw json.RawMessage, where string) error {
	var m openAIMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return field(where, "is not an OpenAI message: %w", err)
	}
	text, err := blockText(m.Content, where+".content", c)
	if err != nil {
		return err
	}
	switch m.Role {
	case "system", "developer":
		return c.system(m.Content)
	case "user":
		c.user(text)
	case "assistant":
		var calls []call
		for i, x := range m.ToolCalls {
			var one call
			switch path := fmt.Sprintf("%s.tool_calls[%d]", where, i); {
			case x.Function != nil:
				one = call{x.ID, x.Function.Name, c.arguments(x.Function.Arguments)}
				err = named(one, path+".function.name")
			case x.Custom != nil:
				one = call{x.ID, x.Custom.Name, x.Custom.Input}
				err = named(one, path+".custom.name")
			default:
				err = field(path, "has neither function nor custom: a tool call needs one")
			}
			if err != nil {
				return err
			}
			calls = append(calls, one)
		}
		if f := m.FunctionCall; f != nil {
			one := call{"", f.Name, c.arguments(f.Arguments)}
			if err := named(one, where+".function_call.name"); err != nil {
				return err
			}
			calls = append(calls, one)
		}
		c.assistant(join(text, m.Refusal), calls)
	case "tool", "function":
		c.result(m.ToolCallID, text, "")
	default:
		return field(where+".role", "is %.40q: want system, developer, user, assistant, tool or function", m.Role)
	}
	return nil
}

// arguments is argsText that counts what the model wrote wrongly. An empty text
// is how some models call a tool without arguments.
func (c *chat) arguments(raw json.RawMessage) string {
	text := argsText(raw)
	if strings.TrimSpace(text) != "" && !json.Valid([]byte(text)) {
		c.fix(fixBadArgs)
	}
	return text
}

func named(x call, where string) error {
	if strings.TrimSpace(x.tool) == "" {
		return field(where, "is empty: a tool call names its tool")
	}
	return nil
}

func (OpenAI) tools(raw json.RawMessage) ([]data.Tool, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	type tool struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	var list []struct {
		tool
		Function *tool `json:"function"`
		Custom   *tool `json:"custom"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, field("tools", "is not a list of tools: %w", err)
	}
	var out []data.Tool
	for _, x := range list {
		switch {
		case x.Function != nil:
			out = append(out, data.Tool(*x.Function))
		case x.Custom != nil:
			out = append(out, data.Tool(*x.Custom))
		case x.Name != "":
			out = append(out, data.Tool(x.tool))
		}
	}
	return out, nil
}
