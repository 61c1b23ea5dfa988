package tokenize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

var (
	// ErrFormat is returned for a tokenizer.json that is no valid one.
	ErrFormat = errors.New("not a valid tokenizer.json")
	// ErrUnsupported is returned for a tokenizer.json that asks for something
	// this package does not do; the error names the field.
	ErrUnsupported = errors.New("tokenizer.json is not supported")
)

// MaxFile bounds the bytes of a tokenizer.json.
const MaxFile = 64 << 20

const (
	maxHoles     = 4096    // ids without token, beyond one per token
	maxWordRunes = 1000    // largest max_input_chars_per_word
	maxAround    = 64      // special tokens on one side of a text
	maxAddedSum  = 1 << 18 // bytes of all added tokens, each of which takes some hundred bytes of memory
)

func badFormat(field, format string, a ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrFormat, field, fmt.Sprintf(format, a...))
}

func unsupported(field, format string, a ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrUnsupported, field, fmt.Sprintf(format, a...))
}

type fileJSON struct {
	Version       string          `json:"version"`
	Truncation    json.RawMessage `json:"truncation"` // ignored on purpose, like padding: the caller decides
	Padding       json.RawMessage `json:"padding"`
	AddedTokens   []addedJSON     `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         json.RawMessage `json:"model"`
}

type addedJSON struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Lstrip     bool   `json:"lstrip"`
	Rstrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// Parse reads a Hugging Face tokenizer.json with a WordPiece or a byte-level BPE
// model. Its truncation and padding are ignored. It returns an error that wraps
// [ErrFormat] or [ErrUnsupported] and names the field.
func Parse(tokenizerJSON []byte) (*Tokenizer, error) {
	if len(tokenizerJSON) > MaxFile {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrFormat, len(tokenizerJSON), MaxFile)
	}
	var f fileJSON
	if err := decode(tokenizerJSON, &f, ""); err != nil {
		return nil, err
	}
	if f.Version != "1.0" {
		return nil, unsupported("version", "%q, want \"1.0\"", f.Version)
	}
	t := new(Tokenizer)
	kind, err := typeOf(f.Model, "model")
	if err != nil {
		return nil, err
	}
	var vocab map[string]int32
	switch kind {
	case "WordPiece":
		vocab, err = t.parseWordPiece(&f)
	case "BPE":
		vocab, err = t.parseBPE(&f)
	case "":
		err = badFormat("model.type", "missing")
	default:
		err = unsupported("model.type", "%q; WordPiece and byte-level BPE are", kind)
	}
	if err != nil {
		return nil, err
	}
	if err := t.addTokens(f.AddedTokens, len(vocab)); err != nil {
		return nil, err
	}
	if err := t.parsePostProcessor(f.PostProcessor, "post_processor"); err != nil {
		return nil, err
	}
	return t, t.parseDecoder(f.Decoder)
}

// decode decodes raw strictly into v, which stands at the given path of the
// file.
func decode(raw []byte, v any, path string) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something follows the value")
		} else {
			return nil
		}
	}
	var typed *json.UnmarshalTypeError
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return unsupported(join(path, strings.Trim(name, `"`)), "unknown field")
	}
	if errors.As(err, &typed) {
		return badFormat(join(path, typed.Field), "a JSON %s does not fit", typed.Value)
	}
	if path == "" {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrFormat, path, err)
}

func join(path, name string) string {
	switch {
	case path == "":
		return name
	case name == "":
		return path
	}
	return path + "." + name
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// typeOf returns the "type" of a component, "" for null or none.
func typeOf(raw json.RawMessage, path string) (string, error) {
	if isNull(raw) {
		return "", nil
	}
	var v struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", badFormat(path, "not an object with a type")
	}
	return v.Type, nil
}

// only returns the single component that raw is, or that a Sequence with one
// element under the given key holds.
func only(raw json.RawMessage, path, key string) (json.RawMessage, string, error) {
	kind, err := typeOf(raw, path)
	if err != nil || kind != "Sequence" {
		return raw, path, err
	}
	list, err := sequence(raw, path, key)
	if err != nil {
		return nil, path, err
	}
	if len(list) != 1 {
		return nil, path, unsupported(path, "a sequence of %d, want one", len(list))
	}
	return list[0], fmt.Sprintf("%s.%s[0]", path, key), nil
}

