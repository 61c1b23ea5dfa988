package decisionlog

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/verdict"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

func open(t testing.TB, path string, o Options) *Log {
	t.Helper()
	if o.Now == nil {
		o.Now = clock
	}
	l, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func appendAll(t testing.TB, l *Log, records ...Record) {
	t.Helper()
	for _, r := range records {
		if err := l.Append(r); err != nil {
			t.Fatal(err)
		}
	}
}

// example is a run with one of each event that a host writes.
func example() []Record {
	pass := guard.Verdict{Scored: true, Scores: calib.Scores{Risk: 0.25}, Thresholds: guard.Thresholds{Hold: 0.5, Block: calib.Off}, ModelDigest: strings.Repeat("a", 64)}
	block := pass
	block.Decision, block.Reasons, block.Step = guard.Block, []guard.Reason{verdict.ReasonHazard}, 1
	block.Repair = []guard.Call{{Tool: "ask", Arguments: `{"secret": "hunter2"}`}}
	block.Suggestions = []guard.Suggestion{{Kind: guard.ConfirmRecipient, Value: "hunter2", Text: "hunter2"}}
	read := guard.Call{Tool: "read_file", Arguments: `{"path": "hunter2"}`}
	send := guard.Call{Tool: "send", Arguments: `{"to": "x"}`, Text: "hunter2"}
	return []Record{
		{Event: Start, Run: "r", Cause: "claude-code"},
		{Event: Judged(pass), Run: "r", Verdict: &pass, Call: &read},
		{Event: Commit, Run: "r", Call: &read, Result: &guard.Result{Output: "hunter2", Error: "hunter2"}},
		{Event: Judged(block), Run: "r", Verdict: &block, Enforced: guard.Block, Call: &send},
		{Event: Verdict, Run: "r", Mode: Audit, Verdict: &block, Enforced: guard.Pass, Call: &send},
		{Event: Release, Run: "r", Call: &send, Enforced: guard.Pass, Cause: "approved by ann"},
		{Event: Skip, Run: "r", Call: &send},
		{Event: Crash, Run: "r", Call: &send, Enforced: guard.Block, Cause: "panic: index out of range"},
		{Event: Label, Run: "r", Label: "safe"},
		{Event: End, Run: "r"},
	}
}

func verify(t testing.TB, paths ...string) *Report {
	t.Helper()
	r, err := Verify(paths...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.jsonl")
	l := open(t, path, Options{})
	records := example()
	appendAll(t, l, records...)
	r := verify(t, path)
	if !r.OK() || r.Records != len(records) || r.First != 1 || r.Last != uint64(len(records)) || r.Torn != 0 || len(r.Head) != 64 {
		t.Fatalf("%+v", r)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte("hunter2")) {
		t.Errorf("a payload stands in the clear:\n%s", b)
	}
	var first map[string]any
	if err := json.Unmarshal(b[:bytes.IndexByte(b, '\n')], &first); err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]any{"log": Schema, "seq": 1.0, "prev": noPrev, "time": "2026-03-01T12:00:00Z", "run": "r", "event": "start", "mode": "enforce", "cause": "claude-code"} {
		if first[k] != want {
			t.Errorf("%s is %v, want %v", k, first[k], want)
		}
	}
	for i, want := range map[int]string{3: `"event":"refusal"`, 4: `"enforced":"PASS"`, 5: `"event":"release"`, 7: `"event":"crash"`, 9: `"end":true`} {
		if line := bytes.Split(b, []byte("\n"))[i]; !bytes.Contains(line, []byte(want)) {
			t.Errorf("line %d has no %s: %s", i+1, want, line)
		}
	}
	if runtime.GOOS != "windows" {
		for _, name := range []string{path, path + ".key"} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v, want mode 0600", name, info.Mode(), err)
			}
		}
	}
}

// The hash of a payload is HMAC-SHA-256 of its bytes under the key of the file, as
// any other tool computes it; equal texts are found again by it.
func TestPayloads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.jsonl")
	secret := bytes.Repeat([]byte{7}, keyBytes)
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(hex.EncodeToString(secret)), 0o600); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("\x01é\xff", maxPayload) // the worst to escape
	call := guard.Call{Tool: "send", Arguments: long, Text: long}
	l := open(t, path, Options{KeyFile: keyFile, Payloads: true})
	appendAll(t, l, Record{Event: Commit, Call: &call, Result: &guard.Result{Output: long, Error: long, User: true}})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got line
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(long))
	want := hex.EncodeToString(h.Sum(nil))
	for name, p := range map[string]*payloadLine{"arguments": got.Call.Arguments, "text": got.Call.Text, "output": got.Result.Output, "error": got.Result.Error} {
		if p.HMAC != want || p.Bytes != len(long) || p.Text == nil || *p.Text != clip(long, maxPayload) {
			t.Errorf("%s: hmac %s of %d bytes, want %s of %d", name, p.HMAC, p.Bytes, want, len(long))
		}
	}
	if !verify(t, path).OK() {
		t.Error("the log is not whole")
	}
}

