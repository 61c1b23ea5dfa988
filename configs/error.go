package configs

import (
	"fmt"
	"strings"
)

// Error is a mistake in a configuration: an unknown key, a value of the wrong
// type or out of range. It is always the user's to correct.
type Error struct {
	File   string // file or preset, "" for an override
	Line   int    // 1-based, 0 when not known
	Key    string // full path of the key, for example train.stage1.steps; "" for the whole file
	Reason string // what is wrong, and what is wanted
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		b.WriteString(": ")
	}
	if e.Key != "" {
		b.WriteString(e.Key)
		b.WriteString(": ")
	}
	b.WriteString(e.Reason)
	return b.String()
}
