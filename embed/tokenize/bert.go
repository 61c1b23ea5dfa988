package tokenize

import (
	"slices"
	"unicode/utf8"
)

// bertNormalizer is BertNormalizer: clean_text, then handle_chinese_chars, then
// canonical decomposition without marks (strip_accents), then lower case, in
// one pass.
type bertNormalizer struct {
	clean, chinese, strip, lower bool

	chars *properties
	ascii [utf8.RuneSelf]uint8 // what becomes of it; dropASCII for nothing
	fold  map[rune][]rune      // what strip and lower make of a character, where they change it
}

const dropASCII = 0xFF

func newBertNormalizer(clean, chinese, strip, lower bool) *bertNormalizer {
	n := &bertNormalizer{clean: clean, chinese: chinese, strip: strip, lower: lower, chars: chars()}
	for c := range n.ascii {
		n.ascii[c] = uint8(c)
		class := n.chars.class(rune(c))
		switch {
		case clean && class&classWhite != 0 && class&classControl == 0:
			n.ascii[c] = ' '
		case clean && class&classControl != 0:
			n.ascii[c] = dropASCII
		case lower && 'A' <= c && c <= 'Z':
			n.ascii[c] = uint8(c) + 'a' - 'A'
		}
	}
	n.fold = make(map[rune][]rune, 4000)
	var parts []rune
	add := func(r rune) {
		parts = parts[:0]
		if strip {
			parts = n.chars.appendDecomposed(parts, r)
		} else {
			parts = append(parts, r)
		}
		var out []rune
		for _, q := range parts {
			if lower {
				// No mark and no nonstarter has a lower case, so its order
				// and its removal may come after.
				out = n.chars.appendLower(out, q)
			} else {
				out = append(out, q)
			}
		}
		n.fold[r] = out
	}
	if strip {
		for r := range n.chars.decompose {
			add(r)
		}
	}
	if lower {
		for r := range n.chars.lower {
			add(r)
		}
	}
	return n
}

// appendNormalized appends the normal form of text to s.norm.
func (n *bertNormalizer) appendNormalized(s *scratch, text string) {
	buf := s.norm
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if c = n.ascii[c]; c == dropASCII {
				i++
				continue
			}
			// As far as ASCII goes.
			buf = slices.Grow(s.flush(buf), len(text)-i)
			for ; i < len(text) && text[i] < utf8.RuneSelf; i++ {
				if c := n.ascii[text[i]]; c != dropASCII {
					buf = append(buf, c)
				}
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		class := n.chars.class(r)
		if n.clean {
			if class&classControl != 0 {
				continue
			}
			if class&classWhite != 0 {
				buf = append(s.flush(buf), ' ')
				continue
			}
		}
		if han := n.chinese && class&classHan != 0; han {
			buf = append(s.flush(buf), ' ')
			buf = n.appendFolded(buf, s, r, class)
			buf = append(s.flush(buf), ' ')
			continue
		}
		buf = n.appendFolded(buf, s, r, class)
	}
	s.norm = s.flush(buf)
}

// appendFolded appends what strip_accents and lower case make of r, whose
// properties are class.
func (n *bertNormalizer) appendFolded(buf []byte, s *scratch, r rune, class class) []byte {
	const changes = classDecomposes | classLower | classMark | classNonstarter
	if class&changes == 0 {
		return utf8.AppendRune(s.flush(buf), r)
	}
	if n.strip && isHangul(r) {
		buf = s.flush(buf)
		var jamo [3]rune
		for _, q := range n.chars.appendDecomposed(jamo[:0], r) {
			buf = utf8.AppendRune(buf, q)
		}
		return buf
	}
	parts, ok := n.fold[r]
	if !ok {
		return n.appendPart(buf, s, r, class)
	}
	for _, q := range parts {
		buf = n.appendPart(buf, s, q, n.chars.class(q))
	}
	return buf
}

// appendPart appends one character of a decomposition. Nonstarters wait in
// s.pending until the next starter, since their order is canonical.
func (n *bertNormalizer) appendPart(buf []byte, s *scratch, r rune, class class) []byte {
	switch {
	case !n.strip:
		return utf8.AppendRune(buf, r)
	case class&classMark != 0:
		if class&classNonstarter == 0 {
			// It goes, but it stood between nonstarters when they were put in
			// order.
			buf = s.flush(buf)
		}
		return buf
	case class&classNonstarter != 0:
		s.pending = append(s.pending, n.chars.nonstarter(r))
		return buf
	}
	return utf8.AppendRune(s.flush(buf), r)
}

// flush appends the nonstarters that wait, in canonical order.
func (s *scratch) flush(buf []byte) []byte {
	if len(s.pending) == 0 {
		return buf
	}
	sortNonstarters(s.pending)
	for _, p := range s.pending {
		buf = utf8.AppendRune(buf, rune(p&0xFFFFFF))
	}
	s.pending = s.pending[:0]
	return buf
}

// bertWords is BertPreTokenizer: white space ends a word, punctuation is a word
// of its own.
type bertWords struct {
	chars *properties
	ascii [utf8.RuneSelf]class
}

func newBertWords() *bertWords {
	w := &bertWords{chars: chars()}
	for c := range w.ascii {
		w.ascii[c] = w.chars.class(rune(c)) & (classWhite | classPunct)
	}
	return w
}

// next returns the next word of text from position i on: text[start:end], which
// is empty at the end of the text. runes counts its characters.
func (w *bertWords) next(text []byte, i int) (start, end, runes int) {
	start = i
	for i < len(text) {
		c, size := text[i], 1
		var class class
		if c < utf8.RuneSelf {
			class = w.ascii[c]
		} else {
			var r rune
			r, size = utf8.DecodeRune(text[i:])
			class = w.chars.class(r) & (classWhite | classPunct)
		}
		switch {
		case class == 0:
			runes++
			i += size
			continue
		case runes > 0:
			return start, i, runes
		case class&classPunct != 0:
			return i, i + size, 1
		}
		i += size
		start = i
	}
	return start, i, runes
}
