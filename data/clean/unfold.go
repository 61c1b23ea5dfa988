package clean

import (
	"strings"
	"unicode/utf8"
)

// foldWidth is the shortest line, the first word of the next one included,
// that a YAML printer would have broken. Printers fold at 80 columns; some stop
// before the word that crosses it, PyYAML after it.
const foldWidth = 76

// maxKey bounds the length of a mapping key that is looked for, in bytes.
const maxKey = 80

// cutEnd ends the mark that stands where a text was shortened ("…[cut 12 chars]…").
const cutEnd = " chars]…"

// UnfoldYAML undoes the line folding that YAML printers apply to long scalars,
// so that a sentence which was broken over two lines stands on one again:
//
//	body: 'Please send the report to        body: 'Please send the report to the team.
//	  the team.                             Thanks'
//
//	  Thanks'
//
// It knows plain and quoted scalars that follow "key: " or "- ". In them a line
// break becomes a space, k blank lines become k line breaks, and the
// indentation of the continuation goes; in double-quoted scalars a backslash at
// the line end goes too. Doubled quotes and escapes inside quoted scalars stay.
// Lines that are list items or "key: value" pairs of their own are never
// joined. A text that a tool cut in the middle is unfolded as far as the
// remaining part shows its structure.
//
// The time is linear. A text in which no line is indented is returned as it
// is, without allocation, and so is one with nothing to unfold.
func UnfoldYAML(s string) string {
	if !strings.Contains(s, "\n ") {
		return s
	}
	u := unfolder{src: s}
	for u.pos < len(s) {
		u.line()
	}
	return u.finish()
}

// unfolder copies src to out, but only from the first change on.
type unfolder struct {
	src  string
	pos  int // start of the next line
	done int // src[:done] is in out, or needs no copy yet
	out  []byte
}

func (u *unfolder) finish() string {
	if u.out == nil {
		return u.src
	}
	return string(append(u.out, u.src[u.done:]...))
}

// replace puts text in place of src[from:to].
func (u *unfolder) replace(from, to int, text string) {
	if u.out == nil {
		u.out = make([]byte, 0, len(u.src))
	}
	u.out = append(u.out, u.src[u.done:from]...)
	u.out = append(u.out, text...)
	u.done = to
}

// newlines is long enough for the blank lines of most scalars.
const newlines = "\n\n\n\n\n\n\n\n"

// breaks puts n line breaks in place of src[from:to].
func (u *unfolder) breaks(from, to, n int) {
	for ; n > len(newlines); n -= len(newlines) {
		u.replace(from, from, newlines)
	}
	u.replace(from, to, newlines[:n])
}

