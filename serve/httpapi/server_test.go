package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
	"github.com/dreamguard/dreamguard/serve"
)

func TestSession(t *testing.T) {
	s := begin(t, nil)
	id := s.start()
	a := s.judge1(id, "read")
	if a["action"] != "allow" || a["cause"] != "verdict" || a["judgement"] != 1.0 {
		t.Fatal(a)
	}
	if c := s.must(200, "ann", "POST", "/v1/sessions/"+id+"/commit", commitOf(1, "read")); c["step"] != 1.0 || c["duplicate"] != false {
		t.Fatal(c)
	}
	if a = s.judge1(id, "block"); a["action"] != "deny" || a["cause"] != "refusal" || !strings.Contains(a["reason"].(string), "own limits") {
		t.Fatal(a)
	}
	s.judge1(id, "read")
	s.must(200, "ann", "POST", "/v1/sessions/"+id+"/skip", obj{"judgement": 3, "call": call("read")})
	if x := s.must(200, "ann", "GET", "/v1/sessions/"+id, nil); x["step"] != 1.0 || x["refusals"] != 2.0 || len(x["scores"].([]any)) != 3 {
		t.Fatal(x)
	}
	s.must(204, "ann", "DELETE", "/v1/sessions/"+id, nil)
	s.must(404, "ann", "DELETE", "/v1/sessions/"+id, nil)
	if got, want := s.kinds(), "start verdict:PASS commit refusal:BLOCK verdict:PASS skip end"; got != want {
		t.Errorf("log: %s, want %s", got, want)
	}
}

// Requests that come twice, late or in another order.
func TestRepeatedAndOutOfOrder(t *testing.T) {
	s := begin(t, nil)
	id := s.start()
	path := "/v1/sessions/" + id
	first := s.must(200, "ann", "POST", path+"/judge", obj{"call": call("block"), "key": "k1"})
	if again := s.must(200, "ann", "POST", path+"/judge", obj{"call": call("block"), "key": "k1"}); again["judgement"] != first["judgement"] || again["action"] != "deny" {
		t.Fatal(again)
	}
	if x := s.must(200, "ann", "GET", path, nil); x["refusals"] != 1.0 {
		t.Fatalf("a refusal that was asked for twice counts twice: %v", x)
	}
	for _, c := range []struct {
		path string
		body obj
		want string
	}{
		{"/judge", obj{"call": call("read"), "key": "k1"}, "key_reused"},
		{"/judge", obj{"call": call("read"), "if_step": 1}, "out_of_order"},
		{"/commit", commitOf(9, "read"), "not_judged"},
		{"/commit", commitOf(0, "read"), "not_judged"},
		{"/commit", commitOf(-1, "read"), "not_judged"},
		{"/commit", commitOf(1, "block"), "denied"},
		{"/commit", commitOf(1, "read"), "other_call"},
	} {
		if out := s.must(409, "ann", "POST", path+c.path, c.body); code(out) != c.want {
			t.Errorf("%s %v: %v, want %s", c.path, c.body, out, c.want)
		}
	}
	// Two calls under way; results come the other way round, and one comes twice.
	s.judge1(id, "a") // 2
	s.judge1(id, "b") // 3
	for i, c := range []struct {
		n         int
		tool      string
		duplicate bool
		step      float64
	}{{3, "b", false, 1}, {3, "b", true, 1}, {2, "a", false, 2}, {2, "a", true, 2}, {3, "b", true, 2}} {
		if out := s.must(200, "ann", "POST", path+"/commit", commitOf(c.n, c.tool)); out["duplicate"] != c.duplicate || out["step"] != c.step {
			t.Errorf("%d: %v, want %+v", i, out, c)
		}
	}
	other := commitOf(3, "b")
	other["result"] = obj{"output": "something else"}
	if out := s.must(409, "ann", "POST", path+"/commit", other); code(out) != "settled" {
		t.Error(out)
	}
	if out := s.must(409, "ann", "POST", path+"/skip", obj{"judgement": 3, "call": call("b")}); code(out) != "settled" {
		t.Error(out)
	}
	if n := strings.Count(s.kinds(), "commit"); n != 2 {
		t.Errorf("%d commits are logged, want 2: %s", n, s.kinds())
	}
}

