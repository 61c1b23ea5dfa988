package httpapi

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/serve"
)

// hold judges a call that is held, and returns its hold's id and hash.
func (s *service) hold(session string) (id, hash string) {
	s.t.Helper()
	a := s.judge1(session, "hold")
	if a["action"] != "ask" {
		s.t.Fatal(a)
	}
	id = a["hold"].(obj)["id"].(string)
	h := s.must(200, "eve", "GET", "/v1/holds/"+id, nil)
	return id, h["hash"].(string)
}

func TestHolds(t *testing.T) {
	s := begin(t, nil)
	session := s.start()
	path := "/v1/sessions/" + session
	// Approved: the call that was shown, and no other.
	id, hash := s.hold(session)
	if out := s.must(409, "ann", "POST", path+"/commit", commitOf(1, "hold")); code(out) != "held" {
		t.Error(out)
	}
	if out := s.must(409, "eve", "POST", "/v1/holds/"+id+"/approve", obj{"hash": strings.Repeat("0", 64)}); code(out) != "other_call" {
		t.Error(out)
	}
	s.must(403, "ann", "POST", "/v1/holds/"+id+"/approve", obj{"hash": hash})
	s.must(404, "bob", "GET", "/v1/holds/"+id, nil)
	for range 2 { // the same answer twice is one
		if out := s.must(200, "eve", "POST", "/v1/holds/"+id+"/approve", obj{"hash": hash}); out["state"] != "approved" || out["by"] != "eve" {
			t.Error(out)
		}
	}
	if out := s.must(409, "eve", "POST", "/v1/holds/"+id+"/deny", obj{"hash": hash}); code(out) != "answered" {
		t.Error(out)
	}
	if out := s.must(200, "ann", "GET", "/v1/holds/"+id+"?wait_ms=1000", nil); out["action"] != "allow" {
		t.Error(out)
	}
	if out := s.must(409, "ann", "POST", path+"/commit", commitOf(1, "other")); code(out) != "other_call" {
		t.Error(out)
	}
	s.must(200, "ann", "POST", path+"/commit", commitOf(1, "hold"))
	// Denied.
	id, hash = s.hold(session)
	s.must(200, "root", "POST", "/v1/holds/"+id+"/deny", obj{"hash": hash})
	if out := s.must(409, "ann", "POST", path+"/commit", commitOf(2, "hold")); code(out) != "denied" {
		t.Error(out)
	}
	if x := s.must(200, "ann", "GET", path, nil); x["step"] != 1.0 || x["refusals"] != 1.0 {
		t.Error(x)
	}
	// Withdrawn with the session.
	id, hash = s.hold(session)
	s.must(204, "ann", "DELETE", path, nil)
	if out := s.must(409, "eve", "POST", "/v1/holds/"+id+"/approve", obj{"hash": hash}); code(out) != "answered" {
		t.Error(out)
	}
	if got, want := s.kinds(), "start refusal:HOLD release:PASS commit refusal:HOLD release:BLOCK refusal:HOLD release:BLOCK end"; got != want {
		t.Errorf("log: %s\nwant %s", got, want)
	}
}

// The answer to judge may wait for the person's.
func TestJudgeWaits(t *testing.T) {
	s := begin(t, nil)
	session := s.start()
	got := make(chan obj, 1)
	go func() {
		_, out := s.do("ann", "POST", "/v1/sessions/"+session+"/judge", obj{"call": call("hold"), "wait_ms": 30_000})
		got <- out
	}()
	var list []Hold
	eventually(t, "it is held", func() bool {
		list = s.holds.list(func(h *Hold) bool { return h.State == HoldPending })
		return len(list) == 1
	})
	s.must(200, "eve", "POST", "/v1/holds/"+list[0].ID+"/approve", obj{"hash": list[0].Hash})
	if out := <-got; out["action"] != "allow" || out["hold"].(obj)["by"] != "eve" {
		t.Error(out)
	}
}

// What nobody answers becomes what was configured.
func TestHoldExpires(t *testing.T) {
	for onExpiry, want := range map[serve.Failure]string{serve.DenyOnError: "deny", serve.AllowOnError: "allow"} {
		s := begin(t, func(c *Config) { c.HoldFor, c.OnExpiry = 50*time.Millisecond, onExpiry })
		session := s.start()
		a := s.must(200, "ann", "POST", "/v1/sessions/"+session+"/judge", obj{"call": call("hold"), "wait_ms": 60_000})
		if a["action"] != want || a["hold"].(obj)["state"] != "expired" {
			t.Errorf("%s: %v", onExpiry, a)
		}
		id := a["hold"].(obj)["id"].(string)
		h := s.must(200, "eve", "GET", "/v1/holds/"+id, nil)
		if out := s.must(409, "eve", "POST", "/v1/holds/"+id+"/approve", obj{"hash": h["hash"]}); code(out) != "answered" {
			t.Error(out)
		}
		status := map[string]int{"deny": 409, "allow": 200}[want]
		s.must(status, "ann", "POST", "/v1/sessions/"+session+"/commit", commitOf(1, "hold"))
	}
}

