package floor

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// checkPath judges the write of one value to one path.
func (f *Floor) checkPath(c Change) ([]finding, error) {
	readings, err := parsePath(c.Path)
	if err != nil {
		return nil, err
	}
	w := write{f: f, remove: c.Delete}
	if !c.Delete {
		if len(bytes.TrimSpace(c.Value)) == 0 {
			return nil, unreadable("the change has no value")
		}
		n, err := parseJSON(c.Value, false)
		if err != nil {
			return nil, err
		}
		w.values = f.valueReadings(n, readings)
	}
	if c.Before != nil {
		if w.before, err = f.present(c); err != nil {
			// What stands there is not known; a write that reaches nothing
			// protected needs no more than that.
			w.before = nil
		}
	}
	for _, steps := range readings {
		found, err := w.check(steps)
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

// present returns the document that a patch or path applies to.
func (f *Floor) present(c Change) (*document, error) {
	format := c.BeforeFormat
	if format == "" {
		f.mu.Lock()
		for _, d := range f.recent {
			if d != nil && d.err == nil && bytes.Equal(d.text, c.Before) {
				f.mu.Unlock()
				return d, nil
			}
		}
		f.mu.Unlock()
		var err error
		if format, _, err = recognise(c.Before); err != nil {
			return nil, err
		}
	}
	return f.document(format, c.Before)
}

// valueReadings returns what a value may be taken for. A tool that edits the text
// of a file takes a value as text and reads it as YAML, so a text that is a map
// or list, or another scalar, there is that as well.
func (f *Floor) valueReadings(n *node, paths [][]pathStep) []*node {
	if n.kind != textKind || strings.TrimSpace(n.scalar) == "" {
		return []*node{n}
	}
	s := strings.TrimSpace(n.scalar)
	trees, err := parseYAML([]byte(s))
	if err != nil {
		if trees, err = one(parseJSON([]byte(s), true)); err != nil {
			return []*node{n}
		}
	}
	var out []*node
	for _, t := range trees {
		if t.kind >= listKind && f.isProse(s, paths) {
			continue
		}
		out = append(out, t)
	}
	if len(out) == 0 || out[0].kind < listKind {
		out = append([]*node{n}, out...) // the text itself counts too
	}
	return out
}

// isProse reports whether a text that YAML would read as a map is prose, such as
// "writeRoots: see the manual" or a prompt of several lines, written to a place
// where prose goes: outside of what leads to protected fields, and not in the form
// of JSON.
func (f *Floor) isProse(s string, paths [][]pathStep) bool {
	if s[0] == '{' || s[0] == '[' {
		return false
	}
	for _, steps := range paths {
		for _, at := range f.follow(steps).states {
			if zone(at) {
				return false
			}
		}
	}
	return true
}

// write judges values written to places of a document.
type write struct {
	f       *Floor
	values  []*node // what the value may be taken for; none when it is not known
	remove  bool    // the field is removed instead
	insert  bool    // a new element of a list, which replaces nothing
	before  *document
	unknown bool // values are not known
}

func (w *write) check(steps []pathStep) ([]finding, error) {
	f := w.f
	r := f.follow(steps)
	if r.rule >= 0 {
		if found := w.checkField(r, steps); len(found) > 0 || r.exact {
			return found, nil
		}
	}
	if r.special != "" {
		return []finding{{rule: -1, path: r.at, special: r.special}}, nil
	}
	if r.proto && (w.touchesNames(r) || w.unknown) {
		return []finding{{rule: -1, path: joinPath(r.names), special: specialPrototype}}, nil
	}
	var olds []*part
	if w.before != nil && !w.insert {
		for _, v := range w.before.views {
			olds = append(olds, f.locate([]*part{v.root}, steps)...)
		}
	}
	if w.remove || w.unknown {
		for _, b := range olds {
			c := comparer{f: f, path: r.names, write: true}
			if c.parts(b, nil); len(c.found) > 0 {
				return c.found, nil
			}
		}
	}
	for _, at := range r.states {
		if w.before == nil && !w.insert {
			if x, bad := w.losesUnknown(at, r); bad {
				return []finding{x}, nil
			}
		}
		if w.unknown && zone(at) {
			// What is copied here has not been seen.
			return []finding{{rule: -1, path: joinPath(r.names), special: specialRef}}, nil
		}
		for _, v := range w.values {
			found, err := w.checkValue(v, at, r, olds)
			if err != nil || len(found) > 0 {
				return found, err
			}
		}
	}
	return nil, nil
}

// checkField judges a path that names a protected field, or something inside it.
func (w *write) checkField(r reach, steps []pathStep) []finding {
	rule := w.f.rules.Rules[r.rule]
	what := whatSet
	switch {
	case w.remove:
		what = whatRemoved
	case !r.exact || w.unknown || rule.Mode == Fixed:
	case rule.Mode == Values:
		what = ""
		for _, v := range w.values {
			if w.f.refused(rule, v) {
				what = whatValue
			}
		}
	case rule.Mode == Tighten && w.before != nil:
		what = whatWider
		var olds []*part
		for _, v := range w.before.views {
			olds = append(olds, w.f.locate([]*part{v.root}, steps)...)
		}
		narrower := len(olds) > 0
		for _, b := range olds {
			for _, v := range w.values[max(0, len(w.values)-1):] {
				narrower = narrower && b.rule == r.rule && rule.narrower(b.val, v)
			}
		}
		if narrower {
			what = ""
		}
	}
	if what == "" {
		return nil
	}
	return []finding{{rule: r.rule, path: r.at, what: what}}
}

// checkValue judges a value at a place.
func (w *write) checkValue(v *node, at state, r reach, olds []*part) ([]finding, error) {
	walk := walker{f: w.f, view: &view{}, path: r.names}
	p, err := walk.walk(v, at)
	if err != nil {
		return nil, err
	}
	if len(walk.view.specials) > 0 {
		s := walk.view.specials[0]
		return []finding{{rule: -1, path: s.path, special: s.what}}, nil
	}
	if len(olds) == 0 {
		olds = []*part{nil}
	}
	for _, b := range olds {
		c := comparer{f: w.f, path: r.names, write: true}
		if c.parts(b, p); len(c.found) > 0 {
			return c.found, nil
		}
	}
	return nil, nil
}

// losesUnknown reports whether a write to a place that leads to protected fields
// can only take them away, where it is not known what stands there: it removes
// the place, or puts there what cannot hold them.
func (w *write) losesUnknown(at state, r reach) (finding, bool) {
	for _, t := range at {
		rule := t.anyRule()
		inside := t.block > 0 && t == w.f.blocks[t.block]
		if inside {
			continue
		}
		empties := w.remove
		for _, v := range w.values {
			switch {
			case v.kind < listKind:
				empties = true
			case len(v.ents)+len(v.items) == 0 && rule >= 0:
				empties = true
			}
		}
		if !empties {
			continue
		}
		if rule < 0 {
			rule = w.f.keyRule()
		}
		return finding{rule: max(rule, 0), path: joinPath(r.names), what: whatRemoved}, true
	}
	return finding{}, false
}

// anyRule returns a rule whose field lies below t, or -1.
func (t *trie) anyRule() int {
	if t.rule >= 0 {
		return t.rule
	}
	best := -1
	for _, c := range t.children() {
		if r := c.anyRule(); r >= 0 && (best < 0 || r < best) {
			best = r
		}
	}
	return best
}

// keyRule returns the first key rule, or -1.
func (f *Floor) keyRule() int {
	best := -1
	for _, r := range f.anywhere {
		if best < 0 || r < best {
			best = r
		}
	}
	return best
}

// touchesNames reports whether a path through a prototype, or its value, names
// anything that a rule names.
func (w *write) touchesNames(r reach) bool {
	for _, n := range r.names {
		for _, segments := range segmentations(n) {
			for _, s := range segments {
				for _, name := range w.f.names {
					if s == name {
						return true
					}
				}
			}
		}
	}
	for _, v := range w.values {
		if w.f.touches(v, 0) {
			return true
		}
	}
	return false
}

// locate returns the parts of a document that steps lead to.
func (f *Floor) locate(from []*part, steps []pathStep) []*part {
	at := from
	for _, s := range steps {
		if s.descend {
			at = allParts(at) // the elements of lists among them
		}
		var next []*part
		for _, p := range at {
			if p == nil || p.rule >= 0 {
				continue
			}
			if s.any {
				next = append(next, childParts(p)...)
			}
			for _, key := range s.keys {
				for _, segments := range segmentations(key) {
					to := []*part{p}
					for _, segment := range segments {
						to = f.childrenNamed(to, segment, s.descend)
					}
					next = append(next, to...)
				}
			}
		}
		at = next
	}
	out := at[:0:0]
	for _, p := range at {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

// childrenNamed returns the children that a segment may stand for. A name may also
// pick elements of a list, but not where it is looked for at any depth.
func (f *Floor) childrenNamed(from []*part, segment string, descend bool) []*part {
	var out []*part
	for _, p := range from {
		for _, e := range p.ents {
			if !plainKey(e.key) || f.skeleton(e.key) == segment {
				out = append(out, e.p)
			}
		}
		index, err := strconv.Atoi(segment)
		for _, e := range p.items {
			if err != nil && (!descend || isIndex(segment)) || err == nil && (index < 0 || index == e.index) {
				if segment != "-" && segment != "+" {
					out = append(out, e.p)
				}
			}
		}
	}
	return out
}

func childParts(p *part) []*part {
	var out []*part
	for _, e := range p.ents {
		out = append(out, e.p)
	}
	for _, e := range p.items {
		out = append(out, e.p)
	}
	return out
}

func allParts(from []*part) []*part {
	var out []*part
	for _, p := range from {
		if p != nil {
			out = append(out, p)
			out = append(out, allParts(childParts(p))...)
		}
	}
	return out
}

// rawJSON reads the fields of one JSON object; a field that stands there twice is
// an error, since readers differ in which counts.
func rawJSON(text []byte) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	t, err := dec.Token()
	if d, ok := t.(json.Delim); err != nil || !ok || d != '{' {
		return nil, unreadable("want a JSON object")
	}
	out := map[string]json.RawMessage{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, unreadable("%v", err)
		}
		key, _ := t.(string)
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, unreadable("%v", err)
		}
		if _, ok := out[key]; ok {
			return nil, unreadable("%.40q stands there twice", key)
		}
		out[key] = v
	}
	if _, err := dec.Token(); err != nil {
		return nil, unreadable("%v", err)
	}
	if dec.More() {
		return nil, unreadable("there is more after the object")
	}
	return out, nil
}
