package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
	"github.com/dreamguard/dreamguard/serve"
	"github.com/dreamguard/dreamguard/verdict"
)

// byName is a layer that decides by the tool's name, since the weights of the
// tests' artifact are random.
type byName struct{}

func (byName) Name() string { return "by-name" }
func (byName) Judge(_ context.Context, _ guard.SessionView, c guard.Call) (guard.Decision, []guard.Reason, []guard.Call) {
	switch {
	case c.Tool == "panic":
		panic("the layer is broken")
	case strings.HasPrefix(c.Tool, "block"):
		return guard.Block, []guard.Reason{verdict.ReasonContained}, nil
	case strings.HasPrefix(c.Tool, "hold"):
		return guard.Hold, []guard.Reason{verdict.ReasonPolicy}, nil
	}
	return guard.Pass, nil, nil
}
func (byName) Commit(guard.SessionView, guard.Call, guard.Result) {}

func openModel() (*guard.Model, error) {
	return guard.Open("../../guard/testdata/v1", guard.ScoresOnly(), guard.WithLayers(byName{}))
}

var enforced = serve.Settings{Mode: serve.Enforce, OnError: serve.DenyOnError, OnHold: serve.AskOnHold}

// secrets are the tests' tokens: one of each role, and a second agent.
var (
	secrets    = map[string]string{}
	tokenLines = func() (lines string) {
		for name, role := range map[string]Role{"ann": Agent, "bob": Agent, "eve": Approver, "root": Admin, "prom": Metrics} {
			secret, line, err := NewToken(name, role)
			if err != nil {
				panic(err)
			}
			secrets[name], lines = secret, lines+line
		}
		return lines
	}()
)

// service is a running server.
type service struct {
	t testing.TB
	*Server
	url    string
	mu     sync.Mutex
	events []decisionlog.Record
	broken error // of the log
}

func (s *service) record(e decisionlog.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	s.events = append(s.events, e)
	return nil
}

// kinds are the events of the log so far.
func (s *service) kinds() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, e := range s.events {
		text := string(e.Event)
		switch e.Event {
		case decisionlog.Verdict, decisionlog.Refusal, decisionlog.Crash, decisionlog.Release:
			text += ":" + e.Enforced.String()
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

func begin(t testing.TB, change func(*Config)) *service {
	t.Helper()
	s := &service{t: t}
	c := Config{
		Settings: enforced, Open: openModel, Record: s.record, Rate: -1, Logger: slog.New(slog.DiscardHandler),
		Tokens: func() (*Tokens, error) { return ParseTokens([]byte(tokenLines)) },
	}
	if change != nil {
		change(&c)
	}
	var err error
	if s.Server, err = New(c); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	s.url = srv.URL
	t.Cleanup(func() { s.stop(); srv.Close(); s.Close() })
	return s
}

// do sends a request as somebody and checks the answer against the OpenAPI document.
func (s *service) do(who, method, path string, body any) (int, map[string]any) {
	s.t.Helper()
	var in io.Reader
	if text, ok := body.(string); ok {
		in = strings.NewReader(text)
	} else if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, s.url+path, in)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if who != "" {
		req.Header.Set("Authorization", "Bearer "+secrets[who])
	}
	return s.send(req)
}

func (s *service) send(req *http.Request) (int, map[string]any) {
	s.t.Helper()
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	checkAnswer(s.t, req, r, b)
	var out map[string]any
	if len(b) > 0 {
		if err := json.Unmarshal(b, &out); err != nil {
			s.t.Fatalf("%s %s: %v in %.200q", req.Method, req.URL.Path, err, b)
		}
	}
	return r.StatusCode, out
}

var document = sync.OnceValues(func() (map[string]any, *jsonschema.Compiler) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(OpenAPI()))
	if err != nil {
		panic(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("https://dreamguard.test/openapi.json", v); err != nil {
		panic(err)
	}
	return v.(map[string]any), c
})

var compiling sync.Mutex

// checkAnswer holds an answer to the OpenAPI document.
func checkAnswer(t testing.TB, req *http.Request, r *http.Response, body []byte) {
	t.Helper()
	doc, compiler := document()
	have := strings.Split(req.URL.Path, "/")
	for path, item := range doc["paths"].(map[string]any) {
		want := strings.Split(path, "/")
		same := len(want) == len(have)
		for i := 0; same && i < len(want); i++ {
			same = want[i] == have[i] || want[i] == "{id}"
		}
		method, ok := item.(map[string]any)[strings.ToLower(req.Method)].(map[string]any)
		if !same || !ok {
			continue
		}
		answer, ok := method["responses"].(map[string]any)[fmt.Sprint(r.StatusCode)].(map[string]any)
		if !ok {
			t.Fatalf("%s %s: the status %d is not in the document: %s", req.Method, path, r.StatusCode, body)
		}
		if ref, ok := answer["$ref"].(string); ok {
			answer = doc["components"].(map[string]any)["responses"].(map[string]any)[ref[strings.LastIndexByte(ref, '/')+1:]].(map[string]any)
		}
		content, ok := answer["content"].(map[string]any)
		if !ok {
			if len(body) > 0 {
				t.Fatalf("%s %s: %d with a body: %s", req.Method, path, r.StatusCode, body)
			}
			return
		}
		ref := content["application/json"].(map[string]any)["schema"].(map[string]any)["$ref"].(string)
		compiling.Lock()
		schema, err := compiler.Compile("https://dreamguard.test/openapi.json" + ref)
		compiling.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			t.Fatalf("%s %s: %d: %v\n%s", req.Method, path, r.StatusCode, err, body)
		}
		return
	}
}

// must is do with the status that is expected.
func (s *service) must(status int, who, method, path string, body any) map[string]any {
	s.t.Helper()
	got, out := s.do(who, method, path, body)
	if got != status {
		s.t.Fatalf("%s %s of %s: %d %v, want %d", method, path, who, got, out, status)
	}
	return out
}

type obj = map[string]any

func call(tool string) obj { return obj{"tool": tool, "arguments": obj{"to": "ann@example.com"}} }

// start begins a session of ann.
func (s *service) start() string {
	s.t.Helper()
	return s.must(201, "ann", "POST", "/v1/sessions", obj{"task": obj{"instruction": "tidy up the inbox"}})["session"].(string)
}

func (s *service) judge1(id, tool string) obj {
	s.t.Helper()
	return s.must(200, "ann", "POST", "/v1/sessions/"+id+"/judge", obj{"call": call(tool)})
}

func commitOf(n any, tool string) obj {
	return obj{"judgement": n, "call": call(tool), "result": obj{"output": "done"}}
}

// code is the code of an error's answer.
func code(out obj) string {
	e, _ := out["error"].(obj)
	c, _ := e["code"].(string)
	return c
}

// eventually waits for what comes soon.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for range 500 {
		if f() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it did not happen: " + what)
}
