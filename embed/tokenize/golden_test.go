package tokenize

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// goldenNames are the tokenizers of testdata/golden.py.
var goldenNames = []string{"minilm", "wordpiece", "qwen", "roberta", "llama"}

type golden struct {
	IDs     [][]int32         `json:"ids"`     // of each text, without special tokens
	Around  []int32           `json:"around"`  // of the empty text, with them
	Decoded map[string]string `json:"decoded"` // by index of the text
	Sweep   [][2]any          `json:"sweep"`   // first character of a block and its digest
}

func unzip(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func unzipJSON(t testing.TB, name string, v any) {
	t.Helper()
	if err := json.Unmarshal(unzip(t, name), v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func goldenTexts(t testing.TB) (texts []string) {
	t.Helper()
	unzipJSON(t, "texts.json.gz", &texts)
	return texts
}

func load(t testing.TB, name string) *Tokenizer {
	t.Helper()
	k, err := Parse(unzip(t, name+"-tokenizer.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "..."
	}
	return s
}

// TestGolden holds the ids of every text to those of the reference.
func TestGolden(t *testing.T) {
	texts := goldenTexts(t)
	if len(texts) < 1000 {
		t.Fatalf("%d texts, want 1,000 at least", len(texts))
	}
	for _, name := range goldenNames {
		t.Run(name, func(t *testing.T) {
			k := load(t, name)
			var want golden
			unzipJSON(t, name+"-golden.json.gz", &want)
			if len(want.IDs) != len(texts) {
				t.Fatalf("golden ids of %d texts, there are %d", len(want.IDs), len(texts))
			}
			var got []int32
			wrong := 0
			for i, text := range texts {
				got = k.Append(got[:0], text)
				if !slices.Equal(got, want.IDs[i]) {
					if wrong++; wrong <= 10 {
						at := 0
						for at < min(len(got), len(want.IDs[i])) && got[at] == want.IDs[i][at] {
							at++
						}
						t.Errorf("text %d (%q): differs at token %d: %d, want %d", i, clip(text), at, got[at:min(at+10, len(got))], want.IDs[i][at:min(at+10, len(want.IDs[i]))])
					}
				}
			}
			if wrong > 0 {
				t.Errorf("%d of %d texts differ", wrong, len(texts))
			}
			if got := k.AppendWithSpecial(nil, ""); !slices.Equal(got, want.Around) {
				t.Errorf("special tokens around a text: %d, want %d", got, want.Around)
			}
			for key, text := range want.Decoded {
				i, err := strconv.Atoi(key)
				if err != nil {
					t.Fatal(err)
				}
				if got := k.Decode(want.IDs[i]); got != text {
					t.Errorf("text %d decodes to %q, want %q", i, got, text)
				}
			}
		})
	}
}

// TestSweep compares what the tokenizers know of single characters: all of the
// first two planes, every 61st of the others.
func TestSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("140,000 characters and five tokenizers")
	}
	for _, name := range goldenNames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := load(t, name)
			var want golden
			unzipJSON(t, name+"-golden.json.gz", &want)
			var ids []int32
			var line, text []byte
			h, block, n := sha256.New(), rune(0), 0
			check := func() {
				if n >= len(want.Sweep) {
					t.Fatalf("more than the golden %d blocks", len(want.Sweep))
				}
				first, digest := rune(want.Sweep[n][0].(float64)), want.Sweep[n][1].(string)
				if got := hex.EncodeToString(h.Sum(nil))[:16]; first != block || got != digest {
					t.Errorf("characters from U+%04X on differ", block)
				}
				n++
			}
			sweep := func(r rune) {
				if r&^0x7FF != block {
					check()
					h.Reset()
					block = r &^ 0x7FF
				}
				c := string(r)
				text = append(text[:0], "a"+c+"b "+c+"1 "+c+"\u0301\n"+c+"'s"...)
				ids = k.Append(ids[:0], string(text))
				line = line[:0]
				for i, id := range ids {
					if i > 0 {
						line = append(line, ' ')
					}
					line = strconv.AppendInt(line, int64(id), 10)
				}
				h.Write(append(line, '\n'))
			}
			for r := rune(0); r < 0x20000; r++ {
				if r < 0xD800 || r > 0xDFFF {
					sweep(r)
				}
			}
			for r := rune(0x20000); r < 0x110000; r += 61 {
				sweep(r)
			}
			check()
			if n != len(want.Sweep) {
				t.Errorf("%d blocks, golden %d", n, len(want.Sweep))
			}
		})
	}
}

// TestMergeSpellings reads one file with its merges spelled in both ways.
func TestMergeSpellings(t *testing.T) {
	data := unzip(t, "roberta-tokenizer.json.gz")
	var file map[string]json.RawMessage
	var model map[string]json.RawMessage
	var merges []string
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file["model"], &model); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(model["merges"], &merges); err != nil {
		t.Fatalf("the fixture is to have merges as strings: %v", err)
	}
	pairs := make([][]string, len(merges))
	for i, m := range merges {
		left, right, _ := bytes.Cut([]byte(m), []byte(" "))
		pairs[i] = []string{string(left), string(right)}
	}
	model["merges"], _ = json.Marshal(pairs)
	file["model"], _ = json.Marshal(model)
	data, _ = json.Marshal(file)
	k, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	old := load(t, "roberta")
	for _, text := range goldenTexts(t) {
		if got, want := k.Append(nil, text), old.Append(nil, text); !slices.Equal(got, want) {
			t.Fatalf("%q: %d, with merges as strings %d", clip(text), got, want)
		}
	}
}
