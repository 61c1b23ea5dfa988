package guard

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/dreamguard/dreamguard/embed/hash"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/guard/artifact"
)

// testTable returns a static encoder of d dimensions; another seed gives another.
func testTable(t testing.TB, d int, seed uint32) *static.Encoder {
	t.Helper()
	words := strings.Fields("[UNK] pay the march invoice of landlord read file send money amount important please")
	x := &static.Table{Manifest: static.Manifest{Name: "test", Dims: d, Tokens: len(words)}, Tokens: words}
	for range words {
		for range d {
			seed = seed*1664525 + 1013904223
			x.Rows = append(x.Rows, int8(int(seed>>24)%255-127))
		}
		x.Scale = append(x.Scale, 0.01)
	}
	var file bytes.Buffer
	if err := x.Write(&file); err != nil {
		t.Fatal(err)
	}
	e, err := static.Parse(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// staticFiles returns an artifact of the encoder, with its table or without.
func staticFiles(t testing.TB, e *static.Encoder, carry bool) fstest.MapFS {
	files := testFiles(t, tiny, func(m *artifact.Manifest) {
		m.Encoder = e.ID()
		if carry {
			m.Files[artifact.EncoderFile] = artifact.Sum(e.File())
		}
	}, artifact.Thresholds{Hold: at(0.65625), Block: at(0.609375)})
	if carry {
		files[artifact.EncoderFile] = &fstest.MapFile{Data: e.File()}
	}
	return files
}

// Wherever the table comes from, the verdicts are the same, and they are others
// than those of another table.
func TestStaticEncoder(t *testing.T) {
	e, other := testTable(t, tiny.D, 1), testTable(t, tiny.D, 2)
	tables := fstest.MapFS{static.FileName: {Data: e.File()}}
	logits := func(files fs.FS, opts ...Option) Logits {
		t.Helper()
		m, err := OpenFS(files, opts...)
		if err != nil {
			t.Fatal(err)
		}
		v := m.Start(testTask).Judge(context.Background(), Call{Tool: "read_file", Arguments: `{"path": "invoice"}`})
		if !v.Scored {
			t.Fatalf("not scored: %+v", v)
		}
		return v.Logits
	}
	want := logits(staticFiles(t, e, true))
	for name, got := range map[string]Logits{
		"by reference, from a file system": logits(staticFiles(t, e, false), WithEncoderFS(tables)),
		"by reference, given":              logits(staticFiles(t, e, false), WithEncoder(e)),
		"carried, and given":               logits(staticFiles(t, e, true), WithEncoder(e)),
		"carried, file system of another":  logits(staticFiles(t, e, true), WithEncoderFS(fstest.MapFS{})),
	} {
		if got != want {
			t.Errorf("%s: logits %v, want %v", name, got, want)
		}
	}
	if got := logits(staticFiles(t, other, true)); got == want {
		t.Error("the table has no influence")
	}
	if got, plain := logits(testFiles(t, tiny, nil, artifact.Thresholds{}), WithEncoderFS(tables)), logits(testFiles(t, tiny, nil, artifact.Thresholds{})); got != plain {
		t.Error("WithEncoderFS changes an artifact of another encoder")
	}
}

func TestStaticEncoderRefused(t *testing.T) {
	e, other := testTable(t, tiny.D, 1), testTable(t, tiny.D, 2)
	// The digest of the file is right, the encoder's identity is that of another.
	swapped := testFiles(t, tiny, func(m *artifact.Manifest) {
		m.Encoder = e.ID()
		m.Files[artifact.EncoderFile] = artifact.Sum(other.File())
	}, artifact.Thresholds{Hold: at(0.5)})
	swapped[artifact.EncoderFile] = &fstest.MapFile{Data: other.File()}
	junk := testFiles(t, tiny, func(m *artifact.Manifest) {
		m.Encoder = e.ID()
		m.Files[artifact.EncoderFile] = artifact.Sum([]byte("junk"))
	}, artifact.Thresholds{Hold: at(0.5)})
	junk[artifact.EncoderFile] = &fstest.MapFile{Data: []byte("junk")}
	tests := []struct {
		name  string
		files fs.FS
		opts  []Option
		want  error
		text  string
	}{
		{"no table", staticFiles(t, e, false), nil, ErrEncoderRequired, "WithEncoderFS(shipped.FS)"},
		{"table of another encoder in the artifact", swapped, nil, ErrEncoder, "trained with"},
		{"not a table in the artifact", junk, nil, ErrEncoder, artifact.EncoderFile},
		{"table of another encoder in the file system", staticFiles(t, e, false), []Option{WithEncoderFS(fstest.MapFS{static.FileName: {Data: other.File()}})}, ErrEncoder, "trained with"},
		{"no table in the file system", staticFiles(t, e, false), []Option{WithEncoderFS(fstest.MapFS{})}, fs.ErrNotExist, static.FileName},
		{"another kind given", staticFiles(t, e, true), []Option{WithEncoder(hash.New(tiny.D))}, ErrEncoder, "trained with"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := OpenFS(tt.files, tt.opts...); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v, want %v with %q", err, tt.want, tt.text)
			}
		})
	}
}
