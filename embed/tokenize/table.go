package tokenize

import (
	"math/rand/v2"
	"unicode/utf8"
)

// table maps byte strings to ids. It hashes byte by byte, so that one walk over
// a word gives the hashes of all its prefixes, and it knows which hashes are
// those of a key's prefix, so that the walk ends where no key goes on.
type table struct {
	slots    []slot // a power of two, at most half full
	keys     []string
	shift    uint // 64 - log2(len(slots))
	seed     uint64
	prefixes []uint64 // bit set of the upper bits of prefix hashes
	bits     uint     // 64 - log2 of its size in bits
}

// slot is small, so that the tables of a vocabulary stay in the cache.
type slot struct {
	tag uint32 // lower half of the hash
	key int32  // index into keys and one more; 0 for an empty slot
}

// step adds a byte to a hash: a multiplication spreads it upwards (by 2^64 over
// the golden ratio), the shift downwards again.
func step(h uint64, c byte) uint64 {
	h = (h ^ uint64(c)) * 0x9E3779B97F4A7C15
	return h ^ h>>32
}

// newTable indexes keys, each of which stands there once; empty ones are left
// out. The slice is kept.
func newTable(keys []string) *table {
	count, bytes := 0, 0
	for _, key := range keys {
		if key != "" {
			count++
			bytes += len(key)
		}
	}
	size, set := uint(4), uint(6)
	for 1<<size < 2*count {
		size++
	}
	for 1<<set < 2*bytes { // there are fewer prefixes than bytes
		set++
	}
	t := &table{
		slots: make([]slot, 1<<size), keys: keys, shift: 64 - size,
		// The seed keeps a file from being written for collisions; ids do not
		// depend on it.
		seed:     rand.Uint64(),
		prefixes: make([]uint64, 1<<(set-6)), bits: 64 - set,
	}
	for n, key := range keys {
		if key == "" {
			continue
		}
		h := t.seed
		for i := range len(key) {
			h = step(h, key[i])
			bit := h >> t.bits
			t.prefixes[bit>>6] |= 1 << (bit & 63)
		}
		i := h >> t.shift
		for t.slots[i].key != 0 {
			i = (i + 1) & uint64(len(t.slots)-1)
		}
		t.slots[i] = slot{uint32(h), int32(n) + 1}
	}
	return t
}

// find looks up a key by its hash and returns its index.
func (t *table) find(h uint64, key []byte) (int32, bool) {
	i := h >> t.shift
	for {
		s := t.slots[i]
		if s.key == 0 {
			return 0, false
		}
		if s.tag == uint32(h) && t.keys[s.key-1] == string(key) {
			return s.key - 1, true
		}
		i = (i + 1) & uint64(len(t.slots)-1)
	}
}

// get looks up a key and returns its index.
func (t *table) get(key []byte) (int32, bool) {
	h := t.seed
	for _, c := range key {
		h = step(h, c)
	}
	return t.find(h, key)
}

// longest returns the longest key that begins word and ends where a character
// does: its index and its length, 0 if there is none.
func (t *table) longest(s *scratch, word []byte) (key int32, n int) {
	hashes := s.hashes[:0]
	h := t.seed
	for _, c := range word {
		h = step(h, c)
		if bit := h >> t.bits; t.prefixes[bit>>6]>>(bit&63)&1 == 0 {
			break
		}
		hashes = append(hashes, h)
	}
	s.hashes = hashes
	for n = len(hashes); n > 0; n-- {
		if n < len(word) && !utf8.RuneStart(word[n]) {
			continue
		}
		if key, ok := t.find(hashes[n-1], word[:n]); ok {
			return key, n
		}
	}
	return 0, 0
}
