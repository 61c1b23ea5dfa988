package formats

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/dreamguard/dreamguard/data"
)

// ASSEBench reads the raw JSON of ASSEBench and of R-Judge and AgentHarm as
// shipped with it (github.com/Astarojth/AgentAuditor-ASSEBench): an array of
// runs with profile, contents (rounds of turns by user, agent and environment)
// and label.
//
// Labels: label 1 says that the run is unsafe, 0 that it is safe. Where the
// hazard is stands nowhere but in prose: it stays unlocated (hazard_label
// "missing").
//
// An agent's action is written in several ways, name{...}, name(...), name
// followed by "Action Input:", name: {...}, or {"command": {"name", "args"}};
// anything else, and Complete{...}, is a message. A tool's output that stands in
// the agent's own turn after "[Observation]:" becomes the result of its step.
type ASSEBench struct{}

// Name implements [Format].
func (ASSEBench) Name() string { return "assebench" }

// Detect implements [Format].
func (ASSEBench) Detect(head []byte) bool {
	k := look(head)
	return k[".profile"] && k[".contents.role"]
}

type asseTurn struct {
	Role    string  `json:"role"`
	Content *string `json:"content"`
	Thought *string `json:"thought"`
	Action  *string `json:"action"`
}

// Import implements [Format].
func (a ASSEBench) Import(r io.Reader, name string, emit func(*data.Trajectory) error) (Report, error) {
	s := newSink(a.Name(), name, emit)
	base := stemOf(r, name)
	return s.finish(each(r, func(v value) error {
		if v.endOfArray() {
			return nil
		}
		obj, err := v.object()
		if err != nil {
			return err
		}
		var rounds [][]asseTurn
		if raw, ok := obj["contents"]; !ok {
			return field("contents", "is missing: an ASSEBench run has contents, profile and label; if this one is of another format: %w", ErrMixed)
		} else if err := json.Unmarshal(raw, &rounds); err != nil {
			return field("contents", "is not a list of rounds of turns: %w", err)
		}
		id := asString(obj["id"])
		if id == "" {
			return field("id", "is missing or neither text nor a number: give every run an id")
		}
		t := &data.Trajectory{Dataset: "assebench", Suite: base, ID: "assebench/" + base + "/" + id}
		switch label := string(obj["label"]); label {
		case "0":
			t.Label, t.HazardLabel = data.Safe, data.HazardNone
		case "1":
			t.Label, t.HazardLabel = data.Unsafe, data.HazardMissing
		default:
			return &data.FieldError{Field: "label", Err: data.ErrLabel, Msg: fmt.Sprintf("is %.40q: ASSEBench has 0 (safe) and 1 (unsafe); correct it, since a label is never guessed", label)}
		}
		for _, x := range [...]struct{ from, to string }{
			{"risk_description", "reason"}, {"profile", "profile"}, {"scenario", "scenario"},
			{"application_scenario", "application_scenario"}, {"risk_type", "risk_type"},
			{"failure_mode", "failure_mode"}, {"ambiguous", "ambiguous"},
		} {
			if err := setExtra(t, x.to, obj[x.from]); err != nil {
				return field(x.from, "cannot be kept: %w", err)
			}
		}
		c := newChat(t, s)
		for i, round := range rounds {
			for j, turn := range round {
				if err := turn.add(c, fmt.Sprintf("contents[%d][%d]", i, j)); err != nil {
					return err
				}
			}
		}
		t.Group = taskGroup(t.Dataset, t.Task, t.ID)
		return s.put(t, v.line)
	}))
}

func (m *asseTurn) add(c *chat, where string) error {
	str := func(p *string) string {
		if p == nil {
			return ""
		}
		return strings.TrimSpace(*p)
	}
	switch m.Role {
	case "user":
		text := str(m.Content)
		if n := len(c.t.Steps); n > 0 && c.t.Steps[n-1].Type == data.ToolCall && text != "" {
			// These turns are the benchmark's workflow, not a person: planted
			// instructions come in them too. Behind a tool call they count as
			// part of its output and get no user's authority.
			c.t.Steps[n-1].Result = strings.TrimPrefix(c.t.Steps[n-1].Result+"\n"+data.UserPrefix+text, "\n")
			c.fix(fixWorkflow)
			return nil
		}
		c.user(text)
	case "environment":
		c.observation(str(m.Content))
	case "agent":
		thought, observed := cutObservation(str(m.Thought))
		action, more := cutObservation(str(m.Action))
		tool, args := parseAction(action)
		if tool == "" {
			c.assistant(strings.TrimSpace(thought+"\n"+args), nil)
		} else {
			c.assistant(thought, []call{{tool: tool, args: args}})
		}
		if observed = join(observed, more); observed != "" {
			c.observation(observed)
		}
	default:
		return field(where+".role", "is %.40q: want user, agent or environment", m.Role)
	}
	return nil
}

// observation adds what the environment gave back to the last step.
func (c *chat) observation(text string) {
	switch n := len(c.t.Steps); {
	case text == "":
	case n == 0:
		// What the agent was shown before it acted, and not by the user.
		c.t.Context = join(c.t.Context, text)
	default:
		c.t.Steps[n-1].Result = join(c.t.Steps[n-1].Result, text)
	}
}

const observationMark = "[Observation]:"

func cutObservation(s string) (before, after string) {
	before, after, _ = strings.Cut(s, observationMark)
	return strings.TrimRight(before, "; \n"), strings.TrimSpace(after)
}

var (
	// actionCall is name{...}, name: {...} or name followed by an Action Input,
	// whatever that holds.
	actionCall = regexp.MustCompile(`^([A-Za-z_][\w.]*)(?:\s*:?\s*(\{(?s:.*))|\s*\n\s*Action Input:\s*((?s:.*)))$`)
	// actionParens is name(...).
	actionParens = regexp.MustCompile(`^([A-Za-z_][\w.]*)(\((?s:.*)\))$`)
)

// parseAction gives the tool and the arguments of an action, or "" and the text
// of a message.
func parseAction(action string) (tool, args string) {
	if m := actionCall.FindStringSubmatch(action); m != nil {
		tool, args = m[1], m[2]+m[3]
	} else if m := actionParens.FindStringSubmatch(action); m != nil {
		tool, args = m[1], m[2]
	} else if name, args, ok := commandAction(action); ok {
		return name, args
	} else {
		return "", action
	}
	if tool == "Complete" { // the run's closing message
		return "", args
	}
	return tool, args
}

// commandAction reads {"command": {"name": ..., "args": ...}}, whose first brace
// is often missing, and whose last may be there once too often.
func commandAction(action string) (name, args string, ok bool) {
	s := action
	if strings.HasPrefix(s, `"command"`) {
		s = "{" + s
	}
	var x struct {
		Command struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"command"`
	}
	if json.NewDecoder(strings.NewReader(s)).Decode(&x) != nil || x.Command.Name == "" {
		return "", "", false
	}
	return x.Command.Name, argsText(x.Command.Args), true
}
