package scarbench

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/dreamguard/dreamguard/scarbench/env"
)

// Request is what an agent is asked for one answer.
type Request struct {
	Messages []Message
	Tools    []*env.Tool
	// Case is for scripted agents: they know how its task is done with and without
	// the constraint, and choose by what they see.
	Case *Case
	// Seed differs between repetitions.
	Seed int64
}

// Answer is one answer of an agent: a text, calls, or both. Without calls it ends
// the run.
type Answer struct {
	Text  string
	Calls []ToolCall
}

// Agent is what is measured. It must be safe for concurrent use.
type Agent interface {
	// Name identifies the agent and its settings in results.
	Name() string
	Answer(ctx context.Context, r Request) (Answer, error)
}

// Writer is an agent that also answers plain prompts. Defences that need a language
// model for their own steps use it.
type Writer interface {
	Write(ctx context.Context, system, text string) (string, error)
}

// Default sizes of the scripted agents' memories, in tokens.
const (
	DefaultWindow  = 2000 // what a bounded memory sees
	DefaultCompact = 3000 // from how much on a compacting agent compacts
)

// ScriptedNames lists the scripted agents.
func ScriptedNames() []string {
	return []string{"safe", "careless", "forgetful", "bounded", "compacting"}
}

// Scripted returns a scripted agent. All but safe act on what they see: if that
// states the constraint they follow the case's safe trace, else the forgetful one.
//
//   - safe always follows the safe trace;
//   - careless sees nothing but what its own calls returned;
//   - forgetful sees the request, what stands beside it, and what came later;
//   - bounded sees the last window tokens of the conversation;
//   - compacting replaces a conversation of more than window tokens by a note of
//     what the assistant reported as done, and the latest turns.
//
// A window of 0 stands for the default.
func Scripted(name string, window int) (Agent, error) {
	switch {
	case window < 0:
		return nil, fmt.Errorf("a window of %d tokens: want a positive number", window)
	case window == 0 && name == "compacting":
		window = DefaultCompact
	case window == 0:
		window = DefaultWindow
	}
	switch name {
	case "safe":
		return scripted{"safe", nil}, nil
	case "careless":
		return scripted{"careless", ownResults}, nil
	case "forgetful":
		return scripted{"forgetful", fromRequest}, nil
	case "bounded":
		return scripted{fmt.Sprintf("bounded-%d", window), func(m []Message) []Message { return lastTokens(m, window) }}, nil
	case "compacting":
		return scripted{fmt.Sprintf("compacting-%d", window), func(m []Message) []Message { return compact(m, window) }}, nil
	}
	return nil, fmt.Errorf("there is no scripted agent %.40q: want one of %s", name, strings.Join(ScriptedNames(), ", "))
}

// scripted is an agent that follows one of two plans.
type scripted struct {
	name string
	view func([]Message) []Message // nil: follows the safe trace without looking
}

func (s scripted) Name() string { return s.name }

// Answer makes the next call of the plan.
func (s scripted) Answer(_ context.Context, r Request) (Answer, error) {
	plan := r.Case.Safe
	if s.view != nil && !seen(r.Case, s.view(r.Messages)) {
		plan = r.Case.Forgetful
	}
	done, tried := progress(r.Messages)
	for _, c := range plan {
		key := c.String()
		if done[key] {
			continue
		}
		if tried[key] > 1 {
			return Answer{Text: "I could not do this: " + c.Tool + " was refused twice."}, nil
		}
		return Answer{Calls: []ToolCall{{ID: fmt.Sprintf("call-%d", len(r.Messages)), Tool: c.Tool, Arguments: c.JSON()}}}, nil
	}
	return Answer{Text: "It is done."}, nil
}

// seen reports whether any message states the constraint.
func seen(c *Case, messages []Message) bool {
	for _, m := range messages {
		if states(c, m.Text) {
			return true
		}
	}
	return false
}

// What a message of a tool begins with when the call came to nothing.
const (
	failedPrefix  = "error: "
	stoppedPrefix = "not executed: "
)

// progress lists which calls since the request succeeded, and how often each was
// tried.
func progress(messages []Message) (done map[string]bool, tried map[string]int) {
	done, tried = map[string]bool{}, map[string]int{}
	byID := map[string]string{}
	for _, m := range fromRequest(messages) {
		for _, c := range m.Calls {
			key := c.Tool + " " + c.Arguments
			byID[c.ID] = key
			tried[key]++
		}
		if m.Role == Tool && !strings.HasPrefix(m.Text, failedPrefix) && !strings.HasPrefix(m.Text, stoppedPrefix) {
			done[byID[m.CallID]] = true
		}
	}
	return done, tried
}

// requestAt is the index of the last message of the user.
func requestAt(messages []Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == User {
			return i
		}
	}
	return 0
}

// fromRequest is the request and what came later.
func fromRequest(messages []Message) []Message { return messages[requestAt(messages):] }

// ownResults are the results of tools since the request.
func ownResults(messages []Message) []Message {
	var out []Message
	for _, m := range fromRequest(messages) {
		if m.Role == Tool {
			out = append(out, m)
		}
	}
	return out
}

// lastTokens is the system prompt and the latest messages that fit into n tokens,
// whole ones; the last one always.
func lastTokens(messages []Message, n int) []Message {
	start := len(messages)
	for start > 0 {
		n -= messages[start-1].tokens()
		if n < 0 && start < len(messages) {
			break
		}
		start--
	}
	out := messages[start:]
	if start > 0 && messages[0].Role == System {
		out = append([]Message{messages[0]}, out...)
	}
	return out
}

// noteTokens bounds a compacting agent's note.
const noteTokens = 500

// reported are words by which an assistant says what it did or what comes next.
var reported = regexp.MustCompile(`(?i)\b(done|so far|noted|added|moved|sent|set|changed|listed|finished|open|next|left|filed|booked|swapped|marked|put)\b`)

// compact replaces everything ahead of the request by a note of progress and the
// latest turns, once it is longer than n tokens. The note holds sentences in which
// the assistant reports on the work, the newest first in line for the room.
func compact(messages []Message, n int) []Message {
	at := requestAt(messages)
	if tokensOf(messages[:at]) <= n {
		return messages
	}
	recent := lastTokens(messages[:at], n/4)
	if len(recent) > 0 && recent[0].Role == System {
		recent = recent[1:]
	}
	old := messages[:at-len(recent)]
	var note []string
	room := noteTokens
	for i := len(old) - 1; i >= 0 && room > 0; i-- {
		if old[i].Role != Assistant {
			continue
		}
		for _, s := range sentences(old[i].Text) {
			if reported.MatchString(s) {
				if room -= Tokens(s); room >= 0 {
					note = append(note, s)
				}
			}
		}
	}
	var out []Message
	if old[0].Role == System {
		out = append(out, old[0])
	}
	out = append(out, Message{Role: Assistant, Text: "Progress so far:\n" + strings.Join(note, "\n")})
	out = append(out, recent...)
	return append(out, messages[at:]...)
}
