package formats_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/formats"
	"github.com/dreamguard/dreamguard/data/store"
	"github.com/dreamguard/dreamguard/internal/lines"
)

// One good line of each format, which detection recognises.
const (
	goodProject   = `{"id":"a","group":"g","task":"t","steps":[{"type":"message","text":"x"}]}`
	goodDojo      = `{"index":1,"messages":[{"role":"user","content":"t"},{"role":"assistant","content":"x"}],"metadata":{"suite_name":"s","user_task_id":"u","model":"m"}}`
	goodASSE      = `{"id":1,"profile":"p","contents":[[{"role":"user","content":"t"},{"role":"agent","thought":"x","action":""}]],"label":0}`
	goodClaude    = `{"type":"assistant","sessionId":"s","uuid":"u","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"x"}]}}`
	goodAnthropic = `{"messages":[{"role":"user","content":"t"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]}]}`
	goodOpenAI    = `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"t"},{"role":"assistant","content":"x"}]}`
)

var good = map[string]string{
	"dreamguard": goodProject, "agentdojo": goodDojo, "assebench": goodASSE,
	"claude-code": goodClaude, "anthropic": goodAnthropic, "openai": goodOpenAI,
}

func discard(*data.Trajectory) error { return nil }

func TestBadInput(t *testing.T) {
	for _, tt := range []struct {
		name, format string
		line2        string
		is           error
		msg          string // what the error says after the path
	}{
		{"no tool", "dreamguard", `{"id":"b","steps":[{"type":"tool_call"}]}`, nil, "line 2: steps[0].tool: is empty"},
		{"label", "dreamguard", `{"id":"b","label":2}`, data.ErrLabel, "line 2: label: must be 0"},
		{"same id", "dreamguard", goodProject, store.ErrDuplicate, `line 2: id: "a" stands on line 1 already`},
		{"mixed", "dreamguard", goodOpenAI, store.ErrFormat, "line 2: is not a trajectory file: a line has \"messages\" and no steps"},

		{"no tool", "agentdojo", `{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":{}}}]}],"metadata":{"suite_name":"s","user_task_id":"v"}}`, nil, "line 2: messages[0].tool_calls[0].function: names no tool"},
		{"same run", "agentdojo", goodDojo, store.ErrDuplicate, `line 2: id: "agentdojo/m/s/u/none" stands on line 1 already`},
		{"role", "agentdojo", `{"messages":[{"role":"robot"}],"metadata":{"suite_name":"s","user_task_id":"v"}}`, nil, `line 2: messages[0].role: is "robot": want`},
		{"security word", "agentdojo", `{"messages":[],"metadata":{"suite_name":"s","user_task_id":"v","security":"yes"}}`, nil, "line 2: metadata.security: is a JSON string"},
		{"a message a line", "openai", `{"role":"user","content":"x"}`, nil, "messages"},
		{"no suite", "agentdojo", `{"messages":[],"metadata":{"user_task_id":"v"}}`, nil, "line 2: suite_name: is missing"},
		{"mixed", "agentdojo", goodOpenAI, formats.ErrMixed, "line 2: suite_name: is missing"},
		{"mixed steps", "agentdojo", goodProject, formats.ErrMixed, "line 2: messages: is missing"},

		{"label", "assebench", strings.Replace(goodASSE, `"label":0`, `"label":2`, 1), data.ErrLabel, `line 2: label: is "2": ASSEBench has 0 (safe) and 1 (unsafe)`},
		{"label word", "assebench", strings.Replace(goodASSE, `"label":0`, `"label":"unsafe"`, 1), data.ErrLabel, "never guessed"},
		{"no label", "assebench", strings.Replace(goodASSE, `,"label":0`, ``, 1), data.ErrLabel, "line 2: label: "},
		{"role", "assebench", strings.Replace(goodASSE, `"agent"`, `"robot"`, 1), nil, `line 2: contents[0][1].role: is "robot"`},
		{"contents", "assebench", `{"id":2,"contents":["x"],"label":0}`, nil, "line 2: contents: is not a list of rounds"},
		{"mixed", "assebench", goodOpenAI, formats.ErrMixed, "line 2: contents: is missing"},

		{"no tool", "claude-code", strings.Replace(goodClaude, `{"type":"text","text":"x"}`, `{"type":"tool_use","id":"1"}`, 1), nil, "message.content[1].name: is empty"},
		{"mixed", "claude-code", goodOpenAI, formats.ErrMixed, "line 2: type: is missing"},
		{"content", "claude-code", strings.Replace(goodClaude, `[{"type":"text","text":"x"}]`, `7`, 1), nil, "line 2: message.content: is not text"},

		{"no tool", "anthropic", strings.Replace(goodAnthropic, `"name":"a"`, `"name":" "`, 1), nil, "line 2: messages[1].content[0].name: is empty"},
		{"mixed", "anthropic", `{"messages":[{"role":"assistant","tool_calls":[{"id":"1"}]}]}`, formats.ErrMixed, "line 2: messages[0].tool_calls: belongs to OpenAI"},
		{"mixed role", "anthropic", `{"messages":[{"role":"tool","content":"x"}]}`, formats.ErrMixed, `line 2: messages[0].role: is "tool"`},
		{"user calls", "anthropic", `{"messages":[{"role":"user","content":[{"type":"tool_use","name":"x"}]}]}`, nil, "only the assistant calls tools"},

		{"no tool", "openai", `{"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":""}}]}]}`, nil, "line 2: messages[0].tool_calls[0].function.name: is empty"},
		{"no function", "openai", `{"messages":[{"role":"assistant","tool_calls":[{"id":"1"}]}]}`, nil, "line 2: messages[0].tool_calls[0]: has neither"},
		{"role", "openai", `{"messages":[{"role":"robot"}]}`, nil, `line 2: messages[0].role: is "robot"`},
		{"content", "openai", `{"messages":[{"role":"user","content":7}]}`, nil, "line 2: messages[0].content: is not text"},
		{"messages", "openai", `{"messages":"x"}`, nil, "line 2: messages: is not a list"},
		{"tools", "openai", `{"messages":[],"tools":"x"}`, nil, "line 2: tools: is not a list"},
		{"mixed blocks", "openai", goodAnthropic, formats.ErrMixed, "line 2: messages[1].content[0]: is a block of type tool_use"},
		{"mixed steps", "openai", goodProject, formats.ErrMixed, "line 2: steps: belongs to another format"},
		{"mixed run", "openai", goodDojo, formats.ErrMixed, "line 2: metadata.user_task_id: belongs to another format"},
		{"mixed session", "openai", goodClaude, formats.ErrMixed, "line 2: sessionId: belongs to another format"},
	} {
		t.Run(tt.format+" "+tt.name, func(t *testing.T) {
			checkBad(t, tt.format, []byte(good[tt.format]+"\n"+tt.line2+"\n"), tt.is, tt.msg)
		})
	}
}

