package tokenize

import "unicode/utf8"

// appendNFC appends the canonical composition of text to s.norm (Unicode
// Standard Annex 15), with the reference's tables.
func appendNFC(s *scratch, text string) {
	p := chars()
	if isNFC(p, text) {
		s.norm = append(s.norm, text...)
		return
	}
	var parts [8]rune
	s.runes = s.runes[:0]
	for _, r := range text {
		for _, q := range p.appendDecomposed(parts[:0], r) {
			if p.class(q)&classNonstarter != 0 {
				s.pending = append(s.pending, p.nonstarter(q))
				continue
			}
			s.flushRunes()
			s.runes = append(s.runes, q)
		}
	}
	s.flushRunes()

	// Composition, in place.
	runes := s.runes
	out := 0      // runes[:out] are final, but for the last starter
	starter := -1 // position of that
	blocked := -1 // class of the last character after it, -1 for none
	for _, r := range runes {
		class := 0
		if p.class(r)&classNonstarter != 0 {
			class = int(p.ccc[r])
		}
		if starter >= 0 && blocked < class {
			// With nothing between, two starters compose as well.
			if c, ok := p.composed(runes[starter], r); ok {
				runes[starter] = c
				continue
			}
		}
		runes[out] = r
		if class == 0 {
			starter, blocked = out, -1
		} else {
			blocked = class
		}
		out++
	}
	for _, r := range runes[:out] {
		s.norm = utf8.AppendRune(s.norm, r)
	}
}

func (s *scratch) flushRunes() {
	if len(s.pending) == 0 {
		return
	}
	sortNonstarters(s.pending)
	for _, q := range s.pending {
		s.runes = append(s.runes, rune(q&0xFFFFFF))
	}
	s.pending = s.pending[:0]
}

// isNFC reports that every character of text is a starter that composition
// keeps and that does not compose with the one before it. A false answer may be
// wrong, a true one is not.
func isNFC(p *properties, text string) bool {
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if p.class(r)&(classNonstarter|classSecond|classUnstable) != 0 {
			return false
		}
		i += size
	}
	return true
}
