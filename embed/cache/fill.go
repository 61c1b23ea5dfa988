package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/internal/filelock"
)

// What a Fill holds in memory at once: texts and vectors of one segment.
const (
	chunk        = 64      // texts in one call of the encoder, at most
	windowTexts  = 4096    // texts in one segment, at most
	windowBytes  = 8 << 20 // of their content
	windowFloats = 4 << 20 // of their vectors
)

// flushAfter is how much work of a slow encoder a kill can cost.
const flushAfter = time.Minute

// Options configures a Fill. The zero value embeds all texts on all cores.
type Options struct {
	Shard    Shard           // leave the texts of other shards alone
	Workers  int             // calls of the encoder at a time; 0 = one per core
	Progress func(fresh int) // if not nil, told from time to time how many fresh texts are done, as [Cache.Count] counts them
}

// Seq makes texts that are in memory what [Cache.Fill] reads.
func Seq(texts iter.Seq[string]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for text := range texts {
			if !yield(text, nil) {
				return
			}
		}
	}
}

// Stats says what a Fill did.
type Stats struct {
	Texts    int `json:"texts"`    // read from the sequence, those of other shards left out
	Hits     int `json:"hits"`     // of them, present already or repeated
	Embedded int `json:"embedded"` // vectors computed
	Segments int `json:"segments"` // segments written
}

// Count returns how many of the texts have no vector yet, repetitions included:
// what a Fill with the same texts and shard will have to do, for its progress.
func (c *Cache) Count(ctx context.Context, texts iter.Seq2[string, error], shard Shard) (fresh int, err error) {
	if err := c.refresh(); err != nil {
		return 0, err
	}
	n := 0
	for text, err := range texts {
		if err != nil {
			return fresh, err
		}
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return fresh, ctx.Err()
		}
		k := KeyOf(text)
		if _, ok := c.locate(k); !ok && shard.Has(k) {
			fresh++
		}
	}
	return fresh, ctx.Err()
}

// Fill embeds those of the texts that have no vector yet, each once, and writes
// them in segments of some thousand vectors. It reads texts as it goes and holds
// those of one segment, so the length of the sequence does not matter. When ctx
// ends, or anything fails, it writes what it has computed and returns the error:
// the next Fill goes on from there. An error of the sequence ends it likewise.
// Only an encoder with the cache's own ID is accepted.
//
// Texts go to the encoder sorted by length, so that those of one call need
// little padding. Which ones share a call depends on what is embedded already: the
// vector of a text must not depend on its company by more than rounding.
func (c *Cache) Fill(ctx context.Context, enc embed.Encoder, texts iter.Seq2[string, error], o Options) (Stats, error) {
	c.filling.Lock()
	defer c.filling.Unlock()
	if enc.ID() != c.id {
		return Stats{}, fmt.Errorf("fill cache %s: %w: it was made by %v, not by %v", c.dir, ErrEncoder, c.id, enc.ID())
	}
	if err := c.refresh(); err != nil {
		return Stats{}, err
	}
	if o.Workers < 1 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	f := filler{
		c: c, enc: enc, o: o, before: uint32(c.Segments()), rows: max(chunk, min(windowTexts, windowFloats/c.id.Dims)),
		seen: map[Key]bool{},
	}
	if err := f.run(ctx, texts); err != nil {
		return f.stats, fmt.Errorf("fill cache %s: %w", c.dir, err)
	}
	return f.stats, nil
}

// item is a text that waits for its vector.
type item struct {
	text string
	key  Key
}

// filler is the state of one Fill.
type filler struct {
	c      *Cache
	enc    embed.Encoder
	o      Options
	before uint32 // segments that were there at the start
	rows   int    // texts in a window
	stats  Stats
	fresh  int // texts without a vector at the start whose vector is computed, repetitions included

	window []item
	bytes  int          // of the texts in it
	again  int          // repetitions of texts in it
	seen   map[Key]bool // keys in it
}

func (f *filler) run(ctx context.Context, texts iter.Seq2[string, error]) error {
	for text, err := range texts {
		if err == nil && f.stats.Texts%1024 == 0 {
			err = ctx.Err()
		}
		if err != nil {
			// What was read is kept, unless there is no time left for it.
			return errors.Join(err, f.close(ctx))
		}
		k := KeyOf(text)
		if !f.o.Shard.Has(k) {
			continue
		}
		f.stats.Texts++
		if f.seen[k] {
			f.stats.Hits++
			f.again++
			continue
		}
		if r, ok := f.c.locate(k); ok {
			f.stats.Hits++
			if r.seg >= f.before {
				f.fresh++
			}
			continue
		}
		f.seen[k] = true
		f.window = append(f.window, item{text, k})
		f.bytes += len(text)
		if len(f.window) >= f.rows || f.bytes >= windowBytes {
			if err := f.close(ctx); err != nil {
				return err
			}
		}
	}
	return f.close(ctx)
}

