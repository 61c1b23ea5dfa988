package floor

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// parseJSON reads JSON (RFC 8259), with comments and trailing commas where
// relaxed is set. Equal keys are all kept.
func parseJSON(text []byte, relaxed bool) (*node, error) {
	p := jsonParser{s: text, relaxed: relaxed}
	n, err := p.document()
	if err != nil {
		return nil, err
	}
	return n, nil
}

type jsonParser struct {
	s       []byte
	i       int
	depth   int
	relaxed bool
	arena   []node
}

func (p *jsonParser) document() (*node, error) {
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.i == len(p.s) {
		return &node{kind: nullKind}, nil // comments only
	}
	n, err := p.value()
	if err != nil {
		return nil, err
	}
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.i < len(p.s) {
		return nil, p.fail("there is more after the end of the value")
	}
	return n, nil
}

func (p *jsonParser) fail(what string) error {
	line, col := 1, 1
	for _, c := range p.s[:min(p.i, len(p.s))] {
		if c == '\n' {
			line, col = line+1, 1
		} else {
			col++
		}
	}
	return unreadable("line %d, column %d: %s", line, col, what)
}

// space skips white space and, if relaxed, comments.
func (p *jsonParser) space() error {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\n', '\r', '\t':
			p.i++
		case '/':
			if !p.relaxed {
				return p.fail("a comment: JSON has none (the format jsonc has)")
			}
			if err := p.comment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// comment skips one comment. Readers differ in what ends a line; a comment that
// would end early for one of them, with something after it, is refused.
func (p *jsonParser) comment() error {
	if p.i+1 >= len(p.s) {
		return p.fail("a lone slash")
	}
	switch p.s[p.i+1] {
	case '/':
		p.i += 2
		hidden := false
		for p.i < len(p.s) && p.s[p.i] != '\n' {
			r, n := utf8.DecodeRune(p.s[p.i:])
			switch {
			case isOddBreak(r) || r == '\r':
				hidden = true
			case hidden && r != ' ' && r != '\t':
				return p.fail("a comment with a line break in it that only some readers see")
			}
			p.i += n
		}
		return nil
	case '*':
		for i := p.i + 2; i+1 < len(p.s); i++ {
			if p.s[i] == '*' && p.s[i+1] == '/' {
				p.i = i + 2
				return nil
			}
		}
		return p.fail("a comment without an end")
	}
	return p.fail("a lone slash")
}

// isOddBreak reports whether r ends a line for some readers and not for others.
func isOddBreak(r rune) bool {
	return r == 0x85 || r == 0x2028 || r == 0x2029 || r == '\v' || r == '\f'
}

func (p *jsonParser) node(k kind, scalar string) *node {
	if len(p.arena) == 0 {
		p.arena = make([]node, min(64, 1+len(p.s)/16))
	}
	n := &p.arena[0]
	p.arena = p.arena[1:]
	n.kind, n.scalar = k, scalar
	return n
}

func (p *jsonParser) value() (*node, error) {
	from := p.i
	n, err := p.anyValue()
	if err == nil {
		n.from, n.to = int32(from), int32(p.i) // documents are smaller than 2 GiB
	}
	return n, err
}

func (p *jsonParser) anyValue() (*node, error) {
	if p.i >= len(p.s) {
		return nil, p.fail("the text ends where a value should be")
	}
	switch c := p.s[p.i]; c {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		s, err := p.text()
		if err != nil {
			return nil, err
		}
		return p.node(textKind, s), nil
	case 't':
		return p.word("true", boolKind)
	case 'f':
		return p.word("false", boolKind)
	case 'n':
		n, err := p.word("null", nullKind)
		if err == nil {
			n.scalar = ""
		}
		return n, err
	default:
		if c == '-' || c >= '0' && c <= '9' {
			return p.number()
		}
	}
	return nil, p.fail("want a value, not " + quoteRune(p.s[p.i:]))
}

func quoteRune(b []byte) string {
	r, _ := utf8.DecodeRune(b)
	return strconv.QuoteRune(r)
}

func (p *jsonParser) word(w string, k kind) (*node, error) {
	if len(p.s)-p.i < len(w) || string(p.s[p.i:p.i+len(w)]) != w {
		return nil, p.fail("want a value, not an unquoted word")
	}
	p.i += len(w)
	return p.node(k, w), nil
}

func (p *jsonParser) number() (*node, error) {
	start := p.i
	digits := func() bool {
		from := p.i
		for p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
			p.i++
		}
		return p.i > from
	}
	is := func(set string) bool {
		for i := range len(set) {
			if p.i < len(p.s) && p.s[p.i] == set[i] {
				p.i++
				return true
			}
		}
		return false
	}
	is("-")
	if !is("0") && !digits() {
		return nil, p.fail("a number without digits")
	}
	if is(".") && !digits() {
		return nil, p.fail("a number that ends in a dot")
	}
	if is("eE") {
		is("+-")
		if !digits() {
			return nil, p.fail("a number with an empty exponent")
		}
	}
	if p.i < len(p.s) && (plainByte[p.s[p.i]] || p.s[p.i] == '.') {
		return nil, p.fail("a number that is none")
	}
	return p.node(numberKind, canonicalNumber(string(p.s[start:p.i]))), nil
}

