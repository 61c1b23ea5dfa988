package formats_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/formats"
	"github.com/dreamguard/dreamguard/data/store"
)

var update = flag.Bool("update", false, "write the golden files; read the difference before you commit it")

// fixtures maps each file under testdata to its format.
var fixtures = map[string]string{
	"dreamguard.jsonl": "dreamguard", "agentdojo.jsonl": "agentdojo", "agentdojo-run.json": "agentdojo",
	"assebench.json": "assebench", "openai.jsonl": "openai", "openai.json": "openai",
	"anthropic.json": "anthropic", "claude-code.jsonl": "claude-code",
}

// golden is what a fixture becomes.
type golden struct {
	Report formats.Report    `json:"report"`
	Runs   []json.RawMessage `json:"runs"`
}

func importAll(t *testing.T, path, format string) ([]*data.Trajectory, formats.Report, error) {
	t.Helper()
	var out []*data.Trajectory
	rep, err := formats.Import(path, format, func(tr *data.Trajectory) error {
		out = append(out, tr)
		return nil
	})
	return out, rep, err
}

// Each fixture is recognised and becomes the runs and the report beside it,
// which were read by hand.
func TestGolden(t *testing.T) {
	for file, format := range fixtures {
		t.Run(file, func(t *testing.T) {
			runs, rep, err := importAll(t, filepath.Join("testdata", file), "")
			if err != nil {
				t.Fatal(err)
			}
			if rep.Format != format {
				t.Errorf("taken for %s, want %s", rep.Format, format)
			}
			checkReport(t, rep)
			got := golden{Report: rep}
			for _, tr := range runs {
				b, err := tr.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				got.Runs = append(got.Runs, b)
			}
			var buf bytes.Buffer
			enc := json.NewEncoder(&buf)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			if err := enc.Encode(got); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "golden", file+".golden")
			if *update {
				if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), buf.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

func checkReport(t *testing.T, rep formats.Report) {
	t.Helper()
	sum := rep.Kept
	for _, n := range rep.Dropped {
		sum += n
	}
	if sum != rep.Read {
		t.Errorf("read %d, but kept and dropped make %d: %+v", rep.Read, sum, rep)
	}
}

// What is imported can be written and read again unchanged.
func TestImportThenStore(t *testing.T) {
	for file := range fixtures {
		want, _, err := importAll(t, filepath.Join("testdata", file), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, ext := range []string{".jsonl.gz", ".parquet"} {
			path := filepath.Join(t.TempDir(), "out"+ext)
			if err := store.WriteAll(path, want); err != nil {
				t.Fatal(err)
			}
			got, rep, err := importAll(t, path, "")
			if err != nil || rep.Format != "dreamguard" {
				t.Fatalf("%s%s: %+v, %v", file, ext, rep, err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s%s: %s", file, ext, d)
			}
		}
	}
}

// Only these formats state a label.
func TestLabelsAreNotGuessed(t *testing.T) {
	for file, want := range map[string][]data.Label{
		"agentdojo.jsonl": {data.Unknown, data.Unsafe, data.Unknown}, "agentdojo-run.json": {data.Unknown},
		"assebench.json": {data.Unsafe, data.Safe}, "openai.jsonl": {data.Unknown, data.Unknown}, "openai.json": {data.Unknown},
		"anthropic.json": {data.Unknown}, "claude-code.jsonl": {data.Unknown},
	} {
		runs, _, err := importAll(t, filepath.Join("testdata", file), "")
		if err != nil {
			t.Fatal(err)
		}
		var got []data.Label
		for _, tr := range runs {
			got = append(got, tr.Label)
			if tr.FirstHazard != nil {
				t.Errorf("%s: %s has a first hazard, which its source does not locate", file, tr.ID)
			}
			if tr.Label == data.Unsafe && tr.HazardLabel != data.HazardMissing {
				t.Errorf("%s: %s has hazard label %q", file, tr.ID, tr.HazardLabel)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", file, d)
		}
	}
}

// JSON lines, an array of runs, lines of arrays and an array of arrays are the
// same conversations.
func TestWrappings(t *testing.T) {
	const a, b = `[{"role":"user","content":"x"},{"role":"assistant","content":"1"}]`, `[{"role":"user","content":"y"},{"role":"assistant","content":"2"}]`
	const oa, ob = `{"messages":` + a + `}`, `{"messages":` + b + `}`
	var want []*data.Trajectory
	for name, in := range map[string]string{
		"lines": oa + "\n" + ob, "array": "[" + oa + ",\n" + ob + "]", "lines of arrays": a + "\n" + b + "\n",
		"array of arrays": "\uFEFF[" + a + "," + b + "]", "indented": "[\n " + oa + " ,\r\n\t" + ob + "\n]\n",
	} {
		var got []*data.Trajectory
		rep, err := formats.OpenAI{}.Import(strings.NewReader(in), "dir/chat.json", func(tr *data.Trajectory) error {
			got = append(got, tr)
			return nil
		})
		if err != nil || rep.Kept != 2 {
			t.Fatalf("%s: %+v, %v", name, rep, err)
		}
		if got[0].ID != "openai/chat/1" || got[1].Task != "y" {
			t.Errorf("%s: got %+v", name, got)
		}
		if want == nil {
			want = got
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestGroupIsTheTask(t *testing.T) {
	runs, _, err := importAll(t, "testdata/openai.jsonl", "openai")
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := importAll(t, "testdata/openai.json", "openai")
	if err != nil {
		t.Fatal(err)
	}
	// The first task of the two carries an image, so it is another one.
	if runs[0].Group == runs[1].Group || runs[1].Group == other[0].Group {
		t.Errorf("different tasks share a group: %s %s %s", runs[0].Group, runs[1].Group, other[0].Group)
	}
	in := `{"messages":[{"role":"user","content":" What is the weather\nin Rome and Oslo?"},{"role":"assistant","content":"a"}]}`
	_, err = formats.OpenAI{}.Import(strings.NewReader(in), "z", func(tr *data.Trajectory) error {
		if tr.Group != runs[1].Group {
			t.Errorf("the same task has groups %s and %s", tr.Group, runs[1].Group)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEmitErrorComesBack(t *testing.T) {
	boom := errors.New("boom")
	for file := range fixtures {
		n := 0
		rep, err := formats.Import(filepath.Join("testdata", file), "", func(*data.Trajectory) error { n++; return boom })
		if err != boom || n != 1 || rep.Kept != 0 {
			t.Errorf("%s: got %v after %d runs, %+v", file, err, n, rep)
		}
	}
}

func TestDetect(t *testing.T) {
	for name, in := range map[string]string{
		"text": "hello", "csv": "id,label\n1,0\n", "json of another kind": `{"rows":[1,2]}`, "number": "12", "torn": `{"messa`,
	} {
		if f, err := formats.Detect([]byte(in)); !errors.Is(err, formats.ErrUnknown) {
			t.Errorf("%s: got %v, %v", name, f, err)
		}
	}
	if _, err := formats.Detect([]byte(" \n")); !errors.Is(err, store.ErrEmpty) {
		t.Errorf("got %v", err)
	}
	var pos *store.Error
	if _, err := formats.Detect([]byte("{\n\"rows\": [1,\n 2 3]}")); !errors.As(err, &pos) || pos.N != 3 || !strings.Contains(err.Error(), "is not valid JSON") {
		t.Errorf("a syntax error on line 3: got %v", err)
	}
	// A head that ends anywhere is never taken for another format.
	for file, want := range fixtures {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		for n := len(b); n > 0; n -= 7 {
			f, err := formats.Detect(b[:n])
			if err != nil || f.Name() == want {
				continue
			}
			// Until its first block appears, messages are messages.
			if want != "anthropic" || f.Name() != "openai" {
				t.Fatalf("%s cut at %d is taken for %s", file, n, f.Name())
			}
		}
	}
	if _, err := formats.Named("open-ai"); !errors.Is(err, formats.ErrUnknown) || !strings.Contains(err.Error(), "openai") {
		t.Errorf("got %v", err)
	}
}
