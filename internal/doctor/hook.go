package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// HookReport says whether the hook of Claude Code can deny a call on this machine.
type HookReport struct {
	Schema string      `json:"schema"`
	OK     bool        `json:"ok"`
	Checks []HookCheck `json:"checks"`
}

// HookCheck is one event that was given to the hook.
type HookCheck struct {
	Name         string  `json:"name"`
	OK           bool    `json:"ok"`
	Detail       string  `json:"detail"` // what the hook said, or what is wrong
	Milliseconds float64 `json:"milliseconds"`
}

// hookSchema is the version of the JSON form of a [HookReport].
const hookSchema = "dreamguard.doctor-hook/v1"

// hookPatience is how long one event may take.
const hookPatience = 30 * time.Second

// Hook runs program with args, a command line of "hook claude-code" that names an
// artifact, as Claude Code would: one process per event. The events are made up, and
// nothing that they ask for is done. Its sessions are in a folder that is removed.
func Hook(ctx context.Context, program string, args ...string) (HookReport, error) {
	r := HookReport{Schema: hookSchema, OK: true}
	dir, err := os.MkdirTemp("", "dreamguard-doctor-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	limits := filepath.Join(dir, "limits.yaml")
	own := []string{"--state", filepath.Join(dir, "state"), "--sealed", limits}
	for _, c := range []struct {
		name, in string
		more     []string
		deny     bool
	}{
		{"a call that the floor blocks is denied", hookCall("echo x > " + limits), nil, true},
		{"an event that cannot be read is denied", "{", nil, true},
		{"a call is denied when the artifact is gone", hookCall("ls"), []string{"--artifact", filepath.Join(dir, "none")}, true},
		{"an ordinary call is judged", hookCall("ls"), nil, false},
	} {
		line := append(append(append([]string{}, args...), own...), c.more...)
		check := runHook(ctx, c.in, c.deny, program, line)
		check.Name = c.name
		r.OK = r.OK && check.OK
		r.Checks = append(r.Checks, check)
	}
	return r, ctx.Err()
}

// hookCall is the event before a shell command.
func hookCall(command string) string {
	b, err := json.Marshal(map[string]any{
		"session_id": "doctor", "cwd": "/", "hook_event_name": "PreToolUse",
		"tool_name": "Bash", "tool_input": map[string]string{"command": command},
	})
	if err != nil { // strings alone: it cannot fail
		panic(err)
	}
	return string(b)
}

// runHook gives one event to the hook.
func runHook(ctx context.Context, in string, deny bool, program string, args []string) HookCheck {
	ctx, cancel := context.WithTimeout(ctx, hookPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = strings.NewReader(in)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	begin := time.Now()
	err := cmd.Run()
	c := HookCheck{Milliseconds: float64(time.Since(begin).Microseconds()) / 1000}
	code := 0
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		c.Detail = fmt.Sprintf("it did not answer within %v", hookPatience)
		return c
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		c.Detail = err.Error()
		return c
	}
	var answer struct {
		Specific struct {
			Event    string `json:"hookEventName"`
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	var wrong error
	if out.Len() > 0 {
		wrong = json.Unmarshal(out.Bytes(), &answer)
	}
	a := answer.Specific
	switch denied := code == 2; {
	case wrong != nil:
		c.Detail = fmt.Sprintf("standard output is no JSON: %v", wrong)
	case code != 0 && code != 2:
		c.Detail = fmt.Sprintf("exit code %d, which Claude Code takes for consent: %s", code, lastLine(errs.String()))
	case denied != (a.Decision == "deny") || out.Len() > 0 && a.Event != "PreToolUse":
		c.Detail = fmt.Sprintf("exit code %d and the decision %q of %q contradict each other", code, a.Decision, a.Event)
	case denied && strings.TrimSpace(errs.String()) == "":
		c.Detail = "it denies without a reason on standard error"
	case deny && !denied:
		c.Detail = "it passes"
	case !deny && denied && strings.Contains(a.Reason, "could not judge"):
		c.Detail = a.Reason
	default:
		c.OK, c.Detail = true, a.Reason
		if a.Reason == "" {
			c.Detail = "exit code 0, no objection"
		}
	}
	return c
}

// WriteText writes the report for people.
func (r HookReport) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, c := range r.Checks {
		state := "ok    "
		if !c.OK {
			state = "FAILED"
		}
		fmt.Fprintf(&b, "%s  %s (%.0f ms)\n        %s\n", state, c.Name, c.Milliseconds, c.Detail)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
