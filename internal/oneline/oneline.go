// Package oneline shows a text of others on one line of a terminal.
//
//	fmt.Println(oneline.Of(task, 100))
package oneline

import "unicode"

// Of returns s as at most n > 0 characters of one line: blanks, line breaks and
// control characters become single blanks, none of them at an end, and what else
// could hide or turn text around is left out. A text that is cut ends in an
// ellipsis. The result shares no memory with s.
func Of(s string, n int) string {
	var out []rune
	blank := false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			blank = len(out) > 0
			continue
		case !unicode.IsPrint(r):
			continue
		}
		if blank {
			out = append(out, ' ')
		}
		blank = false
		if out = append(out, r); len(out) > n { // no need to look at all of a long text
			return string(out[:n-1]) + "…"
		}
	}
	return string(out)
}
