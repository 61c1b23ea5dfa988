package floor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// listed is one line of testdata/bypass.jsonl or harmless.jsonl.
type listed struct {
	id     string
	change Change
	err    error
}

func readList(t testing.TB, name string) []listed {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []listed
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		fields, err := rawJSON(in.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		var l listed
		if err := json.Unmarshal(fields["id"], &l.id); err != nil {
			t.Fatal(err)
		}
		l.change, l.err = ParseChange(fields)
		out = append(out, l)
	}
	return out
}

// Every named attempt to get past the floor is refused.
func TestBypasses(t *testing.T) {
	list := readList(t, "bypass")
	if len(list) < 150 {
		t.Errorf("%d attempts, want at least 150", len(list))
	}
	for _, l := range list {
		t.Run(l.id, func(t *testing.T) {
			if l.err != nil {
				return // refused before the check
			}
			if d := Default().Check(l.change); d.Outcome != Refuse || d.Reason == "" || d.Rule == "" {
				t.Errorf("%+v", d)
			}
		})
	}
}

// Every named harmless change passes.
func TestHarmless(t *testing.T) {
	for _, l := range readList(t, "harmless") {
		t.Run(l.id, func(t *testing.T) {
			if l.err != nil {
				t.Fatal(l.err)
			}
			if d := Default().Check(l.change); d.Outcome != Permit {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestBatch(t *testing.T) {
	in := strings.Join([]string{
		`{"id": 1, "format": "path", "before": null, "change": {"path": "server.host", "value": "x"}}`,
		``,
		`{"id": {"a": [1]}, "format": "json", "before": "{}", "change": "{\"a\": 2}"}`,
		`garbage`,
		`{"id": 3, "format": "json", "before": 7, "change": {"a": 2}}`,
		"{\"id\": 4, \"x\": \"\xff\"}",
		"{\"id\": 5, \x00}",
		`{"id": 6, "id": 7, "format": "json", "change": "{}"}`,
		`{"id": 8, "format": "json"}`,
		`{"format": "json", "before": null, "change": {"a": 1}}`,
		`{"id": 9, "format": "path", "change": "{\"path\": \"limits.x\", \"value\": 1}"}`,
		`[]`,
	}, "\n")
	var out bytes.Buffer
	n, err := Default().Batch(strings.NewReader(in), &out)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ id, decision, rule string }{
		{`1`, "refuse", "server-host"},
		{`{"a":[1]}`, "permit", ""},
		{`null`, "refuse", "unreadable"},
		{`3`, "permit", ""}, // a number and an object are JSON, too
		{`null`, "refuse", "unreadable"},
		{`null`, "refuse", "unreadable"},
		{`null`, "refuse", "unreadable"},
		{`8`, "refuse", "unreadable"},
		{`null`, "permit", ""},
		{`9`, "permit", ""},
		{`null`, "refuse", "unreadable"},
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines for %d: %s", len(lines), len(want), out.String())
	}
	for i, w := range want {
		var got struct {
			ID             json.RawMessage
			Decision, Rule string
			Reason         *string
		}
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		if string(got.ID) != w.id || got.Decision != w.decision || got.Rule != w.rule || got.Reason == nil || (*got.Reason == "") != (w.decision == "permit") {
			t.Errorf("line %d: %s, want %v", i+1, lines[i], w)
		}
	}
	if n.Permitted != 4 || n.Refused != 7 || n.Unreadable != 6 {
		t.Errorf("counts %+v", n)
	}
}