// Damage that is the same for every format.
func TestDamaged(t *testing.T) {
	for format, line := range good {
		twice := line + "\n"
		for _, tt := range []struct {
			name, in string
			is       error
			msg      string
		}{
			{"json", twice + `{"id": }` + "\n", nil, "line 2: is not valid JSON"},
			{"torn", twice + line[:len(line)/2] + "\n", nil, "line 2: is not valid JSON"},
			{"torn amid", twice + line[:len(line)-5] + "\n" + line + "\n", nil, "line 2: is not valid JSON"},
			{"nul", twice + "\x00\n", lines.ErrNUL, "line 2: holds a NUL byte"},
			{"text", twice + "hello\n", nil, "line 2: "},
			{"utf-8", twice + "{\"id\":\"\xff\"}\n", lines.ErrUTF8, "line 2: is not valid UTF-8"},
		} {
			t.Run(format+" "+tt.name, func(t *testing.T) { checkBad(t, format, []byte(tt.in), tt.is, tt.msg) })
		}
	}
}

func checkBad(t *testing.T, format string, in []byte, is error, msg string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(path, in, 0o600); err != nil {
		t.Fatal(err)
	}
	rep, err := formats.Import(path, "", discard)
	if rep.Format != format {
		t.Errorf("taken for %q, want %s", rep.Format, format)
	}
	var se *store.Error
	if !errors.As(err, &se) || !strings.HasPrefix(err.Error(), path+": ") {
		t.Fatalf("%v is no *store.Error with the path", err)
	}
	if !strings.Contains(err.Error(), msg) || is != nil && !errors.Is(err, is) {
		t.Errorf("got  %v\nwant %q and %v", err, msg, is)
	}
}

func TestEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	for _, in := range []string{"", "\n \n", "[]"} {
		if err := os.WriteFile(path, []byte(in), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, f := range formats.All() {
			if _, err := formats.Import(path, f.Name(), discard); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s %q: got %v", f.Name(), in, err)
			}
		}
		if _, err := formats.Import(path, "", discard); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: got %v", in, err)
		}
	}
	if _, err := formats.Import(path, "word", discard); !errors.Is(err, formats.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	if _, err := formats.Import(filepath.Dir(path), "", discard); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("got %v", err)
	}
	if _, err := formats.Import(path+"x", "", discard); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// endless is a file whose second line does not end.
type endless struct {
	head io.Reader
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	if n, err := e.head.Read(p); err == nil {
		return n, nil
	}
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func TestHugeLineIsNotReadWhole(t *testing.T) {
	for _, f := range formats.All() {
		e := &endless{head: strings.NewReader(good[f.Name()] + "\n" + `{"id":"`)}
		_, err := f.Import(e, "huge.jsonl", discard)
		if !errors.Is(err, lines.ErrTooLong) || !strings.Contains(err.Error(), "huge.jsonl: line 2: ") {
			t.Errorf("%s: got %v", f.Name(), err)
		}
		if e.read > lines.Max+1<<20 {
			t.Errorf("%s: read %d bytes of the line", f.Name(), e.read)
		}
	}
}

// Four million empty messages are a small file and a lot of memory.
func TestManyValuesInOne(t *testing.T) {
	in := `{"messages":[` + strings.Repeat("{},", 3<<20) + `{}]}`
	for _, f := range []formats.Format{formats.OpenAI{}, formats.AgentDojo{}} {
		if _, err := f.Import(strings.NewReader(in), "many", discard); !errors.Is(err, lines.ErrTooLong) {
			t.Errorf("%s: got %v", f.Name(), err)
		}
	}
}

func TestGzip(t *testing.T) {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := io.WriteString(z, goodOpenAI+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "in") // the name says nothing
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if rep, err := formats.Import(path, "", discard); err != nil || rep.Kept != 1 || rep.Format != "openai" {
		t.Errorf("got %+v, %v", rep, err)
	}
	if err := os.WriteFile(path, buf.Bytes()[:buf.Len()-6], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := formats.Import(path, "", discard); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("got %v", err)
	}
}

func fuzz(f *testing.F, format formats.Format) {
	f.Add([]byte(good[format.Name()]))
	for file, name := range fixtures {
		if name == format.Name() {
			b, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = formats.Detect(b) // must not panic
		n := 0
		rep, err := format.Import(bytes.NewReader(b), "fuzz", func(tr *data.Trajectory) error {
			n++
			return tr.Validate()
		})
		checkReport(t, rep)
		if rep.Kept != n {
			t.Errorf("kept %d of %d", rep.Kept, n)
		}
		var se *store.Error
		if err != nil && !errors.As(err, &se) {
			t.Errorf("%v is no *store.Error", err)
		}
		if err == nil && rep.Read == 0 {
			t.Error("nothing read, and no error")
		}
	})
}

func FuzzProject(f *testing.F)    { fuzz(f, formats.Project{}) }
func FuzzAgentDojo(f *testing.F)  { fuzz(f, formats.AgentDojo{}) }
func FuzzASSEBench(f *testing.F)  { fuzz(f, formats.ASSEBench{}) }
func FuzzClaudeCode(f *testing.F) { fuzz(f, formats.ClaudeCode{}) }
func FuzzAnthropic(f *testing.F)  { fuzz(f, formats.Anthropic{}) }
func FuzzOpenAI(f *testing.F)     { fuzz(f, formats.OpenAI{}) }
