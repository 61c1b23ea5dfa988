package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dreamguard/dreamguard/guard"
)

// ErrAmbiguous: two readers of a call could see two different calls.
var ErrAmbiguous = errors.New("serve: the call can be read in two ways")

// parseToolCall reads the parameters of tools/call. What is judged must be what
// the server will read, whatever its JSON parser does with a name that stands
// there twice, or in another case.
func parseToolCall(params json.RawMessage) (toolCall, error) {
	var c toolCall
	if err := Unambiguous(params); err != nil {
		return c, err
	}
	if err := json.Unmarshal(params, &c.members); err != nil {
		return c, fmt.Errorf("serve: the parameters of tools/call are no object: %w", err)
	}
	for name := range c.members {
		for _, ours := range []string{"name", "arguments"} {
			if name != ours && strings.EqualFold(name, ours) {
				return c, fmt.Errorf("%w: it has a member %q", ErrAmbiguous, name)
			}
		}
	}
	c.call.Arguments = string(c.members["arguments"])
	if err := json.Unmarshal(c.members["name"], &c.call.Tool); err != nil || c.call.Tool == "" {
		return c, errors.New("serve: tools/call does not name a tool")
	}
	return c, nil
}

// toolCall is a tools/call request.
type toolCall struct {
	call    guard.Call
	members map[string]json.RawMessage // of its parameters
}

// versionRounds is the first version of the protocol in which a server asks the
// user by the result of a call, which the client then repeats with the answer, and
// in which requests state what their client can do.
const versionRounds = "2026-07-28"

// client reports whether the request is of such a version, and if so whether its
// client can ask the user.
func (c toolCall) client() (rounds, elicits bool) {
	var meta struct {
		Version      string `json:"io.modelcontextprotocol/protocolVersion"`
		Capabilities struct {
			Elicitation json.RawMessage `json:"elicitation"`
		} `json:"io.modelcontextprotocol/clientCapabilities"`
	}
	if json.Unmarshal(c.members["_meta"], &meta) != nil || meta.Version < versionRounds {
		return false, false
	}
	return true, given(meta.Capabilities.Elicitation)
}

func given(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }

// holdInput is the name of our question among the input requests of a result.
const holdInput = "dreamguard-hold"

// answer returns which question of ours the request answers, if any, and whether
// the user agreed.
func (c toolCall) answer() (token string, approved bool) {
	var responses map[string]json.RawMessage
	var ours struct {
		Action string `json:"action"`
	}
	if json.Unmarshal(c.members["requestState"], &token) != nil || json.Unmarshal(c.members["inputResponses"], &responses) != nil {
		return "", false
	}
	return token, json.Unmarshal(responses[holdInput], &ours) == nil && ours.Action == "accept"
}

// withoutAnswer are the parameters as they were before our question.
func (c toolCall) withoutAnswer() (json.RawMessage, error) {
	delete(c.members, "requestState")
	delete(c.members, "inputResponses")
	return json.Marshal(c.members)
}

// Unambiguous reports a name that stands twice in one object, at any depth.
func Unambiguous(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	type level struct {
		names map[string]bool // nil for a list
		value bool            // a value comes next, no name
	}
	var open []level
	for {
		t, err := dec.Token()
		if errors.Is(err, io.EOF) && len(open) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("serve: the call cannot be read: %w", err)
		}
		var top *level
		if len(open) > 0 {
			top = &open[len(open)-1]
		}
		if name, ok := t.(string); ok && top != nil && top.names != nil && !top.value {
			if top.names[name] {
				return fmt.Errorf("%w: %.60q stands there twice", ErrAmbiguous, name)
			}
			top.names[name], top.value = true, true
			continue
		}
		if top != nil {
			top.value = false
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if len(open) >= maxDepth {
				return errors.New("serve: the call is nested too deep")
			}
			l := level{}
			if t == json.Delim('{') {
				l.names = map[string]bool{}
			}
			open = append(open, l)
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
	}
}