// An approval that is not used in time lapses.
func TestApprovalLapses(t *testing.T) {
	s := begin(t, func(c *Config) { c.HoldFor = time.Minute })
	session := s.start()
	id, hash := s.hold(session)
	s.must(200, "eve", "POST", "/v1/holds/"+id+"/approve", obj{"hash": hash})
	h, _, _, _ := s.holds.get(id)
	late := h
	before := h.Answered.Add(-2 * time.Minute)
	late.Answered = &before
	if _, action := s.outcome(&h); action != serve.Allow {
		t.Error(action)
	}
	if _, action := s.outcome(&late); action != serve.Deny {
		t.Error(action)
	}
}

func TestHoldsAreBounded(t *testing.T) {
	s := begin(t, nil)
	session := s.start()
	for range maxPerRun {
		s.hold(session)
	}
	if a := s.judge1(session, "hold"); a["action"] != "deny" || !strings.Contains(a["reason"].(string), "Too many held calls") {
		t.Error(a)
	}
	// What cannot be shown cannot be approved.
	large := obj{"tool": "hold", "arguments": strings.Repeat("x", guard.MaxCall+1)}
	if a := s.must(200, "ann", "POST", "/v1/sessions/"+s.start()+"/judge", obj{"call": large}); a["action"] != "deny" || a["hold"] != nil {
		t.Error(a)
	}
}

// The queue outlives its process, whatever a kill leaves behind.
func TestHoldsAreDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holds.jsonl")
	released := func(Hold) error { return nil }
	open := func() *queue {
		t.Helper()
		q, err := openQueue(path, time.Minute, released)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	q := open()
	if _, err := openQueue(path, time.Minute, released); err == nil {
		t.Fatal("two processes have the same queue")
	}
	c := guard.Call{Tool: "pay", Arguments: `{"to":"ann"}`}
	var ids []string
	for range 3 {
		h, err := q.add(Hold{Session: "s", Owner: "ann", Tool: c.Tool, Arguments: c.Arguments, Hash: hashText(c)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, h.ID)
	}
	if _, err := q.answer(ids[0], hashText(c), "eve", HoldApproved); err != nil {
		t.Fatal(err)
	}
	// As a kill leaves it: not closed, and a line cut short. The lock goes with the process.
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	q.close()
	if err := os.WriteFile(path, append(b, `{"answer":{"id":"`+ids[1]...), 0o600); err != nil {
		t.Fatal(err)
	}
	q = open()
	for i, want := range []HoldState{HoldApproved, HoldPending, HoldPending} {
		if h, _, _, ok := q.get(ids[i]); !ok || h.State != want {
			t.Errorf("%d: %v %s, want %s", i, ok, h.State, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	// A clock that was set back gives nobody more time than the wait.
	q.now = func() time.Time { return time.Now().Add(-24 * time.Hour) }
	if _, err := q.answer(ids[1], hashText(c), "eve", HoldDenied); err != nil {
		t.Fatal(err)
	}
	q.close()
	q = open()
	if h, _, deadline, _ := q.get(ids[2]); h.State != HoldPending || time.Until(deadline) > time.Minute {
		t.Error(h.State, time.Until(deadline))
	}
	q.close()
	// A line in the middle that is not what was written stops the start.
	if err := os.WriteFile(path, append([]byte("{}\n"), b...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openQueue(path, time.Minute, released); !errors.Is(err, errHoldFile) || !strings.Contains(err.Error(), "line 1") {
		t.Error(err)
	}
}

// An answer that cannot be logged is none.
func TestAnswerNotLogged(t *testing.T) {
	s := begin(t, nil)
	id, hash := s.hold(s.start())
	s.mu.Lock()
	s.broken = errors.New("the disk is full")
	s.mu.Unlock()
	s.must(503, "eve", "POST", "/v1/holds/"+id+"/approve", obj{"hash": hash})
	if h, _, _, _ := s.holds.get(id); h.State != HoldPending {
		t.Error(h.State)
	}
}

func FuzzHoldLine(f *testing.F) {
	c := guard.Call{Tool: "pay"}
	f.Add([]byte(`{"hold":{"id":"a","session":"s","tool":"pay","hash":"` + hashText(c) + `","state":"pending","expires":"2026-01-01T00:00:00Z"}}`))
	f.Add([]byte(`{"answer":{"id":"a","state":"approved"}}`))
	f.Add([]byte(`{"hold":{},"answer":{}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		q := &queue{wait: time.Minute, now: time.Now, holds: map[string]*held{}, released: func(Hold) error { return nil }}
		_ = q.replay(line)
		_ = q.replay(line)
		_ = q.expire()
		q.forget()
	})
}
