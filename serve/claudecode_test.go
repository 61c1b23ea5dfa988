package serve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
)

// The table of docs/reference/adapters.md.
func TestClaudeCodeVocabulary(t *testing.T) {
	for _, c := range []struct {
		settings Settings
		tool     string
		decision string
		exit     int
	}{
		{enforced, "Read", "", 0},
		{enforced, "hold_it", "ask", 0},
		{enforced, "block_it", "deny", 2},
		{Settings{Enforce, AllowOnError, AskOnHold}, "block_it", "deny", 2},
		{Settings{Enforce, DenyOnError, DenyOnHold}, "hold_it", "deny", 2},
		{Settings{Enforce, DenyOnError, AllowOnHold}, "hold_it", "", 0},
		{Settings{Enforce, DenyOnError, AllowOnHold}, "block_it", "deny", 2},
		{Settings{Audit, DenyOnError, DenyOnHold}, "hold_it", "", 0},
		{Settings{Audit, DenyOnError, DenyOnHold}, "block_it", "", 0},
	} {
		h, log := hook(t, c.settings)
		r := handle(t, h, pre(c.tool, "t1"))
		a := r.answer(t)
		if r.Exit != c.exit || a.Specific.Decision != c.decision {
			t.Errorf("%v, %s: exit %d, %+v; want exit %d, %q", c.settings, c.tool, r.Exit, a.Specific, c.exit, c.decision)
		}
		if c.exit == 2 && (r.Stderr != a.Specific.Reason+"\n" || !strings.HasPrefix(r.Stderr, "dreamguard: ")) {
			t.Errorf("%s: stderr %q, reason %q; want the same reason in both", c.tool, r.Stderr, a.Specific.Reason)
		}
		if c.decision != "" && a.Specific.Event != "PreToolUse" {
			t.Errorf("hookEventName is %q", a.Specific.Event)
		}
		if c.decision == "" && len(r.Stdout) > 0 {
			t.Errorf("%v, %s: stdout %q; want silence", c.settings, c.tool, r.Stdout)
		}
		e := log.events[len(log.events)-1]
		want := map[string]guard.Decision{"Read": guard.Pass, "hold_it": guard.Hold, "block_it": guard.Block}[c.tool]
		if e.Verdict == nil || e.Verdict.Decision != want || e.Mode != c.settings.Mode || (e.Enforced == guard.Pass) != (c.decision == "") || (e.Event == decisionlog.Verdict) != (c.decision == "") {
			t.Errorf("%v, %s: logged %+v", c.settings, c.tool, e)
		}
	}
}

// A run through processes is the run that a program with a session would have.
func TestClaudeCodeIsTheSession(t *testing.T) {
	h, log := hook(t, enforced)
	pass(t, h, prompt("pay the rent"))
	for i := range 3 {
		id := fmt.Sprint("t", i)
		pass(t, h, pre("Read", id))
		pass(t, h, post("Read", id, "Rent for March, 950. Please send it to DE00 1234."))
	}
	pass(t, h, event("Stop", "stop_hook_active", false, "last_assistant_message", "Which account?"))
	pass(t, h, prompt("the usual one"))
	pass(t, h, pre("Send", "t9"))
	pass(t, h, event("PostToolUseFailure", "tool_name", "Send", "tool_input", map[string]any{"path": "invoice.txt"}, "tool_use_id", "t9", "error", "no route to host"))

	s := openTest(t).Start(guard.Task{Instruction: "pay the rent"})
	step := func(c guard.Call, r guard.Result) {
		t.Helper()
		s.Judge(context.Background(), c)
		if err := s.Commit(c, r); err != nil {
			t.Fatal(err)
		}
	}
	const arguments = `{"path":"invoice.txt"}`
	for range 3 {
		step(guard.Call{Tool: "Read", Arguments: arguments}, guard.Result{Output: "Rent for March, 950. Please send it to DE00 1234."})
	}
	step(guard.Call{Text: "Which account?"}, guard.Result{Output: "the usual one", User: true})
	step(guard.Call{Tool: "Send", Arguments: arguments}, guard.Result{Error: "no route to host"})
	want, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	r, _ := sessionOf(t, h, "s1")
	if !bytes.Equal(r.state, want) {
		t.Error("the state differs from that of a session which was given the same")
	}
	if got := log.kinds(); got != "start verdict:allow commit verdict:allow commit verdict:allow commit verdict:allow commit" {
		t.Errorf("logged %s", got)
	}
}

