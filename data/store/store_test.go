package store_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/store"
	"github.com/dreamguard/dreamguard/internal/lines"
)

var extensions = []string{".jsonl", ".jsonl.gz", ".parquet"}

func run(id string) *data.Trajectory {
	return &data.Trajectory{ID: id, Group: "g", Task: "t", Steps: []data.Step{{Type: data.ToolCall, Tool: "send"}}}
}

func drawRun(t *rapid.T) *data.Trajectory {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a\nb", "\x00", "<&>\u2028", "…[cut 12 chars]…"}))
	step := rapid.Custom(func(t *rapid.T) data.Step {
		s := data.Step{Type: data.Message, Text: text.Draw(t, "text"), Result: text.Draw(t, "result"), Error: text.Draw(t, "error")}
		if rapid.Bool().Draw(t, "call") {
			s.Type, s.Tool, s.Args = data.ToolCall, "t"+text.Draw(t, "tool"), text.Draw(t, "args")
		}
		return s
	})
	flag := func(name string) *bool { return rapid.Ptr(rapid.Bool(), true).Draw(t, name) }
	tr := &data.Trajectory{
		ID: "i" + text.Draw(t, "id"), Dataset: text.Draw(t, "dataset"), Group: text.Draw(t, "group"),
		AgentModel: text.Draw(t, "model"), Task: text.Draw(t, "task"), Context: text.Draw(t, "context"),
		Steps: rapid.SliceOfN(step, 1, 5).Draw(t, "steps"), Label: data.Label(rapid.IntRange(0, 2).Draw(t, "label")),
		HazardLabel: text.Draw(t, "hazard label"), AttackPresent: flag("present"), AttackSucceeded: flag("succeeded"),
		TaskSucceeded: flag("task"), Suite: text.Draw(t, "suite"), UserTask: text.Draw(t, "user task"),
		InjectionTask: text.Draw(t, "goal"), Attack: text.Draw(t, "attack"), AttackTool: text.Draw(t, "attack tool"),
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "tools") {
		tr.Tools = append(tr.Tools, data.Tool{Name: fmt.Sprint(i), Description: text.Draw(t, "description")})
	}
	index := rapid.IntRange(0, len(tr.Steps)-1)
	if tr.Label == data.Unsafe {
		tr.FirstHazard = rapid.Ptr(index, true).Draw(t, "hazard")
	}
	tr.InjectionSeen = rapid.Ptr(rapid.OneOf(index, rapid.Just(-1)), true).Draw(t, "seen")
	if rapid.Bool().Draw(t, "extra") {
		v, err := json.Marshal(map[string]any{"a": text.Draw(t, "value"), "n": 1.5})
		if err != nil {
			t.Fatal(err)
		}
		var plain bytes.Buffer // as a file would hold it: without HTML escapes
		enc := json.NewEncoder(&plain)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(json.RawMessage(v)); err != nil {
			t.Fatal(err)
		}
		tr.Extra = map[string]json.RawMessage{"x " + text.Draw(t, "key"): bytes.TrimSpace(plain.Bytes())}
	}
	return tr
}

// Any chain of forms gives back what went in, and the same bytes every time.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfNDistinct(rapid.Custom(drawRun), 1, 4, func(t *data.Trajectory) string { return t.ID }).Draw(t, "runs")
		from := want
		for i, ext := range rapid.Permutation(extensions).Draw(t, "chain") {
			path := filepath.Join(dir, fmt.Sprint(i)+ext)
			if err := store.WriteAll(path, from); err != nil {
				t.Fatal(err)
			}
			first, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := store.ReadAll(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("%s: %s", ext, d)
			}
			if err := store.WriteAll(path, got); err != nil {
				t.Fatal(err)
			}
			if second, err := os.ReadFile(path); err != nil || !bytes.Equal(first, second) {
				t.Fatalf("%s: written again, the bytes differ (%v)", ext, err)
			}
			from = got
		}
	})
}

// More rows than one Parquet row group holds.
func TestManyRows(t *testing.T) {
	const n = 5000
	runs := make([]*data.Trajectory, n)
	for i := range runs {
		runs[i] = run(fmt.Sprint(i))
		if i%10 == 0 {
			runs[i].Task = strings.Repeat("text ", 20_000)
		}
	}
	path := filepath.Join(t.TempDir(), "many.parquet")
	if err := store.WriteAll(path, runs); err != nil {
		t.Fatal(err)
	}
	r, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	i := 0
	for tr, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		if tr.ID != runs[i].ID || tr.Task != runs[i].Task {
			t.Fatalf("row %d is %q", i, tr.ID)
		}
		i++
		if want := fmt.Sprintf("row %d", i); r.At() != want {
			t.Fatalf("At is %q, want %q", r.At(), want)
		}
	}
	if i != n {
		t.Errorf("read %d rows of %d", i, n)
	}
}