func sequence(raw json.RawMessage, path, key string) ([]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := decode(raw, &m, path); err != nil {
		return nil, err
	}
	for k := range m {
		if k != "type" && k != key {
			return nil, unsupported(join(path, k), "unknown field")
		}
	}
	var list []json.RawMessage
	return list, decode(m[key], &list, join(path, key))
}

// setVocabulary takes the tokens of the model.
func (t *Tokenizer) setVocabulary(vocab map[string]int32, added int) error {
	if len(vocab) == 0 {
		return badFormat("model.vocab", "missing or empty")
	}
	largest := int32(0)
	for token, id := range vocab {
		if id < 0 {
			return badFormat("model.vocab", "%q has the id %d", token, id)
		}
		largest = max(largest, id)
	}
	if int(largest) > 2*len(vocab)+maxHoles {
		return badFormat("model.vocab", "id %d in a vocabulary of %d", largest, len(vocab))
	}
	t.tokens = make([]string, int(largest)+1, int(largest)+1+added)
	seen := make([]bool, len(t.tokens))
	for token, id := range vocab {
		if seen[id] {
			return badFormat("model.vocab", "%q and %q share the id %d", token, t.tokens[id], id)
		}
		seen[id] = true
		t.tokens[id] = token
	}
	t.ids = vocab
	t.special = make([]bool, len(t.tokens))
	return nil
}

// addTokens takes the added tokens; the vocabulary of the model had size
// entries. The reference gives a new token the next id whatever the file says:
// a file that says otherwise would get ids that its model does not have.
func (t *Tokenizer) addTokens(list []addedJSON, size int) error {
	next := int32(size)
	seen := make(map[string]bool, len(list))
	raw, normed := new(matcher), new(matcher)
	var anyRaw, anyNormed bool
	bytes := 0
	for i, a := range list {
		path := fmt.Sprintf("added_tokens[%d]", i)
		switch {
		case a.Content == "":
			return badFormat(path+".content", "missing or empty")
		case len(a.Content) > maxAdded:
			return unsupported(path+".content", "%d bytes, at most %d", len(a.Content), maxAdded)
		case seen[a.Content]:
			return badFormat(path+".content", "%q stands there twice", a.Content)
		}
		if bytes += len(a.Content); bytes > maxAddedSum {
			return unsupported(path, "more than %d bytes in all", maxAddedSum)
		}
		seen[a.Content] = true
		id, known := t.ids[a.Content]
		if !known {
			if id, next = next, next+1; int(id) < len(t.tokens) {
				return badFormat(path+".id", "the vocabulary has %d entries and ids up to %d, so none is left for %q", size, len(t.tokens)-1, a.Content)
			}
			t.tokens = append(t.tokens, a.Content)
			t.special = append(t.special, false)
			t.ids[a.Content] = id
		}
		if id != a.ID {
			return badFormat(path+".id", "%d for %q, whose id is %d", a.ID, a.Content, id)
		}
		t.special[id] = a.Special
		m, content := raw, a.Content
		if a.Normalized {
			m, content = normed, t.normalized(a.Content)
		}
		if content == "" {
			return unsupported(path+".content", "nothing is left of %q after normalisation", a.Content)
		}
		if err := m.add(content, id, a.Special); err != nil {
			return unsupported(path+".content", "%q: %v", a.Content, err)
		}
		if a.Special {
			continue
		}
		switch {
		case a.SingleWord:
			return unsupported(path+".single_word", "of %q, which is not special", a.Content)
		case a.Lstrip:
			return unsupported(path+".lstrip", "of %q, which is not special", a.Content)
		case a.Rstrip:
			return unsupported(path+".rstrip", "of %q, which is not special", a.Content)
		}
		anyRaw = anyRaw || !a.Normalized
		anyNormed = anyNormed || a.Normalized
	}
	// Without a token that splits the text there is nothing to look for.
	if anyRaw {
		t.raw = raw
	}
	if anyNormed {
		t.normed = normed
	}
	return nil
}

// normalized returns the normal form of text.
func (t *Tokenizer) normalized(text string) string {
	s := new(scratch)
	t.normalize(s, validUTF8(text))
	return string(s.norm)
}

