package tokenize

import "unicode/utf8"

// splitter is a pre-tokenizer pattern. Go's regexp has no lookahead, and these
// few patterns are all that byte-level BPE files use, so each is a scanner.
// Every one of them matches at every position of a text that is not empty.
type splitter int

const (
	splitNone splitter = iota
	splitGPT2
	splitQwen2  // numbers digit by digit
	splitLlama3 // numbers in groups of three
)

// patterns are the regular expressions as files spell them.
var patterns = map[string]splitter{
	`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`:                                          splitGPT2,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:      splitQwen2,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: splitLlama3,
}

// end returns where the match that begins at text[0] ends; text is not empty.
func (sp splitter) end(p *properties, text []byte) int {
	switch sp {
	case splitGPT2:
		return endGPT2(p, text)
	case splitQwen2:
		return endCL100K(p, text, 1)
	case splitLlama3:
		return endCL100K(p, text, 3)
	}
	return len(text)
}

const classLNS = classLetter | classNumber | classSpace

// at returns the class of the character at position i and its length, 0 at the
// end.
func at(p *properties, text []byte, i int) (class, int) {
	if i >= len(text) {
		return 0, 0
	}
	if c := text[i]; c < utf8.RuneSelf {
		return p.blocks[p.pages[0]][c] & classLNS, 1
	}
	r, size := utf8.DecodeRune(text[i:])
	return p.class(r) & classLNS, size
}

// run returns the end of the characters from i on that are of class c and of no
// other of letters, numbers and white space; c = 0 stands for none of them.
func run(p *properties, text []byte, i int, c class) int {
	for {
		got, size := at(p, text, i)
		if size == 0 || got != c {
			return i
		}
		i += size
	}
}

// endGPT2 is 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func endGPT2(p *properties, text []byte) int {
	if n := contraction(text, false); n > 0 {
		return n
	}
	start := 0
	if text[0] == ' ' {
		start = 1
	}
	if c, size := at(p, text, start); size > 0 && c&classSpace == 0 {
		return run(p, text, start+size, c)
	}
	return endSpace(p, text)
}

// endCL100K is
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|
//	 ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func endCL100K(p *properties, text []byte, digits int) int {
	if n := contraction(text, true); n > 0 {
		return n
	}
	c, size := at(p, text, 0)
	switch {
	case c == classLetter:
		return run(p, text, size, classLetter)
	case c == classNumber:
		i := size
		for range digits - 1 {
			next, n := at(p, text, i)
			if next != classNumber {
				break
			}
			i += n
		}
		return i
	case text[0] != '\r' && text[0] != '\n':
		if next, n := at(p, text, size); next == classLetter {
			return run(p, text, size+n, classLetter)
		}
	}
	start := 0
	if text[0] == ' ' {
		start = 1
	}
	if next, n := at(p, text, start); n > 0 && next == 0 {
		i := run(p, text, start+n, 0)
		for i < len(text) && (text[i] == '\r' || text[i] == '\n') {
			i++
		}
		return i
	}
	// White space: to its last line break if it has one.
	for i := run(p, text, 0, classSpace); i > 0; i-- {
		if text[i-1] == '\r' || text[i-1] == '\n' {
			return i
		}
	}
	return endSpace(p, text)
}

// endSpace is \s+(?!\S)|\s+: the white space, but for its last character where
// something follows and something is left.
func endSpace(p *properties, text []byte) int {
	end := run(p, text, 0, classSpace)
	if end == len(text) {
		return end
	}
	if _, size := utf8.DecodeLastRune(text[:end]); size < end {
		return end - size
	}
	return end
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the
// beginning of text, 0 for none. Without regard to case, the long s is an s.
func contraction(text []byte, fold bool) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	lower := func(i int) byte {
		if i >= len(text) {
			return 0
		}
		c := text[i]
		if fold && 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		return c
	}
	switch second := lower(2); lower(1) {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if second == 'e' {
			return 3
		}
	case 'l':
		if second == 'l' {
			return 3
		}
	case "ſ"[0]:
		if fold && second == "ſ"[1] {
			return 1 + len("ſ")
		}
	}
	return 0
}
