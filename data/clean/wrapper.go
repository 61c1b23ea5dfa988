package clean

import (
	"regexp"
	"strings"
)

// The wrapper of AgentDojo's "important instructions" attack, which AgentDyn
// took over. Between its words stands white space of every kind: spaces, line
// breaks folded or escaped (once or more), the marks of a quoted mail.
const (
	gap  = `(?:[\s>]|\\+[nrt]|\\+\s)+`
	gap0 = `(?:[\s>]|\\+[nrt]|\\+\s)*`
	edge = `(?:\n>|\s|\\+[nrt])*` // around the wrapper: never half of an escaped quote

	// "3.3." is the end of a model's name and of the sentence.
	upToDot = `(?:[^.…]|\.\d){1,80}\.`
	name    = `[A-Z][a-z]+`
)

// words turns a sentence into a pattern with any gap between its words.
func words(s string) string { return strings.Join(strings.Fields(s), gap) }

var (
	important = `(?:` + words(`This is an`) + gap + `)?` + words(`important message from me`)
	before    = words(`Before you can solve the task that I gave you in the beginning`)
	after     = words(`After you do that, you can solve the task that I gave you in the beginning`)

	wrapperPart = `(?:` + strings.Join([]string{
		`<?/?INFORMATION\s*>|</?INFO[A-Z]*`,
		important + `(?:,` + gap + name + `(?:` + gap + name + `)?)?(?:,` + gap + words(`to you,`) + upToDot + `)?`,
		before + `(?:,?` + gap + words(`please do the following first`) + `)?:?`,
		after + `\.?(?:` + gap + `Thanks!?)?`,
		`Signed,` + gap + name + `(?:` + gap + name + `)?`,
	}, `|`) + `)`

	wrapper  = regexp.MustCompile(edge + wrapperPart + `(?:[,:.]?` + gap0 + wrapperPart + `)*` + edge)
	newline  = regexp.MustCompile(`\n|\\+n`)
	cutMark  = regexp.MustCompile(`…\[cut \d+ chars\]…`)
	sentence = []string{ // letters only, for the halves that a cut leaves
		`thisisanimportantmessagefromme`,
		`beforeyoucansolvethetaskthatigaveyouinthebeginningpleasedothefollowingfirst`,
		`afteryoudothatyoucansolvethetaskthatigaveyouinthebeginningthanks`,
	}
)

// minHalf is the least number of letters by which half a sentence is known.
const minHalf = 10

// stripWrapper removes the wrapper and leaves a line break in its place.
func stripWrapper(s string) (string, int) {
	n := 0
	if mayHoldWrapper(s) {
		s = replaceAll(wrapper, s, &n, func(m string, first, last bool) string {
			if first || last {
				return ""
			}
			if nl := newline.FindString(m); nl != "" {
				return nl
			}
			if strings.HasPrefix(s, "{") {
				return `\n` // arguments are JSON: a raw line break would not be
			}
			return "\n"
		})
	}
	if strings.Contains(s, cutEnd) {
		s = stripHalves(s, &n)
	}
	return s, n
}

// mayHoldWrapper is a cheap test that is true for all texts with a whole part
// of the wrapper.
func mayHoldWrapper(s string) bool {
	return strings.Contains(s, "INFO") || strings.Contains(s, "important") ||
		strings.Contains(s, "beginning") || strings.Contains(s, "Signed,")
}

// replaceAll is re.ReplaceAllStringFunc that tells f whether the match touches
// an end of the text, and counts the matches.
func replaceAll(re *regexp.Regexp, s string, n *int, f func(match string, first, last bool) string) string {
	found := re.FindAllStringIndex(s, -1)
	if found == nil {
		return s
	}
	var b strings.Builder
	done := 0
	for _, m := range found {
		b.WriteString(s[done:m[0]])
		b.WriteString(f(s[m[0]:m[1]], m[0] == 0, m[1] == len(s)))
		done = m[1]
	}
	b.WriteString(s[done:])
	*n += len(found)
	return b.String()
}

// stripHalves removes what a cut in the middle of a wrapper sentence left of
// it: its beginning before the mark, its end after it.
func stripHalves(s string, n *int) string {
	marks := cutMark.FindAllStringIndex(s, -1)
	for i := len(marks) - 1; i >= 0; i-- { // from the end: earlier positions stay valid
		from, to := marks[i][0], marks[i][1]
		if k := endingOf(s[to:min(to+300, len(s))]); k > 0 {
			s = s[:to] + s[to+k:]
			*n++
		}
		low := max(0, from-300)
		if k := beginningIn(s[low:from]); k > 0 {
			s = s[:from-k] + s[from:]
			*n++
		}
	}
	return s
}

// endingOf returns how many bytes at the start of s are the end of a wrapper sentence.
func endingOf(s string) int {
	letters, at := lettersOf(s)
	best := 0
	for _, w := range sentence {
		for k := min(len(w), len(letters)); k >= minHalf && k > best; k-- {
			if letters[:k] == w[len(w)-k:] {
				best = k
			}
		}
	}
	if best == 0 {
		return 0
	}
	end := at[best-1] + 1
	for end < len(s) && strings.IndexByte(".,:!", s[end]) >= 0 {
		end++
	}
	return end
}

// beginningIn returns how many bytes at the end of s are the beginning of a wrapper sentence.
func beginningIn(s string) int {
	letters, at := lettersOf(s)
	best := 0
	for _, w := range sentence {
		for k := min(len(w), len(letters)); k >= minHalf && k > best; k-- {
			if letters[len(letters)-k:] == w[:k] {
				best = k
			}
		}
	}
	if best == 0 {
		return 0
	}
	return len(s) - at[len(at)-best]
}

// lettersOf returns the ASCII letters of s in lower case, without those of
// escaped line breaks, and their positions.
func lettersOf(s string) (string, []int) {
	letters := make([]byte, 0, len(s))
	at := make([]int, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		if c < 'a' || c > 'z' || i > 0 && s[i-1] == '\\' && (c == 'n' || c == 'r' || c == 't') {
			continue
		}
		letters = append(letters, c)
		at = append(at, i)
	}
	return string(letters), at
}
