//go:build hftokenizers && cgo

package native

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/dreamguard/dreamguard/embed/tokenize"
)

// both is what the two implementations have in common.
type both interface {
	Append(dst []int32, text string) []int32
	AppendWithSpecial(dst []int32, text string) []int32
	Decode(ids []int32) string
	ID(token string) (int32, bool)
	Token(id int32) string
	Size() int
}

var (
	_ both = (*tokenize.Tokenizer)(nil)
	_ both = (*Tokenizer)(nil)
)

func unzip(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	return data
}

func load(t testing.TB, name string) (*Tokenizer, *tokenize.Tokenizer) {
	t.Helper()
	data := unzip(t, name+"-tokenizer.json.gz")
	n, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	p, err := tokenize.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return n, p
}

// randomTexts returns n texts of any characters but NUL, most of them from few
// blocks, since neighbours of one script act on each other.
func randomTexts(n int) []string {
	rng := rand.New(rand.NewPCG(1, 2))
	texts := make([]string, n)
	for i := range texts {
		var b strings.Builder
		block := rng.Int32N(0x20000 >> 7)
		for range 1 + rng.IntN(60) {
			r := rng.Int32N(0x110000)
			switch rng.IntN(8) {
			case 0:
				r = rng.Int32N(0x3400)
			case 1:
				r = 0x300 + rng.Int32N(0x70)
			case 2, 3, 4:
				r = block<<7 + rng.Int32N(128)
			case 5:
				r = rng.Int32N(128)
			case 6:
				block = rng.Int32N(0x20000 >> 7)
			}
			if r != 0 && utf8.ValidRune(r) {
				b.WriteRune(r)
			}
		}
		texts[i] = b.String()
	}
	return texts
}

// TestAgreement compares package tokenize with the library on the golden texts
// and on random Unicode.
func TestAgreement(t *testing.T) {
	var texts []string
	if err := json.Unmarshal(unzip(t, "texts.json.gz"), &texts); err != nil {
		t.Fatal(err)
	}
	texts = append(texts, randomTexts(6000)...)
	texts = append(texts, "not \xff UTF-8 \xe4\xbd", "\x80\x80a")
	for _, name := range []string{"minilm", "wordpiece", "qwen", "roberta", "llama"} {
		t.Run(name, func(t *testing.T) {
			n, p := load(t, name)
			if n.Size() != p.Size() {
				t.Errorf("size %d, pure %d", n.Size(), p.Size())
			}
			for id := range int32(p.Size()) {
				token := p.Token(id)
				back, ok := n.ID(token)
				if n.Token(id) != token || !ok || back != id {
					t.Fatalf("token %d is %q (%d), pure %q", id, n.Token(id), back, token)
				}
			}
			compared := 0
			for i, text := range texts {
				if strings.Contains(text, "\x00") {
					continue // no answer of the library's own, see TestNUL
				}
				compared++
				got, want := p.Append(nil, text), n.Append(nil, text)
				if !slices.Equal(got, want) {
					t.Fatalf("text %d (%.200q): pure %d, native %d", i, text, got, want)
				}
				if got, want := p.AppendWithSpecial(nil, text), n.AppendWithSpecial(nil, text); !slices.Equal(got, want) {
					t.Fatalf("text %d (%.200q) with special tokens: pure %d, native %d", i, text, got, want)
				}
				if got, want := strings.ToValidUTF8(p.Decode(got), "\uFFFD"), n.Decode(want); got != want {
					t.Fatalf("text %d (%.200q) decodes to %q, native %q", i, text, got, want)
				}
			}
			if compared < 7000 {
				t.Errorf("%d texts compared", compared)
			}
		})
	}
}

// TestNUL: nothing is cut.
func TestNUL(t *testing.T) {
	for _, name := range []string{"minilm", "qwen"} {
		n, p := load(t, name)
		for _, text := range []string{"\x00", "a\x00b", "one\x00 two \x00\x00 three"} {
			if got, want := n.Append(nil, text), p.Append(nil, text); !slices.Equal(got, want) {
				t.Errorf("%s: %q: %d, want %d", name, text, got, want)
			}
			if got, want := n.AppendWithSpecial(nil, text), p.AppendWithSpecial(nil, text); !slices.Equal(got, want) {
				t.Errorf("%s: %q: %d, want %d", name, text, got, want)
			}
		}
		n.pure = nil // as for a file that only the library reads
		if got, want := n.Append(nil, "a\x00b"), n.Append(nil, "a\uFFFDb"); !slices.Equal(got, want) {
			t.Errorf("%s without pure Go: %d, want %d", name, got, want)
		}
	}
}

// TestUnigram reads what package tokenize does not.
func TestUnigram(t *testing.T) {
	data := []byte(`{"version":"1.0","truncation":{"max_length":2,"strategy":"LongestFirst","stride":0,"direction":"Right"},
		"padding":null,"added_tokens":[],"normalizer":null,"pre_tokenizer":null,"post_processor":null,"decoder":null,
		"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1],["b",-1],["ab",-1.5]],"byte_fallback":false}}`)
	if _, err := tokenize.Parse(data); err == nil {
		t.Error("package tokenize reads Unigram: then this test is to use something else")
	}
	n, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if got, want := n.Append(nil, "abbab"), []int32{3, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
	if n.Size() != 4 || n.Token(3) != "ab" || n.Token(4) != "" || n.Token(-1) != "" {
		t.Errorf("size %d, token 3 is %q", n.Size(), n.Token(3))
	}
}

func TestParseErrors(t *testing.T) {
	for name, data := range map[string]string{
		"not JSON":     `{`,
		"no model":     `{"version":"1.0"}`,
		"wild id":      `{"version":"1.0","model":{"type":"WordLevel","vocab":{"a":2000000000},"unk_token":"a"}}`,
		"unknown type": `{"version":"1.0","model":{"type":"Nothing","vocab":{"a":0}}}`,
	} {
		if _, err := Parse([]byte(data)); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

func TestConcurrent(t *testing.T) {
	n, _ := load(t, "qwen")
	want := n.Append(nil, "Send the report.")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if got := n.Append(nil, "Send the report."); !slices.Equal(got, want) {
					t.Errorf("%d, want %d", got, want)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkAppend(b *testing.B) {
	text := strings.Repeat(`{"from": "Ann Lee <ann@example.com>", "subject": "Quarterly report", "body": "Please review the attached figures before Friday's meeting."} `, 4)[:500]
	for _, name := range []string{"minilm", "qwen"} {
		n, p := load(b, name)
		for _, k := range []struct {
			name string
			both
		}{{"native", n}, {"pure", p}} {
			b.Run(name+"/"+k.name, func(b *testing.B) {
				var ids []int32
				for b.Loop() {
					ids = k.Append(ids[:0], text)
				}
			})
		}
	}
}
