package cache

import "testing"

// BenchmarkOpen opens and checks a cache of 100,000 vectors of 384 dims.
func BenchmarkOpen(b *testing.B) {
	dir, enc := b.TempDir(), newFake(384)
	fill(b, open(b, dir, enc.ID()), enc, numbered(0, 100_000))
	for b.Loop() {
		c, err := Open(dir, enc.ID())
		if err != nil {
			b.Fatal(err)
		}
		if c.Len() != 100_000 {
			b.Fatalf("%d vectors", c.Len())
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	enc := newFake(384)
	c := open(b, b.TempDir(), enc.ID())
	fill(b, c, enc, numbered(0, 10_000))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := c.Get("text number 77"); !ok {
			b.Fatal("not found")
		}
	}
}
