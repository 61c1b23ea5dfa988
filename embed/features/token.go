package features

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// token is the 64-bit FNV-1a hash of a normalised token. Hashes keep the state
// small and free of text.
type token uint64

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hashString(s string) token {
	h := uint64(fnvOffset)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return token(h)
}

func hashBytes(b []byte) token {
	h := uint64(fnvOffset)
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return token(h)
}

// isASCII reports whether s needs no Unicode normalisation.
func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf || s[i] == 0 {
			return false
		}
	}
	return true
}

// confusables maps letters of other scripts that look like a Latin letter to
// it: the Cyrillic and Greek part of Unicode TR39 that NFKC leaves alone.
var confusables = map[rune]rune{
	'а': 'a', 'в': 'b', 'е': 'e', 'ё': 'e', 'з': '3', 'і': 'i', 'ї': 'i', 'ј': 'j', 'к': 'k', 'м': 'm', 'н': 'h',
	'о': 'o', 'р': 'p', 'с': 'c', 'т': 't', 'у': 'y', 'х': 'x', 'ѕ': 's', 'ԁ': 'd', 'ԛ': 'q', 'ԝ': 'w', 'һ': 'h', 'ӏ': 'l',
	'А': 'A', 'В': 'B', 'Е': 'E', 'З': '3', 'І': 'I', 'Ј': 'J', 'К': 'K', 'М': 'M', 'Н': 'H', 'О': 'O', 'Р': 'P',
	'С': 'C', 'Т': 'T', 'У': 'Y', 'Х': 'X', 'Ѕ': 'S',
	'α': 'a', 'β': 'b', 'γ': 'y', 'ε': 'e', 'η': 'n', 'ι': 'i', 'κ': 'k', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'u', 'χ': 'x', 'ω': 'w',
	'Α': 'A', 'Β': 'B', 'Ε': 'E', 'Ζ': 'Z', 'Η': 'H', 'Ι': 'I', 'Κ': 'K', 'Μ': 'M', 'Ν': 'N', 'Ο': 'O', 'Ρ': 'P', 'Τ': 'T', 'Υ': 'Y', 'Χ': 'X',
	'’': '\'', '‘': '\'', '“': '"', '”': '"', '–': '-', '—': '-', '‐': '-', '‑': '-', '−': '-',
}

// Normalize returns s in NFKC with invisible characters removed and letters
// that imitate Latin ones replaced, so that a token cannot be hidden by
// spelling it differently. ASCII text is returned as it is.
func Normalize(s string) string {
	if isASCII(s) {
		return s
	}
	s = norm.NFKC.String(strings.ToValidUTF8(s, " "))
	return strings.Map(func(r rune) rune {
		if c, ok := confusables[r]; ok {
			return c
		}
		if r == 0 || unicode.Is(unicode.Cf, r) { // zero-width and direction marks
			return -1
		}
		return r
	}, s)
}

// class of a byte in the scanner.
type byteClass uint8

const (
	other byteClass = iota
	lower
	upper
	digit
	high // part of a multi-byte rune: a letter for our purpose
)

var classes = func() (t [256]byteClass) {
	for c := range 256 {
		switch {
		case c >= 'a' && c <= 'z':
			t[c] = lower
		case c >= 'A' && c <= 'Z':
			t[c] = upper
		case c >= '0' && c <= '9':
			t[c] = digit
		case c >= utf8.RuneSelf:
			t[c] = high
		}
	}
	return t
}()

// tokenizer splits normalised text into tokens. The zero value works; buf is
// scratch kept between calls.
type tokenizer struct {
	buf  []byte
	emit func(t token, word []byte) // word is only valid during the call
}

