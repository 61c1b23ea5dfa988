package floor

import (
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A key is compared by its skeleton: what is left when letter case, invisible
// characters, combining marks and letters that only look alike are taken away
// (the idea of Unicode Technical Standard #39, section 4). Two keys that a
// lenient reader, or a person who reviews the change, could take for each other
// have the same skeleton.

// plainKey reports whether key has none of the characters that give it a second
// reading: then it is one segment, and fold alone makes its skeleton.
func plainKey(key string) bool {
	for i := 0; i < len(key); i++ {
		if !plainByte[key[i]] {
			return false
		}
	}
	return key != ""
}

var plainByte = func() (t [256]bool) {
	for c := '0'; c <= 'z'; c++ {
		t[c] = c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a'
	}
	t['_'], t['-'], t['$'], t['@'] = true, true, true, true
	return t
}()

// foldByte maps ASCII letters and digits to their skeleton: lower case, with i,
// 1 and l as one letter and 0 as o.
var foldByte = func() (t [256]byte) {
	for c := range 256 {
		t[c] = byte(c)
		if c >= 'A' && c <= 'Z' {
			t[c] += 'a' - 'A'
		}
	}
	t['i'], t['I'], t['1'], t['|'], t['0'] = 'l', 'l', 'l', 'l', 'o'
	return t
}()

// appendFold appends the skeleton of plain ASCII text to dst.
func appendFold(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := foldByte[s[i]]
		if n := len(dst); n > 0 {
			switch {
			case c == 'n' && dst[n-1] == 'r': // rn looks like m
				dst[n-1] = 'm'
				continue
			case c == 'v' && dst[n-1] == 'v': // vv looks like w
				dst[n-1] = 'w'
				continue
			}
		}
		dst = append(dst, c)
	}
	return dst
}

var imitated = sync.OnceValue(func() map[rune]byte {
	t := make(map[rune]byte, 2048)
	for ascii, runes := range imitations {
		for _, r := range runes {
			t[r] = ascii
		}
	}
	return t
})

// skeleton returns the skeleton of s.
func skeleton(s string) string {
	s = strings.TrimSpace(s)
	if isIndex(s) {
		return s
	}
	ascii := true
	for i := 0; i < len(s) && ascii; i++ {
		ascii = s[i] >= ' ' && s[i] < utf8.RuneSelf
	}
	if !ascii {
		table := imitated()
		s = strings.Map(func(r rune) rune { return imitatedRune(table, r) }, strings.ToValidUTF8(s, ""))
		s = strings.Map(func(r rune) rune { return imitatedRune(table, r) }, norm.NFKD.String(s))
		s = strings.Map(func(r rune) rune { return imitatedRune(table, r) }, strings.ToLower(s))
		s = strings.TrimSpace(s)
	}
	return string(appendFold(nil, s))
}

// imitatedRune replaces a look-alike by its ASCII letter and drops what a reader
// does not see.
func imitatedRune(table map[rune]byte, r rune) rune {
	if c, ok := table[r]; ok {
		return rune(c)
	}
	if r == ' ' || r > ' ' && r < utf8.RuneSelf-1 {
		return r
	}
	switch {
	case r == utf8.RuneError, unicode.IsControl(r), unicode.IsSpace(r),
		unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me, unicode.Z, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return -1
	}
	return r
}

// segmentations returns the ways in which a reader may split one key into path
// segments: as it stands, at dots, slashes and colons (a key "server.host"), and
// the same with escapes undone or cut at a NUL byte. Each segment is a skeleton.
func segmentations(key string) [][]string {
	if plainKey(key) {
		return [][]string{{skeleton(key)}}
	}
	var out [][]string
	add := func(segments ...string) {
		clean := segments[:0]
		for _, s := range segments {
			if s = skeleton(s); s != "" {
				clean = append(clean, s)
			}
		}
		for _, have := range out {
			if equalStrings(have, clean) {
				return
			}
		}
		out = append(out, clean)
	}
	for _, v := range readings(key) {
		add(v)
		if strings.ContainsAny(v, separators) {
			add(strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(separators, r) })...)
		}
	}
	return out
}

// separators are the characters at which some reader splits a key.
const separators = `./:\`

// readings returns key and what it becomes when escapes are undone and when a
// C string ends it.
func readings(key string) []string {
	out := []string{key}
	if u := unescape(key); u != key {
		out = append(out, u)
	}
	for _, v := range out {
		if i := strings.IndexByte(v, 0); i >= 0 {
			out = append(out, v[:i])
		}
	}
	return out
}

// unescape undoes \uXXXX, \UXXXXXXXX, \xXX, %XX and ~0, ~1, which a reader may
// undo once more than the parser did.
func unescape(s string) string {
	if !strings.ContainsAny(s, `\%~`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		n, r := escapeAt(s[i:])
		if n == 0 {
			b.WriteByte(s[i])
			i++
			continue
		}
		b.WriteRune(r)
		i += n
	}
	return b.String()
}

func escapeAt(s string) (n int, r rune) {
	hex := func(skip, digits int) (int, rune) {
		if len(s) < skip+digits {
			return 0, 0
		}
		v, err := strconv.ParseUint(s[skip:skip+digits], 16, 32)
		if err != nil || v > unicode.MaxRune {
			return 0, 0
		}
		return skip + digits, rune(v)
	}
	switch {
	case s[0] == '%':
		return hex(1, 2)
	case strings.HasPrefix(s, "~1"):
		return 2, '/'
	case strings.HasPrefix(s, "~0"):
		return 2, '~'
	case strings.HasPrefix(s, `\u{`):
		end := strings.IndexByte(s, '}')
		if end < 4 || end > 11 {
			return 0, 0
		}
		n, r := hex(3, end-3)
		if n == 0 {
			return 0, 0
		}
		return n + 1, r
	case strings.HasPrefix(s, `\u`):
		return hex(2, 4)
	case strings.HasPrefix(s, `\U`):
		return hex(2, 8)
	case strings.HasPrefix(s, `\x`):
		return hex(2, 2)
	}
	return 0, 0
}

func equalStrings(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// isIndex reports whether a segment may be a position in a list: a number, or
// what path languages write for one (-, +, *, and the empty segment).
func isIndex(segment string) bool {
	switch segment {
	case "", "-", "+", "*", "#":
		return true
	}
	s := strings.TrimPrefix(segment, "-")
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
