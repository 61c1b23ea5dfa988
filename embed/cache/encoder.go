package cache

import (
	"context"
	"fmt"

	"github.com/dreamguard/dreamguard/embed"
)

// cached is an encoder that looks in the cache first.
type cached struct {
	c   *Cache
	enc embed.Encoder
}

// Encoder returns an encoder that takes vectors from the cache where it has them
// and asks enc for the others, which it does not keep. It must not be used after
// Close.
func (c *Cache) Encoder(enc embed.Encoder) (embed.Encoder, error) {
	if enc.ID() != c.id {
		return nil, fmt.Errorf("cache %s: %w: it was made by %v, not by %v", c.dir, ErrEncoder, c.id, enc.ID())
	}
	return cached{c, enc}, nil
}

func (e cached) ID() embed.ID { return e.c.id }

func (e cached) Encode(ctx context.Context, texts []string, dst []float32) error {
	dims := e.c.id.Dims
	if len(dst) != len(texts)*dims {
		return fmt.Errorf("cache %s: dst holds %d values, want %d for %d texts of %d dims", e.c.dir, len(dst), len(texts)*dims, len(texts), dims)
	}
	var missing []int
	for i, text := range texts {
		if v, ok := e.c.Get(text); ok {
			copy(dst[i*dims:], v)
		} else {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return ctx.Err()
	}
	if len(missing) == len(texts) {
		return e.enc.Encode(ctx, texts, dst)
	}
	rest := make([]string, len(missing))
	for k, i := range missing {
		rest[k] = texts[i]
	}
	vectors := make([]float32, len(rest)*dims)
	if err := e.enc.Encode(ctx, rest, vectors); err != nil {
		return err
	}
	for k, i := range missing {
		copy(dst[i*dims:(i+1)*dims], vectors[k*dims:])
	}
	return nil
}
