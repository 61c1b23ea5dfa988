package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/internal/filelock"
)

const (
	chunk      = 64   // texts in one call of the encoder
	flushEvery = 4096 // vectors in one segment: what a kill can cost
)

// Stats says what a Fill did.
type Stats struct {
	Texts    int `json:"texts"`    // read from the sequence
	Hits     int `json:"hits"`     // of them, present already or repeated
	Embedded int `json:"embedded"` // vectors computed
	Segments int `json:"segments"` // segments written
}

// Fill embeds those of the texts that have no vector yet, each once, and writes
// them in segments of some thousand vectors. When ctx ends, or anything fails,
// it writes what it has computed and returns the error: the next Fill goes on
// from there. progress, if not nil, is told from time to time how many texts
// were read. Only an encoder with the cache's own ID is accepted.
func (c *Cache) Fill(ctx context.Context, enc embed.Encoder, texts iter.Seq[string], progress func(done int)) (Stats, error) {
	c.filling.Lock()
	defer c.filling.Unlock()
	if enc.ID() != c.id {
		return Stats{}, fmt.Errorf("fill cache %s: %w: it was made by %v, not by %v", c.dir, ErrEncoder, c.id, enc.ID())
	}
	if err := c.refresh(); err != nil {
		return Stats{}, err
	}
	f := filler{c: c, enc: enc, seen: map[Key]bool{}, batch: chunk * runtime.GOMAXPROCS(0)}
	err := f.run(ctx, texts, progress)
	// What is computed is kept, even when the context is over.
	err = errors.Join(err, f.flush())
	if progress != nil {
		progress(f.stats.Texts)
	}
	if err != nil {
		return f.stats, fmt.Errorf("fill cache %s: %w", c.dir, err)
	}
	return f.stats, nil
}

// filler is the state of one Fill.
type filler struct {
	c     *Cache
	enc   embed.Encoder
	batch int
	stats Stats

	seen    map[Key]bool // waiting or computed, not yet in a segment
	texts   []string     // waiting, and their keys
	waiting []Key
	keys    []Key // computed, and their vectors
	vectors []float32
}

func (f *filler) run(ctx context.Context, texts iter.Seq[string], progress func(done int)) error {
	for text := range texts {
		f.stats.Texts++
		k := KeyOf(text)
		if f.seen[k] || f.c.has(k) {
			f.stats.Hits++
		} else {
			f.seen[k] = true
			f.texts, f.waiting = append(f.texts, text), append(f.waiting, k)
		}
		if f.stats.Texts%f.batch == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if progress != nil {
				progress(f.stats.Texts)
			}
		}
		if len(f.texts) < f.batch {
			continue
		}
		if err := f.encode(ctx); err != nil {
			return err
		}
		if len(f.keys) >= flushEvery {
			if err := f.flush(); err != nil {
				return err
			}
		}
	}
	return f.encode(ctx)
}

// encode computes the vectors of the waiting texts. Chunks have fixed bounds, so
// that the number of processors has no influence on any vector.
func (f *filler) encode(ctx context.Context) error {
	if len(f.texts) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	dims := f.c.id.Dims
	dst := make([]float32, len(f.texts)*dims)
	errs := make([]error, (len(f.texts)+chunk-1)/chunk)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			lo, hi := i*chunk, min((i+1)*chunk, len(f.texts))
			errs[i] = f.enc.Encode(ctx, f.texts[lo:hi], dst[lo*dims:hi*dims])
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("encoder %v: %w", f.c.id, err)
	}
	for i, x := range dst {
		if x-x != 0 { // NaN or infinite
			return fmt.Errorf("encoder %v: value %d of the vector of %.60q is %v", f.c.id, i%dims, f.texts[i/dims], x)
		}
	}
	f.stats.Embedded += len(f.texts)
	f.keys, f.vectors = append(f.keys, f.waiting...), append(f.vectors, dst...)
	f.texts, f.waiting = f.texts[:0], f.waiting[:0]
	return nil
}

// flush writes what was computed as one segment and maps it.
func (f *filler) flush() error {
	if len(f.keys) == 0 {
		return nil
	}
	keys, vectors := f.keys, f.vectors
	f.keys, f.vectors = nil, nil // a failed write is not tried again
	clear(f.seen)
	for _, k := range f.waiting {
		f.seen[k] = true
	}
	if err := f.c.writeSegment(keys, vectors); err != nil {
		return err
	}
	f.stats.Segments++
	return f.c.refresh()
}

func (c *Cache) writeSegment(keys []Key, vectors []float32) error {
	content, err := encodeSegment(keys, vectors, c.id.Dims)
	if err != nil {
		return err
	}
	unlock, err := filelock.Lock(filepath.Join(c.dir, lockName), filelock.Shared)
	if err != nil {
		return err
	}
	defer unlock()
	return c.write(filepath.Join(c.dir, segmentName(keys, content)), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}
