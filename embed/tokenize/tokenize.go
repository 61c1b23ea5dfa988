package tokenize

import (
	"sync"
	"unicode/utf8"
)

// Tokenizer turns text into token ids. It is safe for concurrent use. Make one
// with [Parse] or [FromVocabulary].
type Tokenizer struct {
	tokens  []string // by id, "" for an id without token
	ids     map[string]int32
	special []bool // by id

	raw, normed *matcher // added tokens, in the text as it is and normalised

	// WordPiece.
	bert  *bertNormalizer // nil: none
	words *bertWords
	piece *wordPiece

	// Byte-level BPE.
	nfc       bool
	split     splitter // of the Split before ByteLevel
	prefixed  bool     // add_prefix_space of ByteLevel
	byteSplit splitter // of ByteLevel itself
	bpe       *bpe

	before, after []int32 // special tokens around a text
	decoder       decoder

	pool sync.Pool // of *scratch
}

// scratch is what one call works in.
type scratch struct {
	norm     []byte   // normalised text
	pending  []uint32 // nonstarters that wait for their order
	runes    []rune   // decomposed text
	hashes   []uint64 // of the prefixes of a word
	prefixed []byte   // a piece with add_prefix_space's space
	symbols  []symbol
	queue    []candidate
}

// maxKept bounds the memory that a rare long text leaves in the pool.
const maxKept = 1 << 18

func (t *Tokenizer) get() *scratch {
	if s, ok := t.pool.Get().(*scratch); ok {
		return s
	}
	return new(scratch)
}

func (t *Tokenizer) put(s *scratch) {
	if cap(s.norm) <= maxKept && cap(s.pending) <= maxKept && cap(s.runes) <= maxKept &&
		cap(s.symbols) <= maxKept && cap(s.queue) <= maxKept {
		t.pool.Put(s)
	}
}

// Append appends the ids of text to dst, without the special tokens that the
// file puts around a text. Nothing is truncated. A byte that is not part of
// valid UTF-8 counts as U+FFFD.
//
// A special token that stands in the text, such as "[SEP]", is ordinary text:
// what a tool returns must not be able to end a sequence. Added tokens that are
// not special keep their one id.
func (t *Tokenizer) Append(dst []int32, text string) []int32 {
	text = validUTF8(text)
	s := t.get()
	defer t.put(s)
	if t.raw == nil {
		return t.appendPlain(dst, s, text)
	}
	for len(text) > 0 {
		start, end, id := t.raw.next(text)
		dst = t.appendPlain(dst, s, text[:start])
		if start < end {
			dst = append(dst, id)
		}
		text = text[end:]
	}
	return dst
}

// AppendWithSpecial is [Tokenizer.Append] with the special tokens that the
// file's post-processor puts around a single text: [CLS] and [SEP] for BERT.
func (t *Tokenizer) AppendWithSpecial(dst []int32, text string) []int32 {
	dst = append(dst, t.before...)
	dst = t.Append(dst, text)
	return append(dst, t.after...)
}

// appendPlain appends the ids of a text without added tokens but those that are
// looked for after normalisation.
func (t *Tokenizer) appendPlain(dst []int32, s *scratch, text string) []int32 {
	if text == "" {
		return dst
	}
	t.normalize(s, text)
	norm := s.norm
	if t.normed != nil {
		for len(norm) > 0 {
			start, end, id := t.normed.nextBytes(norm)
			dst = t.appendNormal(dst, s, norm[:start])
			if start < end {
				dst = append(dst, id)
			}
			norm = norm[end:]
		}
		return dst
	}
	return t.appendNormal(dst, s, norm)
}

// normalize sets s.norm to the normal form of text.
func (t *Tokenizer) normalize(s *scratch, text string) {
	s.norm = s.norm[:0]
	switch {
	case t.bert != nil:
		t.bert.appendNormalized(s, text)
	case t.nfc:
		appendNFC(s, text)
	default:
		s.norm = append(s.norm, text...)
	}
}

// appendNormal appends the ids of a text that is normalised and holds no added
// tokens.
func (t *Tokenizer) appendNormal(dst []int32, s *scratch, norm []byte) []int32 {
	if t.piece == nil {
		return t.appendBytes(dst, s, norm)
	}
	for i := 0; ; {
		start, end, runes := t.words.next(norm, i)
		if start == end {
			return dst
		}
		dst = t.piece.appendWord(dst, s, norm[start:end], runes)
		i = end
	}
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

// Size returns one more than the largest id: the number of rows that a table
// indexed by id must have.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// validUTF8 replaces each byte that is not part of valid UTF-8 with U+FFFD.
func validUTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}
