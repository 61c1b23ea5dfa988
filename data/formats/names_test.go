package formats_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/formats"
)

func TestStems(t *testing.T) {
	for _, c := range []struct{ paths, want []string }{
		{[]string{"p/chat.json", "q/notes.jsonl.gz"}, []string{"chat", "notes"}},
		{[]string{"p/chat.json", "other.json", "q/chat.json"}, []string{"p/chat", "other", "q/chat"}},
		{[]string{"q/chat.json", "p/chat.json"}, []string{"q/chat", "p/chat"}},
		{[]string{"a/x/chat.json", "b/x/chat.json"}, []string{"a/x/chat", "b/x/chat"}},
		{[]string{"p/chat.json", "p/chat.jsonl"}, []string{"p/chat.json", "p/chat.jsonl"}},
		{[]string{"p/chat.json", "p/chat.json"}, []string{"chat", "chat"}},
		{[]string{"p/chat.json", "p/../p/chat.json", "q/chat.json"}, []string{"p/chat", "p/chat", "q/chat"}},
		{[]string{"/chat.json", "/p/chat.json"}, []string{"chat", "p/chat"}},
		{[]string{"/chat.json", "/chat.jsonl"}, []string{"chat.json", "chat.jsonl"}},
		{nil, []string{}},
	} {
		if got := formats.Stems(c.paths); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.paths, got, c.want)
		}
	}
}

func TestImportAs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat.json")
	const turns = `[{"role":"user","content":"x"},{"role":"assistant","content":"y","tool_calls":[` +
		`{"id":"1","function":{"name":"a","arguments":"{\"x\": "}},{"id":"2","function":{"name":"a","arguments":""}},` +
		`{"id":"3","function":{"name":"a","arguments":"{}"}},{"id":"4","custom":{"name":"a","input":"{"}}]}]`
	if err := os.WriteFile(path, []byte(turns), 0o666); err != nil {
		t.Fatal(err)
	}
	var got []*data.Trajectory
	report, err := formats.ImportAs(path, "p/chat", "", func(x *data.Trajectory) error { got = append(got, x); return nil })
	if err != nil || len(got) != 1 || got[0].ID != "openai/p/chat/1" {
		t.Fatalf("got %+v, %v", got, err)
	}
	if s := got[0].Steps[0].Args; s != `{"x": ` {
		t.Errorf("damaged arguments became %q", s)
	}
	if n := report.Repaired["arguments of a tool call that are no valid JSON kept as they stand"]; n != 1 {
		t.Errorf("one call has damaged arguments, the report says %v", report.Repaired)
	}
}

// A file that no format fits because it is damaged is told so.
func TestImportDamagedJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"messages" [{"role":"user"}]}`: "chat.jsonl: line 1: is not valid JSON: invalid character",
		`{"messa`:                        "chat.jsonl: line 1: is not valid JSON: what starts here is not closed",
	} {
		path := filepath.Join(t.TempDir(), "chat.jsonl")
		if err := os.WriteFile(path, []byte(in), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := formats.Import(path, "", discard); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "unknown format") {
			t.Errorf("%s: got %v, want %q", in, err, want)
		}
	}
}
