package scarbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dreamguard/dreamguard/scarbench/env"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

// EndpointOptions say which model answers, and where.
type EndpointOptions struct {
	BaseURL     string        // such as http://127.0.0.1:11434/v1
	Model       string        //
	Key         string        // API key; "none" when empty, which local servers accept
	Temperature float64       // as it is sent; the protocol's is Temperature
	Timeout     time.Duration // of one request; 2 minutes when 0
	Client      *http.Client  // nil: the default one
}

// Endpoint returns an agent that is a language model behind an OpenAI-compatible
// endpoint with native tool calling. It is a [Writer] as well.
func Endpoint(o EndpointOptions) (Agent, error) {
	if o.Model == "" || o.BaseURL == "" {
		return nil, errors.New("want a model and the base URL of its endpoint")
	}
	if o.Temperature < 0 || o.Temperature > 2 {
		return nil, fmt.Errorf("a temperature of %g: want 0 to 2", o.Temperature)
	}
	if o.Key == "" {
		o.Key = "none"
	}
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Minute
	}
	opts := []option.RequestOption{option.WithBaseURL(o.BaseURL), option.WithAPIKey(o.Key), option.WithRequestTimeout(o.Timeout), option.WithMaxRetries(2)}
	if o.Client != nil {
		opts = append(opts, option.WithHTTPClient(o.Client))
	}
	return &endpoint{o, openai.NewClient(opts...)}, nil
}

type endpoint struct {
	o      EndpointOptions
	client openai.Client
}

var _ Writer = (*endpoint)(nil)

func (e *endpoint) Name() string { return "model: " + e.o.Model }

// Answer asks for one answer with the tools of the case.
func (e *endpoint) Answer(ctx context.Context, r Request) (Answer, error) {
	p := openai.ChatCompletionNewParams{
		Model: e.o.Model, MaxTokens: openai.Int(MaxOutputTokens), Temperature: openai.Float(e.o.Temperature), Seed: openai.Int(r.Seed),
	}
	for _, m := range r.Messages {
		p.Messages = append(p.Messages, param(m))
	}
	for _, t := range r.Tools {
		f, err := function(t)
		if err != nil {
			return Answer{}, err
		}
		p.Tools = append(p.Tools, f)
	}
	msg, err := e.ask(ctx, p)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Text: msg.Content}
	for i, c := range msg.ToolCalls {
		id := c.ID
		if id == "" { // some servers leave it out
			id = fmt.Sprintf("call-%d-%d", len(r.Messages), i)
		}
		a.Calls = append(a.Calls, ToolCall{ID: id, Tool: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return a, nil
}

// Write asks for a text.
func (e *endpoint) Write(ctx context.Context, system, text string) (string, error) {
	msg, err := e.ask(ctx, openai.ChatCompletionNewParams{
		Model: e.o.Model, MaxTokens: openai.Int(MaxOutputTokens), Temperature: openai.Float(0),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(system), openai.UserMessage(text)},
	})
	return msg.Content, err
}

func (e *endpoint) ask(ctx context.Context, p openai.ChatCompletionNewParams) (openai.ChatCompletionMessage, error) {
	c, err := e.client.Chat.Completions.New(ctx, p)
	if err != nil {
		return openai.ChatCompletionMessage{}, err
	}
	if len(c.Choices) == 0 {
		return openai.ChatCompletionMessage{}, errors.New("the endpoint returned no choice")
	}
	return c.Choices[0].Message, nil
}

// param is a message as the endpoint takes it.
func param(m Message) openai.ChatCompletionMessageParamUnion {
	switch m.Role {
	case System:
		return openai.SystemMessage(m.Text)
	case User:
		return openai.UserMessage(m.Text)
	case Tool:
		return openai.ToolMessage(m.Text, m.CallID)
	}
	a := openai.ChatCompletionAssistantMessageParam{}
	if m.Text != "" || len(m.Calls) == 0 {
		a.Content.OfString = openai.String(m.Text)
	}
	for _, c := range m.Calls {
		a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID:       c.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Tool, Arguments: c.Arguments},
			},
		})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &a}
}

// function is a tool as the endpoint takes it.
func function(t *env.Tool) (openai.ChatCompletionToolUnionParam, error) {
	var schema map[string]any
	if err := json.Unmarshal(t.Schema, &schema); err != nil {
		return openai.ChatCompletionToolUnionParam{}, fmt.Errorf("schema of %s: %w", t.Name, err)
	}
	delete(schema, "$schema") // some servers refuse it
	return openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: t.Name, Description: openai.String(t.Description), Parameters: shared.FunctionParameters(schema),
	}), nil
}