func TestParallelAndRepeatedEvents(t *testing.T) {
	h, _ := hook(t, enforced)
	pass(t, h, prompt("read both"))
	pass(t, h, pre("Read", "a"))
	pass(t, h, pre("Grep", "b"))
	pass(t, h, pre("Grep", "b"))
	pass(t, h, post("Grep", "b", "found")) // not the one that was judged last
	pass(t, h, post("Read", "a", "text"))
	pass(t, h, post("Read", "a", "text")) // the same event twice
	r, s := sessionOf(t, h, "s1")
	if s.Step() != 2 || len(r.Open) != 0 {
		t.Errorf("%d steps and %d open calls, want 2 and 0", s.Step(), len(r.Open))
	}
	for range 3 { // the same hook in two settings files
		handle(t, h, pre("block_it", "c"))
	}
	if _, s := sessionOf(t, h, "s1"); s.Refusals() != 1 {
		t.Errorf("%d refusals of one call", s.Refusals())
	}
	// It ran although it was denied: what came back must be known.
	pass(t, h, post("block_it", "d", "done"))
	if _, s := sessionOf(t, h, "s1"); s.Step() != 3 {
		t.Errorf("%d steps, want 3", s.Step())
	}
}

// What was asked about and did not come back by the next prompt was refused.
func TestRefusedByTheUser(t *testing.T) {
	h, _ := hook(t, enforced)
	pass(t, h, prompt("do it"))
	for _, id := range []string{"a", "b", "c"} {
		if r := handle(t, h, pre("hold_it", id)); r.answer(t).Specific.Decision != "ask" {
			t.Fatalf("got %+v", r)
		}
	}
	pass(t, h, post("hold_it", "b", "done")) // this one was approved
	pass(t, h, prompt("not like that"))
	r, s := sessionOf(t, h, "s1")
	if s.Refusals() != 2 || s.Step() != 2 || len(r.Open) != 0 {
		t.Errorf("%d refusals, %d steps, %d open; want 2, 2 (a call and the prompt), 0", s.Refusals(), s.Step(), len(r.Open))
	}
}

// Every failure ends in what the settings say, and is recorded as a crash.
func TestFailures(t *testing.T) {
	broken := func(edit func(*ClaudeCode)) func(*ClaudeCode) { return edit }
	for name, c := range map[string]struct {
		edit func(*ClaudeCode)
		in   io.Reader
		want string
	}{
		"no JSON":       {nil, strings.NewReader("{"), "unexpected end of JSON"},
		"nothing":       {nil, strings.NewReader(""), "unexpected end of JSON"},
		"no event name": {nil, strings.NewReader(`{"session_id":"s1"}`), "hook_event_name is missing"},
		"no session":    {nil, strings.NewReader(event("PreToolUse", "session_id", "", "tool_name", "Read")), "session_id has 0 bytes"},
		"long session":  {nil, strings.NewReader(event("PreToolUse", "session_id", strings.Repeat("x", 1<<13), "tool_name", "Read")), "session_id has 8192 bytes"},
		"no tool":       {nil, strings.NewReader(event("PreToolUse")), "tool_name is missing"},
		"wrong type":    {nil, strings.NewReader(event("PreToolUse", "tool_name", 7)), "cannot unmarshal number"},
		"no end":        {nil, forever{}, "more than"},
		"hanging input": {broken(func(h *ClaudeCode) { h.Timeout = 20 * time.Millisecond }), hang{}, "no answer within"},
		"no artifact": {broken(func(h *ClaudeCode) {
			h.Open = func(context.Context, string) (*guard.Model, error) { return nil, errTest }
		}), nil, errTest.Error()},
		"panic": {broken(func(h *ClaudeCode) {
			h.Open = func(context.Context, string) (*guard.Model, error) { panic("out of cheese") }
		}), nil, "internal error: out of cheese"},
		"hanging artifact": {broken(func(h *ClaudeCode) {
			h.Timeout = 20 * time.Millisecond
			h.Open = func(context.Context, string) (*guard.Model, error) { select {} }
		}), nil, "no answer within"},
		"no log": {broken(func(h *ClaudeCode) {
			keep := h.Record
			h.Record = func(e decisionlog.Record) error {
				if e.Event == decisionlog.Crash {
					return keep(e)
				}
				return errTest
			}
		}), nil, "could not be logged"},
		"open folder": {broken(func(h *ClaudeCode) {
			h.Sessions.Dir = filepath.Dir(h.Sessions.Dir) + "/open"
			if err := os.Mkdir(h.Sessions.Dir, 0o777); err != nil {
				panic(err)
			}
			if err := os.Chmod(h.Sessions.Dir, 0o777); err != nil { // whatever the umask
				panic(err)
			}
		}), nil, "can be used by others"},
		"no folder": {broken(func(h *ClaudeCode) {
			h.Sessions.Dir = "/dev/null/x"
		}), nil, "not a directory"},
	} {
		for _, s := range []Settings{enforced, {Enforce, AllowOnError, AskOnHold}, {Audit, DenyOnError, AskOnHold}} {
			h, log := hook(t, s)
			if c.edit != nil {
				c.edit(h)
			}
			in := c.in
			switch old := in.(type) {
			case nil:
				in = strings.NewReader(pre("Read", "t1"))
			case *strings.Reader:
				if _, err := old.Seek(0, io.SeekStart); err != nil {
					t.Fatal(err)
				}
			}
			r := h.Handle(context.Background(), in)
			closed := s == enforced
			if !strings.Contains(r.Stderr, c.want) || (r.Exit == 2) != closed || (len(r.Stdout) > 0) != closed {
				t.Errorf("%s, %v: exit %d, stdout %q, stderr %q; want %q", name, s, r.Exit, r.Stdout, r.Stderr, c.want)
			}
			if closed && r.answer(t).Specific.Decision != "deny" {
				t.Errorf("%s: %s", name, r.Stdout)
			}
			if e := log.events; len(e) != 1 || e[0].Event != decisionlog.Crash || (e[0].Enforced == guard.Block) != closed || !strings.Contains(e[0].Cause, c.want) {
				t.Errorf("%s, %v: logged %+v", name, s, e)
			}
		}
	}
}

