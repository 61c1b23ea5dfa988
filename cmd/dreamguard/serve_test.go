package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The service, an agent that is held, and a person at a terminal.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	tokens, limits, log := filepath.Join(dir, "tokens"), filepath.Join(dir, "limits.yaml"), filepath.Join(dir, "decisions.jsonl")
	token := func(name, role string) string {
		t.Helper()
		r := run(t, "serve", "token", "--tokens", tokens, "--name", name, "--role", role)
		if r.code != exitDone {
			t.Fatal(r)
		}
		return strings.TrimSpace(r.stdout)
	}
	agent, approver := token("ann", "agent"), token("eve", "approver")
	if r := run(t, "serve", "token", "--tokens", tokens, "--name", "ann", "--role", "admin"); r.code == exitDone || !strings.Contains(r.stderr, "twice") {
		t.Errorf("a name was used twice: %+v", r)
	}
	b, err := os.ReadFile(tokens)
	if err != nil || bytes.Contains(b, []byte(agent)) {
		t.Fatalf("%v; the file has a token in the clear: %s", err, b)
	}
	var errs syncBuffer
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &errs}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() {
		done <- a.execute(ctx, []string{"serve", "--artifact", hookArtifact, "--listen", "127.0.0.1:0", "--tokens", tokens, "--sealed", limits,
			"--log", log, "--holds", filepath.Join(dir, "holds.jsonl"), "--hold-for", "1m"})
	}()
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	for range 500 {
		if address.MatchString(errs.String()) {
			break
		}
		select {
		case err := <-done:
			t.Fatalf("%v\n%s", err, errs.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	url := address.FindString(errs.String())
	for _, want := range []string{"mode enforce, on error deny, on hold ask (fails closed)", "held calls wait 1m0s, then deny", "2 tokens"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("the start does not say %q: %s", want, errs.String())
		}
	}
	if r := run(t, "serve", "health", "--server", url); r.code != exitDone {
		t.Error(r)
	}
	post := func(path string, body any) map[string]any {
		t.Helper()
		b, _ := json.Marshal(body)
		req, _ := http.NewRequest("POST", url+path, bytes.NewReader(b))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+agent)
		r, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		var out map[string]any
		if err := json.NewDecoder(r.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	type obj = map[string]any
	id := post("/v1/sessions", obj{"task": obj{"instruction": "list the files"}})["session"].(string)
	if out := post("/v1/sessions/"+id+"/judge", obj{"call": obj{"tool": "bash", "arguments": obj{"command": "echo x > " + limits}}}); out["action"] != "deny" {
		t.Errorf("the floor does not stand beside the model: %v", out)
	}
	// A call that is larger than the guard reads is held; one that people can be shown
	// is held only by the model, whose weights are random here.
	out := post("/v1/sessions/"+id+"/judge", obj{"call": obj{"tool": "bash", "arguments": obj{"command": "ls"}}})
	t.Setenv("DREAMGUARD_TOKEN", approver)
	list := run(t, "holds", "list", "--server", url, "--json")
	if list.code != exitDone {
		t.Fatal(list)
	}
	if out["action"] == "ask" {
		var l struct{ Holds []struct{ ID, Hash string } }
		if err := json.Unmarshal([]byte(list.stdout), &l); err != nil || len(l.Holds) != 1 {
			t.Fatalf("%v: %s", err, list.stdout)
		}
		if r := run(t, "holds", "approve", l.Holds[0].ID, "--server", url); r.code != exitUsage || !strings.Contains(r.stdout, "command") {
			t.Errorf("nobody answered: %+v", r)
		}
		if r := run(t, "holds", "approve", l.Holds[0].ID, "--server", url, "--hash", l.Holds[0].Hash); r.code != exitDone || !strings.Contains(r.stdout, "approved") {
			t.Error(r)
		}
	}
	t.Setenv("DREAMGUARD_TOKEN", agent)
	if r := run(t, "holds", "deny", "x", "--server", url, "--hash", "x"); r.code != exitFailure || !strings.Contains(r.stderr, "role agent cannot") {
		t.Errorf("an agent answers for itself: %+v", r)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if r := run(t, "serve", "health", "--server", url); r.code != exitFailure {
		t.Error(r)
	}
	if r := run(t, "log", "verify", log); r.code != exitDone {
		t.Error(r)
	}
}

func TestServeUsage(t *testing.T) {
	for line, want := range map[string]string{
		"serve": "--artifact", "serve --artifact x --mode watch": "mode", "serve --artifact x --on-expiry ask": "--on-expiry", "serve --artifact x --tls-cert c": "go together",
		"serve --artifact x --log-level loud": "--log-level", "serve token --name a": "required", "serve token --tokens /x/t --name a/b --role agent": "name", "holds list": "token",
		"serve --artifact x --hold-for 0s": "--hold-for", "serve --artifact x --store disk": "--store", "serve --artifact x --store redis://x:y:z": "--store",
	} {
		t.Setenv("DREAMGUARD_TOKEN", "")
		if r := run(t, strings.Fields(line)...); r.code != exitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: %+v, want %q", line, r, want)
		}
	}
	for _, address := range []string{"0.0.0.0:0", ":0"} {
		if r := run(t, "serve", "--artifact", hookArtifact, "--listen", address); r.code != exitFailure || !strings.Contains(r.stderr, "use tokens and TLS") {
			t.Errorf("%s: %+v", address, r)
		}
	}
}