func (t *Tokenizer) parseWordPiece(f *fileJSON) (map[string]int32, error) {
	var m struct {
		Type     string           `json:"type"`
		Unknown  *string          `json:"unk_token"`
		Prefix   *string          `json:"continuing_subword_prefix"`
		MaxRunes *int             `json:"max_input_chars_per_word"`
		Vocab    map[string]int32 `json:"vocab"`
	}
	if err := decode(f.Model, &m, "model"); err != nil {
		return nil, err
	}
	switch {
	case m.Unknown == nil:
		return nil, badFormat("model.unk_token", "missing")
	case m.Prefix == nil:
		return nil, badFormat("model.continuing_subword_prefix", "missing")
	case m.MaxRunes == nil:
		return nil, badFormat("model.max_input_chars_per_word", "missing")
	case *m.MaxRunes < 1 || *m.MaxRunes > maxWordRunes:
		return nil, unsupported("model.max_input_chars_per_word", "%d, want 1 to %d", *m.MaxRunes, maxWordRunes)
	}
	unknown, ok := m.Vocab[*m.Unknown]
	if !ok {
		return nil, badFormat("model.unk_token", "%q is not in the vocabulary", *m.Unknown)
	}
	if err := t.setVocabulary(m.Vocab, len(f.AddedTokens)); err != nil {
		return nil, err
	}
	t.piece = newWordPiece(t.tokens, *m.Prefix, unknown, *m.MaxRunes)

	if kind, err := typeOf(f.PreTokenizer, "pre_tokenizer"); err != nil {
		return nil, err
	} else if kind != "BertPreTokenizer" {
		return nil, unsupported("pre_tokenizer.type", "%q with WordPiece, want BertPreTokenizer", kind)
	}
	t.words = newBertWords()
	return m.Vocab, t.parseBertNormalizer(f.Normalizer)
}

func (t *Tokenizer) parseBertNormalizer(raw json.RawMessage) error {
	raw, path, err := only(raw, "normalizer", "normalizers")
	if err != nil || isNull(raw) {
		return err
	}
	kind, err := typeOf(raw, path)
	if err != nil {
		return err
	}
	if kind != "BertNormalizer" {
		return unsupported(path+".type", "%q with WordPiece, want BertNormalizer", kind)
	}
	var n struct {
		Type    string `json:"type"`
		Clean   *bool  `json:"clean_text"`
		Chinese *bool  `json:"handle_chinese_chars"`
		Strip   *bool  `json:"strip_accents"`
		Lower   *bool  `json:"lowercase"`
	}
	if err := decode(raw, &n, path); err != nil {
		return err
	}
	switch {
	case n.Clean == nil:
		return badFormat(path+".clean_text", "missing")
	case n.Chinese == nil:
		return badFormat(path+".handle_chinese_chars", "missing")
	case n.Lower == nil:
		return badFormat(path+".lowercase", "missing")
	}
	if n.Strip == nil {
		n.Strip = n.Lower
	}
	t.bert = newBertNormalizer(*n.Clean, *n.Chinese, *n.Strip, *n.Lower)
	return nil
}

// FromVocabulary makes a WordPiece tokenizer as BERT's is: token i has the id i,
// "##" marks a continuation, words longer than 100 characters are unknown, text
// is cleaned, and with lowercase also lower-cased and stripped of accents.
// "[UNK]" must be among the tokens; with "[CLS]" and "[SEP]" both there,
// [Tokenizer.AppendWithSpecial] puts them around a text. The strings are kept.
func FromVocabulary(tokens []string, lowercase bool) (*Tokenizer, error) {
	vocab := make(map[string]int32, len(tokens))
	for i, token := range tokens {
		if token == "" || !utf8.ValidString(token) {
			return nil, fmt.Errorf("tokenize: token %d of the vocabulary is empty or not UTF-8", i)
		}
		if j, dup := vocab[token]; dup {
			return nil, fmt.Errorf("tokenize: tokens %d and %d of the vocabulary are both %q", j, i, token)
		}
		vocab[token] = int32(i)
	}
	unknown, ok := vocab["[UNK]"]
	if !ok {
		return nil, errors.New("tokenize: the vocabulary has no [UNK]")
	}
	t := &Tokenizer{tokens: tokens, ids: vocab, special: make([]bool, len(tokens))}
	for _, name := range []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		if id, ok := vocab[name]; ok {
			t.special[id] = true
		}
	}
	t.bert = newBertNormalizer(true, true, lowercase, lowercase)
	t.words = newBertWords()
	t.piece = newWordPiece(tokens, "##", unknown, 100)
	cls, hasCLS := vocab["[CLS]"]
	sep, hasSEP := vocab["[SEP]"]
	if hasCLS && hasSEP {
		t.before, t.after = []int32{cls}, []int32{sep}
	}
	t.decoder = decoder{kind: decodeWordPiece, prefix: "##", cleanup: true}
	return t, nil
}