type forever struct{}

func (forever) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

type hang struct{}

func (hang) Read([]byte) (int, error) { select {} }

// Settings that are not complete stop calls, rather than being completed.
func TestNoSettings(t *testing.T) {
	h, _ := hook(t, Settings{})
	if r := handle(t, h, pre("Read", "t1")); r.Exit != 2 || !strings.Contains(r.Stderr, "want enforce or audit") {
		t.Errorf("got %+v", r)
	}
}

func TestSettingsChange(t *testing.T) {
	h, _ := hook(t, enforced)
	pass(t, h, prompt("x"))
	pass(t, h, pre("Read", "t1"))
	h.Settings.OnError = AllowOnError
	r := handle(t, h, pre("Read", "t2"))
	if m := r.answer(t).SystemMessage; !strings.Contains(m, "were mode enforce, on error deny, on hold ask (fails closed), they are mode enforce, on error allow") {
		t.Errorf("the user is told %q", m)
	}
	pass(t, h, pre("Read", "t3"))
}

func TestSessionStart(t *testing.T) {
	h, _ := hook(t, enforced)
	r := handle(t, h, event("SessionStart", "source", "startup"))
	if m := r.answer(t).SystemMessage; r.Exit != 0 || !strings.Contains(m, "mode enforce, on error deny, on hold ask (fails closed); model ") {
		t.Errorf("got %+v", r)
	}
	for _, name := range []string{"Notification", "SubagentStop", "PreCompact", "SomethingNew"} {
		pass(t, h, event(name))
	}
}

