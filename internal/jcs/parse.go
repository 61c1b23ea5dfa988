package jcs

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Parse reads one JSON text into nil, bool, float64, string, []any and
// map[string]any. encoding/json would keep the last of two members of one name
// and replace half a surrogate pair, so that two different texts had one form.
func Parse(b []byte) (any, error) {
	p := parser{b: b}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.i < len(b) {
		return nil, p.errorf("something follows the value")
	}
	return v, nil
}

type parser struct {
	b []byte
	i int
}

func (p *parser) errorf(format string, a ...any) error {
	return fmt.Errorf("%w: at byte %d: %s", ErrSyntax, p.i, fmt.Sprintf(format, a...))
}

func (p *parser) space() {
	for p.i < len(p.b) && (p.b[p.i] == ' ' || p.b[p.i] == '\t' || p.b[p.i] == '\n' || p.b[p.i] == '\r') {
		p.i++
	}
}

// peek returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.i < len(p.b) {
		return p.b[p.i]
	}
	return 0
}

func (p *parser) value(depth int) (any, error) {
	p.space()
	if depth > MaxDepth {
		return nil, p.errorf("nested more than %d deep", MaxDepth)
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return p.text()
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	for word, v := range map[string]any{"null": nil, "true": true, "false": false} {
		if len(p.b)-p.i >= len(word) && string(p.b[p.i:p.i+len(word)]) == word {
			p.i += len(word)
			return v, nil
		}
	}
	return nil, p.errorf("want a value")
}

func (p *parser) object(depth int) (any, error) {
	m := map[string]any{}
	p.i++
	if p.space(); p.peek() == '}' {
		p.i++
		return m, nil
	}
	for {
		if p.space(); p.peek() != '"' {
			return nil, p.errorf("want the name of a member")
		}
		name, err := p.text()
		if err != nil {
			return nil, err
		}
		if _, twice := m[name]; twice {
			return nil, p.errorf("member %.40q stands twice", name)
		}
		if p.space(); p.peek() != ':' {
			return nil, p.errorf("want a colon")
		}
		p.i++
		if m[name], err = p.value(depth + 1); err != nil {
			return nil, err
		}
		p.space()
		switch p.peek() {
		case '}':
			p.i++
			return m, nil
		case ',':
			p.i++
		default:
			return nil, p.errorf("want a comma or }")
		}
	}
}

func (p *parser) array(depth int) (any, error) {
	list := []any{}
	p.i++
	if p.space(); p.peek() == ']' {
		p.i++
		return list, nil
	}
	for {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		p.space()
		switch p.peek() {
		case ']':
			p.i++
			return list, nil
		case ',':
			p.i++
		default:
			return nil, p.errorf("want a comma or ]")
		}
	}
}

func (p *parser) digits() int {
	from := p.i
	for c := p.peek(); '0' <= c && c <= '9'; c = p.peek() {
		p.i++
	}
	return p.i - from
}

func (p *parser) number() (any, error) {
	from := p.i
	if p.peek() == '-' {
		p.i++
	}
	zero := p.peek() == '0'
	if n := p.digits(); n == 0 || zero && n > 1 {
		return nil, p.errorf("malformed number")
	}
	if p.peek() == '.' {
		p.i++
		if p.digits() == 0 {
			return nil, p.errorf("malformed number")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.i++
		if c := p.peek(); c == '+' || c == '-' {
			p.i++
		}
		if p.digits() == 0 {
			return nil, p.errorf("malformed number")
		}
	}
	x, err := strconv.ParseFloat(string(p.b[from:p.i]), 64)
	if err != nil {
		return nil, p.errorf("a number beyond a float64")
	}
	return x, nil
}

func (p *parser) text() (string, error) {
	var out []byte
	for p.i++; p.i < len(p.b); {
		c := p.b[p.i]
		switch {
		case c == '"':
			p.i++
			return string(out), nil
		case c < ' ':
			return "", p.errorf("a control character in a string")
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		case c < utf8.RuneSelf:
			out = append(out, c)
			p.i++
		default:
			r, n := utf8.DecodeRune(p.b[p.i:])
			if r == utf8.RuneError && n == 1 {
				return "", p.errorf("invalid UTF-8")
			}
			out = append(out, p.b[p.i:p.i+n]...)
			p.i += n
		}
	}
	return "", p.errorf("a string does not end")
}

func (p *parser) escape() (rune, error) {
	p.i++ // the backslash
	c := p.peek()
	p.i++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, err := p.unit()
		if err != nil || !utf16.IsSurrogate(r) {
			return r, err
		}
		if p.i+1 < len(p.b) && p.b[p.i] == '\\' && p.b[p.i+1] == 'u' {
			p.i += 2
			low, err := p.unit()
			if err != nil {
				return 0, err
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				return r, nil
			}
		}
		return 0, p.errorf("half of a surrogate pair")
	}
	return 0, p.errorf("unknown escape")
}

// unit reads the four hexadecimal digits of a UTF-16 code unit.
func (p *parser) unit() (rune, error) {
	if p.i+4 > len(p.b) {
		return 0, p.errorf("an escape ends early")
	}
	var r rune
	for _, c := range p.b[p.i : p.i+4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, p.errorf("unknown escape")
		}
	}
	p.i += 4
	return r, nil
}
