// Package configmcp serves a guarded configuration as a Model Context Protocol
// server with two tools, config_get and config_set: what an agent may know and
// change of its own configuration, with the containment floor in between.
//
//	g, err := floor.Guard("agent.yaml", floor.Default(), floor.GuardOptions{})
//	err = configmcp.NewServer(g, "v1.0.0").Run(ctx, &mcp.StdioTransport{})
//
// A refused change is a tool result with IsError and the rule's reason as text, so
// that the model reads why; nothing is written then.
package configmcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dreamguard/dreamguard/floor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// GetInput are the arguments of config_get.
type GetInput struct {
	Path string `json:"path,omitempty" jsonschema:"path of one setting, such as tools.pinned; left out: the whole configuration"`
}

// GetOutput is what config_get returns.
type GetOutput struct {
	Path  string `json:"path"`
	Set   bool   `json:"set" jsonschema:"whether the setting is there"`
	Value any    `json:"value"`
}

// SetInput are the arguments of config_set.
type SetInput struct {
	Path   string `json:"path" jsonschema:"path of the setting, such as limits.maxSteps or channels[0].type"`
	Value  any    `json:"value,omitempty" jsonschema:"the new value, as JSON: it replaces what is there"`
	Remove bool   `json:"remove,omitempty" jsonschema:"remove the setting instead"`
}

// SetOutput is what config_set returns where the change was written.
type SetOutput struct {
	Path    string `json:"path"`
	Written bool   `json:"written"`
}

const (
	getDescription = "Reads this agent's own configuration, whole or one setting."
	setDescription = "Changes one setting of this agent's own configuration, when the person asks for it. It takes effect when the agent next starts. Settings that limit the agent cannot be changed here; the refusal says so."
)

// NewServer returns an MCP server for g. Run it on any transport.
func NewServer(g *floor.Guarded, version string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "dreamguard-floor", Version: version}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "config_get", Description: getDescription, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in GetInput) (*mcp.CallToolResult, GetOutput, error) {
			return get(g, in)
		})
	mcp.AddTool(s, &mcp.Tool{Name: "config_set", Description: setDescription},
		func(_ context.Context, r *mcp.CallToolRequest, in SetInput) (*mcp.CallToolResult, SetOutput, error) {
			return set(g, r.Params.Arguments, in)
		})
	return s
}

func get(g *floor.Guarded, in GetInput) (*mcp.CallToolResult, GetOutput, error) {
	out := GetOutput{Path: in.Path}
	text, err := g.Read()
	if err != nil {
		return nil, out, err
	}
	raw, ok, err := floor.Lookup(g.Format(), text, in.Path)
	if err != nil || !ok {
		return nil, out, err
	}
	out.Set = true
	return nil, out, json.Unmarshal(raw, &out.Value)
}

func set(g *floor.Guarded, arguments json.RawMessage, in SetInput) (*mcp.CallToolResult, SetOutput, error) {
	// The value as it was sent: numbers keep their digits, and a null is not the
	// same as no value.
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &sent); err != nil {
		return nil, SetOutput{}, fmt.Errorf("the arguments are no JSON object")
	}
	value, ok := sent["value"]
	if ok == in.Remove {
		return nil, SetOutput{}, errors.New("want either value or remove")
	}
	_, err := g.Apply(floor.Change{Format: floor.PathWrite, Path: in.Path, Value: value, Delete: in.Remove})
	if err != nil {
		return nil, SetOutput{}, err // the reason for the model stands in it
	}
	return nil, SetOutput{Path: in.Path, Written: true}, nil
}
