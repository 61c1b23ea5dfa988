package features

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// leaf is one value inside a call's arguments with the name it stands under.
type leaf struct {
	key, text string
	more      bool // a further value of the same name, as in a list
}

// leaves splits arguments into leaves. It accepts JSON and the near-JSON that
// agents write (Python literals, single quotes, trailing commas); anything else
// is one leaf. It never fails: arguments that cannot be understood are text.
// The number of leaves is capped, the rest joins the last one. decode undoes the
// escapes of a string: readable for what is compared with other text, verbatim
// for commands.
func leaves(dst []leaf, args string, decode func(string) string) []leaf {
	dst = dst[:0]
	s := strings.TrimSpace(args)
	if s == "" || s == "{}" || s == "[]" || strings.EqualFold(strings.TrimRight(s, ";"), "none") || s == "null" {
		return dst
	}
	if s[0] != '{' && s[0] != '[' {
		return append(dst, leaf{text: unquote(s, decode)})
	}
	key, used := "", false // whether key has a value already
	add := func(text string) {
		dst = append(dst, leaf{key, text, used})
		used = true
	}
	for i := 0; i < len(s); {
		if len(dst) == maxLeaves {
			dst[maxLeaves-1].text += " " + s[i:]
			return dst
		}
		switch c := s[i]; {
		case c == '"' || c == '\'':
			str, next := quoted(s, i, decode)
			j := next
			for j < len(s) && (s[j] == ' ' || s[j] == '\n' || s[j] == '\t') {
				j++
			}
			if j < len(s) && s[j] == ':' {
				key, used, i = str, false, j+1
				continue
			}
			add(str)
			i = next
		case c == '{' || c == '}' || c == '[' || c == ']' || c == ',' || c == ':' || c == ' ' || c == '\n' || c == '\t' || c == '\r':
			i++
		default:
			j := i
			for j < len(s) && !strings.ContainsRune(",}]\n:", rune(s[j])) {
				j++
			}
			if word := strings.TrimSpace(s[i:j]); j < len(s) && s[j] == ':' {
				key, used = word, false
			} else if word != "null" && word != "None" {
				add(word)
			}
			i = max(j, i+1)
		}
	}
	return dst
}

// quoted reads the quoted string that starts at s[i] and returns it unescaped
// with the index behind it.
func quoted(s string, i int, decode func(string) string) (string, int) {
	q := s[i]
	j := i + 1
	escaped := false
	for j < len(s) && s[j] != q {
		if s[j] == '\\' {
			escaped = true
			j++
		}
		j++
	}
	end := min(j, len(s))
	body := s[i+1 : end]
	if escaped {
		body = decode(body)
	}
	return body, min(end+1, len(s))
}

func unquote(s string, decode func(string) string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		out, _ := quoted(s, 0, decode)
		return out
	}
	return s
}

// readable is the decoder of text: an escape can hide what Normalize removes.
func readable(s string) string { return Normalize(unescape(s)) }

// verbatim is the decoder of commands, in which each backslash and each kind of
// quote counts: it undoes the escapes of JSON and Python once.
func verbatim(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if at := strings.IndexByte(`nrtbf"'/\`, s[i]); at >= 0 {
			b.WriteByte("\n\r\t\b\f\"'/\\"[at])
		} else if r, n := escapedRune(s[i+1:]); s[i] == 'u' && n > 0 {
			b.WriteRune(r)
			i += n
		} else if r, ok := hex4("00" + s[i+1:min(i+3, len(s))]); s[i] == 'x' && ok {
			b.WriteRune(r)
			i += 2
		} else {
			b.WriteByte('\\')
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// unescape undoes backslash escapes, including those of a string that was
// escaped twice (\\n), as happens when a tool result quotes another.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		j := i
		for j < len(s) && s[j] == '\\' {
			j++
		}
		if j == len(s) {
			break
		}
		switch s[j] {
		case 'n', 'r':
			b.WriteByte('\n')
			j++
		case 't':
			b.WriteByte(' ')
			j++
		case 'u':
			if r, n := escapedRune(s[j+1:]); n > 0 {
				b.WriteRune(r)
				j += 1 + n
			}
		case '"', '\'', '/':
			b.WriteByte(s[j])
			j++
		default:
			b.WriteByte('\\') // a path separator or a regular expression
		}
		i = j
	}
	return b.String()
}

// escapedRune reads what follows \u: four hexadecimal digits, or a surrogate
// pair. n is the number of bytes read, 0 if there are no such digits.
func escapedRune(s string) (r rune, n int) {
	r, ok := hex4(s)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(s) >= 10 && s[4] == '\\' && s[5] == 'u' {
		if low, ok := hex4(s[6:]); ok {
			if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
				return full, 10
			}
		}
	}
	return utf8.RuneError, 4
}

func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var r rune
	for i := range 4 {
		c := s[i] | 0x20
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
