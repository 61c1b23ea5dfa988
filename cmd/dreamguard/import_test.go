package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/data/store"
)

// chatLog is one run in the form of an OpenAI chat log.
const chatLog = `{"messages":[` +
	`{"role":"user","content":"Read the note and tell me what it says."},` +
	`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"note.txt\"}"}}]},` +
	`{"role":"tool","tool_call_id":"c1","content":"Buy milk."},` +
	`{"role":"assistant","content":"It says: buy milk."}]}` + "\n"

func TestImport(t *testing.T) {
	runs := makeRuns(t, "12")
	dir := t.TempDir()
	chat := filepath.Join(dir, "chat.jsonl")
	if err := os.WriteFile(chat, []byte(chatLog), 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "all.parquet")
	r := run(t, "import", "-q", runs, chat, "--out", out, "--json")
	var res importResult
	if err := json.Unmarshal([]byte(r.stdout), &res); err != nil || r.code != exitDone {
		t.Fatalf("exit %d, stderr %q, %v", r.code, r.stderr, err)
	}
	if len(res.Files) != 2 || res.Files[0].Kept != 12 || res.Files[1].Kept != 1 || res.Written == nil || res.Written.Runs != 13 || res.Written.Unknown != 1 {
		t.Errorf("report %+v", res)
	}
	ts, err := store.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(ts) != 13 || ts[12].Steps[0].Tool != "read_file" || ts[12].Steps[0].Result != "Buy milk." {
		t.Errorf("%d runs, the last %+v", len(ts), ts[len(ts)-1])
	}

	// Without --out it only reports.
	r = run(t, "import", "-q", chat)
	for _, want := range []string{chat + " (" + res.Files[1].Format + "): 1 read, 1 kept", "nothing written", "1 unlabelled"} {
		if r.code != exitDone || !strings.Contains(r.stdout, want) {
			t.Errorf("exit %d, stdout %q, want %q in it", r.code, r.stdout, want)
		}
	}
}

// Two logs of the same name are two runs; the same log named twice is not.
func TestImportSameName(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for _, folder := range []string{"p", "q"} {
		path := filepath.Join(dir, folder, "chat.json")
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(chatLog, "milk", folder, 1)), 0o666); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	out := filepath.Join(dir, "all.jsonl")
	for _, order := range [][]string{{paths[0], paths[1]}, {paths[1], paths[0]}} {
		if r := run(t, "import", "-q", order[0], order[1], "--out", out); r.code != exitDone {
			t.Fatalf("%+v", r)
		}
		ts, err := store.ReadAll(out)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range ts {
			folder := filepath.Base(filepath.Dir(order[i]))
			if x.ID != "openai/"+folder+"/chat/1" || !strings.Contains(x.Steps[0].Result, folder) {
				t.Errorf("%s became %s: %q", order[i], x.ID, x.Steps[0].Result)
			}
		}
	}
	if r := run(t, "import", "-q", paths[0], paths[0], "--out", out); r.code != exitFailure || !strings.Contains(r.stderr, "ids must be unique") {
		t.Errorf("the same log twice: %+v", r)
	}
}

func TestImportErrors(t *testing.T) {
	runs := makeRuns(t, "3")
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, err := os.ReadFile(runs)
	if err != nil {
		t.Fatal(err)
	}
	empty, text := write("empty.jsonl", ""), write("notes.txt", "just some words\n")
	torn := write("torn.jsonl", string(good)+"{\"id\": \"x\", \n")
	out := filepath.Join(dir, "out.jsonl")
	for _, c := range []struct {
		args []string
		code exitCode
		want string
	}{
		{nil, exitUsage, "see dreamguard import --help"},
		{[]string{runs, "--format", "opnai"}, exitUsage, "opnai"},
		{[]string{runs, "--out", filepath.Join(dir, "out.csv")}, exitUsage, ".parquet"},
		{[]string{filepath.Join(dir, "none.json")}, exitFailure, "none.json"},
		{[]string{empty, "--out", out}, exitFailure, "empty.jsonl: holds no trajectory"},
		{[]string{empty}, exitFailure, "empty.jsonl: holds no trajectory"},
		{[]string{"-"}, exitUsage, "standard input is not read"},
		{[]string{text, "--out", out}, exitFailure, "notes.txt"},
		{[]string{torn, "--out", out}, exitFailure, "torn.jsonl: line 4"},
		{[]string{runs, runs, "--out", out}, exitFailure, "ids must be unique"},
	} {
		r := run(t, append([]string{"import", "-q"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.stderr, c.want) || strings.Contains(r.stderr, "write ") && c.code == exitFailure {
			t.Errorf("import %v: exit %d, stderr %q; want exit %d and %q", c.args, r.code, r.stderr, c.code, c.want)
		}
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("a failed import left %s (%v)", out, err)
	}
}
