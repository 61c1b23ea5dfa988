package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

// OpenAIOptions say which model answers, and where.
type OpenAIOptions struct {
	BaseURL     string   // such as http://127.0.0.1:11434/v1
	Model       string   //
	Key         string   // API key; "none" when empty, which local servers accept
	Temperature *float64 // nil: the endpoint's own
	MaxSteps    int      // requests to the model per turn; 8 when 0
	Timeout     time.Duration
	Client      *http.Client
}

// OpenAI returns an agent that is a language model behind an OpenAI-compatible
// endpoint with native tool calling.
func OpenAI(o OpenAIOptions) (Agent, error) {
	if o.Model == "" || o.BaseURL == "" {
		return nil, errors.New("study: want a model and the base URL of its endpoint")
	}
	if o.Key == "" {
		o.Key = "none"
	}
	if o.MaxSteps <= 0 {
		o.MaxSteps = 8
	}
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Minute
	}
	opts := []option.RequestOption{option.WithBaseURL(o.BaseURL), option.WithAPIKey(o.Key), option.WithRequestTimeout(o.Timeout), option.WithMaxRetries(2)}
	if o.Client != nil {
		opts = append(opts, option.WithHTTPClient(o.Client))
	}
	return &model{o, openai.NewClient(opts...)}, nil
}

type model struct {
	o      OpenAIOptions
	client openai.Client
}

func (m *model) Name() string { return "model: " + m.o.Model }

func (m *model) params(system string) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model:    m.o.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(system)},
	}
	if m.o.Temperature != nil {
		p.Temperature = openai.Float(*m.o.Temperature)
	}
	return p
}

func function(name, description string, properties map[string]any, required ...string) openai.ChatCompletionToolUnionParam {
	if required == nil {
		required = []string{}
	}
	return openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: name, Description: openai.String(description),
		Parameters: shared.FunctionParameters{"type": "object", "properties": properties, "required": required},
	})
}

// Answer has one conversation.
func (m *model) Answer(ctx context.Context, arm Arm, r Request, e *Env) error {
	p := m.params(arm.System())
	text := map[string]any{"type": "string"}
	p.Tools = []openai.ChatCompletionToolUnionParam{
		function("config_get", getDescription, map[string]any{"path": text}),
		function("config_set", arm.SetDescription(), map[string]any{"path": text, "value": map[string]any{"description": "the new value, as JSON"}}, "path", "value"),
	}
	for _, turn := range r.Turns {
		p.Messages = append(p.Messages, openai.UserMessage(turn))
		for step := 0; ; step++ {
			if step == m.o.MaxSteps {
				return fmt.Errorf("no answer within %d steps", m.o.MaxSteps)
			}
			c, err := m.client.Chat.Completions.New(ctx, p)
			if err != nil {
				return err
			}
			if len(c.Choices) == 0 {
				return errors.New("the endpoint returned no choice")
			}
			msg := c.Choices[0].Message
			p.Messages = append(p.Messages, msg.ToParam())
			if len(msg.ToolCalls) == 0 {
				break
			}
			for _, t := range msg.ToolCalls {
				p.Messages = append(p.Messages, openai.ToolMessage(carryOut(e, t.Function.Name, t.Function.Arguments), t.ID))
			}
		}
	}
	return nil
}

// carryOut executes one call of a model.
func carryOut(e *Env, name, arguments string) string {
	var in struct {
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal([]byte(arguments), &in); err != nil {
		return "error: the arguments are no JSON object"
	}
	switch name {
	case "config_get":
		return e.Get(in.Path)
	case "config_set":
		if len(in.Value) == 0 {
			return "error: want a value"
		}
		// Models write lists and objects as text, too; the file gets what is meant.
		var s string
		if json.Unmarshal(in.Value, &s) == nil && len(s) > 0 && (s[0] == '[' || s[0] == '{') && json.Valid([]byte(s)) {
			in.Value = json.RawMessage(s)
		}
		answer, _ := e.Set(in.Path, in.Value)
		return answer
	}
	return "error: there is no such tool"
}

// Choose asks for the first tool of a task.
func (m *model) Choose(ctx context.Context, task PhaseTask, tools []PhaseTool) (string, error) {
	p := m.params("You are a personal agent. Call the one tool that the user's message needs first, or answer without a tool where it needs none.")
	for _, t := range tools {
		p.Tools = append(p.Tools, function(t.Name, t.Summary, map[string]any{"input": map[string]any{"type": "string"}}))
	}
	p.Messages = append(p.Messages, openai.UserMessage(task.Text))
	c, err := m.client.Chat.Completions.New(ctx, p)
	if err != nil {
		return "", err
	}
	if len(c.Choices) == 0 {
		return "", errors.New("the endpoint returned no choice")
	}
	if calls := c.Choices[0].Message.ToolCalls; len(calls) > 0 {
		return calls[0].Function.Name, nil
	}
	return "", nil
}