// words emits the words of s: lower-case runs of letters and digits, split at
// camelCase humps, stop words left out, lightly stemmed.
func (z *tokenizer) words(s string) {
	i := 0
	for i < len(s) {
		if classes[s[i]] == other {
			i++
			continue
		}
		start := i
		prev := classes[s[i]]
		i++
		for i < len(s) {
			c := classes[s[i]]
			if c == other {
				break
			}
			// fooBar -> foo bar; HTTPServer -> http server.
			if c == upper && (prev == lower || prev == digit) {
				break
			}
			if c == lower && prev == upper && i-start > 1 && classes[s[i-2]] == upper {
				i--
				break
			}
			prev = c
			i++
		}
		z.word(s[start:i])
	}
}

// word emits one word, unless it is a stop word or a single letter.
func (z *tokenizer) word(s string) {
	b := z.buf[:0]
	for i := 0; i < len(s); i++ {
		c := s[i]
		if classes[c] == upper {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	z.buf = b
	if len(b) < 2 && (len(b) == 0 || classes[b[0]] != digit) {
		return
	}
	if stopWords[string(b)] { // no allocation: the compiler looks up by bytes
		return
	}
	z.emit(wordToken(b), b)
}

// numericBit marks tokens of short numbers: dates, counts and times recur by
// chance, so an unknown one weighs little.
const numericBit = 1

// wordToken returns the token of a lower-case word: stemmed, and replaced where
// agents and tools use two words for one thing.
func wordToken(b []byte) token {
	if len(b) < 6 && isDigits(b) {
		return hashBytes(b) | numericBit
	}
	t := hashBytes(stem(b)) &^ numericBit
	if a, ok := aliases[t]; ok {
		return a
	}
	return t
}

// valueToken is the token of an exact value.
func valueToken(kind valueKind, b []byte) token {
	if kind == valueAmount && len(b) < 6 {
		return hashBytes(b) | numericBit
	}
	return hashBytes(b) &^ numericBit
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if classes[c] != digit {
			return false
		}
	}
	return len(b) > 0
}

// aliases maps short or alternative forms to one.
var aliases = func() map[token]token {
	m := map[token]token{}
	for line := range strings.SplitSeq(strings.TrimSpace(`
		repository repo repositories
		email mail emails inbox
		message msg dm
		directory dir folder
		document doc docs
		image img photo picture pic
		account acct acc
		password passwd pwd passcode
		delete del rm remove erase unlink
		buy purchase
		information info
		configuration config
		transaction txn payment
		appointment meeting
		database db
		authorize authorise authorization authorisation
		organization organisation org
		administrator admin
		application app
		temporary temp tmp
		visit browse webpage website site`), "\n") {
		var to token
		for w := range strings.FieldsSeq(line) {
			t := hashBytes(stem([]byte(w))) &^ numericBit
			if to == 0 {
				to = t
			}
			m[t] = to
		}
	}
	return m
}()

// stem strips -ing, -ed, -es, -s and a final -e, and undoubles a consonant that
// a suffix doubled: files, filed, file -> fil; transferred -> transfer.
func stem(b []byte) []byte {
	n := len(b)
	if n < 4 || classes[b[n-1]] != lower {
		return b
	}
	has := func(s string) bool { return len(b) >= len(s)+3 && string(b[len(b)-len(s):]) == s }
	switch {
	case has("ing"):
		b = undouble(b[:n-3])
	case has("ed"):
		b = undouble(b[:n-2])
	case has("es"):
		b = b[:n-2]
	case b[n-1] == 's' && b[n-2] != 's' && b[n-2] != 'u' && b[n-2] != 'i':
		b = b[:n-1]
	}
	if n := len(b); n >= 4 && b[n-1] == 'e' {
		b = b[:n-1]
	}
	return b
}

func undouble(b []byte) []byte {
	n := len(b)
	if n >= 4 && b[n-1] == b[n-2] && b[n-1] != 'l' && b[n-1] != 's' {
		return b[:n-1]
	}
	return b
}

var stopWords = wordSet(`a an and are as at be been but by can could did do does for from had has have he her
	him his how i if in into is it its just me my no not of on or our out she so some than that the their them then there
	these they this those to too up us was we were what when where which who will with would you your yours am also any
	all about here none null true false nan`)
