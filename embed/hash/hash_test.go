package hash_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/embed/hash"
	"github.com/dreamguard/dreamguard/internal/race"
)

func encode(t testing.TB, dims int, text string) []float32 {
	t.Helper()
	dst := make([]float32, dims)
	if err := hash.New(dims).Encode(context.Background(), []string{text}, dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

func dot(a, b []float32) float64 {
	var s float64
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

// Computed with a second implementation of the package comment in Python 3
// (dictionary of counts, float64). The vectors are frozen: artifacts name this encoder by version. Should this
// fail, raise Version and take the new values.
func TestGolden(t *testing.T) {
	got := fmt.Sprintf("%+.6f", encode(t, 8, "Send the report to Ann, and the café's zero\u200bwidth. Send the report!"))
	const want = "[+0.486707 +0.587382 -0.480639 +0.369363 -0.026686 -0.215608 +0.051252 +0.028806]"
	if got != want {
		t.Errorf("vector %s, want %s", got, want)
	}
	id := hash.New(256).ID()
	if id.Kind != "hash" || id.Name != "hash-v1-256" || id.Dims != 256 || id.Digest != "9db9e3cffd96ef3439b62ffd77e7704cdb4cffbdf538b2d8757f96ef9442a9fa" {
		t.Errorf("identity %+v", id)
	}
	if id == hash.New(255).ID() {
		t.Error("the identity does not depend on the length")
	}
}

func TestEquivalentTexts(t *testing.T) {
	tests := []struct{ name, a, b string }{
		{"case", "Delete ALL Files", "delete all files"},
		{"punctuation", "delete, all: files!", "delete all files"},
		{"function words", "delete all of the files", "delete all files"},
		{"zero width", "de\u200blete all files", "delete all files"},
		{"invalid UTF-8 separates", "delete\xffall files", "delete all files"},
		{"snake case", "delete_all_files", "delete all files"},
		{"Unicode case", "ÉTÉ ΣΑΣ", "été σασ"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if a, b := encode(t, 64, tt.a), encode(t, 64, tt.b); !slices.Equal(a, b) {
				t.Errorf("%q and %q differ", tt.a, tt.b)
			}
		})
	}
	different := [][2]string{{"pay ann", "ann pay"}, {"delete", "do not delete"}, {"the cat", "the dog"}}
	for _, d := range different {
		if slices.Equal(encode(t, 64, d[0]), encode(t, 64, d[1])) {
			t.Errorf("%q and %q have the same vector", d[0], d[1])
		}
	}
}

func TestNearness(t *testing.T) {
	base := encode(t, 256, "send the quarterly report to the finance team")
	order := []string{
		"please send the quarterly report to the finance team today",
		"sending quarterly reports to finance",
		"the finance team has a meeting",
		"delete every log file on the server",
	}
	last := 1.0
	for _, text := range order {
		sim := dot(base, encode(t, 256, text))
		if sim >= last {
			t.Errorf("%q is at %.3f, want below %.3f", text, sim, last)
		}
		last = sim
	}
	if last > 0.2 {
		t.Errorf("an unrelated text is at %.3f", last)
	}
}

func TestNoContent(t *testing.T) {
	for _, text := range []string{"", " \t\n", "...!?", "the of and", "\xff\xfe", "\u200b"} {
		for i, x := range encode(t, 16, text) {
			if x != 0 {
				t.Fatalf("%q: value %d is %v, want 0", text, i, x)
			}
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	e := hash.New(4)
	if err := e.Encode(context.Background(), []string{"a"}, make([]float32, 5)); !errors.Is(err, hash.ErrLength) {
		t.Errorf("wrong length: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.Encode(ctx, []string{"a"}, make([]float32, 4)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, dims := range []int{0, -1, hash.MaxDims + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("New(%d) did not panic", dims)
				}
			}()
			hash.New(dims)
		}()
	}
}

// Whatever the text, and whatever was encoded before it: unit length or zero,
// and always the same bits.
func TestProperties(t *testing.T) {
	e := hash.New(48)
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.StringMatching(`([a-z]{1,7} ){0,40}`)), 1, 4).Draw(t, "texts")
		batch := make([]float32, 48*len(texts))
		if err := e.Encode(context.Background(), texts, batch); err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			alone := make([]float32, 48)
			if err := hash.New(48).Encode(context.Background(), []string{text}, alone); err != nil {
				t.Fatal(err)
			}
			got := batch[48*i : 48*(i+1)]
			if !slices.Equal(got, alone) {
				t.Fatalf("%q: the vector depends on its company", text)
			}
			if n := dot(got, got); n != 0 && math.Abs(n-1) > 1e-5 {
				t.Fatalf("%q: squared length %v", text, n)
			}
		}
	})
}

func TestLongText(t *testing.T) {
	// Grows the table several times; a repeat of the same words leaves the
	// direction almost where it was, since counts are damped equally.
	var b strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&b, "word%d ", i)
	}
	once := encode(t, 64, b.String())
	twice := encode(t, 64, b.String()+b.String())
	if sim := dot(once, twice); sim < 0.99 {
		t.Errorf("similarity %.4f", sim)
	}
}

func TestConcurrent(t *testing.T) {
	e := hash.New(32)
	want := encode(t, 32, "many readers, one encoder")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			dst := make([]float32, 32)
			for range 100 {
				if err := e.Encode(context.Background(), []string{"many readers, one encoder"}, dst); err != nil {
					t.Error(err)
				}
				if !slices.Equal(dst, want) {
					t.Error("another vector")
				}
			}
		})
	}
	wg.Wait()
}

func TestNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("sync.Pool drops items at random under the race detector")
	}
	e := hash.New(256)
	dst := make([]float32, 256)
	texts := []string{sample(500)}
	if n := testing.AllocsPerRun(100, func() { _ = e.Encode(context.Background(), texts, dst) }); n >= 1 {
		t.Errorf("%v allocations per text", n)
	}
}

// sample returns n bytes of varied words.
func sample(n int) string {
	words := strings.Fields(`transfer invoice reads calendar entry before posting the summary to channel archive folder
		and then updates recipient list with address found in message number account balance report quarterly`)
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%s%d ", words[i*7%len(words)], i%13)
	}
	return b.String()[:n]
}

func BenchmarkEncode500(b *testing.B) {
	e := hash.New(256)
	dst := make([]float32, 256)
	texts := []string{sample(500)}
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Encode(context.Background(), texts, dst); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode6000(b *testing.B) {
	e := hash.New(256)
	dst := make([]float32, 256)
	texts := []string{sample(6000)}
	for b.Loop() {
		if err := e.Encode(context.Background(), texts, dst); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleEncoder() {
	enc := hash.New(256)
	dst := make([]float32, 2*256)
	if err := enc.Encode(context.Background(), []string{"read the invoice", "Reading invoices"}, dst); err != nil {
		fmt.Println(err)
		return
	}
	var similarity float32
	for i := range 256 {
		similarity += dst[i] * dst[256+i]
	}
	fmt.Printf("%s %.1f\n", enc.ID(), similarity)
	// Output: hash/hash-v1-256 (256 dims) 0.3
}
