package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/guard/decisionlog"
)

// storeVariable makes the tests' program a server on that Redis, for tests that kill it.
const storeVariable = "DREAMGUARD_TEST_REDIS"

func TestMain(m *testing.M) {
	if url := os.Getenv(storeVariable); url != "" {
		if err := serveForTests(url); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func serveForTests(url string) error {
	r, err := NewRedis(url, 0, 0)
	if err != nil {
		return err
	}
	s, err := New(Config{Settings: enforced, Open: openModel, Store: r, Rate: -1, Record: func(decisionlog.Record) error { return nil }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	return s.Serve(context.Background(), l)
}

// redisServer is a real Redis.
type redisServer struct {
	t         testing.TB
	path, dir string
	port      string
	cmd       *exec.Cmd
}

func startRedis(t testing.TB) *redisServer {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server: install Debian's package of that name to test the store in a real Redis")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	r := &redisServer{t: t, path: path, dir: t.TempDir(), port: port}
	r.start()
	t.Cleanup(r.kill)
	return r
}

func (r *redisServer) url() string { return "redis://127.0.0.1:" + r.port + "/0" }

func (r *redisServer) start() {
	r.t.Helper()
	r.cmd = exec.Command(r.path, "--port", r.port, "--bind", "127.0.0.1", "--dir", r.dir, "--appendonly", "yes", "--appendfsync", "always", "--save", "")
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	s, err := NewRedis(r.url(), 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.Close()
	eventually(r.t, "Redis answers", func() bool { return s.Check(context.Background()) == nil })
}

// kill is kill -9.
func (r *redisServer) kill() {
	if r.cmd != nil {
		r.cmd.Process.Kill()
		r.cmd.Wait()
		r.cmd = nil
	}
}

func onRedis(t testing.TB, r *redisServer, change func(*Config)) *service {
	t.Helper()
	store, err := NewRedis(r.url(), 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return begin(t, func(c *Config) {
		c.Store = store
		if change != nil {
			change(c)
		}
	})
}

// A session goes on in another process, with its open and held calls.
func TestRedisTwoServers(t *testing.T) {
	r := startRedis(t)
	a, b := onRedis(t, r, nil), onRedis(t, r, nil)
	id := a.start()
	path := "/v1/sessions/" + id
	first := a.must(200, "ann", "POST", path+"/judge", obj{"call": call("read"), "key": "k"})
	if again := b.must(200, "ann", "POST", path+"/judge", obj{"call": call("read"), "key": "k"}); again["judgement"] != first["judgement"] || again["action"] != "allow" {
		t.Error(again)
	}
	b.must(200, "ann", "POST", path+"/commit", commitOf(1, "read"))
	if out := a.must(200, "ann", "POST", path+"/commit", commitOf(1, "read")); out["duplicate"] != true || out["step"] != 1.0 {
		t.Error(out)
	}
	a.judge1(id, "block")
	hold, hash := a.hold(id)
	if out := b.must(409, "ann", "POST", path+"/commit", commitOf(3, "hold")); code(out) != "held" {
		t.Error("a server that does not have the held call lets it pass", out)
	}
	a.must(200, "eve", "POST", "/v1/holds/"+hold+"/approve", obj{"hash": hash})
	a.must(200, "ann", "POST", path+"/commit", commitOf(3, "hold"))
	// Both at once: nothing is lost, nothing counts twice.
	var wg sync.WaitGroup
	for i := range 12 {
		s := a
		if i%2 == 1 {
			s = b
		}
		wg.Go(func() {
			for {
				status, out := s.do("ann", "POST", path+"/judge", obj{"call": call("read"), "key": fmt.Sprint("p", i/2)})
				if status == 200 {
					return
				}
				if code(out) != "busy" {
					t.Error(status, out)
					return
				}
			}
		})
	}
	wg.Wait()
	x := a.must(200, "eve", "GET", path, nil)
	if len(x["open"].([]any)) != 6 || x["step"] != 2.0 || x["refusals"] != 1.0 {
		t.Error(x)
	}
	if list := b.must(200, "eve", "GET", "/v1/sessions", nil); list["total"] != 1.0 {
		t.Error(list)
	}
	a.start()
	b.start()
	if out := a.must(503, "ann", "POST", "/v1/sessions", obj{}); code(out) != "too_many_sessions" {
		t.Error(out)
	}
	b.must(204, "ann", "DELETE", path, nil)
	a.must(404, "ann", "GET", path, nil)
}

// Redis is killed and comes back: what was acknowledged is there, and in between
// every verdict is a refusal.
func TestRedisGoneAndBack(t *testing.T) {
	r := startRedis(t)
	s := onRedis(t, r, nil)
	id := s.start()
	s.judge1(id, "read")
	s.must(200, "ann", "POST", "/v1/sessions/"+id+"/commit", commitOf(1, "read"))
	r.kill()
	if out := s.must(503, "ann", "POST", "/v1/sessions/"+id+"/judge", obj{"call": call("read")}); out["action"] != "deny" || code(out) != "store" {
		t.Error(out)
	}
	s.must(503, "", "GET", "/readyz", nil)
	s.must(200, "", "GET", "/healthz", nil)
	r.start()
	eventually(t, "it is ready again", func() bool { status, _ := s.do("", "GET", "/readyz", nil); return status == 200 })
	if x := s.must(200, "ann", "GET", "/v1/sessions/"+id, nil); x["step"] != 1.0 {
		t.Error(x)
	}
	s.judge1(id, "read")
}

// The server is killed while agents commit: the next one has all that was acknowledged.
func TestServerKilled(t *testing.T) {
	r := startRedis(t)
	launch := func() (*exec.Cmd, *service) {
		t.Helper()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), storeVariable+"="+r.url())
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "http") {
			t.Fatalf("%v: %s", err, line)
		}
		return cmd, &service{t: t, url: strings.TrimSpace(line)}
	}
	cmd, s := launch()
	const agents = 4
	ids, acknowledged := make([]string, agents), make([]int, agents)
	for i := range agents {
		ids[i] = s.must(201, "", "POST", "/v1/sessions", obj{})["session"].(string)
	}
	var wg sync.WaitGroup
	client := &http.Client{Timeout: 5 * time.Second}
	post := func(path, body string) bool {
		resp, err := client.Post(s.url+path, "application/json", strings.NewReader(body))
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	}
	for i := range agents {
		wg.Go(func() {
			for n := 1; n < 10_000; n++ {
				if !post("/v1/sessions/"+ids[i]+"/judge", `{"call": {"tool": "read"}}`) ||
					!post("/v1/sessions/"+ids[i]+"/commit", fmt.Sprintf(`{"judgement": %d, "call": {"tool": "read"}, "result": {"output": "x"}}`, n)) {
					return
				}
				acknowledged[i] = n
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	cmd.Process.Kill()
	cmd.Wait()
	wg.Wait()
	cmd, s = launch()
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	for i, id := range ids {
		step := int(s.must(200, "", "GET", "/v1/sessions/"+id, nil)["step"].(float64))
		if step < acknowledged[i] || step > acknowledged[i]+1 || acknowledged[i] == 0 {
			t.Errorf("%d steps were acknowledged, %d are there", acknowledged[i], step)
		}
	}
}

func FuzzStored(f *testing.F) {
	m, err := openModel()
	if err != nil {
		f.Fatal(err)
	}
	var list models
	list.replace(m)
	s, err := newSession("a", startRequest{}, "ann", m, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	b, err := s.marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if s, err := unmarshal(in, list.resume); err == nil {
			_ = s.answer(enforced, time.Now())
			if _, err := s.marshal(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
