package tokenize

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// wordPieceFile and bpeFile are small valid files.
func wordPieceFile() map[string]any {
	return object(`{
		"version": "1.0", "truncation": {"max_length": 4}, "padding": {"strategy": {"Fixed": 4}},
		"added_tokens": [
			{"id": 1, "content": "[UNK]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
			{"id": 5, "content": "<x>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false}],
		"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
		"pre_tokenizer": {"type": "BertPreTokenizer"},
		"post_processor": {"type": "TemplateProcessing",
			"single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
			"pair": [], "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}}},
		"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
		"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
			"vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "a": 3, "##b": 4}}}`)
}

func bpeFile() map[string]any {
	f := object(`{
		"version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
		"normalizer": {"type": "NFC"},
		"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
			{"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": false},
			{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}]},
		"post_processor": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
		"decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
		"model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "", "end_of_word_suffix": "",
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": {}, "merges": ["a b", ["ab", "c"]]}}`)
	for pattern, sp := range patterns {
		if sp == splitQwen2 {
			set(f, "pre_tokenizer.pretokenizers.0.pattern.Regex", pattern)
		}
	}
	vocab := make(map[string]any)
	for b, r := range byteRunes {
		vocab[string(r)] = b
	}
	vocab["ab"], vocab["abc"] = 256, 257
	set(f, "model.vocab", vocab)
	return f
}

func object(text string) map[string]any {
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		panic(err)
	}
	return m
}

// remove is a value for set that takes a key away.
type remove struct{}

