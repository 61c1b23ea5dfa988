package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestScarbenchShow(t *testing.T) {
	r := run(t, "scarbench", "show", "cloud-02", "--condition", "long-explicit")
	for _, want := range []string{"Never restart a node before it has been drained.", "drain_node {\"node\":\"node-14\"}", "forgetful trace", "conversation, long-explicit"} {
		if r.code != exitDone || !strings.Contains(r.stdout, want) {
			t.Errorf("exit %d, %q is missing:\n%.600s%s", r.code, want, r.stdout, r.stderr)
		}
	}
	r = run(t, "scarbench", "show", "fs-14", "--json")
	var out struct{ Conversation []struct{ Role, Text string } }
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil || len(out.Conversation) != 4 {
		t.Errorf("--json: %v, %d messages", err, len(out.Conversation))
	}
	for _, c := range []struct{ line, want string }{
		{"show fs-1", "did you mean fs-01"},
		{"show fs-01 --condition long", "there is no condition"},
		{"show", "arg"},
	} {
		if r := run(t, append([]string{"scarbench"}, strings.Fields(c.line)...)...); r.code != exitUsage || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit %d, %s", c.line, r.code, r.stderr)
		}
	}
}

func TestScarbenchValidate(t *testing.T) {
	r := run(t, "scarbench", "validate")
	if r.code != exitDone || !strings.Contains(r.stdout, "103 cases, 412 instances, 0 problems") {
		t.Errorf("exit %d:\n%.400s%s", r.code, r.stdout, r.stderr)
	}
}
