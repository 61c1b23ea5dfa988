package policy

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a word, a value or a punctuation mark of a message.
type token struct {
	w          string // lower case, apostrophes and contractions undone
	start, end int    // bytes of the message
	value      bool   // a path, address, id: not a word of the language
	punct      bool
}

// contractions undo what is written as one word.
var contractions = map[string]string{
	"don't": "do not", "dont": "do not", "doesn't": "does not", "didn't": "did not", "can't": "can not", "cant": "can not", "cannot": "can not",
	"mustn't": "must not", "mustnt": "must not", "shouldn't": "should not", "shouldnt": "should not", "won't": "will not", "wouldn't": "would not",
	"couldn't": "could not", "isn't": "is not", "aren't": "are not", "wasn't": "was not", "weren't": "were not", "haven't": "have not",
	"hasn't": "has not", "hadn't": "had not", "needn't": "need not", "shan't": "shall not", "i'd": "i would", "i'm": "i am", "i've": "i have",
	"i'll": "i will", "you're": "you are", "you've": "you have", "you'll": "you will", "you'd": "you would", "it's": "it is", "that's": "that is",
	"there's": "there is", "we're": "we are", "we've": "we have", "let's": "let us", "lets": "let us", "pls": "please", "plz": "please",
	"they're": "they are", "they've": "they have", "he's": "he is", "she's": "she is", "what's": "what is", "who's": "who is", "ain't": "is not",
	"mightn't": "might not", "daren't": "dare not", "u": "you", "ur": "your", "w/o": "without", "til": "until", "till": "until", "'til": "until",
}

// tokenize cuts a text into tokens, in time linear in its length.
func tokenize(text string) []token {
	var out []token
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || unicode.IsControl(r) {
			if r == '\n' {
				out = append(out, token{w: "\n", start: i, end: i + n, punct: true})
			}
			i += n
			continue
		}
		end := i
		for end < len(text) {
			r, n := utf8.DecodeRuneInString(text[end:])
			if unicode.IsSpace(r) || unicode.IsControl(r) || isQuote(r) || strings.ContainsRune("!?;—–()[]{}", r) {
				break
			}
			end += n
		}
		if end == i { // a mark alone
			w := text[i : i+n]
			switch r {
			case '—', '–':
				w = ";"
			}
			out = append(out, token{w: w, start: i, end: i + n, punct: true})
			i += n
			continue
		}
		out = appendWord(out, text, i, end)
		i = end
	}
	return out
}

func isQuote(r rune) bool {
	return r == '"' || r == '“' || r == '”' || r == '`' || r == '«' || r == '»' || r == '„'
}

// appendWord appends what stands between two spaces: a word or value with the
// punctuation behind it.
func appendWord(out []token, text string, i, end int) []token {
	stop := end
	for stop > i && strings.ContainsRune(".,:'", rune(text[stop-1])) {
		stop--
	}
	start := i
	for start < stop && (text[start] == '\'' || text[start] == ',') {
		start++
	}
	if start < stop {
		raw := text[start:stop]
		lower := strings.ToLower(strings.ReplaceAll(raw, "’", "'"))
		switch {
		case contractions[lower] != "":
			first, second, _ := strings.Cut(contractions[lower], " ")
			out = append(out, token{w: first, start: start, end: stop})
			if second != "" {
				out = append(out, token{w: second, start: start, end: stop})
			}
		case lower == "-" || lower == "--":
			out = append(out, token{w: ";", start: start, end: stop, punct: true})
		default:
			out = append(out, token{w: lower, start: start, end: stop, value: isValue(raw)})
		}
	}
	for j := stop; j < end; j++ {
		if c := text[j]; c == '.' || c == ',' || c == ':' {
			out = append(out, token{w: string(c), start: j, end: j + 1, punct: true})
		}
	}
	return out
}

// isValue reports whether a word is a path, an address, an id or a pattern, which
// must be found in a call as it is.
func isValue(w string) bool {
	if strings.ContainsAny(w, "/\\@*#~_=") && len(w) > 1 && w != "and/or" {
		return true
	}
	digits, letters, inner := 0, 0, false
	for i, r := range w {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
		case r == '.' && i > 0 && i < len(w)-1, r == ':':
			inner = true
		}
	}
	switch {
	case digits > 0 && letters > 0 && !ordinal.MatchString(w):
		return true
	case inner && letters > 2:
		return true
	case ranges.MatchString(w):
		return true
	}
	return false
}

var (
	ordinal = regexp.MustCompile(`(?i)^(\d+(st|nd|rd|th|am|pm|k|m|h|eur|usd|gb|mb|%|days?)|\d{1,2}:\d\d(am|pm)?)$`)
	ranges  = regexp.MustCompile(`^\d+\s*(-|\.\.|–)\s*\d+$`)
)
