package tokenize

import "errors"

// maxAdded bounds the bytes of one added token: a text is searched for them
// from each of its positions.
const maxAdded = 1024

// matcher finds added tokens in a text: leftmost first, the longest at each
// position, none overlapping another. Special ones are found, so that the same
// others are hidden by them as in the reference, and then left as text.
type matcher struct {
	nodes []node
	first [256]bool // bytes that begin a token
}

type node struct {
	next  map[byte]int32 // nil in leaves
	id    int32          // -1: no token ends here
	plain bool           // the token is special: leave it as text
}

var errDuplicate = errors.New("another added token is the same after normalisation")

// add adds a token that is not empty.
func (m *matcher) add(content string, id int32, special bool) error {
	if len(m.nodes) == 0 {
		m.nodes = []node{{id: -1}}
	}
	m.first[content[0]] = true
	at := int32(0)
	for i := range len(content) {
		next, ok := m.nodes[at].next[content[i]]
		if !ok {
			next = int32(len(m.nodes))
			m.nodes = append(m.nodes, node{id: -1})
			if m.nodes[at].next == nil {
				m.nodes[at].next = make(map[byte]int32, 1)
			}
			m.nodes[at].next[content[i]] = next
		}
		at = next
	}
	if m.nodes[at].id >= 0 {
		return errDuplicate
	}
	m.nodes[at].id, m.nodes[at].plain = id, special
	return nil
}

// next finds the first token that is not special: text[start:end]. Without one
// both are len(text).
func (m *matcher) next(text string) (start, end int, id int32) { return find(m, text) }

func (m *matcher) nextBytes(text []byte) (start, end int, id int32) { return find(m, text) }

func find[T string | []byte](m *matcher, text T) (start, end int, id int32) {
	for i := 0; i < len(text); {
		if !m.first[text[i]] {
			i++
			continue
		}
		found, length := int32(-1), 0
		at := int32(0)
		for j := i; j < len(text); j++ {
			next, ok := m.nodes[at].next[text[j]]
			if !ok {
				break
			}
			if at = next; m.nodes[at].id >= 0 {
				found, length = at, j+1-i
			}
		}
		switch {
		case found < 0:
			i++
		case m.nodes[found].plain:
			i += length
		default:
			return i, i + length, m.nodes[found].id
		}
	}
	return len(text), len(text), -1
}