// The same commit at once from many connections counts once.
func TestConcurrentCommits(t *testing.T) {
	s := begin(t, nil)
	id := s.start()
	s.judge1(id, "read")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { s.do("ann", "POST", "/v1/sessions/"+id+"/commit", commitOf(1, "read")) })
	}
	wg.Wait()
	if x := s.must(200, "ann", "GET", "/v1/sessions/"+id, nil); x["step"] != 1.0 {
		t.Error(x)
	}
}

// What is not in the log is not acknowledged, and gets there with the next try.
func TestLogFails(t *testing.T) {
	s := begin(t, nil)
	id := s.start()
	s.judge1(id, "read")
	s.mu.Lock()
	s.broken = errors.New("the disk is full")
	s.mu.Unlock()
	if out := s.must(503, "ann", "POST", "/v1/sessions/"+id+"/commit", commitOf(1, "read")); code(out) != "log" {
		t.Error(out)
	}
	if out := s.must(503, "ann", "POST", "/v1/sessions/"+id+"/judge", obj{"call": call("read")}); out["action"] != "deny" || out["cause"] != "crash" {
		t.Error(out)
	}
	s.mu.Lock()
	s.broken = nil
	s.mu.Unlock()
	if out := s.must(200, "ann", "POST", "/v1/sessions/"+id+"/commit", commitOf(1, "read")); out["step"] != 1.0 {
		t.Error(out)
	}
	if got, want := s.kinds(), "start verdict:PASS commit"; got != want {
		t.Errorf("log: %s, want %s", got, want)
	}
}

// Every failure of judge says what to do, and it is what was configured.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		settings serve.Settings
		want     string
	}{
		{enforced, "deny"},
		{serve.Settings{Mode: serve.Enforce, OnError: serve.AllowOnError, OnHold: serve.AskOnHold}, "allow"},
		{serve.Settings{Mode: serve.Audit, OnError: serve.DenyOnError, OnHold: serve.AskOnHold}, "allow"},
	} {
		s := begin(t, func(o *Config) { o.Settings = c.settings; o.MaxBody = 1 << 10 })
		id := s.start()
		for _, f := range []struct {
			who, id string
			body    any
			status  int
		}{
			{"ann", id, `{`, 400}, {"ann", id, ``, 400}, {"ann", id, `{"call": {}} x`, 400}, {"ann", id, `{"cal": {}}`, 400}, {"ann", id, `{"call": {"tool": "\xff"}}`, 400},
			{"ann", id, `{}`, 400}, {"ann", id, `{"call": {"tool": "pay", "arguments": {"to": "a", "to": "b"}}}`, 400}, {"ann", id, strings.Repeat(" ", 2<<10), 413},
			{"ann", "nobody", obj{"call": call("read")}, 404}, {"ann", "..%2f..%2fetc%2fpasswd", obj{"call": call("read")}, 404}, {"bob", id, obj{"call": call("read")}, 404},
			{"", id, obj{"call": call("read")}, 401}, {"eve", id, obj{"call": call("read")}, 403}, {"ann", id, obj{"call": call("panic")}, 500},
		} {
			out := s.must(f.status, f.who, "POST", "/v1/sessions/"+f.id+"/judge", f.body)
			if out["action"] != c.want || out["cause"] != "crash" {
				t.Errorf("%v: %v as %s: %v, want %s", c.settings, f.body, f.who, out, c.want)
			}
		}
		// A session in which the guard broke is not to be trusted.
		s.must(404, "ann", "POST", "/v1/sessions/"+id+"/judge", obj{"call": call("read")})
	}
}

func TestAuditStopsNothing(t *testing.T) {
	s := begin(t, func(c *Config) { c.Settings.Mode = serve.Audit })
	id := s.start()
	for _, tool := range []string{"hold", "block"} {
		if a := s.judge1(id, tool); a["action"] != "allow" || a["verdict"].(obj)["decision"] != strings.ToUpper(tool) {
			t.Error(a)
		}
	}
	if got, want := s.kinds(), "start verdict:PASS verdict:PASS"; got != want {
		t.Errorf("log: %s, want %s", got, want)
	}
}

// What a call was made without a verdict for is known all the same, but only where
// the service fails open.
func TestCommitWithoutVerdict(t *testing.T) {
	s := begin(t, func(c *Config) { c.Settings.OnError = serve.AllowOnError })
	id := s.start()
	if out := s.must(200, "ann", "POST", "/v1/sessions/"+id+"/commit", commitOf(0, "read")); out["step"] != 1.0 {
		t.Error(out)
	}
}

