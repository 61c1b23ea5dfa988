package cache

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func TestEncoder(t *testing.T) {
	enc := newFake(3)
	c := open(t, t.TempDir(), enc.ID())
	fill(t, c, enc, numbered(0, 10))
	known := slices.Collect(numbered(0, 10))
	fresh := slices.Collect(numbered(10, 5))
	ce, err := c.Encoder(enc)
	if err != nil || ce.ID() != enc.ID() {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		texts []string
		asked int64
	}{
		{"all known", known, 0},
		{"none known", fresh, 5},
		{"mixed", []string{fresh[0], known[3], known[4], fresh[1], known[5]}, 2},
		{"none", nil, 0},
	} {
		before := enc.texts.Load()
		got := make([]float32, 3*len(tt.texts))
		for i := range got {
			got[i] = -1
		}
		if err := ce.Encode(t.Context(), tt.texts, got); err != nil {
			t.Fatal(err)
		}
		if asked := enc.texts.Load() - before; asked != tt.asked {
			t.Errorf("%s: the encoder was asked for %d texts, want %d", tt.name, asked, tt.asked)
		}
		want := make([]float32, 3*len(tt.texts))
		if err := enc.Encode(t.Context(), tt.texts, want); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", tt.name, got, want)
		}
	}
	if c.Len() != 10 {
		t.Errorf("looking up added to the cache: %d vectors", c.Len())
	}
	if err := ce.Encode(t.Context(), known, make([]float32, 4)); err == nil {
		t.Error("a dst of the wrong length was accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ce.Encode(ctx, known, make([]float32, 30)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := c.Encoder(newFake(4)); !errors.Is(err, ErrEncoder) {
		t.Errorf("another encoder: %v", err)
	}
}