// lineEnd returns the index of the line break that ends the line at i, or the
// length of the text.
func (u *unfolder) lineEnd(i int) int {
	if n := strings.IndexByte(u.src[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(u.src)
}

// line passes over one line and, when it opens a folded scalar, over all of it.
func (u *unfolder) line() {
	start := u.pos
	end := u.lineEnd(start)
	u.pos = end + 1
	h, ok := parseHead(u.src[start:end])
	if !ok || end == len(u.src) {
		return
	}
	stop := u.scan(&h, start, end)
	for u.pos < stop {
		next, nextEnd, blanks := u.nextLine(u.pos)
		text := u.src[next+h.indent : nextEnd]
		start = max(start, u.done) // after the backslash of an escaped space that begins the line
		tail := trimRight(u.src[start:end])
		switch {
		case blanks > 0:
			u.breaks(start+len(tail), next+h.indent, blanks)
		case h.escaped(tail, text):
			if strings.HasPrefix(text, `\ `) { // an escaped space: the fold took no other
				text = text[1:]
			}
			u.replace(start+len(tail)-1, nextEnd-len(text), "")
		default:
			u.replace(start+len(tail), next+h.indent, " ")
		}
		start, end = next, nextEnd
		u.pos = end + 1
	}
}

// nextLine returns the first line from i on that is not blank, and the number of
// blank lines before it. At the end of the text it returns an empty line there.
func (u *unfolder) nextLine(i int) (start, end, blanks int) {
	for i < len(u.src) {
		end = u.lineEnd(i)
		if !isBlank(u.src[i:end]) {
			return i, end, blanks
		}
		blanks++
		i = end + 1
	}
	return len(u.src), len(u.src), blanks
}

// scan returns where the scalar that h opens on src[start:end] stops, which is
// end when its lines do not look like the work of a YAML printer. All or
// nothing: a scalar that is unfolded leaves no line that could be unfolded again.
// Scans do not overlap, because the lines of one have the same indentation and
// so are no continuation of each other; that keeps UnfoldYAML linear.
func (u *unfolder) scan(h *head, start, end int) int {
	stop := end
	cut := strings.Contains(u.src[start:end], cutEnd)
	anyCut := cut
	for {
		next, nextEnd, blanks := u.nextLine(min(stop+1, len(u.src)))
		raw := u.src[next:nextEnd]
		indent := indentation(raw)
		text := raw[indent:]
		cutHere := strings.Contains(raw, cutEnd)
		if raw == "" || indent <= h.column || indent < h.indent && h.quote == unknown && h.node(text, true) {
			// The scalar ends here. Only a cut can have taken a closing quote.
			if h.quoted() && raw != "" && !anyCut && !cutHere {
				return end
			}
			return stop
		}
		if h.indent == 0 {
			h.indent = indent
		}
		short := !cut && utf8.RuneCountInString(u.src[start:stop])+1+wordLen(text) < foldWidth // no printer had to fold here
		folded := blanks == 0 && !h.escaped(trimRight(u.src[start:stop]), text)
		if indent != h.indent || h.node(text, folded && short) || folded && short && !h.quoted() {
			return end
		}
		cut = cutHere
		anyCut = anyCut || cut
		start, stop = next, nextEnd
		if !h.quoted() {
			continue
		}
		switch closes(text, h.quote) {
		case closed:
			return stop
		case broken:
			return end
		}
	}
}

// head is what a line that may open a folded scalar looks like.
type head struct {
	column int  // of the key or of the list dash: continuation lines are deeper
	indent int  // of all continuation lines
	quote  byte // ' or " when the scalar is quoted, 0 when it is plain, or unknown
}

// unknown is the quote of a scalar whose beginning was cut away.
const unknown = '?'

// escaped reports whether the break between two lines of the scalar is a
// backslash fold.
func (h *head) escaped(tail, text string) bool {
	return strings.HasSuffix(tail, `\`) && (h.quote == '"' || h.quote == unknown && strings.HasPrefix(text, `\ `))
}

func (h *head) quoted() bool { return h.quote == '\'' || h.quote == '"' }

// node reports whether a continuation line is a list item or a pair of its own
// rather than text of the scalar. In a quoted scalar it is text where it can be:
// after a line break of the text, or where the printer had to fold.
func (h *head) node(text string, short bool) bool {
	switch h.quote {
	case 0:
		return startsNode(text)
	case unknown:
		// A key with spaces in it is more likely the end of a sentence.
		if n := keyLen(text); n > 0 {
			return strings.IndexByte(text[:n], ' ') < 0
		}
		return startsNode(text)
	case '\'':
		return short && startsNode(text)
	}
	return false
}

// parseHead reads "key: scalar", "- scalar" or "- key: scalar" and reports
// whether the scalar may go on in the next line.
func parseHead(line string) (head, bool) {
	rest := strings.TrimPrefix(line, "<<") // a delimiter that one defence puts around results
	h := head{column: indentation(rest)}
	rest = rest[h.column:]
	node := false
	for strings.HasPrefix(rest, "- ") {
		node = true
		pad := 1 + indentation(rest[1:])
		rest = rest[pad:]
		if keyLen(rest) == 0 && !strings.HasPrefix(rest, "- ") {
			break // "- scalar": the continuation is deeper than the dash
		}
		h.column += pad
	}
	if n := keyLen(rest); n > 0 {
		node = true
		rest = rest[n:]
	}
	rest = strings.Trim(rest, " \t\r")
	if !node {
		// Neither a key nor a dash: the remains of a scalar, behind a cut.
		h.quote = unknown
		return h, strings.Contains(rest, cutEnd)
	}
	if rest == "" {
		return head{}, false
	}
	switch rest[0] {
	case '|', '>', '&', '*', '#', '{', '[':
		return head{}, false // block scalars, anchors, comments, flow style
	case '\'', '"':
		h.quote = rest[0]
		return h, closes(rest[1:], h.quote) == open
	}
	if strings.Contains(rest, cutEnd) {
		h.quote = unknown // another scalar may have begun inside the cut
	}
	return h, true
}

// keyLen returns the length of "key:" at the start of s, or 0. What follows the
// colon is a space or the end of the line.
func keyLen(s string) int {
	for i := 0; i < len(s) && i < maxKey; i++ {
		switch c := s[i]; {
		case c == ':':
			if i > 0 && (i+1 == len(s) || s[i+1] == ' ' || s[i+1] == '\r') {
				return i + 1
			}
		case i == 0 && (c == '-' || c == '\'' || c == '"'):
			if c == '-' {
				return 0
			}
		case c >= utf8.RuneSelf, 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte(`_-.@/+$'"& `, c) < 0, i == 0:
			return 0
		}
	}
	return 0
}

// startsNode reports whether a line looks like a list item or a pair of its own.
func startsNode(text string) bool {
	return strings.HasPrefix(text, "- ") || text == "-" || keyLen(text) > 0
}

type quoteState int

const (
	open   quoteState = iota // the text goes on
	closed                   // the closing quote ends the line
	broken                   // a closing quote, and more text: not a scalar
)

// closes looks for the end of a quoted scalar in the next line of its text.
func closes(text string, quote byte) quoteState {
	for i := 0; i < len(text); i++ {
		switch {
		case quote == '"' && text[i] == '\\':
			i++
		case text[i] != quote:
		case quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case strings.Trim(text[i+1:], " \t\r>])},;.") == "":
			return closed
		default:
			return broken
		}
	}
	return open
}

func indentation(s string) int {
	n := 0
	for n < len(s) && s[n] == ' ' {
		n++
	}
	return n
}

func isBlank(s string) bool { return strings.Trim(s, " \t\r") == "" }

func trimRight(s string) string { return strings.TrimRight(s, " \t\r") }

// wordLen is the length of the first word of s in characters.
func wordLen(s string) int {
	if n := strings.IndexByte(s, ' '); n >= 0 {
		s = s[:n]
	}
	return utf8.RuneCountInString(s)
}
