package cache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// fake is an encoder whose vectors are digits of the text's key.
type fake struct {
	id    embed.ID
	texts atomic.Int64                                     // encoded so far
	hook  func(texts []string, dst []float32, n int) error // called with each chunk's result
}

func newFake(dims int) *fake {
	return &fake{id: embed.ID{Kind: "hash", Name: fmt.Sprint("fake-", dims), Dims: dims, Digest: "aa11"}}
}

func (f *fake) ID() embed.ID { return f.id }

func (f *fake) Encode(ctx context.Context, texts []string, dst []float32) error {
	if len(dst) != len(texts)*f.id.Dims {
		return errors.New("wrong length")
	}
	for i, text := range texts {
		k := KeyOf(text)
		for j := range f.id.Dims {
			dst[i*f.id.Dims+j] = float32(binary.LittleEndian.Uint16(k[j%8*2:])) / 65536
		}
	}
	n := int(f.texts.Add(int64(len(texts))))
	if f.hook != nil {
		return f.hook(texts, dst, n)
	}
	return nil
}

// numbered yields n different texts.
func numbered(from, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := from; i < from+n; i++ {
			if !yield(fmt.Sprint("text number ", i)) {
				return
			}
		}
	}
}

func open(t testing.TB, dir string, id embed.ID) *Cache {
	t.Helper()
	c, err := Open(dir, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func fill(t testing.TB, c *Cache, enc embed.Encoder, texts iter.Seq[string]) Stats {
	t.Helper()
	stats, err := c.Fill(t.Context(), enc, Seq(texts), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

// check compares every vector with what the encoder gives.
func check(t testing.TB, c *Cache, enc *fake, texts iter.Seq[string]) {
	t.Helper()
	want := make([]float32, enc.id.Dims)
	for text := range texts {
		if err := enc.Encode(t.Context(), []string{text}, want); err != nil {
			t.Fatal(err)
		}
		got, ok := c.Get(text)
		if !ok || !slices.Equal(got, want) {
			t.Fatalf("vector of %q is %v (found: %v), want %v", text, got, ok, want)
		}
		if cap(got) != len(got) {
			t.Fatalf("an append to the vector of %q would write to the next one", text)
		}
	}
}

func TestFillAndReopen(t *testing.T) {
	dir, enc := t.TempDir(), newFake(6)
	c := open(t, dir, enc.ID())
	texts := slices.Concat(slices.Collect(numbered(0, 5000)), []string{"", "text number 3", "text number 4999"})
	stats := fill(t, c, enc, slices.Values(texts))
	if want := (Stats{Texts: 5003, Hits: 2, Embedded: 5001, Segments: 2}); stats != want {
		t.Errorf("first fill: %+v, want %+v", stats, want)
	}
	check(t, c, enc, slices.Values(texts))
	if _, ok := c.Get("never seen"); ok {
		t.Error("found the vector of a text that was never embedded")
	}

	stats = fill(t, c, enc, numbered(4990, 20))
	if want := (Stats{Texts: 20, Hits: 10, Embedded: 10, Segments: 1}); stats != want {
		t.Errorf("second fill: %+v, want %+v", stats, want)
	}
	again := open(t, dir, enc.ID())
	if again.Len() != 5011 || again.Segments() != 3 {
		t.Errorf("reopened with %d vectors in %d segments, want 5011 in 3", again.Len(), again.Segments())
	}
	check(t, again, enc, numbered(0, 5010))

	info, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Encoder != enc.ID() || info.Texts != 5011 || info.Vectors != 5011 || len(info.Segments) != 3 || info.Bytes == 0 {
		t.Errorf("Inspect: %+v", info)
	}
}

func TestSegmentsAreDeterministic(t *testing.T) {
	var names [2][]string
	for i := range names {
		dir, enc := t.TempDir(), newFake(4)
		fill(t, open(t, dir, enc.ID()), enc, numbered(0, 9000))
		var err error
		if names[i], err = segmentNames(dir); err != nil {
			t.Fatal(err)
		}
	}
	// A name carries the checksum of the content.
	if diff := cmp.Diff(names[0], names[1]); diff != "" || len(names[0]) == 0 {
		t.Errorf("the same texts gave other segments: %s", diff)
	}
}

func TestProgressCountsTexts(t *testing.T) {
	enc := newFake(2)
	c := open(t, t.TempDir(), enc.ID())
	last := -1
	progress := func(done int) {
		if done < last {
			t.Errorf("progress went from %d to %d", last, done)
		}
		last = done
	}
	fill(t, c, enc, numbered(0, 1000))
	// 9000 new texts, each twice, far apart and within one window, and 1000 known.
	texts := func(yield func(string) bool) {
		for range 2 {
			for text := range numbered(0, 10_000) {
				if !yield(text) {
					return
				}
			}
		}
	}
	fresh, err := c.Count(t.Context(), Seq(texts), Shard{})
	if err != nil || fresh != 18_000 {
		t.Fatalf("%d fresh texts, error %v, want 18000", fresh, err)
	}
	stats, err := c.Fill(t.Context(), enc, Seq(texts), Options{Progress: progress})
	if err != nil || last != fresh {
		t.Errorf("last progress %d, want %d, error %v", last, fresh, err)
	}
	if want := (Stats{Texts: 20_000, Hits: 11_000, Embedded: 9000, Segments: 3}); stats != want {
		t.Errorf("%+v, want %+v", stats, want)
	}
}

func TestAnotherEncoder(t *testing.T) {
	dir, enc := t.TempDir(), newFake(4)
	c := open(t, dir, enc.ID())
	other := newFake(8)
	for name, id := range map[string]embed.ID{
		"dims":   other.ID(),
		"digest": {Kind: "hash", Name: enc.id.Name, Dims: 4, Digest: "bb22"},
	} {
		_, err := Open(dir, id)
		if !errors.Is(err, ErrEncoder) {
			t.Errorf("%s: error %v, want ErrEncoder", name, err)
			continue
		}
		for _, part := range []string{headerName, enc.id.String(), id.String(), id.Digest} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q does not name %s", name, err, part)
			}
		}
	}
	if _, err := c.Fill(t.Context(), other, Seq(numbered(0, 1)), Options{}); !errors.Is(err, ErrEncoder) {
		t.Errorf("Fill with another encoder: %v", err)
	}
	if _, err := Open(t.TempDir(), embed.ID{}); err == nil {
		t.Error("an encoder without dims was accepted")
	}
}

func TestBadHeader(t *testing.T) {
	for name, content := range map[string]string{
		"empty":   "",
		"no JSON": "{",
		"version": `{"format":"dreamguard.cache/v9","encoder":{"dims":4}}`,
		"dims":    `{"format":"dreamguard.cache/v1","encoder":{"dims":0}}`,
		"large":   strings.Repeat(" ", maxHeader+1),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, headerName), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, newFake(4).ID()); !errors.Is(err, ErrHeader) || !strings.Contains(err.Error(), headerName) {
			t.Errorf("%s: Open: %v, want ErrHeader with the file's name", name, err)
		}
		if _, err := Inspect(dir); !errors.Is(err, ErrHeader) {
			t.Errorf("%s: Inspect: %v, want ErrHeader", name, err)
		}
	}
}

