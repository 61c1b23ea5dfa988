package tokenize

// bpe is byte-level byte-pair encoding: Sennrich et al., Neural Machine
// Translation of Rare Words with Subword Units (2016), on bytes as in Radford et
// al., Language Models are Unsupervised Multitask Learners (2019).
type bpe struct {
	byteID [256]int32
	merges map[uint64]merge // by pair of ids
	whole  *table           // ignore_merges: words that are tokens are not merged
	bytes  []string         // by id: the bytes that a token stands for, "" for none
}

type merge struct {
	rank uint32 // smaller merges first
	id   int32
}

func pair(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

// symbol is a token of a word in a doubly linked list.
type symbol struct {
	id         int32
	prev, next int32 // -1 at the ends
	gone       bool
}

// candidate is a merge that was possible when it was queued.
type candidate struct {
	order uint64 // rank, then position
	id    int32
}

// appendWord appends the tokens of one word: of all merges that apply, the one
// of the lowest rank and of those the leftmost, until none applies.
func (m *bpe) appendWord(dst []int32, s *scratch, word []byte) []int32 {
	if m.whole != nil {
		if id, ok := m.whole.get(word); ok {
			return append(dst, id)
		}
	}
	if len(word) == 1 {
		return append(dst, m.byteID[word[0]])
	}
	// A queue, since a word may be as long as the text and tools return long
	// words.
	s.symbols, s.queue = s.symbols[:0], s.queue[:0]
	for i, c := range word {
		s.symbols = append(s.symbols, symbol{id: m.byteID[c], prev: int32(i) - 1, next: int32(i) + 1})
	}
	symbols := s.symbols
	symbols[len(symbols)-1].next = -1
	for i := range len(symbols) - 1 {
		m.offer(s, int32(i))
	}
	for len(s.queue) > 0 {
		top := s.pop()
		at := int32(uint32(top.order))
		left := &symbols[at]
		if left.gone || left.next < 0 {
			continue
		}
		right := &symbols[left.next]
		if now, ok := m.merges[pair(left.id, right.id)]; !ok || now.id != top.id {
			continue // one of the two was merged with another
		}
		left.id = top.id
		left.next = right.next
		right.gone = true
		if left.next >= 0 {
			symbols[left.next].prev = at
			m.offer(s, at)
		}
		if left.prev >= 0 {
			m.offer(s, left.prev)
		}
	}
	for i := int32(0); i >= 0; i = symbols[i].next {
		dst = append(dst, symbols[i].id)
	}
	return dst
}

// offer queues the merge of the symbol at a position with the next one.
func (m *bpe) offer(s *scratch, at int32) {
	left := s.symbols[at]
	if mg, ok := m.merges[pair(left.id, s.symbols[left.next].id)]; ok {
		s.push(candidate{uint64(mg.rank)<<32 | uint64(uint32(at)), mg.id})
	}
}

// push and pop keep s.queue a binary heap with the lowest order on top.
func (s *scratch) push(c candidate) {
	q := append(s.queue, c)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if q[up].order <= c.order {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = c
	s.queue = q
}

func (s *scratch) pop() candidate {
	q := s.queue
	top, last := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	i := 0
	for {
		down := 2*i + 1
		if down >= len(q) {
			break
		}
		if down+1 < len(q) && q[down+1].order < q[down].order {
			down++
		}
		if last.order <= q[down].order {
			break
		}
		q[i] = q[down]
		i = down
	}
	if len(q) > 0 {
		q[i] = last
	}
	s.queue = q
	return top
}

// bytesOf returns the bytes that the token stands for.
func (m *bpe) bytesOf(id int32) (string, bool) {
	if int(id) >= len(m.bytes) || m.bytes[id] == "" {
		return "", false
	}
	return m.bytes[id], true
}

// appendBytes appends the ids of a normalised text.
func (t *Tokenizer) appendBytes(dst []int32, s *scratch, norm []byte) []int32 {
	p := chars()
	for len(norm) > 0 {
		end := t.split.end(p, norm)
		piece := norm[:end]
		norm = norm[end:]
		if t.prefixed && piece[0] != ' ' {
			s.prefixed = append(append(s.prefixed[:0], ' '), piece...)
			piece = s.prefixed
		}
		for len(piece) > 0 {
			end := t.byteSplit.end(p, piece)
			dst = t.bpe.appendWord(dst, s, piece[:end])
			piece = piece[end:]
		}
	}
	return dst
}

// byteRunes is the alphabet of byte-level BPE: printable Latin-1 characters
// stand for themselves, the other bytes for U+0100 and up, in order.
var byteRunes = func() (runes [256]rune) {
	next := rune(0x100)
	for b := range rune(256) {
		if '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b && b <= 0xFF {
			runes[b] = b
			continue
		}
		runes[b] = next
		next++
	}
	return runes
}()

// byteOfRune is the inverse of byteRunes.
var byteOfRune = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	for b, r := range byteRunes {
		m[r] = byte(b)
	}
	return m
}()

// unicodeBytes returns the bytes that a token spells in the byte-level alphabet.
func unicodeBytes(token string) (string, bool) {
	out := make([]byte, 0, len(token))
	for _, r := range token {
		b, ok := byteOfRune[r]
		if !ok {
			return "", false
		}
		out = append(out, b)
	}
	return string(out), true
}
