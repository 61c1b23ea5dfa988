package tokenize

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzAppend: no text crashes a tokenizer or gets an id that is none, and
// byte-level BPE keeps what it is given.
func FuzzAppend(f *testing.F) {
	for i, text := range goldenTexts(f) {
		if i%16 == 0 && len(text) < 1000 {
			f.Add(text)
		}
	}
	f.Add("a\xff\xc3b")
	all := make(map[string]*Tokenizer)
	for _, name := range goldenNames {
		all[name] = load(f, name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, k := range all {
			ids := k.Append(nil, text)
			for _, id := range ids {
				if id < 0 || int(id) >= k.Size() || k.Token(id) == "" {
					t.Fatalf("%s: id %d of %d", name, id, k.Size())
				}
			}
			decoded := k.Decode(ids)
			switch want := validUTF8(text); name {
			case "llama":
				if decoded != want {
					t.Errorf("%s: %q, want %q", name, decoded, want)
				}
			case "qwen":
				if normal := k.normalized(want); decoded != normal {
					t.Errorf("%s: %q, want %q", name, decoded, normal)
				}
			}
		}
	})
}

// FuzzParse: no file crashes the reader, and what it reads can be used.
func FuzzParse(f *testing.F) {
	f.Add(marshal(f, wordPieceFile()))
	f.Add(marshal(f, bpeFile()))
	f.Add([]byte(`{"version":"1.0","model":{"type":"WordPiece","unk_token":"u","continuing_subword_prefix":"","max_input_chars_per_word":1,"vocab":{"u":0,"":1,"##":9}},"pre_tokenizer":{"type":"BertPreTokenizer"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := Parse(data)
		if err != nil {
			return
		}
		text := "Héllo wörld's  12\x00 中\n[SEP]<x>ab" + strings.ToValidUTF8(string(data[:min(len(data), 200)]), "")
		ids := k.AppendWithSpecial(nil, text)
		for _, id := range ids {
			if id < 0 || int(id) >= k.Size() {
				t.Fatalf("id %d of %d", id, k.Size())
			}
		}
		if k.bpe == nil && !utf8.ValidString(k.Decode(ids)) {
			t.Error("decoded text is not UTF-8")
		}
	})
}