// set sets the value at a path of keys and indices with points between.
func set(v any, path string, to any) {
	key, rest, more := strings.Cut(path, ".")
	switch v := v.(type) {
	case map[string]any:
		if more {
			set(v[key], rest, to)
		} else if to == (remove{}) {
			delete(v, key)
		} else {
			v[key] = to
		}
	case []any:
		var i int
		fmt.Sscan(key, &i)
		if more {
			set(v[i], rest, to)
		} else {
			v[i] = to
		}
	default:
		panic("no such path: " + path)
	}
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParse(t *testing.T) {
	k, err := Parse(marshal(t, wordPieceFile()))
	if err != nil {
		t.Fatal(err)
	}
	// Truncation and padding are the caller's.
	if got, want := k.AppendWithSpecial(nil, "Ab a<x>áb z ab ab"), []int32{2, 3, 4, 3, 5, 3, 4, 1, 3, 4, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("WordPiece: %d, want %d", got, want)
	}
	if k, err = Parse(marshal(t, bpeFile())); err != nil {
		t.Fatal(err)
	}
	if got, want := k.AppendWithSpecial(nil, "abcab ba"), []int32{257, 256, ' ', 'b', 'a'}; !slices.Equal(got, want) {
		t.Errorf("BPE: %d, want %d", got, want)
	}
}

// TestParseVariants: other spellings of the same files.
func TestParseVariants(t *testing.T) {
	text, at := "Ab áb 12 it's  x", func(f map[string]any) []int32 {
		k, err := Parse(marshal(t, f))
		if err != nil {
			t.Fatal(err)
		}
		return k.AppendWithSpecial(nil, "Ab áb 12 it's  x")
	}
	for name, c := range map[string]struct {
		file func() map[string]any
		path string
		to   any
	}{
		"strip_accents as lowercase": {wordPieceFile, "normalizer.strip_accents", true},
		"normalizer in a sequence":   {wordPieceFile, "normalizer", object(`{"type":"Sequence","normalizers":[{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"lowercase":true}]}`)},
		"BertProcessing":             {wordPieceFile, "decoder", nil},
		"no byte_fallback":           {bpeFile, "model.byte_fallback", remove{}},
		"removed, inverted":          {bpeFile, "pre_tokenizer.pretokenizers.0", nil},
		"prefix null":                {bpeFile, "model.continuing_subword_prefix", nil},
		"unknown token":              {bpeFile, "model.unk_token", "a"},
		"NFC in a sequence":          {bpeFile, "normalizer", object(`{"type":"Sequence","normalizers":[{"type":"NFC"}]}`)},
		"post-processors":            {bpeFile, "post_processor", object(`{"type":"Sequence","processors":[{"type":"ByteLevel"}]}`)},
		"no post-processor":          {bpeFile, "post_processor", nil},
		"comment among merges":       {bpeFile, "model.merges", []any{"#version: 0.2", "a b", "ab c"}},
	} {
		f := c.file()
		if name == "removed, inverted" {
			set(f, c.path+".behavior", "Removed")
			set(f, c.path+".invert", true)
		} else {
			set(f, c.path, c.to)
		}
		if got, want := at(f), at(c.file()); !slices.Equal(got, want) {
			t.Errorf("%s: %q becomes %d, want %d", name, text, got, want)
		}
	}
	f := wordPieceFile()
	set(f, "post_processor", object(`{"type":"BertProcessing","cls":["[CLS]",2],"sep":["[PAD]",0]}`))
	k, err := Parse(marshal(t, f))
	if err != nil {
		t.Fatal(err)
	}
	if got := k.AppendWithSpecial(nil, "a"); !slices.Equal(got, []int32{2, 3, 0}) {
		t.Errorf("BertProcessing: %d", got)
	}
}

// TestParseErrors: whatever is not read as the reference reads it is an error
// that names the field.
func TestParseErrors(t *testing.T) {
	added := func(content string, id int, with string) any {
		a := object(`{"single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false}`)
		a["content"], a["id"] = content, id
		if with != "" {
			a[with] = true
		}
		return []any{a}
	}
	wp, bp := wordPieceFile, bpeFile
	for _, c := range []struct {
		file  func() map[string]any
		path  string
		to    any
		kind  error
		field string // in the message; path if empty
	}{
		{wp, "version", "2.0", ErrUnsupported, ""},
		{wp, "surprise", 1, ErrUnsupported, ""},
		{wp, "added_tokens", "none", ErrFormat, ""},
		{wp, "model", remove{}, ErrFormat, "model.type"},
		{wp, "model", 7, ErrFormat, ""},
		{wp, "model.type", remove{}, ErrFormat, ""},
		{wp, "model.type", "Unigram", ErrUnsupported, ""},
		{wp, "model.type", "WordLevel", ErrUnsupported, ""},
		{wp, "model.surprise", 1, ErrUnsupported, ""},
		{wp, "model.vocab", remove{}, ErrFormat, "model.unk_token"},
		{wp, "model.vocab", object(`{"[UNK]": -1}`), ErrFormat, ""},
		{wp, "model.vocab", object(`{"[UNK]": 0.5}`), ErrFormat, ""},
		{wp, "model.vocab", object(`{"[UNK]": 2147483647}`), ErrFormat, ""},
		{wp, "model.vocab", object(`{"[UNK]": 0, "a": 3000000000}`), ErrFormat, ""},
		{wp, "model.vocab", object(`{"[UNK]": 0, "a": 0}`), ErrFormat, ""},
		{wp, "model.unk_token", "nothing", ErrFormat, ""},
		{wp, "model.unk_token", remove{}, ErrFormat, ""},
		{wp, "model.continuing_subword_prefix", remove{}, ErrFormat, ""},
		{wp, "model.max_input_chars_per_word", remove{}, ErrFormat, ""},
		{wp, "model.max_input_chars_per_word", 0, ErrUnsupported, ""},
		{wp, "model.max_input_chars_per_word", 1 << 40, ErrUnsupported, ""},
		{wp, "pre_tokenizer", nil, ErrUnsupported, "pre_tokenizer.type"},
		{wp, "pre_tokenizer.type", "Whitespace", ErrUnsupported, ""},
		{wp, "pre_tokenizer", []any{}, ErrFormat, ""},
		{wp, "normalizer.type", "Lowercase", ErrUnsupported, ""},
		{wp, "normalizer.surprise", 1, ErrUnsupported, ""},
		{wp, "normalizer.clean_text", remove{}, ErrFormat, ""},
		{wp, "normalizer.handle_chinese_chars", remove{}, ErrFormat, ""},
		{wp, "normalizer.lowercase", remove{}, ErrFormat, ""},
		{wp, "normalizer.lowercase", "yes", ErrFormat, ""},
		{wp, "normalizer", object(`{"type":"Sequence","normalizers":[{"type":"NFD"},{"type":"Lowercase"}]}`), ErrUnsupported, ""},
		{wp, "normalizer", object(`{"type":"Sequence","normalizers":[{"type":"NFD"}]}`), ErrUnsupported, "normalizer.normalizers[0].type"},
		{wp, "normalizer", object(`{"type":"Sequence","normalizers":[],"x":1}`), ErrUnsupported, "normalizer.x"},
		{wp, "normalizer", object(`{"type":"Sequence"}`), ErrFormat, "normalizer.normalizers"},
		{wp, "post_processor", object(`{"x":1}`), ErrFormat, "post_processor.type"},
		{wp, "post_processor.type", "Surprise", ErrUnsupported, ""},
		{wp, "post_processor.single", []any{}, ErrFormat, ""},
		{wp, "post_processor.single.0", object(`{}`), ErrFormat, "post_processor.single[0]"},
		{wp, "post_processor.single.0.SpecialToken.id", "[SEP]", ErrFormat, "post_processor.single[0].SpecialToken.id"},
		{wp, "post_processor.single.0.SpecialToken.type_id", 1, ErrUnsupported, "post_processor.single[0].SpecialToken.type_id"},
		{wp, "post_processor.single.1.Sequence.type_id", 1, ErrUnsupported, "post_processor.single[1].Sequence.type_id"},
		{wp, "post_processor.single.1.Sequence.id", "B", ErrUnsupported, "post_processor.single[1].Sequence"},
		{wp, "post_processor.special_tokens.[CLS].ids", []any{99}, ErrFormat, `post_processor.special_tokens["[CLS]"].ids`},
		{wp, "post_processor.special_tokens.[CLS].ids", make([]int, 100), ErrUnsupported, "post_processor.single[0]"},
		{wp, "post_processor", object(`{"type":"BertProcessing","cls":["a",-3],"sep":["a",3]}`), ErrFormat, "post_processor.cls[1]"},
		{wp, "post_processor", object(`{"type":"BertProcessing","cls":["a",3],"sep":["a"]}`), ErrFormat, "post_processor.sep"},
		{wp, "post_processor", object(`{"type":"RobertaProcessing","cls":["a",3]}`), ErrFormat, "post_processor.sep"},
		{wp, "post_processor", object(`{"type":"Sequence","processors":[{"type":"Sequence","processors":[]}]}`), ErrUnsupported, "post_processor.processors[0].type"},
		{wp, "post_processor", object(`{"type":"Sequence","processors":[{"type":"BertProcessing","cls":["a",3],"sep":["a",3]},{"type":"ByteLevel"}]}`), ErrUnsupported, "post_processor.processors[1]"},
		{wp, "decoder.type", "ByteLevel", ErrUnsupported, ""},
		{wp, "decoder.type", "Metaspace", ErrUnsupported, ""},
		{wp, "decoder.prefix", 1, ErrFormat, ""},
		{wp, "added_tokens", added("", 5, ""), ErrFormat, "added_tokens[0].content"},
		{wp, "added_tokens", added("new", 6, ""), ErrFormat, "added_tokens[0].id"},
		{wp, "added_tokens", added("a", 0, ""), ErrFormat, "added_tokens[0].id"},
		{wp, "added_tokens", added("new", 5, "single_word"), ErrUnsupported, "added_tokens[0].single_word"},
		{wp, "added_tokens", added("new", 5, "lstrip"), ErrUnsupported, "added_tokens[0].lstrip"},
		{wp, "added_tokens", added("new", 5, "rstrip"), ErrUnsupported, "added_tokens[0].rstrip"},
		{wp, "added_tokens", added("\u0301", 5, "normalized"), ErrUnsupported, "added_tokens[0].content"},
		{wp, "added_tokens", added(strings.Repeat("x", maxAdded+1), 5, ""), ErrUnsupported, "added_tokens[0].content"},
		{wp, "added_tokens", append(added("x", 5, "").([]any), added("x", 5, "").([]any)...), ErrFormat, "added_tokens[1].content"},
		{wp, "added_tokens", append(added("x", 5, "normalized").([]any), added("X", 6, "normalized").([]any)...), ErrUnsupported, "added_tokens[1].content"},
		{bp, "model.dropout", 0.1, ErrUnsupported, ""},
		{bp, "model.continuing_subword_prefix", "##", ErrUnsupported, ""},
		{bp, "model.end_of_word_suffix", "</w>", ErrUnsupported, ""},
		{bp, "model.vocab.Ġ", remove{}, ErrUnsupported, "model.vocab"},
		{bp, "model.vocab", []any{}, ErrFormat, ""},
		{bp, "model.merges", []any{"a b c"}, ErrFormat, "model.merges[0]"},
		{bp, "model.merges", []any{"ab"}, ErrFormat, "model.merges[0]"},
		{bp, "model.merges", []any{[]any{"a"}}, ErrFormat, "model.merges[0]"},
		{bp, "model.merges", []any{7}, ErrFormat, "model.merges[0]"},
		{bp, "model.merges", []any{nil}, ErrFormat, "model.merges[0]"},
		{bp, "model.merges", []any{"a b", []any{"a", nil}}, ErrFormat, "model.merges[1]"},
		{bp, "model.merges", []any{"a c"}, ErrFormat, "model.merges[0]"},
		{bp, "normalizer.type", "NFKC", ErrUnsupported, ""},
		{bp, "normalizer", object(`{"type":"ByteLevel"}`), ErrUnsupported, "normalizer.type"},
		{bp, "pre_tokenizer", nil, ErrUnsupported, "pre_tokenizer.type"},
		{bp, "pre_tokenizer", object(`{"type":"Whitespace"}`), ErrUnsupported, "pre_tokenizer.type"},
		{bp, "pre_tokenizer.pretokenizers", []any{}, ErrUnsupported, "pre_tokenizer"},
		{bp, "pre_tokenizer.pretokenizers.1.type", "Metaspace", ErrUnsupported, "pre_tokenizer.pretokenizers[1].type"},
		{bp, "pre_tokenizer.pretokenizers.1.add_prefix_space", nil, ErrFormat, "pre_tokenizer.pretokenizers[1].add_prefix_space"},
		{bp, "pre_tokenizer.pretokenizers.0.type", "Digits", ErrUnsupported, "pre_tokenizer.pretokenizers[0].type"},
		{bp, "pre_tokenizer.pretokenizers.0.pattern.Regex", `\w+|\W+`, ErrUnsupported, "pre_tokenizer.pretokenizers[0].pattern.Regex"},
		{bp, "pre_tokenizer.pretokenizers.0.pattern", object(`{"String":" "}`), ErrUnsupported, "pre_tokenizer.pretokenizers[0].pattern"},
		{bp, "pre_tokenizer.pretokenizers.0.behavior", "MergedWithNext", ErrUnsupported, "pre_tokenizer.pretokenizers[0].behavior"},
		{bp, "pre_tokenizer.pretokenizers.0.invert", true, ErrUnsupported, "pre_tokenizer.pretokenizers[0].behavior"},
		{bp, "decoder.type", "WordPiece", ErrUnsupported, ""},
	} {
		f := c.file()
		set(f, c.path, c.to)
		if c.field == "" {
			c.field = c.path
		}
		_, err := Parse(marshal(t, f))
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), ": "+c.field) {
			t.Errorf("%s = %.60v: %v, want %v: %s", c.path, c.to, err, c.kind, c.field)
		}
	}
	whole := string(marshal(t, wp()))
	for name, data := range map[string]string{"empty": "", "not JSON": "vocab", "cut": `{"version": "1.0"`, "two": "{} {}", "list": "[]",
		"two whole ones": whole + whole, "something behind": whole + "x", "a bracket behind": whole + "}"} {
		if _, err := Parse([]byte(data)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v, want %v", name, err, ErrFormat)
		}
	}
	var many []any
	for i := range maxAddedSum/maxAdded + 1 {
		many = append(many, added(fmt.Sprintf("%0*d", maxAdded, i), 5+i, "").([]any)...)
	}
	f := wp()
	set(f, "added_tokens", many)
	if _, err := Parse(marshal(t, f)); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), fmt.Sprintf("added_tokens[%d]", len(many)-1)) {
		t.Errorf("many added tokens: %v", err)
	}
	if _, err := Parse(make([]byte, MaxFile+1)); !errors.Is(err, ErrFormat) {
		t.Errorf("a large file: %v", err)
	}
}
