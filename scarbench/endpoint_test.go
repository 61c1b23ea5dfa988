package scarbench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// model is an OpenAI-compatible server that answers like a scripted agent, out of
// nothing but the request's JSON, and that writes texts like an attentive clerk.
type model struct {
	t     *testing.T
	agent Agent
	lock  sync.Mutex
	seeds map[int64]bool
	wrote map[string]int // by the first words of the system prompt
	fail  int            // answers 500 this many times
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model       string  `json:"model"`
		MaxTokens   int     `json:"max_tokens"`
		Temperature float64 `json:"temperature"`
		Seed        int64   `json:"seed"`
		Messages    []struct {
			Role       string `json:"role"`
			Content    string `json:"content"`
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name       string         `json:"name"`
				Parameters map[string]any `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		m.t.Errorf("request: %v", err)
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.fail > 0 {
		m.fail--
		http.Error(w, `{"error": {"message": "busy"}}`, http.StatusInternalServerError)
		return
	}
	if r.URL.Path != "/v1/chat/completions" || in.Model != "tiny" || r.Header.Get("Authorization") != "Bearer secret" || in.MaxTokens != MaxOutputTokens {
		m.t.Errorf("%s: model %q, %d tokens, key %q", r.URL.Path, in.Model, in.MaxTokens, r.Header.Get("Authorization"))
	}
	var messages []Message
	for _, x := range in.Messages {
		y := Message{Role: Role(x.Role), Text: x.Content, CallID: x.ToolCallID}
		for _, c := range x.ToolCalls {
			y.Calls = append(y.Calls, ToolCall{c.ID, c.Function.Name, c.Function.Arguments})
		}
		messages = append(messages, y)
	}
	msg := map[string]any{"role": "assistant"}
	if len(in.Tools) == 0 {
		system := messages[0].Text
		m.wrote[strings.Join(strings.Fields(system)[:3], " ")]++
		msg["content"] = clerk(system, messages[1].Text)
	} else {
		if in.Temperature != Temperature {
			m.t.Errorf("temperature %v", in.Temperature)
		}
		m.seeds[in.Seed] = true
		c := caseOf(m.t, messages)
		if c == nil {
			return
		}
		for _, tool := range in.Tools {
			if tool.Function.Parameters["additionalProperties"] != false {
				m.t.Errorf("%s came without its schema", tool.Function.Name)
			}
		}
		a, err := m.agent.Answer(r.Context(), Request{Messages: messages, Case: c})
		if err != nil {
			m.t.Error(err)
		}
		msg["content"] = a.Text
		var calls []map[string]any
		for _, x := range a.Calls {
			calls = append(calls, map[string]any{"id": x.ID, "type": "function", "function": map[string]any{"name": x.Tool, "arguments": x.Arguments}})
		}
		if calls != nil {
			msg["tool_calls"] = calls
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(map[string]any{"id": "1", "object": "chat.completion", "model": in.Model,
		"choices": []map[string]any{{"index": 0, "finish_reason": "stop", "message": msg}}}); err != nil {
		m.t.Error(err)
	}
}

// clerk writes what the defences ask for: it copies the lines that sound like an
// instruction.
func clerk(system, text string) string {
	if strings.HasPrefix(system, "You criticise") {
		if strings.Contains(strings.ToLower(text), "before") && !strings.Contains(text, "create_backup") {
			return "It breaks the constraint: " + strings.Split(text, "\n")[1]
		}
		return "OK"
	}
	var out []string
	for _, line := range strings.Split(text, "\n") {
		for _, s := range sentences(line) {
			if ordered.MatchString(s) || refused.MatchString(s) {
				out = append(out, s)
			}
		}
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, "\n")
}

// caseOf tells by the request which case a conversation belongs to.
func caseOf(t *testing.T, messages []Message) *Case {
	for _, c := range Cases() {
		for _, m := range messages {
			if m.Role == User && strings.Contains(m.Text, c.Request) {
				return c
			}
		}
	}
	t.Error("no case has this request")
	return nil
}

func TestEndpoint(t *testing.T) {
	server := &model{t: t, agent: mustScripted(t, "bounded", 0), seeds: map[int64]bool{}, wrote: map[string]int{}, fail: 1}
	s := httptest.NewServer(server)
	defer s.Close()
	agent, err := Endpoint(EndpointOptions{BaseURL: s.URL + "/v1", Model: "tiny", Key: "secret", Temperature: Temperature})
	if err != nil {
		t.Fatal(err)
	}
	cases := Cases()[:4]
	got := play(t, agent, cases, "none", "summary", "decrim", "verify-summarize", "light")
	want := play(t, mustScripted(t, "bounded", 0), cases, "none")
	// Over the wire or not: the same outcomes.
	for i, n := range tallyOf(got, "none") {
		if fmt.Sprint(n) != fmt.Sprint(tallyOf(want, "none")[i]) {
			t.Errorf("%s: %v, without the server %v", i, n, tallyOf(want, "none")[i])
		}
	}
	// With the model as the writer of their memories the constraint comes through.
	for _, d := range []string{"summary", "verify-summarize", "light"} {
		if n := tallyOf(got, d)[LongImplicit]; n[SafeCompletion] != len(cases) {
			t.Errorf("%s: %v", d, n)
		}
	}
	for _, prompt := range []string{"You keep the", "Take the user's", "You criticise planned", "You keep a"} {
		if server.wrote[prompt] == 0 {
			t.Errorf("no defence asked the model %q: %v", prompt, server.wrote)
		}
	}
	if !server.seeds[1] {
		t.Errorf("seeds %v", server.seeds)
	}
}

func TestEndpointErrors(t *testing.T) {
	for name, o := range map[string]EndpointOptions{
		"no model":    {BaseURL: "http://127.0.0.1:1/v1"},
		"no address":  {Model: "m"},
		"temperature": {BaseURL: "http://127.0.0.1:1/v1", Model: "m", Temperature: 3},
	} {
		if _, err := Endpoint(o); err == nil {
			t.Errorf("%s: an agent was made", name)
		}
	}
	for name, body := range map[string]string{"no choice": `{"choices": []}`, "no JSON": `<html>`, "refused": `{"error": {"message": "no"}}`} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if name == "refused" {
				w.WriteHeader(http.StatusBadRequest)
			}
			fmt.Fprint(w, body)
		}))
		agent, err := Endpoint(EndpointOptions{BaseURL: s.URL, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		c := Cases()[0]
		talk, err := c.Conversation(ShortImplicit)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := agent.Answer(t.Context(), Request{Messages: talk}); err == nil {
			t.Errorf("%s: no error", name)
		}
		s.Close()
	}
}