func TestEncoderFailures(t *testing.T) {
	broken := errors.New("broken")
	for name, hook := range map[string]func(texts []string, dst []float32, n int) error{
		"error": func(_ []string, _ []float32, n int) error {
			if n > 4500 {
				return broken
			}
			return nil
		},
		"NaN": func(_ []string, dst []float32, n int) error {
			if n > 4500 {
				dst[1] = float32(math.NaN())
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, enc := t.TempDir(), newFake(2)
			enc.hook = hook
			c := open(t, dir, enc.ID())
			stats, err := c.Fill(t.Context(), enc, Seq(numbered(0, 6000)), Options{})
			if err == nil || !strings.Contains(err.Error(), enc.id.String()) {
				t.Fatalf("error %v, want one that names the encoder", err)
			}
			if name == "error" && !errors.Is(err, broken) {
				t.Errorf("error %v does not wrap the encoder's", err)
			}
			if stats.Embedded == 0 || c.Len() != stats.Embedded {
				t.Errorf("%d vectors kept of %d", c.Len(), stats.Embedded)
			}
			enc.hook = nil
			fill(t, c, enc, numbered(0, 6000))
			check(t, c, enc, numbered(0, 6000))
		})
	}
}

// The sequence's error ends the Fill, which keeps what was read before it.
func TestErrorOfTheSequence(t *testing.T) {
	torn := errors.New("row 100 is torn")
	enc := newFake(2)
	c := open(t, t.TempDir(), enc.ID())
	texts := func(yield func(string, error) bool) {
		for text := range numbered(0, 99) {
			if !yield(text, nil) {
				return
			}
		}
		yield("", torn)
	}
	stats, err := c.Fill(t.Context(), enc, texts, Options{})
	if !errors.Is(err, torn) || stats.Embedded != 99 || c.Len() != 99 {
		t.Errorf("%+v, %d vectors, error %v", stats, c.Len(), err)
	}
	if _, err := c.Count(t.Context(), texts, Shard{}); !errors.Is(err, torn) {
		t.Errorf("Count: %v", err)
	}
}

