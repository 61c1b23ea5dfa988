package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const hookArtifact = "../../guard/testdata/v1"

// runHook runs a command line with text on standard input.
func runHook(t *testing.T, text string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(text), stdout: &out, stderr: &errs}
	code := a.main(append([]string{"hook", "claude-code"}, args...))
	return result{code, out.String(), errs.String()}
}

// bash is a PreToolUse event that runs a shell command.
func bash(session, id, command string) string {
	b, err := json.Marshal(map[string]any{
		"session_id": session, "cwd": "/", "hook_event_name": "PreToolUse",
		"tool_name": "Bash", "tool_input": map[string]string{"command": command}, "tool_use_id": id,
	})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestHookClaudeCode(t *testing.T) {
	dir := t.TempDir()
	limits := filepath.Join(dir, "limits.yaml")
	t.Setenv("HOME", dir)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv("CLAUDE_PROJECT_DIR", filepath.Join(dir, "project"))
	write := func(path string) string { return bash("s", "t", "echo x > "+path) }
	for i, c := range []struct {
		args string
		in   string
		code exitCode
		want string // in stdout; "" is none
	}{
		{"", bash("s", "t1", "ls"), 0, ""},
		{"", write(limits), 2, `"permissionDecision":"deny"`},
		{"", write(filepath.Join(dir, ".claude/settings.json")), 2, `"permissionDecision":"deny"`},
		{"", write(filepath.Join(dir, "project/.claude/settings.local.json")), 2, `"permissionDecision":"deny"`},
		{"", write(filepath.Join(dir, "other.yaml")), 0, ""},
		{"--mode audit", write(limits), 0, ""},
		{"--on-error allow", write(limits), 2, `"permissionDecision":"deny"`},
		{"", "{", 2, `"permissionDecision":"deny"`},
		{"--on-error allow", "{", 0, ""},
		{"--calibration /nowhere", bash("s", "t1", "ls"), 2, `"permissionDecision":"deny"`},
		{"--calibration /nowhere --on-error allow", bash("s", "t1", "ls"), 0, ""},
	} {
		// A session of its own, since the user is told of settings that change in one.
		args := append([]string{"--artifact", hookArtifact, "--sealed", limits, "--state", filepath.Join(dir, "of", fmt.Sprint(i))}, strings.Fields(c.args)...)
		r := runHook(t, c.in, args...)
		if r.code != c.code || !strings.Contains(r.stdout, c.want) || (r.stdout == "") != (c.want == "") || c.code == 2 && r.stderr == "" {
			t.Errorf("%s, %.120s: %+v; want exit %d and %q", c.args, c.in, r, c.code, c.want)
		}
	}
	runHook(t, bash("s", "t1", "ls"), "--artifact", hookArtifact)
	if _, err := os.Stat(filepath.Join(dir, "state/dreamguard/hook")); err != nil {
		t.Errorf("the sessions are not in the folder for state: %v", err)
	}
}

// A host takes any exit code but 2 for consent: none other may leave the program.
func TestHookExitCodes(t *testing.T) {
	in := bash("s", "t", "ls")
	state := t.TempDir()
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]exitCode{
		"":                                     2, // no artifact
		"--on-error=allow":                     0,
		"--on-error allow":                     0,
		"--mode audit":                         0,
		"--artifact /nowhere":                  2,
		"--artifact /nowhere --on-error allow": 0,
		"--artifact /nowhere --on-error allow --on-error deny":         2,
		"--artifact " + hookArtifact + " --mode watch":                 2,
		"--artifact " + hookArtifact + " --on-error maybe":             2,
		"--artifact " + hookArtifact + " --on-hold maybe":              2,
		"--artifact " + hookArtifact + " --frobnicate":                 2,
		"--artifact " + hookArtifact + " --frobnicate --on-error deny": 2,
		"--frobnicate --on-error allow":                                0,
		"--artifact " + hookArtifact + " extra":                        2,
		"--artifact " + hookArtifact + " --rules /nowhere":             2,
		"--artifact " + hookArtifact + " --timeout 1ns":                2,
	} {
		r := runHook(t, in, append([]string{"--state", state}, strings.Fields(line)...)...)
		if r.code != want || want == 2 && r.stderr == "" || want == 0 && r.stdout != "" {
			t.Errorf("%s: %+v, want exit %d", line, r, want)
		}
	}
	a := &app{stdin: strings.NewReader(in), stdout: panicky{}, stderr: &bytes.Buffer{}}
	if code := a.main([]string{"hook", "--help"}); code != 2 {
		t.Errorf("a panic ends with %d, want 2", code)
	}
	if code := a.main([]string{"--quiet", "hook", "--help"}); code != 2 {
		t.Errorf("a panic after a flag ends with %d, want 2", code)
	}
}