func compress(t *testing.T, b []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z, _ := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func parquetBytes(t *testing.T, runs ...*data.Trajectory) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.parquet")
	if err := store.WriteAll(path, runs); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBadInput(t *testing.T) {
	const good = `{"id":"a","steps":[{"type":"message","text":"x"}]}` + "\n"
	whole := compress(t, []byte(good+strings.Replace(good, `"a"`, `"b"`, 1)))
	pq := parquetBytes(t, run("a"))
	for _, tt := range []struct {
		name string
		in   []byte
		is   error
		msg  string
	}{
		{"empty", nil, store.ErrEmpty, "holds no trajectory"},
		{"blank", []byte("\n\n"), store.ErrEmpty, "holds no trajectory"},
		{"empty gzip", compress(t, nil), store.ErrEmpty, "holds no trajectory"},
		{"json", []byte(good + "\n{\"id\":}\n"), nil, "line 3: is not valid JSON at byte 7"},
		{"cut", []byte(good + `{"id":"b"`), nil, "line 2: is not valid JSON"},
		{"array", []byte("[" + good + "]"), store.ErrFormat, "use import"},
		{"label", []byte(`{"id":"a","label":2}`), data.ErrLabel, "line 1: label: must be 0"},
		{"no tool", []byte(good + `{"id":"b","steps":[{"type":"tool_call"}]}`), nil, "line 2: steps[0].tool: is empty"},
		{"other schema", []byte(good + `{"messages":[]}`), store.ErrFormat, "line 2: is not a trajectory file"},
		{"nul", []byte(good + "\x00\x00\n"), lines.ErrNUL, "line 2: holds a NUL byte"},
		{"utf8", []byte(good + "{\"id\":\"\xff\"}\n"), lines.ErrUTF8, "line 2: is not valid UTF-8"},
		{"short gzip", whole[:len(whole)-9], io.ErrUnexpectedEOF, "cut short"},
		{"gzip header", []byte{0x1f, 0x8b, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, gzip.ErrHeader, "gzip"},
		{"gzip of parquet", compress(t, pq), nil, "line 1: "},
		{"bomb", compress(t, append([]byte(good), bytes.Repeat([]byte("x"), lines.Max+2)...)), lines.ErrTooLong, "line 2: is too long"},
		{"many steps", []byte(good + `{"id":"b","steps":[` + strings.Repeat("{},", 3<<20) + "{}]}\n"), lines.ErrTooLong, "line 2: is too long: more than"},
		{"parquet head", []byte("PAR1"), nil, "Parquet file is damaged"},
		{"parquet cut", pq[:len(pq)/2], nil, "Parquet file is damaged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "in")
			if err := os.WriteFile(path, tt.in, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := store.ReadAll(path)
			var se *store.Error
			if !errors.As(err, &se) || !strings.HasPrefix(err.Error(), path+": ") {
				t.Fatalf("%v is no *store.Error with the path", err)
			}
			if !strings.Contains(err.Error(), tt.msg) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got %v, want %q and %v", err, tt.msg, tt.is)
			}
		})
	}
}

// The bound on values counts none that stand in a text.
func TestTextOfBraces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in.jsonl")
	want := run("a")
	want.Steps[0].Result = strings.Repeat(`{\",[`, 2<<20)
	if err := store.WriteAll(path, []*data.Trajectory{want}); err != nil {
		t.Fatal(err)
	}
	got, err := store.ReadAll(path)
	if err != nil || got[0].Steps[0].Result != want.Steps[0].Result {
		t.Errorf("got %v", err)
	}
}

