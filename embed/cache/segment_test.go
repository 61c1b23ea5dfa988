package cache

import (
	"slices"
	"testing"
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