func (p *jsonParser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return p.fail("nested more than " + strconv.Itoa(maxDepth) + " levels deep")
	}
	p.i++
	return p.space()
}

func (p *jsonParser) array() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	n := p.node(listKind, "")
	for first := true; ; first = false {
		if done, err := p.next(']', first); err != nil {
			return nil, err
		} else if done {
			return n, nil
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, v)
	}
}

func (p *jsonParser) object() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	n := p.node(mapKind, "")
	for first := true; ; first = false {
		if done, err := p.next('}', first); err != nil {
			return nil, err
		} else if done {
			return n, nil
		}
		key, err := p.member()
		if err != nil {
			return nil, err
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		if n.ents == nil {
			n.ents = make([]entry, 0, 4)
		}
		n.ents = append(n.ents, entry{key: key, val: v})
	}
}

// member reads the key of a member of an object, and its colon.
func (p *jsonParser) member() (string, error) {
	if p.i >= len(p.s) || p.s[p.i] != '"' {
		return "", p.fail("want a key in double quotes")
	}
	key, err := p.text()
	if err != nil {
		return "", err
	}
	if err := p.space(); err != nil {
		return "", err
	}
	if p.i >= len(p.s) || p.s[p.i] != ':' {
		return "", p.fail("want a colon after the key")
	}
	p.i++
	return key, p.space()
}

// next goes to the next element of a list or object, or past its end.
func (p *jsonParser) next(end byte, first bool) (done bool, err error) {
	if err := p.space(); err != nil {
		return false, err
	}
	if p.i < len(p.s) && !first && p.s[p.i] == ',' {
		p.i++
		if err := p.space(); err != nil {
			return false, err
		}
		if p.i < len(p.s) && p.s[p.i] == end && !p.relaxed {
			return false, p.fail("a comma before the end: JSON has none there (the format jsonc has)")
		}
		first = true
	}
	switch {
	case p.i >= len(p.s):
		return false, p.fail("the text ends inside a list or object")
	case p.s[p.i] == end:
		p.i++
		p.depth--
		return true, nil
	case !first:
		return false, p.fail("want a comma or " + strconv.QuoteRune(rune(end)))
	}
	return false, nil
}

// text reads a string in double quotes.
func (p *jsonParser) text() (string, error) {
	p.i++
	start := p.i
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == '"':
			s := string(p.s[start:p.i])
			p.i++
			return s, nil
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return "", p.fail("a control character inside a string")
		default:
			p.i++
		}
	}
	return "", p.fail("a string without an end")
}

func (p *jsonParser) escaped(start int) (string, error) {
	b := append([]byte(nil), p.s[start:p.i]...)
	for p.i < len(p.s) {
		c := p.s[p.i]
		switch {
		case c == '"':
			p.i++
			return string(b), nil
		case c < ' ':
			return "", p.fail("a control character inside a string")
		case c != '\\':
			b = append(b, c)
			p.i++
			continue
		}
		if p.i+1 >= len(p.s) {
			break
		}
		e := p.s[p.i+1]
		p.i += 2
		switch e {
		case '"', '\\', '/':
			b = append(b, e)
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			r, ok := p.hex4()
			if !ok {
				return "", p.fail("want four hexadecimal digits after \\u")
			}
			if utf16.IsSurrogate(r) && p.i+1 < len(p.s) && p.s[p.i] == '\\' && p.s[p.i+1] == 'u' {
				back := p.i
				p.i += 2
				low, ok := p.hex4()
				if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
					r = pair
				} else {
					p.i = back
				}
			}
			b = utf8.AppendRune(b, r) // half a surrogate pair becomes U+FFFD
		default:
			return "", p.fail("an unknown escape")
		}
	}
	return "", p.fail("a string without an end")
}

func (p *jsonParser) hex4() (rune, bool) {
	if p.i+4 > len(p.s) {
		return 0, false
	}
	v, err := strconv.ParseUint(string(p.s[p.i:p.i+4]), 16, 16)
	p.i += 4
	return rune(v), err == nil
}
