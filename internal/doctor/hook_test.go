package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A hook that is wrong in any way is found.
func TestHookFindsWhatIsWrong(t *testing.T) {
	const deny = `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}'`
	for name, c := range map[string]struct {
		script string
		ok     bool // of the first check, a call to be denied
		want   string
	}{
		"right":             {deny + "; echo no >&2; exit 2", true, "no"},
		"passes":            {"exit 0", false, "it passes"},
		"crashes":           {"echo boom >&2; exit 1", false, "takes for consent: boom"},
		"no JSON":           {"echo hello; echo no >&2; exit 2", false, "no JSON"},
		"no decision":       {"echo no >&2; exit 2", false, "contradict"},
		"no exit code":      {deny, false, "contradict"},
		"no reason":         {deny + "; exit 2", false, "without a reason"},
		"decision of other": {strings.Replace(deny, "PreToolUse", "Stop", 1) + "; echo no >&2; exit 2", false, "contradict"},
	} {
		path := filepath.Join(t.TempDir(), "hook")
		if err := os.WriteFile(path, []byte("#!/bin/sh\ncat >/dev/null\n"+c.script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		r, err := Hook(context.Background(), path, "hook")
		if err != nil || len(r.Checks) != 4 {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		if got := r.Checks[0]; got.OK != c.ok || !strings.Contains(got.Detail, c.want) || !c.ok && r.OK {
			t.Errorf("%s: %+v, want %v and %q", name, got, c.ok, c.want)
		}
	}
	if r, err := Hook(context.Background(), "/nowhere/hook"); err != nil || r.OK {
		t.Errorf("no program: %+v, %v", r, err)
	}
}