func TestKeyRefused(t *testing.T) {
	dir := t.TempDir()
	good := strings.Repeat("ab", keyBytes)
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"short": {"abcd", 0o600}, "not hex": {strings.Repeat("zz", keyBytes), 0o600}, "empty": {"", 0o600}, "huge": {strings.Repeat("a", 1<<20), 0o600},
		"readable by the group": {good, 0o640}, "readable by all": {good, 0o604},
	} {
		key := filepath.Join(dir, name)
		if err := os.WriteFile(key, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(key, c.mode); err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS == "windows" && c.mode != 0o600 {
			continue
		}
		if _, err := Open(filepath.Join(dir, "log"), Options{KeyFile: key}); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRecordRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.jsonl")
	l := open(t, path, Options{})
	v := guard.Verdict{}
	bad := guard.Verdict{Decision: 9}
	huge := guard.Verdict{Layers: []guard.LayerVerdict{{Name: strings.Repeat("x", MaxLine)}}}
	for name, r := range map[string]Record{
		"no event": {}, "another event": {Event: "maybe"}, "another mode": {Event: Start, Mode: "off"}, "another label": {Event: Label, Label: "fine"}, "no label": {Event: Label},
		"no verdict": {Event: Verdict}, "crash with a verdict": {Event: Crash, Verdict: &v}, "recovered": {Event: Recovered},
		"no decision": {Event: Verdict, Verdict: &bad}, "too large": {Event: Verdict, Verdict: &huge},
	} {
		if err := l.Append(r); !errors.Is(err, ErrRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
	appendAll(t, l, Record{Event: Start, Run: strings.Repeat("r", 1<<20) + "\xff", Cause: "\x00\xff"})
	if r := verify(t, path); !r.OK() || r.Records != 1 {
		t.Errorf("%+v", r)
	}
}

func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.jsonl")
	for range 3 { // opened anew now and then
		l := open(t, path, Options{MaxBytes: 2000})
		for range 10 {
			appendAll(t, l, Record{Event: Start, Run: "r"})
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	names, err := Files(path)
	if err != nil || len(names) < 5 || names[len(names)-1] != path {
		t.Fatalf("%v, %v", names, err)
	}
	if r := verify(t, names...); !r.OK() || r.Records != 30 || r.Last != 30 {
		t.Fatalf("%+v", r)
	}
	backwards := append([]string{}, names...)
	for i, n := range names {
		backwards[len(names)-1-i] = n
		if info, err := os.Stat(n); err != nil || info.Size() > 2000 {
			t.Errorf("%s: %v, %v", n, info.Size(), err)
		}
	}
	if r := verify(t, backwards...); !r.OK() {
		t.Errorf("in another order: %+v", r)
	}
	if r := verify(t, names[2:]...); !r.OK() || r.First == 1 {
		t.Errorf("the newest files: %+v", r)
	}
	if r := verify(t, append([]string{names[0]}, names[2:]...)...); r.OK() || r.Problems[0].Kind != Removed {
		t.Errorf("without one in the middle: %+v", r)
	}
	// A kill between the renaming and the next record.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	last := verify(t, names[:len(names)-1]...).Last
	appendAll(t, open(t, path, Options{}), Record{Event: Start})
	if r := verify(t, names...); !r.OK() || r.Last != last+1 {
		t.Errorf("after the kill: %+v", r)
	}
	// A name that is taken is not overwritten.
	taken := filepath.Join(filepath.Dir(path), fmt.Sprintf("decisions.%012d.jsonl", last+1))
	if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path, Options{MaxBytes: 10}).Append(Record{Event: Start}); err == nil || !strings.Contains(err.Error(), taken) {
		t.Errorf("a name that is taken: %v", err)
	}
}

// A log cut at any byte of its last line goes on, and says what it has lost.
func TestTornLine(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "d.jsonl")
	appendAll(t, open(t, path, Options{}), example()[:3]...)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin := bytes.LastIndexByte(b[:len(b)-1], '\n') + 1
	for cut := begin; cut <= len(b); cut += 7 {
		cut := min(cut, len(b))
		if err := os.WriteFile(path, b[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if cut > begin && cut < len(b)-1 {
			if r := verify(t, path); !r.OK() || r.Torn != cut-begin {
				t.Fatalf("cut at %d: %+v", cut, r)
			}
		}
		l := open(t, path, Options{NoSync: true})
		appendAll(t, l, Record{Event: End})
		torn, recovered, last := cut-begin, 1, uint64(4)
		switch cut {
		case begin:
			recovered, last = 0, 3
		case len(b) - 1, len(b): // nothing is missing but the line end
			torn, recovered, last = 0, 0, 4
		}
		if r := verify(t, path); l.Torn() != torn || !r.OK() || r.Recovered != recovered || r.Last != last || r.Torn != 0 {
			t.Fatalf("cut at %d: torn %d, %+v", cut, l.Torn(), r)
		}
		l.Close()
	}
	// Nothing but garbage, and a file that only begins.
	for _, text := range []string{"garbage", strings.Repeat("x", 3*MaxLine/2)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l := open(t, path, Options{})
		appendAll(t, l, Record{Event: Start})
		if r := verify(t, path); !r.OK() || r.Records != 2 || r.Recovered != 1 || l.Torn() != len(text) {
			t.Errorf("%+v", r)
		}
	}
}

func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.jsonl")
	l := open(t, path, Options{})
	appendAll(t, l, example()...)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"changed last line": bytes.Replace(good, []byte(`"end":true`), []byte(`"end":false`), 1),
		"blank line":        append(bytes.Clone(good), '\n'),
		"no log":            []byte("hello\n"),
		"too long a line":   bytes.Repeat([]byte("x"), 3*MaxLine),
	} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, Options{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: open: %v", name, err)
		}
		if err := l.Append(Record{Event: Start}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: append: %v", name, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, b) {
			t.Errorf("%s: the file was changed (%v)", name, err)
		}
	}
	// What this process wrote must still be there.
	lines := bytes.SplitAfter(good, []byte("\n"))
	for name, b := range map[string][]byte{"cut off": bytes.Join(lines[:4], nil), "emptied": nil} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := l.Append(Record{Event: Start}); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, Record{Event: Start})
	if r := verify(t, path); !r.OK() {
		t.Errorf("put back: %+v", r)
	}
	if _, err := Open(t.TempDir(), Options{}); err == nil {
		t.Error("a folder was opened")
	}
	l.Close()
	if err := l.Append(Record{Event: Start}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Goroutines of several logs on one file, with rotation under way.
func TestConcurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.jsonl")
	var wg sync.WaitGroup
	for range 3 {
		l := open(t, path, Options{MaxBytes: 5000})
		for range 4 {
			wg.Go(func() {
				for range 10 {
					if err := l.Append(Record{Event: Start, Run: "r"}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	names, err := Files(path)
	if err != nil {
		t.Fatal(err)
	}
	if r := verify(t, names...); !r.OK() || r.Records != 120 || r.Recovered != 0 {
		t.Errorf("%+v", r)
	}
}

// TestMain lets the test program be the processes of TestKill.
func TestMain(m *testing.M) {
	if path := os.Getenv("DECISIONLOG_WRITER"); path != "" {
		l, err := Open(path, Options{MaxBytes: 1 << 20})
		for i := 0; err == nil; i++ {
			if err = l.Append(Record{Event: Start, Run: fmt.Sprintf("%d-%d", os.Getpid(), i), Cause: strings.Repeat("x", 1000)}); err == nil {
				fmt.Println(i) // acknowledged
			}
		}
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Processes write to one log and are killed in the midst of it: every record that
// was acknowledged is there, and the log is whole.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	path := filepath.Join(t.TempDir(), "d.jsonl")
	acknowledged := map[string]bool{}
	for range 5 {
		var writers []*exec.Cmd
		var outputs []*bufio.Scanner
		for range 3 {
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), "DECISIONLOG_WRITER="+path)
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			writers, outputs = append(writers, c), append(outputs, bufio.NewScanner(out))
		}
		for i, c := range writers {
			for n := 0; n < 20 && outputs[i].Scan(); n++ {
				note(t, acknowledged, c, outputs[i].Text())
			}
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for outputs[i].Scan() {
				note(t, acknowledged, c, outputs[i].Text())
			}
			_ = c.Wait() // it was killed
		}
	}
	appendAll(t, open(t, path, Options{}), Record{Event: End})
	names, err := Files(path)
	if err != nil {
		t.Fatal(err)
	}
	if r := verify(t, names...); !r.OK() || r.Torn != 0 {
		t.Fatalf("%+v", r)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for text := range bytes.Lines(b) {
			var l line
			if err := json.Unmarshal(text, &l); err != nil {
				t.Fatal(err)
			}
			delete(acknowledged, l.Run)
		}
	}
	if len(acknowledged) > 0 {
		t.Errorf("lost, though acknowledged: %v", acknowledged)
	}
}

func note(t *testing.T, acknowledged map[string]bool, c *exec.Cmd, text string) {
	t.Helper()
	if _, err := strconv.Atoi(text); err != nil {
		t.Errorf("a writer stopped: %s", text)
		return
	}
	acknowledged[fmt.Sprintf("%d-%s", c.Process.Pid, text)] = true
}

func BenchmarkAppend(b *testing.B) {
	for name, o := range map[string]Options{"sync": {}, "nosync": {NoSync: true}} {
		b.Run(name, func(b *testing.B) {
			l := open(b, filepath.Join(b.TempDir(), "d.jsonl"), o)
			r := example()[3]
			b.SetParallelism(16) // those who wait together share a sync
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if err := l.Append(r); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
