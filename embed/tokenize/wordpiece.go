package tokenize

import (
	"math/rand/v2"
	"unicode/utf8"
)

// wordPiece is the model of Wu et al., Google's Neural Machine Translation
// System (2016), section 4.1, with BERT's greedy matching: the longest token
// that begins the word, then the longest continuation, and the unknown token
// for the whole word where there is none.
type wordPiece struct {
	words, pieces table // tokens that begin a word, and that continue one (without the prefix)
	unknown       int32
	maxRunes      int // longer words are unknown
}

// newWordPiece indexes tokens by id; empty ones are holes.
func newWordPiece(tokens []string, prefix string, unknown int32, maxRunes int) *wordPiece {
	m := &wordPiece{unknown: unknown, maxRunes: maxRunes}
	m.words.init(tokens)
	m.pieces.init(tokens)
	for id, t := range tokens {
		if t == "" {
			continue
		}
		m.words.add(t, int32(id))
		if len(t) > len(prefix) && t[:len(prefix)] == prefix {
			m.pieces.add(t[len(prefix):], int32(id))
		}
	}
	return m
}

// appendWord appends the ids of one word of so many characters.
func (m *wordPiece) appendWord(dst []int32, s *scratch, word []byte, runes int) []int32 {
	if runes > m.maxRunes {
		return append(dst, m.unknown)
	}
	begin := len(dst)
	t := &m.words
	for len(word) > 0 {
		id, n := t.longest(s, word)
		if n == 0 {
			return append(dst[:begin], m.unknown)
		}
		dst = append(dst, id)
		word = word[n:]
		t = &m.pieces
	}
	return dst
}

// table maps byte strings to ids. It hashes byte by byte, so that one walk over
// a word gives the hashes of all its prefixes.
type table struct {
	slots  []slot // a power of two, at most half full
	shift  uint   // 64 - log2(len(slots))
	seed   uint64
	maxLen int // bytes of the longest key
}

type slot struct {
	hash uint64
	key  string
	id   int32
}

const hashPrime = 0x100000001b3 // FNV-1a, 64 bits

// init makes room for one key per token.
func (t *table) init(tokens []string) {
	bits := uint(4)
	for 1<<bits < 2*len(tokens) {
		bits++
	}
	// The seed keeps a file from being written for collisions; ids do not
	// depend on it.
	*t = table{slots: make([]slot, 1<<bits), shift: 64 - bits, seed: rand.Uint64()}
}

func step(h uint64, c byte) uint64 { return (h ^ uint64(c)) * hashPrime }

// add adds a key that is not empty and not in the table yet.
func (t *table) add(key string, id int32) {
	h := t.seed
	for i := range len(key) {
		h = step(h, key[i])
	}
	i := h >> t.shift
	for t.slots[i].key != "" {
		i = (i + 1) & uint64(len(t.slots)-1)
	}
	t.slots[i] = slot{h, key, id}
	t.maxLen = max(t.maxLen, len(key))
}

// find looks up a key by its hash.
func (t *table) find(h uint64, key []byte) (int32, bool) {
	i := h >> t.shift
	for {
		s := &t.slots[i]
		if s.key == "" {
			return 0, false
		}
		if s.hash == h && s.key == string(key) {
			return s.id, true
		}
		i = (i + 1) & uint64(len(t.slots)-1)
	}
}

// get looks up a key.
func (t *table) get(key []byte) (int32, bool) {
	h := t.seed
	for _, c := range key {
		h = step(h, c)
	}
	return t.find(h, key)
}

// longest returns the longest key that begins word and ends at a character's
// end, and its length; 0 if there is none.
func (t *table) longest(s *scratch, word []byte) (id int32, n int) {
	limit := min(len(word), t.maxLen)
	hashes := s.hashes[:0]
	h := t.seed
	for _, c := range word[:limit] {
		h = step(h, c)
		hashes = append(hashes, h)
	}
	s.hashes = hashes
	for n = limit; n > 0; n-- {
		if n < len(word) && !utf8.RuneStart(word[n]) {
			continue
		}
		if id, ok := t.find(hashes[n-1], word[:n]); ok {
			return id, n
		}
	}
	return 0, 0
}
