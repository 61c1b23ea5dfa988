package httpapi

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is a headless Chromium, spoken to over its DevTools protocol
// (https://chromedevtools.github.io/devtools-protocol) through pipes: one JSON
// message after the other, each with a zero byte behind it.
type browser struct {
	t       testing.TB
	in      *os.File
	session string

	mu     sync.Mutex
	next   int
	calls  map[int]chan json.RawMessage
	events []string // messages of the console, and what the page's policy refused
}

// browse starts a browser with one empty page, or skips the test.
func browse(t testing.TB) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{os.Getenv("DREAMGUARD_BROWSER"), "chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if p, err := exec.LookPath(name); name != "" && err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium: install it, or name its program in DREAMGUARD_BROWSER, to test the page in a real browser")
	}
	toRead, toWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromRead, fromWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir, which wants it empty in the end: children of the browser write to it
	// for a moment after it was killed.
	profile, err := os.MkdirTemp("", "dreamguard-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 50 {
			if os.RemoveAll(profile) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	cmd.ExtraFiles = []*os.File{toRead, fromWrite}
	if err := cmd.Start(); err != nil {
		t.Skipf("%s does not start: %v", path, err)
	}
	toRead.Close()
	fromWrite.Close()
	b := &browser{t: t, in: toWrite, calls: map[int]chan json.RawMessage{}}
	go b.read(fromRead)
	t.Cleanup(func() {
		b.in.Close() // which ends it
		cmd.Process.Kill()
		cmd.Wait()
		fromRead.Close()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", obj{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", obj{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	b.call("Page.enable", obj{}, nil)
	b.call("Runtime.enable", obj{}, nil)
	b.call("Log.enable", obj{}, nil)
	return b
}

func (b *browser) read(from *os.File) {
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			ID     int
			Method string
			Result json.RawMessage
			Error  json.RawMessage
			Params json.RawMessage
		}
		if json.Unmarshal(bytes.TrimSuffix(line, []byte{0}), &m) != nil {
			continue
		}
		b.mu.Lock()
		switch m.Method {
		case "Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled":
			b.events = append(b.events, m.Method+" "+string(m.Params))
		}
		if ch := b.calls[m.ID]; ch != nil {
			delete(b.calls, m.ID)
			if m.Error != nil {
				m.Result = append(json.RawMessage("!"), m.Error...)
			}
			ch <- m.Result
		}
		b.mu.Unlock()
	}
}

// call calls a method of the protocol.
func (b *browser) call(method string, params obj, into any) {
	b.t.Helper()
	b.mu.Lock()
	b.next++
	id, ch := b.next, make(chan json.RawMessage, 1)
	b.calls[id] = ch
	b.mu.Unlock()
	m := obj{"id": id, "method": method, "params": params}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		b.t.Fatal(err)
	}
	select {
	case result := <-ch:
		if strings.HasPrefix(string(result), "!") {
			b.t.Fatalf("%s: %s", method, result[1:])
		}
		if into != nil {
			if err := json.Unmarshal(result, into); err != nil {
				b.t.Fatal(err)
			}
		}
	case <-time.After(time.Minute):
		b.t.Fatalf("%s: the browser does not answer", method)
	}
}

// eval evaluates an expression in the page.
func (b *browser) eval(expression string) any {
	b.t.Helper()
	var out struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", obj{"expression": expression, "returnByValue": true, "awaitPromise": true}, &out)
	if out.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, out.ExceptionDetails)
	}
	return out.Result.Value
}

// key presses one key.
func (b *browser) key(key string) {
	b.t.Helper()
	down := obj{"type": "keyDown", "key": key}
	switch {
	case key == "Tab":
		down["code"], down["windowsVirtualKeyCode"] = "Tab", 9
	case key == "Enter":
		down["text"], down["windowsVirtualKeyCode"] = "\r", 13
	default:
		down["text"] = key
	}
	b.call("Input.dispatchKeyEvent", down, nil)
	b.call("Input.dispatchKeyEvent", obj{"type": "keyUp", "key": key}, nil)
}

// shot keeps a picture where DREAMGUARD_SHOTS names a folder.
func (b *browser) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("DREAMGUARD_SHOTS")
	if dir == "" {
		return
	}
	var out struct{ Data string }
	b.call("Page.captureScreenshot", obj{"format": "png"}, &out)
	png, err := base64.StdEncoding.DecodeString(out.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) size(width, height int, phone bool) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", obj{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}, nil)
}