func TestHostileIDs(t *testing.T) {
	h, _ := hook(t, enforced)
	for _, id := range []string{"../../etc/passwd", "/etc/passwd", "a\x00b", "..", ".", "con", strings.Repeat("x", maxSessionID), "\u202eevil", "a\nb"} {
		in := event("PreToolUse", "session_id", id, "tool_name", "Read", "tool_input", map[string]any{}, "tool_use_id", "../"+id[:min(len(id), 200)])
		pass(t, h, in)
		if r, _ := sessionOf(t, h, id); r.Session != id {
			t.Errorf("%q: kept as %q", id, r.Session)
		}
	}
	list, err := filepath.Glob(filepath.Dir(h.Sessions.Dir) + "/*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range list {
		if name := filepath.Base(path); filepath.Dir(path) != h.Sessions.Dir || len(name) != 40 && len(name) != 7 {
			t.Errorf("an id made the file %s", path)
		}
		info, err := os.Stat(path)
		if err != nil || strings.HasSuffix(path, ".session") && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestAnotherModel(t *testing.T) {
	h, _ := hook(t, enforced)
	pass(t, h, prompt("x"))
	path := h.Sessions.Path("s1")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The artifact is replaced: another digest.
	i := bytes.Index(before, []byte("dreamguard-session\x01")) + 20
	r, err := parseRecord(before)
	if err != nil {
		t.Fatal(err)
	}
	r.state[i-bytes.Index(before, r.state)] ^= 1
	if err := h.Sessions.save(r); err != nil {
		t.Fatal(err)
	}
	a := handle(t, h, pre("Read", "t1"))
	if a.Exit != 2 || !strings.Contains(a.Stderr, "session state of another model") || !strings.Contains(a.Stderr, path) {
		t.Errorf("got %+v", a)
	}
	if err := os.Remove(path); err != nil { // what the message says to do
		t.Fatal(err)
	}
	pass(t, h, pre("Read", "t1"))
}

func TestDamagedFile(t *testing.T) {
	h, _ := hook(t, enforced)
	pass(t, h, prompt("x"))
	path := h.Sessions.Path("s1")
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(sound); i += 7 {
		damaged := bytes.Clone(sound)
		damaged[i] ^= 4
		for _, b := range [][]byte{damaged, sound[:i]} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			r := handle(t, h, pre("Read", "t1"))
			if r.Exit != 2 || !strings.Contains(r.Stderr, "damaged session file") {
				t.Fatalf("byte %d: %+v", i, r)
			}
		}
	}
	// The session of another id, put in this one's place.
	pass(t, h, event("UserPromptSubmit", "session_id", "s2", "prompt", "y"))
	other, err := os.ReadFile(h.Sessions.Path("s2"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, other, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := handle(t, h, pre("Read", "t1")); r.Exit != 2 || !strings.Contains(r.Stderr, "another id") {
		t.Errorf("got %+v", r)
	}
}

// Hooks of one session wait for each other: nothing is lost.
func TestAtOnce(t *testing.T) {
	h, _ := hook(t, enforced)
	pass(t, h, prompt("x"))
	const n = 24
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			id := fmt.Sprint("t", i)
			handle(t, h, pre("Read", id))
			handle(t, h, post("Read", id, "text"))
		})
	}
	wg.Wait()
	if _, s := sessionOf(t, h, "s1"); s.Step() != n {
		t.Errorf("%d steps of %d", s.Step(), n)
	}
}

// A lock that is not given back does not hang the host.
func TestLocked(t *testing.T) {
	h, _ := hook(t, enforced)
	pass(t, h, prompt("x"))
	unlock, err := h.Sessions.lock(context.Background(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	h.Timeout = 50 * time.Millisecond
	if r := handle(t, h, pre("Read", "t1")); r.Exit != 2 {
		t.Errorf("got %+v", r)
	}
	unlock()
	h.working.Wait() // before the folder goes
}

func TestSweep(t *testing.T) {
	h, _ := hook(t, enforced)
	pass(t, h, prompt("x"))
	old := h.Sessions.Path("old")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-sweepAge - time.Hour)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	handle(t, h, event("SessionStart"))
	if _, err := os.Stat(old); err == nil {
		t.Error("a session of last month is still there")
	}
	sessionOf(t, h, "s1")
}

func TestDigests(t *testing.T) {
	dir := t.TempDir()
	source := os.DirFS("../guard/testdata/v1")
	if err := os.CopyFS(dir+"/a", source); err != nil {
		t.Fatal(err)
	}
	d := Digests{Path: dir + "/digests.json"}
	model := filepath.Join(dir, "a", artifact.ModelFile)
	open := func() error {
		_, err := d.Open(dir + "/a")
		return err
	}
	age := func(by time.Duration) {
		then := time.Now().Add(-by)
		for _, name := range artifactFiles {
			_ = os.Chtimes(filepath.Join(dir, "a", name), then, then) // not all are there
		}
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Path); err == nil {
		t.Error("a file that changed a moment ago was remembered")
	}
	age(time.Hour)
	for range 2 {
		if err := open(); err != nil {
			t.Fatal(err)
		}
	}
	if k := d.load()[model]; k.SHA256 == "" || k.Size == 0 {
		t.Fatalf("remembered %+v", d.load())
	}
	b, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(model, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := open(); err == nil {
		t.Error("a changed file was taken for the old one")
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(model, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := open(); err != nil {
		t.Errorf("the old content again: %v", err)
	}
	// What others can write is not believed.
	if err := os.WriteFile(d.Path, []byte(`{"`+model+`":{"sha256":"x"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(d.Path, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := d.load(); len(got) != 0 {
		t.Errorf("believed %+v", got)
	}
	if err := os.WriteFile(d.Path, []byte("null"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(); err != nil {
		t.Error(err)
	}
}
