package main

import (
	"encoding/json"
	"fmt"

	"github.com/dreamguard/dreamguard/floor"
	"github.com/dreamguard/dreamguard/floor/layer"
	"github.com/dreamguard/dreamguard/verdict"
)

// toolCall is one call as --call reads it.
type toolCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// arguments returns the arguments as the agent wrote them: text, or an object.
func (c toolCall) arguments() string {
	var s string
	if json.Unmarshal(c.Arguments, &s) == nil {
		return s
	}
	return string(c.Arguments)
}

// floorCall judges one tool call.
func (a *app) floorCall(f *floor.Floor, name string, sealed []string, asJSON bool) error {
	text, err := a.readFile(name)
	if err != nil {
		return err
	}
	var c toolCall
	if err := json.Unmarshal(text, &c); err != nil || c.Tool == "" {
		return fmt.Errorf("%s: want an object with tool and arguments", name)
	}
	l, err := layer.New(layer.Options{Floor: f, Sealed: sealed})
	if err != nil {
		return err
	}
	return a.printDecision(l.Decide(verdict.Call{Tool: c.Tool, Arguments: c.arguments()}), asJSON)
}
