package floor

import (
	"bytes"
	"sort"
	"unicode/utf8"
)

// Most changes of a document are small, and parsing all of it again is most of
// the work. small permits, without that, a change that lies in one value which no
// rule sees: where the text around the value is the same, every reader reads it
// the same, so only the value has to be looked at. In all other cases it reports
// false, which means nothing.
func (f *Floor) small(before *document, after []byte) bool {
	if len(before.trees) != 1 || len(before.views) != 1 || before.text == nil || bytes.HasPrefix(before.text, []byte("\xef\xbb\xbf")) {
		return false
	}
	from, end := difference(before.text, after)
	to := len(before.text) - end
	grown := len(after) - len(before.text)
	switch before.format {
	case JSON, JSONC:
		return f.smallJSON(before, after, from, to, grown)
	case YAML:
		return f.smallYAML(before, after, from, to, grown)
	}
	return false
}

// difference returns the length of what two texts have in common at their start,
// and then at their end.
func difference(a, b []byte) (start, end int) {
	n := min(len(a), len(b))
	start = sort.Search(n, func(i int) bool { return !bytes.Equal(a[:i+1], b[:i+1]) })
	end = sort.Search(n-start, func(i int) bool { return !bytes.Equal(a[len(a)-i-1:], b[len(b)-i-1:]) })
	return start, end
}

// smallJSON looks for the smallest value around the difference. The parser comes
// to its start in the same state in both texts; where it also comes to its end,
// all that follows is read as before.
func (f *Floor) smallJSON(before *document, after []byte, from, to, grown int) bool {
	n, at := before.tree(), f.root.self
	best, keep := (*node)(nil), true
	for keep {
		keep = false
		if i := childAt(n, from, to); i >= 0 {
			if n.kind == listKind {
				n, keep = n.items[i], true
			} else {
				next, rule := f.step(at, n.ents[i].key)
				if rule < 0 {
					n, at, keep = n.ents[i].val, next, true
				} else {
					return false
				}
			}
		}
		if keep && len(at) == 0 {
			best = n
		}
	}
	if best == nil || int(best.from) > from || int(best.to) < to {
		return false
	}
	p := jsonParser{s: after[best.from : int(best.to)+grown], relaxed: before.format == JSONC}
	v, err := p.value()
	if err != nil || p.i != len(p.s) || bytes.IndexByte(p.s, 0) >= 0 || !utf8.Valid(p.s) {
		return false
	}
	return f.invisible(best) && f.invisible(v)
}

// childAt returns the child of a map or list whose value holds the difference, or
// -1.
func childAt(n *node, from, to int) int {
	value := func(i int) *node {
		if n.kind == listKind {
			return n.items[i]
		}
		return n.ents[i].val
	}
	size := len(n.items) + len(n.ents)
	i := sort.Search(size, func(i int) bool { return int(value(i).to) >= to })
	if i < size && int(value(i).from) <= from && int(value(i).to) >= to {
		return i
	}
	return -1
}

// invisible reports whether no rule sees anything in a value that lies where no
// path rule leads.
func (f *Floor) invisible(n *node) bool {
	w := walker{f: f, view: &view{}}
	p, err := w.walk(n, nil)
	return err == nil && p == nil && len(w.view.specials) == 0 && !w.view.merges
}

// smallYAML permits a change inside one plain scalar at the end of a line, to
// another plain scalar of harmless characters. What follows such a scalar does
// not depend on which it is.
func (f *Floor) smallYAML(before *document, after []byte, from, to, grown int) bool {
	before.plainOnce.Do(func() { f.plainScalars(before) })
	if before.plain == nil {
		return false
	}
	line := sort.SearchInts(before.lines, from+1) - 1 // lines[line] <= from
	start, end := before.lines[line], len(before.text)
	if line+1 < len(before.lines) {
		end = before.lines[line+1] - 1
	}
	n := before.plain[int32(line+1)]
	if n == nil || to > end {
		return false
	}
	value := start + int(n.to) - 1
	return value <= from && plainText(before.text[value:end]) && plainText(after[value:end+grown]) && string(before.text[value:end]) == n.other
}

// plainScalars notes the plain scalars that smallYAML may change: in a document
// without anchors, carriage returns and tabs, which make the text harder to
// follow.
func (f *Floor) plainScalars(d *document) {
	if bytes.ContainsAny(d.text, "&\r\t") || bytes.ContainsFunc(d.text, isOddBreak) || bytes.Contains(d.text, []byte("<<")) || bytes.HasPrefix(d.text, []byte("%")) || !isASCII(d.text) {
		return
	}
	d.lines = append(d.lines, 0)
	for i, c := range d.text {
		if c == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	d.plain = map[int32]*node{}
	f.notePlain(d, d.tree(), f.root.self)
}

func (f *Floor) notePlain(d *document, n *node, at state) {
	for _, item := range n.items {
		f.notePlain(d, item, at)
	}
	for _, e := range n.ents {
		if next, rule := f.step(at, e.key); rule < 0 && !e.odd {
			f.notePlain(d, e.val, next)
		}
	}
	if n.kind >= listKind || n.from == 0 || len(at) > 0 {
		return
	}
	if _, twice := d.plain[n.from]; twice {
		d.plain[n.from] = nil // several on one line: a flow collection
		return
	}
	c := *n
	// The text of the scalar as it stands there, to see that it ends the line.
	start := d.lines[n.from-1] + int(n.to) - 1
	end := len(d.text)
	if int(n.from) < len(d.lines) {
		end = d.lines[n.from] - 1
	}
	if start >= end || n.kind == nullKind {
		d.plain[n.from] = nil
		return
	}
	c.other = string(d.text[start:end])
	if kind, scalar := plain12(c.other); kind != n.kind || scalar != n.scalar {
		d.plain[n.from] = nil // there is more on the line, or the scalar goes on after it
		return
	}
	d.plain[n.from] = &c
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// plainText reports whether text is a plain scalar for every reader, whatever
// stands around it: letters, digits and a few signs, single spaces between.
func plainText(b []byte) bool {
	if len(b) == 0 || !alphanumeric(b[0]) || b[len(b)-1] == ' ' {
		return false
	}
	for _, c := range b {
		if !alphanumeric(c) && c != ' ' && c != '_' && c != '-' && c != '.' && c != '/' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