// The texts of one call have similar lengths, there are never too many of them,
// and no text is asked for twice.
func TestBatches(t *testing.T) {
	enc := newFake(2)
	var mu sync.Mutex
	seen := map[string]int{}
	calls := 0
	enc.hook = func(texts []string, _ []float32, _ int) error {
		mu.Lock()
		defer mu.Unlock()
		calls++
		short, long := len(texts[0]), 0
		for _, text := range texts {
			seen[text]++
			short, long = min(short, len(text)), max(long, len(text))
		}
		if len(texts) > chunk || long > 2*max(short, 64) {
			t.Errorf("%d texts of %d to %d bytes in one call", len(texts), short, long)
		}
		return nil
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var texts []string
	for i := range 6000 {
		texts = append(texts, fmt.Sprint(i%5000, strings.Repeat(" x", rng.IntN(1<<rng.IntN(11)))))
	}
	unique := map[string]bool{}
	for _, text := range texts {
		unique[text] = true
	}
	c := open(t, t.TempDir(), enc.ID())
	stats := fill(t, c, enc, slices.Values(texts))
	if stats.Embedded != len(unique) || len(seen) != len(unique) {
		t.Errorf("%+v, %d texts encoded, want %d", stats, len(seen), len(unique))
	}
	for text, n := range seen {
		if n != 1 {
			t.Errorf("%.40q was encoded %d times", text, n)
		}
	}
	if least := len(unique) / chunk; calls > 2*least {
		t.Errorf("%d calls, %d would do if length did not matter", calls, least)
	}
	enc.hook = nil
	check(t, c, enc, slices.Values(texts))
}

// Whatever the dims, the vectors of a window stay within its bound.
func TestWideVectors(t *testing.T) {
	enc := newFake(maxDims)
	c := open(t, t.TempDir(), enc.ID())
	if stats := fill(t, c, enc, numbered(0, 130)); stats.Segments != 3 {
		t.Errorf("%+v, want segments of %d vectors", stats, chunk)
	}
	check(t, c, enc, numbered(0, 3))
}

func TestCancelKeepsWhatIsDone(t *testing.T) {
	dir, enc := t.TempDir(), newFake(2)
	c := open(t, dir, enc.ID())
	ctx, cancel := context.WithCancel(t.Context())
	enc.hook = func(_ []string, _ []float32, n int) error {
		if n >= 1000 {
			cancel()
		}
		return nil
	}
	stats, err := c.Fill(ctx, enc, Seq(numbered(0, 100_000)), Options{})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want context.Canceled", err)
	}
	if stats.Embedded < 1000 || stats.Embedded > 10_000 || c.Len() != stats.Embedded {
		t.Errorf("%d embedded, %d kept", stats.Embedded, c.Len())
	}
}

