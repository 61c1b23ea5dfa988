package tokenize

import (
	"encoding/json"
	"fmt"
	"strings"
)

// mergeJSON is a merge as "left right", the older spelling, or ["left", "right"].
type mergeJSON struct {
	left, right string
	comment     bool
	problem     string // why it is none
}

// UnmarshalJSON leaves a problem to be reported with the number of the merge.
func (m *mergeJSON) UnmarshalJSON(raw []byte) error {
	var line string
	if json.Unmarshal(raw, &line) == nil && raw[0] == '"' {
		var ok bool
		m.comment = strings.HasPrefix(line, "#version")
		m.left, m.right, ok = strings.Cut(line, " ")
		if !ok || strings.Contains(m.right, " ") {
			m.problem = fmt.Sprintf("%q, want two tokens with one space between", line)
		}
		return nil
	}
	var parts []string
	if err := json.Unmarshal(raw, &parts); err != nil || len(parts) != 2 {
		m.problem = "want two tokens"
		return nil
	}
	m.left, m.right = parts[0], parts[1]
	return nil
}

func (t *Tokenizer) parseBPE(f *fileJSON) (map[string]int32, error) {
	var m struct {
		Type    string   `json:"type"`
		Dropout *float64 `json:"dropout"`
		// These three are for characters that are not in the vocabulary: with
		// all 256 bytes in it there are none.
		Unknown      *string `json:"unk_token"`
		FuseUnknown  *bool   `json:"fuse_unk"`
		ByteFallback *bool   `json:"byte_fallback"`

		Prefix *string          `json:"continuing_subword_prefix"`
		Suffix *string          `json:"end_of_word_suffix"`
		Ignore *bool            `json:"ignore_merges"`
		Vocab  map[string]int32 `json:"vocab"`
		Merges []mergeJSON      `json:"merges"`
	}
	if err := decode(f.Model, &m, "model"); err != nil {
		return nil, err
	}
	switch {
	case m.Dropout != nil && *m.Dropout != 0:
		return nil, unsupported("model.dropout", "%g, want null", *m.Dropout)
	case m.Prefix != nil && *m.Prefix != "":
		return nil, unsupported("model.continuing_subword_prefix", "%q, want null", *m.Prefix)
	case m.Suffix != nil && *m.Suffix != "":
		return nil, unsupported("model.end_of_word_suffix", "%q, want null", *m.Suffix)
	}
	if err := t.parseByteLevel(f.PreTokenizer); err != nil {
		return nil, err
	}
	if err := t.parseNFC(f.Normalizer); err != nil {
		return nil, err
	}
	if err := t.setVocabulary(m.Vocab, len(f.AddedTokens)); err != nil {
		return nil, err
	}
	b := &bpe{merges: make(map[uint64]merge, len(m.Merges)), bytes: make([]string, len(t.tokens))}
	for b8, r := range byteRunes {
		id, ok := m.Vocab[string(r)]
		if !ok {
			return nil, unsupported("model.vocab", "no token for the byte %#02x (%q)", b8, r)
		}
		b.byteID[b8] = id
	}
	for id, token := range t.tokens {
		if raw, ok := unicodeBytes(token); ok {
			b.bytes[id] = raw
		}
	}
	for i, mg := range m.Merges {
		if mg.comment {
			continue
		}
		if mg.problem != "" {
			return nil, badFormat(fmt.Sprintf("model.merges[%d]", i), "%s", mg.problem)
		}
		left, okLeft := m.Vocab[mg.left]
		right, okRight := m.Vocab[mg.right]
		id, ok := m.Vocab[mg.left+mg.right]
		if !okLeft || !okRight || !ok {
			return nil, badFormat(fmt.Sprintf("model.merges[%d]", i), "%q and %q: both and what they make must be in the vocabulary", mg.left, mg.right)
		}
		b.merges[pair(left, right)] = merge{uint32(i), id}
	}
	if m.Ignore != nil && *m.Ignore {
		b.whole = newTable(b.bytes)
	}
	t.bpe = b
	return m.Vocab, nil
}

// parseNFC reads the normalizer of a byte-level BPE: NFC or none.
func (t *Tokenizer) parseNFC(raw json.RawMessage) error {
	raw, path, err := only(raw, "normalizer", "normalizers")
	if err != nil || isNull(raw) {
		return err
	}
	var n struct {
		Type string `json:"type"`
	}
	if n.Type, err = typeOf(raw, path); err != nil {
		return err
	}
	if n.Type != "NFC" {
		return unsupported(path+".type", "%q with BPE, want NFC or no normalizer", n.Type)
	}
	t.nfc = true
	return decode(raw, &n, path)
}

// parseByteLevel reads the pre-tokenizer: ByteLevel, alone or after one Split.
func (t *Tokenizer) parseByteLevel(raw json.RawMessage) error {
	const path = "pre_tokenizer"
	kind, err := typeOf(raw, path)
	if err != nil {
		return err
	}
	list, at := []json.RawMessage{raw}, func(int) string { return path }
	if kind == "Sequence" {
		if list, err = sequence(raw, path, "pretokenizers"); err != nil {
			return err
		}
		at = func(i int) string { return fmt.Sprintf("%s.pretokenizers[%d]", path, i) }
	}
	if len(list) == 2 {
		if err := t.parseSplit(list[0], at(0)); err != nil {
			return err
		}
	} else if len(list) != 1 {
		return unsupported(path, "a sequence of %d, want ByteLevel, alone or after one Split", len(list))
	}
	last := len(list) - 1
	if kind, err = typeOf(list[last], at(last)); err != nil {
		return err
	}
	if kind != "ByteLevel" {
		return unsupported(at(last)+".type", "%q, want ByteLevel: only byte-level BPE is read", kind)
	}
	var b struct {
		Type     string `json:"type"`
		Prefix   *bool  `json:"add_prefix_space"`
		Trim     bool   `json:"trim_offsets"` // no offsets are given
		UseRegex *bool  `json:"use_regex"`
	}
	if err := decode(list[last], &b, at(last)); err != nil {
		return err
	}
	if b.Prefix == nil {
		return badFormat(at(last)+".add_prefix_space", "missing")
	}
	t.prefixed = *b.Prefix
	if b.UseRegex == nil || *b.UseRegex {
		t.byteSplit = splitGPT2
	}
	return nil
}

// parseSplit reads a Split with one of the known patterns.
func (t *Tokenizer) parseSplit(raw json.RawMessage, path string) error {
	kind, err := typeOf(raw, path)
	if err != nil {
		return err
	}
	if kind != "Split" {
		return unsupported(path+".type", "%q, want Split", kind)
	}
	var s struct {
		Type    string `json:"type"`
		Pattern struct {
			Regex  *string `json:"Regex"`
			String *string `json:"String"`
		} `json:"pattern"`
		Behavior string `json:"behavior"`
		Invert   bool   `json:"invert"`
	}
	if err := decode(raw, &s, path); err != nil {
		return err
	}
	if s.Pattern.Regex == nil || s.Pattern.String != nil {
		return unsupported(path+".pattern", "want a Regex")
	}
	// The patterns match everywhere, so to isolate the matches and to remove
	// what is between them is the same.
	if s.Behavior == "Isolated" && !s.Invert || s.Behavior == "Removed" && s.Invert {
		if t.split = patterns[*s.Pattern.Regex]; t.split == splitNone {
			return unsupported(path+".pattern.Regex", "%q is none of the known patterns", *s.Pattern.Regex)
		}
		return nil
	}
	return unsupported(path+".behavior", "%q with invert %t, want Isolated and false", s.Behavior, s.Invert)
}