func TestErrorIsFinal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, []byte("{}\n"+`{"id":"a","steps":[{"type":"message"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, first := r.Next()
	if _, second := r.Next(); first == nil || second != first {
		t.Errorf("got %v, then %v", first, second)
	}
}

func TestDuplicate(t *testing.T) {
	for _, ext := range extensions {
		path := filepath.Join(t.TempDir(), "in"+ext)
		if err := store.WriteAll(path, []*data.Trajectory{run("a"), run("b"), run("a")}); err != nil {
			t.Fatal(err)
		}
		_, err := store.ReadAll(path)
		if !errors.Is(err, store.ErrDuplicate) || !strings.Contains(err.Error(), " 3: id: ") || !strings.Contains(err.Error(), " 1 already") {
			t.Errorf("%s: got %v, want both places", ext, err)
		}
	}
}

func TestNewReader(t *testing.T) {
	const line = `{"id":"a","steps":[{"type":"message","text":"x"}]}` + "\n"
	for name, in := range map[string][]byte{"plain": []byte(line), "gzip": compress(t, []byte(line))} {
		r := store.NewReader(bytes.NewReader(in), "stdin")
		tr, err := r.Next()
		if err != nil || tr.ID != "a" || r.At() != "line 1" || r.N() != 1 {
			t.Fatalf("%s: got %+v at %s, %v", name, tr, r.At(), err)
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%s: got %v at the end", name, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	r := store.NewReader(bytes.NewReader(parquetBytes(t, run("a"))), "stdin")
	if _, err := r.Next(); !errors.Is(err, store.ErrFormat) || !strings.Contains(err.Error(), "stdin: ") {
		t.Errorf("Parquet from a stream: got %v", err)
	}
	if err := r.Close(); err != nil || r.N() != 0 || r.At() != "start" {
		t.Errorf("got %v at %s", err, r.At())
	}
}

// What JSON would replace without a word is refused in every form.
func TestWriteRefuses(t *testing.T) {
	notText := run("a")
	notText.Steps[0].Result = "x\xff"
	extra := run("a")
	extra.Extra = map[string]json.RawMessage{"task": json.RawMessage(`1`)}
	large := run("a")
	large.Task = strings.Repeat("x", lines.Max)
	for _, ext := range extensions {
		for name, tt := range map[string]struct {
			run *data.Trajectory
			is  error
			msg string
		}{
			"utf-8":          {notText, lines.ErrUTF8, "steps: is not valid UTF-8"},
			"shadowed field": {extra, nil, "task: stands in Extra"},
			"too large":      {large, lines.ErrTooLong, "is too long"},
		} {
			err := store.WriteAll(filepath.Join(t.TempDir(), "x"+ext), []*data.Trajectory{tt.run})
			if err == nil || !strings.Contains(err.Error(), tt.msg) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%s %s: got %v", ext, name, err)
			}
		}
	}
}

// Write hands a file on without keeping it: the count is what it wrote.
func TestWriteFromReader(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.parquet")
	if err := store.WriteAll(from, []*data.Trajectory{run("a"), run("b")}); err != nil {
		t.Fatal(err)
	}
	r, err := store.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := store.Write(to, r.All()); err != nil || n != 2 {
		t.Errorf("wrote %d, %v", n, err)
	}
}

func TestOpenMissingAndFolder(t *testing.T) {
	dir := t.TempDir()
	if _, err := store.Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := store.Open(dir); !errors.Is(err, store.ErrFormat) {
		t.Errorf("got %v", err)
	}
}

// A write that fails leaves the old file and no other behind.
func TestWriteIsAtomic(t *testing.T) {
	boom := errors.New("boom")
	for _, ext := range extensions {
		dir := t.TempDir()
		path := filepath.Join(dir, "out"+ext)
		if err := store.WriteAll(path, []*data.Trajectory{run("old")}); err != nil {
			t.Fatal(err)
		}
		for name, tt := range map[string]struct {
			seq func(func(*data.Trajectory, error) bool)
			is  error
			msg string
		}{
			"error":   {func(y func(*data.Trajectory, error) bool) { _ = y(run("a"), nil) && y(nil, boom) }, boom, "boom"},
			"invalid": {store.Values([]*data.Trajectory{run("a"), {ID: "b"}}), nil, `trajectory 2 ("b"): steps: is empty`},
			"empty":   {store.Values(nil), store.ErrEmpty, "no trajectory"},
		} {
			_, err := store.Write(path, tt.seq)
			if err == nil || !strings.Contains(err.Error(), tt.msg) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%s %s: got %v", ext, name, err)
			}
		}
		got, err := store.ReadAll(path)
		if err != nil || len(got) != 1 || got[0].ID != "old" {
			t.Errorf("%s: the old file is gone: %v, %v", ext, got, err)
		}
		if files, _ := os.ReadDir(dir); len(files) != 1 {
			t.Errorf("%s: left behind %v", ext, files)
		}
	}
	if err := store.WriteAll(filepath.Join(t.TempDir(), "out.csv"), nil); !errors.Is(err, store.ErrFormat) {
		t.Errorf("got %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"id":"a","steps":[{"type":"message","text":"x"}]}`))
	f.Add([]byte("PAR1....PAR1"))
	f.Add([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0})
	path := filepath.Join(f.TempDir(), "seed.parquet")
	if err := store.WriteAll(path, []*data.Trajectory{run("a"), run("b")}); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "in")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if ts, err := store.ReadAll(path); err == nil && len(ts) == 0 {
			t.Fatal("no error and no trajectory")
		}
	})
}