// A full disk costs the segment that does not fit, and no earlier one.
func TestDiskFull(t *testing.T) {
	full := errors.New("no space left on device")
	dir, enc := t.TempDir(), newFake(2)
	c := open(t, dir, enc.ID())
	writes := 0
	c.write = func(path string, fill func(io.Writer) error) error {
		if writes++; writes < 3 {
			return atomicfile.Write(path, fill)
		}
		return atomicfile.Write(path, func(w io.Writer) error {
			return fill(&limited{w, 1000, full})
		})
	}
	_, err := c.Fill(t.Context(), enc, Seq(numbered(0, 5*windowTexts)), Options{})
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "seg-") {
		t.Fatalf("error %v, want the disk's, with the file's name", err)
	}
	again := open(t, dir, enc.ID())
	if again.Segments() != 2 || again.Len() != c.Len() {
		t.Errorf("%d segments with %d vectors on disk, %d in memory", again.Segments(), again.Len(), c.Len())
	}
	if left, _ := filepath.Glob(filepath.Join(dir, atomicfile.TempPrefix+"*")); len(left) > 0 {
		t.Errorf("left behind %v", left)
	}
	fill(t, again, enc, numbered(0, 5*windowTexts))
	check(t, again, enc, numbered(0, 5*windowTexts))
}

// limited fails after n bytes.
type limited struct {
	w   io.Writer
	n   int
	err error
}

func (l *limited) Write(p []byte) (int, error) {
	if len(p) > l.n {
		n, err := l.w.Write(p[:l.n])
		return n, errors.Join(err, l.err)
	}
	l.n -= len(p)
	return l.w.Write(p)
}

func TestFolderNameWithGlobCharacters(t *testing.T) {
	dir, enc := filepath.Join(t.TempDir(), "runs [1]*?"), newFake(2)
	fill(t, open(t, dir, enc.ID()), enc, numbered(0, 3))
	if c := open(t, dir, enc.ID()); c.Len() != 3 {
		t.Errorf("found %d of 3 vectors", c.Len())
	}
}

func TestClose(t *testing.T) {
	dir, enc := t.TempDir(), newFake(2)
	c := open(t, dir, enc.ID())
	fill(t, c, enc, numbered(0, 3))
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, ok := c.Get("text number 1"); ok {
		t.Error("a closed cache still gives vectors")
	}
	if _, err := c.Fill(t.Context(), enc, Seq(numbered(0, 3)), Options{}); err == nil {
		t.Error("a closed cache can be filled")
	}
}

// Whatever is filled in whatever order, every text has its vector, once.
func TestAnyFills(t *testing.T) {
	enc := newFake(3)
	rapid.Check(t, func(rt *rapid.T) {
		c := open(t, t.TempDir(), enc.ID())
		all := map[string]bool{}
		for _, texts := range rapid.SliceOfN(rapid.SliceOfN(rapid.StringN(0, 4, 16), 0, 20), 1, 4).Draw(rt, "fills") {
			stats := fill(t, c, enc, slices.Values(texts))
			fresh := 0
			for _, x := range texts {
				if !all[x] {
					all[x] = true
					fresh++
				}
			}
			if stats.Embedded != fresh || stats.Hits != len(texts)-fresh {
				rt.Fatalf("%+v for %d new texts of %d", stats, fresh, len(texts))
			}
			check(t, c, enc, slices.Values(texts))
		}
		if c.Len() != len(all) {
			rt.Fatalf("%d vectors for %d texts", c.Len(), len(all))
		}
	})
}