// A person at the page: enters a token, sees why calls are held, approves one and
// denies one with the keyboard.
func TestPage(t *testing.T) {
	b := browse(t)
	s := begin(t, nil)
	session := s.must(201, "ann", "POST", "/v1/sessions", obj{"label": `<b onmouseover="alert(1)">inbox</b>`, "task": obj{"instruction": "tidy up the inbox"}})["session"].(string)
	for n, tool := range []string{"read", "search", "read", "list"} {
		s.judge1(session, tool)
		s.must(200, "ann", "POST", "/v1/sessions/"+session+"/commit", commitOf(n+1, tool))
	}
	for _, arguments := range []obj{{"to": "ann@example.com\u202egnp.exe", "subject": "x"}, {"to": "bob@example.com"}} {
		s.must(200, "ann", "POST", "/v1/sessions/"+session+"/judge", obj{"call": obj{"tool": "hold_send_mail", "arguments": arguments, "text": "<img src=x onerror=alert(1)>"}})
	}
	state := func() string {
		var list []string
		for _, h := range s.holds.list(func(*Hold) bool { return true }) {
			list = append(list, string(h.State))
		}
		return strings.Join(list, " ")
	}
	b.size(1000, 900, false)
	b.call("Page.navigate", obj{"url": s.url + "/"}, nil)
	eventually(t, "the page loads", func() bool {
		return b.eval(`!!document.getElementById("token") && document.readyState === "complete"`) == true
	})
	b.shot("enter")
	enter := func(token string) {
		t.Helper()
		b.eval(`document.getElementById("token").focus()`)
		b.call("Input.insertText", obj{"text": token}, nil)
		b.key("Enter")
	}
	enter("dg_wrong")
	eventually(t, "a wrong token is refused", func() bool {
		return strings.Contains(fmt.Sprint(b.eval(`document.getElementById("status").textContent`)), "not valid")
	})
	enter(secrets["eve"])
	eventually(t, "the held calls are there", func() bool { return b.eval(`document.querySelectorAll("#holds > li").length`) == 2.0 })
	text := fmt.Sprint(b.eval(`document.body.innerText`))
	for _, want := range []string{"hold_send_mail", "a stated rule forbids it", `ann@example.com\u{202e}gnp.exe`, "<img src=x", "tidy up the inbox", "HOLD off", "step 4", "s left", "<b onmouseover"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	if n := b.eval(`document.querySelectorAll("#work img, #work b").length`); n != 0.0 {
		t.Error("a text of an agent became markup")
	}
	if got := b.eval(`document.querySelector("#sessions polyline.risk").getAttribute("points").split(" ").length`); got != 6.0 {
		t.Errorf("the chart has %v scores, want 6", got)
	}
	if got := b.eval(`[...chart({scores: [{risk: 0.2, hazard: 0.1}], hold_at: 0.5, block_at: null}).querySelectorAll("line, polyline")].map((x) => x.getAttribute("class")).join(" ")`); got != "hold hazard risk" {
		t.Errorf("the chart of one score under one threshold has %v", got)
	}
	b.shot("wide")
	b.size(390, 844, true)
	if got := b.eval(`document.documentElement.scrollWidth <= window.innerWidth`); got != true {
		t.Error("the page is wider than a phone")
	}
	if got := b.eval(`[...document.querySelectorAll("#holds button")].every((x) => x.getBoundingClientRect().height >= 44)`); got != true {
		t.Error("buttons are too small for a finger")
	}
	b.shot("phone")
	b.size(1000, 900, false)
	// By keyboard alone: from the button in the header to the first call.
	b.eval(`document.getElementById("leave").focus()`)
	b.key("Tab")
	if id := fmt.Sprint(b.eval(`document.activeElement.id`)); !strings.HasPrefix(id, "hold-") {
		t.Fatalf("Tab leads to %q", id)
	}
	b.key("a")
	eventually(t, "the first call is approved", func() bool { return state() == "approved pending" })
	eventually(t, "the second call has focus", func() bool {
		return strings.HasPrefix(fmt.Sprint(b.eval(`document.activeElement.id`)), "hold-") && b.eval(`document.querySelectorAll("#holds > li").length`) == 1.0
	})
	b.key("d")
	time.Sleep(100 * time.Millisecond)
	if got := state(); got != "approved pending" {
		t.Fatalf("a call that has only just got focus was answered: %s", got)
	}
	eventually(t, "the second call can be answered", func() bool { return b.eval(`Date.now() >= quiet`) == true })
	b.key("d")
	eventually(t, "the second call is denied", func() bool { return state() == "approved denied" })
	eventually(t, "the queue is empty", func() bool { return b.eval(`document.querySelectorAll("#holds > li").length`) == 0.0 })
	b.shot("empty")
	b.eval(`document.getElementById("leave").click()`)
	if got := b.eval(`sessionStorage.length`); got != 0.0 {
		t.Error("the token is kept")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if !strings.Contains(e, "401") && !strings.Contains(e, "favicon") {
			t.Errorf("the browser complains: %.600s", e)
		}
	}
}