// What fails open, and what is enforced, comes from the command line alone.
func TestNothingElseChangesTheSettings(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"dreamguard.yaml", ".dreamguard.yaml", "dreamguard.json", ".env", "config.yaml"} {
		if err := os.WriteFile(name, []byte("mode: audit\non_error: allow\non-error: allow\nDREAMGUARD_ON_ERROR=allow\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"MODE", "ON_ERROR", "ONERROR", "HOOK_MODE", "HOOK_ON_ERROR", "FAIL_OPEN", "DEBUG"} {
		t.Setenv("DREAMGUARD_"+name, "allow")
	}
	t.Setenv("HOME", dir)
	t.Setenv("XDG_STATE_HOME", dir)
	if r := runHook(t, "{", "--artifact", "x"); r.code != 2 || !strings.Contains(r.stderr, "fails closed") {
		t.Errorf("got %+v", r)
	}
}

// hookProcess runs the hook as a process of its own.
func hookProcess(state string) *exec.Cmd {
	return exec.Command(os.Args[0], "hook", "claude-code", "--artifact", hookArtifact, "--state", state)
}

// A hook that is killed at any moment leaves a session to go on from.
func TestHookKilled(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	var whole time.Duration
	for i := range 40 {
		cmd := hookProcess(state)
		cmd.Stdin = strings.NewReader(bash("s", fmt.Sprint("t", i), "ls"))
		begin := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if i > 3 { // by then it is known how long it takes
			time.Sleep(whole * time.Duration(i%18+4) / 20)
			_ = cmd.Process.Kill() // it may have ended
		}
		err := cmd.Wait()
		if i <= 3 {
			if err != nil {
				t.Fatal(err)
			}
			whole = time.Since(begin)
		}
		r := runHook(t, bash("s", fmt.Sprint("u", i), "ls"), "--artifact", hookArtifact, "--state", state)
		if r.code != 0 || r.stderr != "" {
			t.Fatalf("after kill %d: %+v", i, r)
		}
	}
}

// Processes of one session wait for each other.
func TestHooksAtOnce(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	const n = 6
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			in := strings.Replace(bash("s", fmt.Sprint("t", i), "ls"), "PreToolUse", "PostToolUse", 1)
			cmd := hookProcess(state)
			cmd.Stdin = strings.NewReader(in)
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	files, err := filepath.Glob(state + "/*.session")
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var header struct{ Settled []string }
	if err := json.Unmarshal(bytes.SplitN(b, []byte("\n"), 3)[1], &header); err != nil || len(header.Settled) != n {
		t.Errorf("%d of %d calls are recorded, %v", len(header.Settled), n, err)
	}
	// The exit code of the process.
	cmd := hookProcess(state)
	cmd.Stdin = strings.NewReader("{")
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("ended with %v, want exit status 2", err)
	}
}

func TestHookJSONL(t *testing.T) {
	limits := filepath.Join(t.TempDir(), "limits.yaml")
	in := `{"id":1,"op":"start","session":"a","task":{"instruction":"tidy up"}}
{"id":2,"op":"judge","session":"a","call":{"tool":"bash","arguments":{"command":"echo x > ` + limits + `"}}}
{"id":3,"op":"judge","session":"a","call":{"tool":"bash","arguments":{"command":"ls"}}}
`
	for mode, want := range map[string]string{"enforce": `"action":"deny","cause":"refusal"`, "audit": `"action":"allow","cause":"verdict"`} {
		var out, errs bytes.Buffer
		a := &app{stdin: strings.NewReader(in), stdout: &out, stderr: &errs}
		code := a.main([]string{"hook", "jsonl", "--artifact", hookArtifact, "--sealed", limits, "--mode", mode})
		lines := strings.Split(out.String(), "\n")
		if code != 0 || errs.Len() > 0 || len(lines) != 5 || !strings.Contains(lines[0], `"mode":"`+mode+`","on_error":"deny"`) || !strings.Contains(lines[2], want) || !strings.Contains(lines[2], `"decision":"BLOCK"`) {
			t.Errorf("%s: exit %d, stderr %q, stdout %s", mode, code, errs.String(), out.String())
		}
	}
	a := &app{stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	if code := a.main([]string{"hook", "jsonl", "--artifact", "/nowhere"}); code != 2 {
		t.Errorf("without an artifact: exit %d, want 2", code)
	}
}

// What the adapters decide is in the log, and a call that cannot be logged does not
// pass.
func TestHookLog(t *testing.T) {
	dir := t.TempDir()
	log, limits := filepath.Join(dir, "decisions.jsonl"), filepath.Join(dir, "limits.yaml")
	args := []string{"--artifact", hookArtifact, "--state", filepath.Join(dir, "state"), "--sealed", limits, "--log", log}
	runHook(t, bash("s", "t1", "ls"), args...)
	runHook(t, bash("s", "t2", "echo x > "+limits), args...)
	runHook(t, bash("s", "t3", "echo x > "+log), args...)
	runHook(t, bash("s", "t4", "echo x > "+limits), append(args, "--mode", "audit")...)
	runHook(t, "{", args...)
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(b)) {
		var x struct {
			Event, Mode, Enforced string
			Verdict               struct{ Decision string }
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Join([]string{x.Event, x.Mode, x.Enforced, x.Verdict.Decision}, " "))
	}
	want := "verdict enforce PASS PASS, refusal enforce BLOCK BLOCK, refusal enforce BLOCK BLOCK, verdict audit PASS BLOCK, crash enforce BLOCK "
	if strings.Join(got, ", ") != want {
		t.Errorf("logged %q, want %q", strings.Join(got, ", "), want)
	}
	if strings.Contains(string(b), "echo") {
		t.Error("the log holds arguments")
	}
	if r := run(t, "log", "verify", log); r.code != exitDone {
		t.Errorf("log verify: %+v", r)
	}
	for onError, code := range map[string]exitCode{"deny": 2, "allow": 0} {
		r := runHook(t, bash("s", "t5", "ls"), append(args, "--log", filepath.Join(dir, "none", "x.jsonl"), "--on-error", onError)...)
		if r.code != code || !strings.Contains(r.stderr, "could not be logged") {
			t.Errorf("%s: %+v", onError, r)
		}
	}
}