func TestBatch(t *testing.T) {
	s := begin(t, nil)
	id := s.start()
	out := s.must(200, "ann", "POST", "/v1/batch", obj{"requests": []obj{
		{"op": "judge", "session": id, "call": call("read")},
		{"op": "commit", "session": id, "judgement": 1, "call": call("read"), "result": obj{"output": []obj{{"text": "a"}}}},
		{"op": "judge", "session": id, "call": call("block")},
		{"op": "judge", "session": "other", "call": call("read")},
		{"op": "dance", "session": id},
		{"op": "skip", "session": id, "judgement": 2, "call": call("block")},
	}})
	var got []float64
	for _, a := range out["answers"].([]any) {
		got = append(got, a.(obj)["status"].(float64))
	}
	if want := []float64{200, 200, 200, 404, 400, 200}; !equal(got, want) {
		t.Errorf("%v, want %v: %v", got, want, out)
	}
	if e := out["answers"].([]any)[3].(obj)["error"].(obj); e["action"] != "deny" {
		t.Errorf("a failure in a batch says nothing of what to do: %v", e)
	}
	s.must(400, "ann", "POST", "/v1/batch", obj{"requests": []obj{}})
}

func equal(a, b []float64) bool {
	ja, _ := json.Marshal(a)
	jb, _ := json.Marshal(b)
	return bytes.Equal(ja, jb)
}

func TestMemoryBoundsAndExpiry(t *testing.T) {
	m := NewMemory(2, time.Minute)
	now := time.Now()
	m.now = func() time.Time { return now }
	s := begin(t, func(c *Config) { c.Store = m })
	a, _ := s.start(), s.start()
	if out := s.must(503, "ann", "POST", "/v1/sessions", obj{}); code(out) != "too_many_sessions" {
		t.Error(out)
	}
	if out := s.must(409, "ann", "POST", "/v1/sessions", obj{"id": a}); code(out) != "session_exists" {
		t.Error(out)
	}
	now = now.Add(2 * time.Minute)
	s.must(404, "ann", "POST", "/v1/sessions/"+a+"/judge", obj{"call": call("read")})
	ended := 0
	if err := m.Sweep(context.Background(), func(*Session) { ended++ }); err != nil || ended != 2 {
		t.Errorf("%d sessions have expired, %v", ended, err)
	}
	s.start()
}

