package static_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/checkpoints/shipped"
	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/internal/race"
)

// small is a table that can be followed by hand.
func small() *static.Table {
	t := &static.Table{
		Tokens: []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "pay", "##ment", "rent", ".", "cafe"},
		Rows: []int8{
			0, 0,
			0, 1,
			0, 0,
			0, 0,
			3, 4,
			1, 0,
			-4, 3,
			0, 0,
			100, -127,
		},
		Scale: []float32{0, 0.5, 0, 0, 2, 1, 0.5, 1, 0.25},
	}
	t.Manifest = static.Manifest{
		Name: "small", Dims: 2, Tokens: len(t.Tokens),
		Source:  static.Source{Name: "by hand", Weights: "-", Tokenizer: "-", Encoder: "-"},
		Licence: static.Licence{SPDX: "Apache-2.0", Notice: "ours"},
	}
	return t
}

func file(t testing.TB, table *static.Table) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(t testing.TB, table *static.Table) *static.Encoder {
	t.Helper()
	e, err := static.Parse(file(t, table))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// fataler is a test, or a property within one.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

func encode(t fataler, e *static.Encoder, text string) []float32 {
	t.Helper()
	dst := make([]float32, e.ID().Dims)
	if err := e.Encode(context.Background(), []string{text}, dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

func dot(a, b []float32) (s float64) {
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

// Worked out by hand from the rows of small.
func TestEncode(t *testing.T) {
	e := open(t, small())
	unit := func(x, y float64) [2]float64 { n := math.Hypot(x, y); return [2]float64{x / n, y / n} }
	tests := []struct {
		name, text string
		want       [2]float64
	}{
		{"one token", "pay", unit(6, 8)},
		{"two tokens", "pay rent", unit(6-2, 8+1.5)},
		{"a continuation", "payment", unit(6+1, 8)},
		{"four at a time, and one more", "pay rent cafe payment .", unit(math.Sqrt2*6-2+25+1, math.Sqrt2*8+1.5-31.75)},
		{"a token that repeats counts by its root", "rent pay rent rent rent", unit(6-2*2, 8+2*1.5)},
		{"letter case", "PaY RENT", unit(6-2, 8+1.5)},
		{"accents", "Café", unit(25, -31.75)},
		{"an unknown word", "xyzzy", unit(0, 0.5)},
		{"a special token in the text is ordinary text", "[SEP]", unit(0, 0.5)},
		{"empty", "", [2]float64{}},
		{"white space", " \t\n", [2]float64{}},
		{"a row of zeros", "...", [2]float64{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := encode(t, e, tt.text)
			for i := range got {
				if math.Abs(float64(got[i])-tt.want[i]) > 1e-6 {
					t.Fatalf("vector %v, want %v", got, tt.want)
				}
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	a := open(t, small()).ID()
	if a.Kind != "static" || a.Name != "small" || a.Dims != 2 || len(a.Digest) != 64 {
		t.Errorf("identity %+v", a)
	}
	for name, edit := range map[string]func(*static.Table){
		"a value":  func(t *static.Table) { t.Rows[8]++ },
		"a scale":  func(t *static.Table) { t.Scale[4] *= 2 },
		"a token":  func(t *static.Table) { t.Tokens[4] = "paid" },
		"a source": func(t *static.Table) { t.Manifest.Source.Weights = "other" },
	} {
		other := small()
		edit(other)
		if open(t, other).ID() == a {
			t.Errorf("%s does not show in the identity", name)
		}
	}
}

func TestLongTextIsClipped(t *testing.T) {
	e := open(t, small())
	long := strings.Repeat("pay ", 1500) + strings.Repeat("cafe ", 3000) + strings.Repeat("rent ", 1000)
	got := encode(t, e, long)
	if want := encode(t, e, embed.Clip(long, static.MaxText)); !slices.Equal(got, want) {
		t.Errorf("%v, clipped first %v", got, want)
	}
	if all := encode(t, e, long[:static.MaxText]); slices.Equal(got, all) {
		t.Error("the end of the text has no influence")
	}
}

// many returns a table of n tokens with pseudo-random rows.
func many(n, dims int) *static.Table {
	t := &static.Table{Tokens: []string{"[UNK]"}}
	for i := 1; i < n; i++ {
		t.Tokens = append(t.Tokens, fmt.Sprintf("w%d", i))
	}
	state := uint32(1)
	for range n {
		for range dims {
			state = state*1664525 + 1013904223
			t.Rows = append(t.Rows, int8(int(state>>24)%255-127))
		}
		t.Scale = append(t.Scale, float32(state>>8)/(1<<24))
	}
	t.Manifest = static.Manifest{Name: "many", Dims: dims, Tokens: n}
	return t
}

// A second implementation, in float64 and without any order of tokens: the sums
// of the encoder stay close to it, have unit length, and do not depend on what
// else was encoded.
func TestProperties(t *testing.T) {
	const dims = 37
	table := many(200, dims)
	e := open(t, table)
	row := make([]float32, dims)
	rapid.Check(t, func(t *rapid.T) {
		var texts []string
		for range rapid.IntRange(1, 4).Draw(t, "texts") {
			words := rapid.SliceOfN(rapid.IntRange(0, 220), 0, 60).Draw(t, "words")
			var b strings.Builder
			for _, w := range words {
				fmt.Fprintf(&b, "w%d ", w)
			}
			texts = append(texts, b.String())
		}
		batch := make([]float32, dims*len(texts))
		if err := e.Encode(context.Background(), texts, batch); err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			got := batch[i*dims : (i+1)*dims]
			count := map[int]float64{}
			for _, word := range strings.Fields(text) {
				count[max(0, slices.Index(table.Tokens, word))]++
			}
			want := make([]float64, dims)
			for id, n := range count {
				table.Vector(row, id)
				for k, x := range row {
					want[k] += math.Sqrt(n) * float64(x)
				}
			}
			var norm float64
			for _, x := range want {
				norm += x * x
			}
			for k := range want {
				if norm > 0 && math.Abs(want[k]/math.Sqrt(norm)-float64(got[k])) > 1e-5 {
					t.Fatalf("%q: value %d is %v, want %v", text, k, got[k], want[k]/math.Sqrt(norm))
				}
			}
			if n := dot(got, got); (norm > 0) != (n > 0) || n > 0 && math.Abs(n-1) > 1e-5 {
				t.Fatalf("%q: squared length %v", text, n)
			}
			if alone := encode(t, e, text); !slices.Equal(got, alone) {
				t.Fatalf("%q: the vector depends on its company", text)
			}
		}
	})
}

func TestConcurrent(t *testing.T) {
	e := open(t, many(500, 16))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			text := fmt.Sprintf("w%d w2 w%d w2", 3+g, 40+g)
			want := encode(t, e, text)
			for range 200 {
				if got := encode(t, e, text); !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestEncodeErrors(t *testing.T) {
	e := open(t, small())
	if err := e.Encode(context.Background(), []string{"a"}, make([]float32, 3)); !errors.Is(err, static.ErrLength) {
		t.Errorf("wrong length: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.Encode(ctx, []string{"a"}, make([]float32, 2)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("sync.Pool drops items at random under the race detector")
	}
	e := open(t, many(500, 64))
	dst := make([]float32, 64)
	texts := []string{strings.Repeat("w1 w22 w333 unknown É", 50)}
	if n := testing.AllocsPerRun(100, func() { _ = e.Encode(context.Background(), texts, dst) }); n >= 1 {
		t.Errorf("%v allocations per text", n)
	}
}

// held is a file system whose file can be used in place.
type held struct {
	fs.FS
	b []byte
}

type heldFile struct {
	fs.File
	b []byte
}

func (h held) Open(name string) (fs.File, error) {
	f, err := h.FS.Open(name)
	return heldFile{f, h.b}, err
}

func (h heldFile) Bytes() []byte { return h.b }

func TestOpen(t *testing.T) {
	b := file(t, small())
	want, err := static.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, static.FileName), b, 0o666); err != nil {
		t.Fatal(err)
	}
	inMemory := fstest.MapFS{static.FileName: {Data: b}}
	for name, fsys := range map[string]fs.FS{"folder": os.DirFS(dir), "memory": inMemory, "in place": held{inMemory, b}} {
		e, err := static.Open(fsys)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e.ID() != want.ID() {
			t.Errorf("%s: identity %+v, want %+v", name, e.ID(), want.ID())
		}
		// Sharing shows: rows of the encoder lie inside of the bytes that were given.
		rows := &e.Table().Rows[0]
		shared := false
		for i := range b {
			old := b[i]
			if int8(old) == *rows {
				b[i] ^= 1
				shared = shared || int8(b[i]) == *rows
				b[i] = old
			}
		}
		if shared != (name == "in place") {
			t.Errorf("%s: shares memory: %v", name, shared)
		}
	}
	if _, err := static.Open(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), static.FileName) {
		t.Errorf("no file: %v", err)
	}
	if _, err := static.Open(fstest.MapFS{static.FileName + "/x": {}}); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Errorf("a folder: %v", err)
	}
}

func TestParseKnown(t *testing.T) {
	b, err := fs.ReadFile(shipped.FS, static.FileName)
	if err != nil {
		t.Fatal(err)
	}
	want, err := static.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	got, err := static.ParseKnown(b, sha256.Sum256(b))
	if err != nil || got.ID() != want.ID() {
		t.Errorf("%v, %v; want %v", got, err, want.ID())
	}
	if other, err := static.ParseKnown(b, [32]byte{}); err != nil || other.ID() == want.ID() {
		t.Errorf("the sum plays no part in the identity: %v, %v", other, err)
	}
}
