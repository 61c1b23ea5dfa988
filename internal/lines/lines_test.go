package lines

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNext(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for _, tt := range []struct {
		name, in string
		want     []string
		err      error
		line     int
	}{
		{"empty", "", nil, io.EOF, 1},
		{"blank lines", "\n \r\n\t\n", nil, io.EOF, 4},
		{"no line end", "a\nb", []string{"a", "b"}, io.EOF, 3},
		{"windows", "\uFEFFa\r\nb\r\n", []string{"a", "b"}, io.EOF, 3},
		{"mark on a later line stays", "a\n\uFEFFb", []string{"a", "\uFEFFb"}, io.EOF, 3},
		{"longer than the buffer", "a\n" + long + "\nb\n", []string{"a", long, "b"}, io.EOF, 4},
		{"too long", "a\n" + long + long + "\n", []string{"a"}, ErrTooLong, 2},
		{"too long, no end", long + long, nil, ErrTooLong, 1},
		{"nul", "a\n\x00\x00\n", []string{"a"}, ErrNUL, 2},
		{"utf-16", "\xff\xfea\x00", nil, ErrNUL, 1},
		{"utf-8", "a\nb\xffc\n", []string{"a"}, ErrUTF8, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(tt.in), 300_000)
			var got []string
			var err error
			for err == nil {
				var line []byte
				if line, err = r.Next(); err == nil {
					got = append(got, string(line))
				}
			}
			if !errors.Is(err, tt.err) || r.Line() != tt.line {
				t.Errorf("ended on line %d with %v, want line %d and %v", r.Line(), err, tt.line, tt.err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestExactBound(t *testing.T) {
	for n, want := range map[int]error{99: nil, 100: nil, 101: ErrTooLong} {
		_, err := NewReader(strings.NewReader(strings.Repeat("x", n)+"\n"), 100).Next()
		if !errors.Is(err, want) {
			t.Errorf("%d bytes: got %v, want %v", n, err, want)
		}
	}
}

type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func TestEndlessLineIsNotReadWhole(t *testing.T) {
	e := &endless{}
	if _, err := NewReader(e, 1<<20).Next(); !errors.Is(err, ErrTooLong) {
		t.Fatalf("got %v", err)
	}
	if e.read > 1<<20+1<<17 {
		t.Errorf("read %d bytes of a line bound to %d", e.read, 1<<20)
	}
}
