package tokenize

import "unicode/utf8"

// wordPiece is the model of Wu et al., Google's Neural Machine Translation
// System (2016), section 4.1, with BERT's greedy matching: the longest token
// that begins the word, then the longest continuation, and the unknown token
// for the whole word where there is none.
type wordPiece struct {
	words    *table // tokens that begin a word
	pieces   *table // continuations, without their prefix
	pieceID  []int32
	single   [utf8.RuneSelf]int32 // words of one ASCII character
	unknown  int32
	maxRunes int // longer words are unknown
}

// newWordPiece indexes tokens by id; empty ones are holes.
func newWordPiece(tokens []string, prefix string, unknown int32, maxRunes int) *wordPiece {
	m := &wordPiece{words: newTable(tokens), unknown: unknown, maxRunes: maxRunes}
	var pieces []string
	for id, t := range tokens {
		if len(t) > len(prefix) && t[:len(prefix)] == prefix {
			pieces = append(pieces, t[len(prefix):])
			m.pieceID = append(m.pieceID, int32(id))
		}
	}
	m.pieces = newTable(pieces)
	for c := range m.single {
		m.single[c] = unknown
		if id, ok := m.words.get([]byte{byte(c)}); ok {
			m.single[c] = id
		}
	}
	return m
}

// appendWord appends the ids of one word of so many characters.
func (m *wordPiece) appendWord(dst []int32, s *scratch, word []byte, runes int) []int32 {
	if len(word) == 1 {
		return append(dst, m.single[word[0]])
	}
	if runes > m.maxRunes {
		return append(dst, m.unknown)
	}
	begin := len(dst)
	id, n := m.words.longest(s, word)
	for n > 0 {
		dst = append(dst, id)
		if word = word[n:]; len(word) == 0 {
			return dst
		}
		if id, n = m.pieces.longest(s, word); n > 0 {
			id = m.pieceID[id]
		}
	}
	return append(dst[:begin], m.unknown)
}