// close computes the vectors of the window and writes them, as one segment
// unless it takes long.
func (f *filler) close(ctx context.Context) error {
	defer func() {
		clear(f.window) // the texts
		f.window, f.bytes, f.again = f.window[:0], 0, 0
		clear(f.seen)
	}()
	// Long ones first, so that what is too much for the encoder fails at once and
	// the time that is left is not promised by the short ones. Ties by key: the order
	// in which texts are read has no influence.
	slices.SortFunc(f.window, func(a, b item) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), slices.Compare(a.key[:], b.key[:]))
	})
	for todo := f.window; len(todo) > 0; {
		n, err := f.compute(ctx, todo)
		if err != nil {
			return err
		}
		todo = todo[n:]
	}
	f.fresh += f.again
	f.report(f.fresh)
	return nil
}

func (f *filler) report(fresh int) {
	if f.o.Progress != nil {
		f.o.Progress(fresh)
	}
}

// compute computes and writes vectors of the first of the items, and returns
// how many: all, unless that takes longer than flushAfter. After an error it
// writes those that are computed.
func (f *filler) compute(ctx context.Context, items []item) (int, error) {
	dims := f.c.id.Dims
	vectors := make([]float32, len(items)*dims)
	bounds := chunks(items)
	done := make([]bool, len(bounds))
	begin := time.Now()

	workCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu       sync.Mutex // guards what follows, done and f.fresh
		next     int
		firstErr error
		wg       sync.WaitGroup
	)
	take := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(bounds) || firstErr != nil || ctx.Err() != nil || time.Since(begin) > flushAfter {
			return 0, false
		}
		next++
		return next - 1, true
	}
	finish := func(i int, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			if firstErr == nil {
				firstErr = err
				cancel() // the others' work is in vain, or fails as well
			}
			return
		}
		done[i] = true
		f.fresh += bounds[i][1] - bounds[i][0]
		f.report(f.fresh)
	}
	for range min(f.o.Workers, len(bounds)) {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				lo, hi := bounds[i][0], bounds[i][1]
				finish(i, f.encode(workCtx, items[lo:hi], vectors[lo*dims:hi*dims]))
			}
		})
	}
	wg.Wait()
	if firstErr == nil {
		firstErr = ctx.Err()
	}

	// After an error there can be holes.
	keys, n := make([]Key, 0, len(items)), 0
	for i, b := range bounds[:next] {
		if !done[i] {
			continue
		}
		for _, it := range items[b[0]:b[1]] {
			keys = append(keys, it.key)
		}
		n += copy(vectors[n:], vectors[b[0]*dims:b[1]*dims])
	}
	f.stats.Embedded += len(keys)
	return len(keys), errors.Join(firstErr, f.flush(keys, vectors[:n]))
}

// chunks divides items that are sorted by length, falling, into calls of the encoder: at
// most chunk texts, none more than twice as long as another, but for short ones.
// Bounds do not depend on the number of cores.
func chunks(items []item) [][2]int {
	const short = 64 // bytes: some ten tokens
	var out [][2]int
	lo := 0
	for i := range items {
		if i-lo == chunk || len(items[lo].text) > 2*max(len(items[i].text), short) {
			out = append(out, [2]int{lo, i})
			lo = i
		}
	}
	return append(out, [2]int{lo, len(items)})
}

// encode computes the vectors of one chunk.
func (f *filler) encode(ctx context.Context, items []item, dst []float32) error {
	texts := make([]string, len(items))
	for i := range items {
		texts[i] = items[i].text
	}
	if err := f.enc.Encode(ctx, texts, dst); err != nil {
		return fmt.Errorf("encoder %v: %w", f.c.id, err)
	}
	dims := f.c.id.Dims
	for i, x := range dst {
		if x-x != 0 { // NaN or infinite
			return fmt.Errorf("encoder %v: value %d of the vector of %.60q is %v", f.c.id, i%dims, texts[i/dims], x)
		}
	}
	return nil
}

// flush writes vectors as one segment and maps it.
func (f *filler) flush(keys []Key, vectors []float32) error {
	if len(keys) == 0 {
		return nil
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
