package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/brotli"
	"github.com/parquet-go/parquet-go/compress/gzip"
	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/parquet-go/parquet-go/compress/uncompressed"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/dreamguard/dreamguard/internal/lines"
)

// A page that unpacks to more than the limit is refused before it is unpacked,
// whatever packs it; and one within the limit is not.
func TestCheckPages(t *testing.T) {
	text := strings.Repeat("x", 1<<20) // packs to a few hundred bytes
	for _, codec := range []compress.Codec{&uncompressed.Codec{}, &snappy.Codec{}, &gzip.Codec{}, &zstd.Codec{}} {
		var buf bytes.Buffer
		w := parquet.NewGenericWriter[row](&buf, parquet.Compression(codec))
		if _, err := w.Write([]row{{ID: "a", Task: text, Steps: []stepRow{{Type: "message"}}}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r := bytes.NewReader(buf.Bytes())
		f, err := parquet.OpenFile(r, r.Size())
		if err != nil {
			t.Fatal(err)
		}
		if err := checkPages(f, r, r.Size(), 1<<20-1); !errors.Is(err, lines.ErrTooLong) || !strings.Contains(err.Error(), "column task") {
			t.Errorf("%s: a page over the limit: %v", codec, err)
		}
		if err := checkPages(f, r, r.Size(), 2<<20); err != nil {
			t.Errorf("%s: a page within the limit: %v", codec, err)
		}
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadAll(path); err != nil || len(got) != 1 || got[0].Task != text {
			t.Errorf("%s: does not read back: %v", codec, err)
		}
	}
}

func TestOtherCompression(t *testing.T) {
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[row](&buf, parquet.Compression(&brotli.Codec{}))
	if _, err := w.Write([]row{{ID: "a"}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadAll(path); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "zstd") {
		t.Errorf("got %v", err)
	}
}

// The bound holds for what the encoder makes, of any content and length, and
// does not exceed it by more than a block for each block.
func TestZstdBound(t *testing.T) {
	codec := &zstd.Codec{}
	noise := make([]byte, 1<<20)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	for _, in := range [][]byte{nil, {1}, noise, make([]byte, 3<<20), bytes.Repeat([]byte("abc "), 100_000), noise[:1<<17], noise[:1<<17+1]} {
		packed, err := codec.Encode(nil, in)
		if err != nil {
			t.Fatal(err)
		}
		twice := append(append([]byte{}, packed...), packed...) // two frames
		twice = append(twice, 0x50, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 9, 9)
		for k, b := range map[int][]byte{1: packed, 2: twice} {
			n, err := zstdBound(b)
			if err != nil || n < uint64(k*len(in)) || n > uint64(k*(2*len(in)+128<<10)) {
				t.Errorf("%d bytes %d times: bound %d, %v", len(in), k, n, err)
			}
		}
		for cut := range min(len(packed), 40) {
			if _, err := zstdBound(packed[:cut]); cut > 0 && err == nil {
				t.Errorf("%d bytes cut at %d: no error", len(in), cut)
			}
		}
	}
}

// A small row can repeat one text of a dictionary beyond all bounds.
func TestRepeatedDictionaryText(t *testing.T) {
	steps := make([]stepRow, 100)
	for i := range steps {
		steps[i] = stepRow{Type: "tool_call", Tool: strings.Repeat("x", 1<<20)}
	}
	path := filepath.Join(t.TempDir(), "x")
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[row](&buf, parquet.Compression(&zstd.Codec{}))
	if _, err := w.Write([]row{{ID: "a", Steps: steps}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ReadAll(path)
	if !errors.Is(err, lines.ErrTooLong) || !strings.Contains(err.Error(), "row 1: ") || buf.Len() > 16<<20 {
		t.Errorf("a file of %d bytes: %v", buf.Len(), err)
	}
}
