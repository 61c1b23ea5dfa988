//go:build hftokenizers && cgo

package native

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	hf "github.com/daulet/tokenizers"

	"github.com/dreamguard/dreamguard/embed/tokenize"
)

// Tokenizer is a tokenizer in Rust. It is safe for concurrent use until Close.
type Tokenizer struct {
	hf     *hf.Tokenizer
	tokens []string // by id
	ids    map[string]int32
	pure   *tokenize.Tokenizer // for texts with NUL; nil where the file is beyond it
}

// Parse reads a tokenizer.json. Its truncation and padding are ignored. The
// caller closes the tokenizer.
func Parse(tokenizerJSON []byte) (*Tokenizer, error) {
	if len(tokenizerJSON) > tokenize.MaxFile {
		return nil, fmt.Errorf("native: tokenizer.json of %d bytes, at most %d are read", len(tokenizerJSON), tokenize.MaxFile)
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(tokenizerJSON, &file); err != nil {
		return nil, fmt.Errorf("native: tokenizer.json: %w", err)
	}
	t := &Tokenizer{ids: make(map[string]int32)}
	if err := t.readTokens(file); err != nil {
		return nil, fmt.Errorf("native: tokenizer.json: %w", err)
	}
	file["truncation"], file["padding"] = json.RawMessage("null"), json.RawMessage("null")
	data, err := json.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("native: tokenizer.json: %w", err)
	}
	if t.hf, err = hf.FromBytes(data, hf.WithEncodeSpecialTokens()); err != nil {
		return nil, fmt.Errorf("native: %w", err)
	}
	if pure, err := tokenize.Parse(tokenizerJSON); err == nil {
		t.pure = pure
	}
	return t, nil
}

// readTokens reads the vocabulary, which the library does not give out.
func (t *Tokenizer) readTokens(file map[string]json.RawMessage) error {
	var model struct {
		Vocab json.RawMessage `json:"vocab"`
	}
	if err := json.Unmarshal(file["model"], &model); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	if len(model.Vocab) > 0 && model.Vocab[0] == '[' { // Unigram: pairs of token and score
		var list [][2]any
		if err := json.Unmarshal(model.Vocab, &list); err != nil {
			return fmt.Errorf("model.vocab: %w", err)
		}
		for id, entry := range list {
			token, ok := entry[0].(string)
			if !ok {
				return fmt.Errorf("model.vocab[%d]: no token", id)
			}
			t.ids[token] = int32(id)
		}
	} else if err := json.Unmarshal(model.Vocab, &t.ids); err != nil {
		return fmt.Errorf("model.vocab: %w", err)
	}
	var added []struct {
		ID      int32  `json:"id"`
		Content string `json:"content"`
	}
	if raw, ok := file["added_tokens"]; ok {
		if err := json.Unmarshal(raw, &added); err != nil {
			return fmt.Errorf("added_tokens: %w", err)
		}
	}
	for _, a := range added {
		t.ids[a.Content] = a.ID
	}
	size := int32(0)
	for token, id := range t.ids {
		if id < 0 || int(id) > 2*len(t.ids)+4096 {
			return fmt.Errorf("token %q has the id %d in a vocabulary of %d", token, id, len(t.ids))
		}
		size = max(size, id+1)
	}
	t.tokens = make([]string, size)
	for token, id := range t.ids {
		t.tokens[id] = token
	}
	return nil
}

// Close frees the tokenizer.
func (t *Tokenizer) Close() error { return t.hf.Close() }

// Append appends the ids of text to dst, without special tokens around it.
// Special tokens in the text are ordinary text. A byte that is not part of valid
// UTF-8 counts as U+FFFD.
//
// The library takes C strings and would stop at a NUL. A text with one is given
// to package tokenize instead; where that does not read the file, U+FFFD takes
// the place of NUL.
func (t *Tokenizer) Append(dst []int32, text string) []int32 {
	if t.pure != nil && strings.IndexByte(text, 0) >= 0 {
		return t.pure.Append(dst, text)
	}
	return t.encode(dst, text, false)
}

// AppendWithSpecial is [Tokenizer.Append] with the special tokens around a text.
func (t *Tokenizer) AppendWithSpecial(dst []int32, text string) []int32 {
	if t.pure != nil && strings.IndexByte(text, 0) >= 0 {
		return t.pure.AppendWithSpecial(dst, text)
	}
	return t.encode(dst, text, true)
}

func (t *Tokenizer) encode(dst []int32, text string, special bool) []int32 {
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	for _, id := range t.hf.EncodeWithOptions(text, special).IDs {
		dst = append(dst, int32(id))
	}
	return dst
}

// Decode returns the text of ids without special tokens. Bytes that are not
// valid UTF-8 become U+FFFD, and a text with NUL, which no C string holds, is "".
func (t *Tokenizer) Decode(ids []int32) string {
	unsigned := make([]uint32, 0, len(ids))
	for _, id := range ids {
		if id >= 0 {
			unsigned = append(unsigned, uint32(id))
		}
	}
	return t.hf.Decode(unsigned, true)
}

// ID returns the id of a token, as the file spells it.
func (t *Tokenizer) ID(token string) (int32, bool) {
	id, ok := t.ids[token]
	return id, ok
}

// Token returns the token with that id as the file spells it, and "" for an id
// without token.
func (t *Tokenizer) Token(id int32) string {
	if id < 0 || int(id) >= len(t.tokens) {
		return ""
	}
	return t.tokens[id]
}

// Size returns one more than the largest id.
func (t *Tokenizer) Size() int { return len(t.tokens) }