// A session's memory does not grow with its length.
func TestSessionIsBounded(t *testing.T) {
	s := begin(t, nil)
	id := s.start()
	for i := range maxOpen {
		s.must(200, "ann", "POST", "/v1/sessions/"+id+"/judge", obj{"call": call("read"), "key": string(rune('a'+i%26)) + strings.Repeat("x", i)})
	}
	if out := s.must(409, "ann", "POST", "/v1/sessions/"+id+"/judge", obj{"call": call("read")}); code(out) != "too_many_open" {
		t.Error(out)
	}
	for n := range maxOpen {
		s.must(200, "ann", "POST", "/v1/sessions/"+id+"/skip", obj{"judgement": n + 1, "call": call("read")})
	}
	for range 400 {
		s.judge1(id, "block")
	}
	err := s.c.Store.Update(t.Context(), id, func(x *Session) error {
		if len(x.Judgements) > maxOpen+maxSettled || len(x.Scores) > maxScores {
			t.Errorf("%d judgements, %d scores", len(x.Judgements), len(x.Scores))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if out := s.must(409, "ann", "POST", "/v1/sessions/"+id+"/commit", commitOf(1, "read")); code(out) != "forgotten" {
		t.Error(out)
	}
}

// Reload takes effect as a whole, or not at all.
func TestReload(t *testing.T) {
	broken := false
	s := begin(t, func(c *Config) {
		c.Open = func() (*guard.Model, error) {
			if broken {
				return nil, errors.New("half an artifact")
			}
			return openModel()
		}
	})
	id := s.start()
	before := s.Model()
	s.must(200, "root", "POST", "/v1/reload", obj{})
	if s.Model() == before {
		t.Error("nothing was reloaded")
	}
	s.judge1(id, "read") // a session of before
	broken, before = true, s.Model()
	if out := s.must(409, "root", "POST", "/v1/reload", obj{}); code(out) != "reload" || s.Model() != before {
		t.Error(out)
	}
	s.judge1(id, "read")
}

func TestListen(t *testing.T) {
	for address, c := range map[string]struct {
		tokens, insecure bool
		want             error
	}{
		"127.0.0.1:0": {}, "[::1]:0": {}, "0.0.0.0:0": {tokens: true, want: ErrInsecure}, ":0": {want: ErrInsecure}, "0.0.0.0:00": {insecure: true},
	} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Skipf("%s: %v", address, err)
		}
		s := begin(t, func(o *Config) {
			o.Insecure = c.insecure
			if !c.tokens {
				o.Tokens = nil
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, l) }()
		if c.want == nil {
			eventually(t, "it listens", func() bool {
				_, port, _ := net.SplitHostPort(l.Addr().String())
				host := "127.0.0.1"
				if address == "[::1]:0" {
					host = "::1"
				}
				r, err := http.Get("http://" + net.JoinHostPort(host, port) + "/readyz")
				if err != nil {
					return false
				}
				r.Body.Close()
				return r.StatusCode == 200
			})
		}
		cancel()
		if err := <-done; !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", address, err, c.want)
		}
	}
}

// A request that is under way when the service stops is answered.
func TestDrain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := begin(t, nil)
	s.url = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	id := s.start()
	got := make(chan obj, 1)
	go func() {
		_, out := s.do("ann", "POST", "/v1/sessions/"+id+"/judge", obj{"call": call("hold"), "wait_ms": 50_000})
		got <- out
	}()
	eventually(t, "it is held", func() bool {
		return len(s.holds.list(func(h *Hold) bool { return h.State == HoldPending })) == 1
	})
	cancel()
	if out := <-got; out["action"] != "ask" {
		t.Error(out)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The document hands out the schema of a verdict as it is published.
func TestVerdictSchema(t *testing.T) {
	b, err := os.ReadFile("../../docs/reference/verdict.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var want any
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	doc, _ := document()
	x, _ := json.Marshal(doc["components"].(obj)["schemas"].(obj)["Verdict"])
	y, _ := json.Marshal(want)
	if !bytes.Equal(x, y) {
		t.Error("openapi.json: Verdict is not docs/reference/verdict.schema.json")
	}
}

func FuzzRequests(f *testing.F) {
	s := begin(f, func(c *Config) { c.Tokens = nil; c.Record = func(decisionlog.Record) error { return nil } })
	for _, seed := range []string{`{"call":{"tool":"read","arguments":{"a":1}}}`, `{"requests":[{"op":"judge","session":"x","call":{"tool":"block"}}]}`,
		`{"judgement":1,"call":{"tool":"a"},"result":{"output":[1,"x"]}}`, `{"task":{"tools":[{"name":"a"}]}}`, `[`, `{"call":{"arguments":"\ud800"}}`} {
		for i := range 4 {
			f.Add(i, []byte(seed))
		}
	}
	paths := []string{"/v1/sessions/x/judge", "/v1/sessions/x/commit", "/v1/batch", "/v1/sessions"}
	f.Fuzz(func(t *testing.T, path int, body []byte) {
		w := &answer{header: http.Header{}}
		start, _ := http.NewRequest("POST", "http://localhost/v1/sessions", strings.NewReader(`{"id":"x"}`))
		start.Header.Set("Content-Type", "application/json")
		s.Handler().ServeHTTP(&answer{header: http.Header{}}, start)
		r, _ := http.NewRequest("POST", "http://localhost"+paths[uint(path)%4], bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		s.Handler().ServeHTTP(w, r)
		if w.status >= 500 && w.status != 503 || !json.Valid(w.body.Bytes()) {
			t.Fatalf("%d: %s", w.status, w.body.String())
		}
		var req struct{ Call struct{ Tool string } }
		var out struct{ Action string }
		if uint(path)%4 == 0 && json.Unmarshal(body, &req) == nil && json.Unmarshal(w.body.Bytes(), &out) == nil && strings.HasPrefix(req.Call.Tool, "block") && out.Action != "deny" {
			t.Fatalf("%s passed: %s", body, w.body.String())
		}
	})
}

// answer keeps what a handler writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }
func (a *answer) WriteHeader(s int)   { a.status = s }
func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = 200
	}
	return a.body.Write(b)
}
