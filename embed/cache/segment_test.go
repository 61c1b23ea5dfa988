package cache

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/internal/atomicfile"
)

func TestSegmentRoundTrip(t *testing.T) {
	const dims = 5
	for _, n := range []int{1, 2, 1000} {
		keys, vectors := make([]Key, n), make([]float32, n*dims)
		for i := range keys {
			keys[i] = Key{byte(i), byte(i >> 8)}
		}
		for i := range vectors {
			vectors[i] = float32(i) / 7
		}
		b, err := encodeSegment(keys, vectors, dims)
		if err != nil {
			t.Fatal(err)
		}
		s, err := decodeSegment(b, dims)
		if err != nil {
			t.Fatal(err)
		}
		if s.rows() != n {
			t.Fatalf("%d rows, want %d", s.rows(), n)
		}
		for i := range n {
			if s.key(i) != keys[i] || !slices.Equal(s.vector(i), vectors[i*dims:(i+1)*dims]) {
				t.Fatalf("row %d of %d is %x %v", i, n, s.key(i), s.vector(i))
			}
		}
	}
}

// FuzzDecodeSegment gives the reader files whose checksum fits, as a hostile
// writer could: it must refuse or read them, within their bounds.
func FuzzDecodeSegment(f *testing.F) {
	b, err := encodeSegment([]Key{KeyOf("a"), KeyOf("b")}, []float32{1, 2, 3, 4, 5, 6}, 3)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add([]byte("ARROW1\x00\x00\x00\x00\x00\x00ARROW1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeSegment(data, 3)
		if err != nil {
			return
		}
		for i := range s.rows() {
			_ = s.key(i)
			if len(s.vector(i)) != 3 {
				t.Fatalf("row %d has %d values", i, len(s.vector(i)))
			}
		}
	})
}

func FuzzSegmentName(f *testing.F) {
	f.Add("seg-0123456789abcdef-01234567.arrow")
	f.Add("seg--.arrow")
	f.Fuzz(func(t *testing.T, name string) {
		if sum, ok := sumFromName(name); ok && len(sum) != 8 {
			t.Fatalf("sum of %q is %q", name, sum)
		}
	})
}

// Every way to damage a segment is an error with the file's name, and deleting
// the file, as the error says, is all that is needed.
func TestDamagedSegment(t *testing.T) {
	enc := newFake(4)
	damage := map[string]func(b []byte) []byte{
		"empty":     func(b []byte) []byte { return nil },
		"truncated": func(b []byte) []byte { return b[:len(b)/2] },
		"last byte": func(b []byte) []byte { return b[:len(b)-1] },
		"one bit":   func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"appended":  func(b []byte) []byte { return append(b, 0) },
		"foreign":   func(b []byte) []byte { return []byte("PAR1 is not an Arrow file") },
	}
	for name, f := range damage {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, open(t, dir, enc.ID()), enc, numbered(0, 100))
			names, err := segmentNames(dir)
			if err != nil || len(names) != 1 {
				t.Fatalf("segments %v, error %v", names, err)
			}
			path := filepath.Join(dir, names[0])
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// A new file: the first cache still maps the old one.
			if err := atomicfile.WriteFile(path, f(b)); err != nil {
				t.Fatal(err)
			}
			_, err = Open(dir, enc.ID())
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), names[0]) {
				t.Fatalf("error %v, want ErrDamaged with the file's name", err)
			}
			info, err := Inspect(dir)
			if err != nil || len(info.Segments) != 1 || info.Segments[0].Problem == "" {
				t.Errorf("Inspect: %+v, error %v", info, err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			c := open(t, dir, enc.ID())
			if stats := fill(t, c, enc, numbered(0, 100)); stats.Embedded != 100 {
				t.Errorf("after deleting it: %+v", stats)
			}
		})
	}
}

func TestForeignSegmentName(t *testing.T) {
	dir, enc := t.TempDir(), newFake(4)
	if err := os.WriteFile(filepath.Join(dir, "seg-mine.arrow"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, enc.ID()); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "seg-mine.arrow") {
		t.Errorf("error %v, want ErrDamaged with the file's name", err)
	}
}

// A sound segment of other dims under a fitting name must not be misread.
func TestSegmentOfOtherDims(t *testing.T) {
	keys := []Key{KeyOf("a")}
	b, err := encodeSegment(keys, []float32{1, 2, 3, 4}, 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeSegment(b, 2); err == nil {
		t.Error("a segment of 4 dims was read as one of 2")
	}
}
