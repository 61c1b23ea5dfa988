package features

import (
	"strings"

	"github.com/dreamguard/dreamguard/verdict"
)

func (t *Tracker) addTaint(v token) {
	if len(t.taint) < maxTaint && t.seen.place(v)&inTask == 0 {
		t.taint[v] = struct{}{}
	}
}

// taintSecrets taints the values of a line that names a secret: api_key=x.
func (t *Tracker) taintSecrets(raw, lower string) {
	at := -1
	for _, key := range secretKeys {
		if i := strings.Index(lower, key); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	if at < 0 || len(raw) < len(lower) {
		return
	}
	rest := strings.TrimSpace(raw)
	if at >= len(rest) || !strings.ContainsAny(rest[at:], ":=") {
		return
	}
	t.scratch.valuesOf(rest[at:], func(kind valueKind, v token) {
		if kind != valueAmount && kind != valueDomain {
			t.addTaint(v)
		}
	})
}

// sensitiveRead reports whether what came back is worth stealing, judged by the
// place it was read from or by what it says.
func (t *Tracker) sensitiveRead(c verdict.Call, text string) bool {
	if containsAny(strings.ToLower(clip(c.Arguments, maxArgs)), secretMarks) {
		return true
	}
	// A marking stands at the top or at the bottom.
	const edge = 240
	head, tail := text[:min(len(text), edge)], text[max(0, len(text)-edge):]
	return containsAny(strings.ToLower(head), markings) || containsAny(strings.ToLower(tail), markings) ||
		countAny(strings.ToLower(text), secretMarks) >= 2
}
