package features

import (
	"bytes"
	"path"
	"strings"
)

// valueKind says what an exact value is.
type valueKind uint8

const (
	valueEmail valueKind = iota + 1
	valueHost            // host of a URL, or a bare host name, without www.
	valueURL             // host with its path
	valuePath
	valueID     // an identifier, see isID
	valueAmount // a number
	valueDomain // @ and the domain of an e-mail address, which was emitted just before
)

// chunkEnds separates the chunks that may be an exact value.
func chunkEnd(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', '"', '\'', '`', ',', ';', '(', ')', '[', ']', '{', '}', '<', '>', '|', '*', '=':
		return true
	}
	return false
}

// values calls emit for the exact values in s: e-mail addresses, URLs and hosts,
// paths, ids and amounts, each normalised to lower case. val is only valid
// during the call; buf is scratch.
func values(s string, buf *[]byte, emit func(kind valueKind, val []byte)) {
	for i := 0; i < len(s); {
		if chunkEnd(s[i]) {
			i++
			continue
		}
		start := i
		special := false
		for i < len(s) && (!chunkEnd(s[i]) || s[i] == ',' && groupComma(s, i)) {
			switch c := s[i]; {
			case c == '@', c == '.', c == '/', c == '\\', c >= '0' && c <= '9':
				special = true
			}
			i++
		}
		// A long path with /./ in it may be a short one.
		if special && (i-start <= 256 || i-start <= 4096 && strings.Contains(s[start:i], "/.")) {
			chunk(s[start:i], buf, emit)
		}
	}
}

// groupComma reports whether the comma at i separates thousands: 269,889.02.
func groupComma(s string, i int) bool {
	if i == 0 || i+3 >= len(s) || classes[s[i-1]] != digit {
		return false
	}
	return classes[s[i+1]] == digit && classes[s[i+2]] == digit && classes[s[i+3]] == digit && (i+4 == len(s) || classes[s[i+4]] != digit)
}

func chunk(s string, buf *[]byte, emit func(valueKind, []byte)) {
	end := strings.TrimRight(s, ".:!?&#~")
	if (strings.HasSuffix(end, "/") || strings.HasSuffix(end, `\`)) && strings.HasPrefix(s[len(end):], "..") {
		end = s[:len(end)+2] // the folder above
	}
	s = strings.TrimLeft(strings.TrimPrefix(end, "file://"), ":!?&#")
	if at := strings.IndexAny(s, `/\`); at < 1 || at > 2 || s[:at] != "." && s[:at] != ".." && s[:at] != "~" {
		s = strings.TrimLeft(s, ".:!?&#~")
	}
	if s == "" {
		return
	}
	b := (*buf)[:0]
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case classes[c] == upper:
			c += 'a' - 'A'
		case c == ',': // of a number
			continue
		}
		b = append(b, c)
	}
	*buf = b
	b = bytes.TrimPrefix(b, []byte("mailto:"))
	if at := bytes.IndexByte(b, '@'); at > 0 && at < len(b)-1 && bytes.IndexByte(b[at:], '/') < 0 {
		if bytes.IndexByte(b[at:], '.') > 0 {
			emit(valueEmail, b)
			emit(valueDomain, b[at:])
		}
		return
	}
	rest, scheme := b, false
	if k := bytes.Index(b, []byte("://")); k >= 0 {
		rest, scheme = b[k+3:], true
	}
	slash := bytes.IndexByte(rest, '/')
	host := rest
	if slash >= 0 {
		host = rest[:slash]
	}
	if scheme || looksLikeHost(host) {
		host = bytes.TrimPrefix(host, []byte("www."))
		if len(host) >= 3 {
			emit(valueHost, host)
		}
		full := bytes.TrimRight(bytes.TrimPrefix(rest, []byte("www.")), "/")
		if len(full) > len(host) {
			emit(valueURL, full)
		}
		return
	}
	if slash >= 0 || bytes.IndexByte(b, '\\') >= 0 {
		if p := cleanPath(b); len(p) >= 3 || len(p) == 1 && len(s) > 3 { // /srv/..
			emit(valuePath, p)
		}
		return
	}
	if n, ok := amount(b); ok {
		emit(valueAmount, n)
		if len(b) < 6 {
			return
		}
	}
	if isID(b) {
		emit(valueID, b)
	}
}

// cleanPath turns b, a path of any system, into its shortest equivalent with
// slashes, in place. As many spellings as a path has, as many ways there are
// past a comparison.
func cleanPath(b []byte) []byte {
	for i, c := range b {
		if c == '\\' {
			b[i] = '/'
		}
	}
	if bytes.HasPrefix(b, []byte("~/")) { // nobody knows what lies above it
		return append(b[:0], strings.TrimSuffix("~/"+path.Clean(string(b[2:])), "/.")...)
	}
	if b[0] == '.' || bytes.Contains(b, []byte("/.")) || bytes.Contains(b, []byte("//")) {
		return append(b[:0], path.Clean(string(b))...)
	}
	return bytes.TrimRight(b, "/")
}

// looksLikeHost reports whether b is a dotted name whose last label is a
// plausible top-level domain rather than a file extension.
func looksLikeHost(b []byte) bool {
	dot := bytes.LastIndexByte(b, '.')
	if dot <= 0 || len(b)-dot < 3 || len(b)-dot > 11 {
		return false
	}
	for _, c := range b[dot+1:] {
		if classes[c] != lower {
			return false
		}
	}
	for _, c := range b[:dot] {
		if k := classes[c]; k == other && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	if bytes.HasPrefix(b, []byte("www.")) {
		return true
	}
	return topLevel[string(b[dot+1:])]
}

var topLevel = wordSet(`com org net edu gov mil int io ai co uk de fr it es nl be ch at us ca au jp cn ru in br
	eu info biz me tv app dev cloud online site store shop xyz top club link test example invalid local localhost internal corp`)

// amount reports whether b is a number, and its form without sign, currency,
// thousands separators and trailing zeros.
func amount(b []byte) ([]byte, bool) {
	b = bytes.TrimLeft(b, "$+-")
	b = bytes.TrimRight(b, "%$")
	if len(b) == 0 || len(b) > 20 {
		return nil, false
	}
	dots := 0
	for _, c := range b {
		switch {
		case classes[c] == digit:
		case c == '.':
			dots++
		default:
			return nil, false
		}
	}
	if dots > 1 || classes[b[0]] != digit {
		return nil, false
	}
	if dots == 1 {
		b = bytes.TrimRight(b, "0")
		b = bytes.TrimRight(b, ".")
	}
	return b, len(b) > 0
}

// isID reports whether b is an identifier: 6 or more letters, digits and
// separators with a digit among them, or 8 or more characters of any kind, with
// a letter too, as passwords are.
func isID(b []byte) bool {
	if len(b) < 6 {
		return false
	}
	digits, letters, odd := 0, 0, 0
	for _, c := range b {
		switch classes[c] {
		case digit:
			digits++
		case lower, high:
			letters++
		default:
			if c != '-' && c != '_' && c != '.' && c != ':' && c != '+' {
				odd++
			}
		}
	}
	return digits > 0 && (odd == 0 || len(b) >= 8 && letters > 0 && odd < len(b)/2)
}
