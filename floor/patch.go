package floor

import (
	"slices"
	"strconv"
	"strings"
)

// maxPatchOps bounds the operations of a JSON Patch, and maxPatchWork their number
// times the size of the document: each operation makes a new one.
const (
	maxPatchOps  = 10_000
	maxPatchWork = 1 << 29
)

// checkPatch judges a JSON Patch (RFC 6902) by what each operation writes, and,
// where the document is known, by what all of them together make of it.
func (f *Floor) checkPatch(c Change) ([]finding, error) {
	text, err := decodeText(c.Text)
	if err != nil {
		return nil, err
	}
	patch, err := parseJSON(text, false)
	if err != nil {
		return nil, err
	}
	if patch.kind != listKind {
		return nil, unreadable("a JSON Patch is a list of operations, not %v", patch.kind)
	}
	if len(patch.items) > maxPatchOps || len(patch.items)*len(c.Before) > maxPatchWork {
		return nil, unreadable("%d operations are more than are read for a document of this size", len(patch.items))
	}
	var before *document
	if c.Before != nil {
		if before, err = f.present(c); err != nil {
			return nil, err
		}
	}
	now := before // the document after the operations so far; nil when it is not known
	for i, item := range patch.items {
		op, err := readOp(item)
		if err != nil {
			return nil, unreadable("operation %d: %v", i+1, err)
		}
		found, next, err := f.applyOp(op, now)
		if err != nil || len(found) > 0 {
			return found, err
		}
		if now != nil && next == nil {
			// The operation does not apply, so the patch changes nothing; a
			// lenient reader that goes on finds an unknown document.
			before = nil
		}
		now = next
	}
	if before == nil || now == before {
		return nil, nil
	}
	return f.compareDocuments(before, now), nil
}

// patchOp is one operation.
type patchOp struct {
	op         string
	path, from []string
	value      *node
	rawPath    string
	rawFrom    string
}

func readOp(n *node) (patchOp, error) {
	if n.kind != mapKind {
		return patchOp{}, unreadable("want an object, not %v", n.kind)
	}
	var o patchOp
	seen := map[string]bool{}
	for _, e := range n.ents {
		name := skeleton(e.key)
		if seen[name] {
			return o, unreadable("%.40q stands there twice", e.key)
		}
		seen[name] = true
		text := func(into *string) error {
			if e.val.kind != textKind {
				return unreadable("%q wants text, not %v", e.key, e.val.kind)
			}
			*into = e.val.scalar
			return nil
		}
		var err error
		switch e.key {
		case "op":
			err = text(&o.op)
		case "path":
			if err = text(&o.rawPath); err == nil {
				o.path, err = pointer(o.rawPath)
			}
		case "from":
			if err = text(&o.rawFrom); err == nil {
				o.from, err = pointer(o.rawFrom)
			}
		case "value":
			o.value = e.val
		}
		if err != nil {
			return o, err
		}
	}
	switch o.op {
	case "add", "replace", "test":
		if _, ok := n.get("value"); !ok {
			return o, unreadable("%s wants a value", o.op)
		}
	case "move", "copy":
		if _, ok := n.get("from"); !ok {
			return o, unreadable("%s wants from", o.op)
		}
	case "remove":
	default:
		return o, unreadable("unknown operation %.40q: want add, remove, replace, move, copy or test", o.op)
	}
	if _, ok := n.get("path"); !ok {
		return o, unreadable("%s wants a path", o.op)
	}
	return o, nil
}

// pointer splits a JSON Pointer (RFC 6901) into its unescaped tokens.
func pointer(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	if s[0] != '/' {
		return nil, unreadable("%.60q is no JSON Pointer: it starts with a slash", s)
	}
	tokens := strings.Split(s[1:], "/")
	for i, t := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	if len(tokens) > maxDepth {
		return nil, unreadable("the pointer has more than %d steps", maxDepth)
	}
	return tokens, nil
}

// applyOp judges one operation and returns the document after it, nil where it
// is not known or the operation does not apply.
func (f *Floor) applyOp(o patchOp, now *document) ([]finding, *document, error) {
	if o.op == "test" {
		return nil, now, nil
	}
	var root *node
	if now != nil {
		root = now.tree()
	}
	w := write{f: f, before: now}
	switch o.op {
	case "remove":
		w.remove = true
	case "add", "replace":
		w.values = []*node{o.value}
	case "move", "copy":
		v, ok := lookup(root, o.from)
		if ok {
			w.values = []*node{v}
		} else {
			w.unknown = true
		}
		if o.op == "move" {
			out := write{f: f, before: now, remove: true}
			if found, err := out.pointer(o.rawFrom); err != nil || len(found) > 0 {
				return found, nil, err
			}
		}
		if w.unknown {
			if found := f.copiesUnknown(o.rawFrom); len(found) > 0 {
				return found, nil, nil
			}
		}
	}
	if o.op != "replace" && o.op != "remove" {
		w.insert = inserts(root, o.path)
	}
	found, err := w.pointer(o.rawPath)
	if err != nil || len(found) > 0 || now == nil {
		return found, nil, err
	}
	next, ok := apply(root, o, w.values)
	if !ok {
		return nil, nil, nil
	}
	d := &document{format: now.format, trees: []*node{next}}
	if d.views, err = f.views(d.trees); err != nil {
		return nil, nil, err
	}
	return nil, d, nil
}

// pointer checks a write to a JSON Pointer in all its readings.
func (w *write) pointer(raw string) ([]finding, error) {
	var readings [][]pathStep
	if raw == "" {
		readings = [][]pathStep{nil}
	} else {
		var err error
		if readings, err = parsePath(raw); err != nil {
			return nil, err
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

// copiesUnknown reports whether what lies at from may hold a protected field, where
// the document is not known. The bare value of one may be written to another name.
func (f *Floor) copiesUnknown(from string) []finding {
	readings, err := parsePath(from)
	if from == "" {
		readings = [][]pathStep{nil}
	}
	if err != nil {
		return nil // reported for the same text elsewhere
	}
	for _, steps := range readings {
		r := f.follow(steps)
		for _, at := range r.states {
			if zone(at) && r.rule < 0 {
				return []finding{{rule: -1, path: joinPath(r.names), special: specialRef}}
			}
		}
	}
	return nil
}

// lookup returns the value at a pointer.
func lookup(n *node, tokens []string) (*node, bool) {
	for _, t := range tokens {
		if n == nil {
			return nil, false
		}
		switch n.kind {
		case mapKind:
			v, ok := n.get(t)
			if !ok {
				return nil, false
			}
			n = v
		case listKind:
			i, ok := position(t, len(n.items))
			if !ok {
				return nil, false
			}
			n = n.items[i]
		default:
			return nil, false
		}
	}
	return n, n != nil
}

func position(t string, n int) (int, bool) {
	i, err := strconv.Atoi(t)
	return i, err == nil && i >= 0 && i < n && (t == "0" || t[0] >= '1' && t[0] <= '9')
}

// inserts reports whether an add to path makes a new element of a list.
func inserts(root *node, path []string) bool {
	if len(path) == 0 {
		return false
	}
	lastToken := path[len(path)-1]
	if lastToken == "-" {
		return true
	}
	parent, ok := lookup(root, path[:len(path)-1])
	return ok && parent.kind == listKind
}

// apply returns the document after an operation, and false where it does not
// apply.
func apply(root *node, o patchOp, values []*node) (*node, bool) {
	switch o.op {
	case "remove":
		return change(root, o.path, nil, o.op)
	case "move":
		if len(values) == 0 {
			return nil, false
		}
		out, ok := change(root, o.from, nil, "remove")
		if !ok {
			return nil, false
		}
		return change(out, o.path, values[0], "add")
	}
	if len(values) == 0 {
		return nil, false
	}
	return change(root, o.path, values[0], o.op)
}

// change returns a copy of n with the value at tokens added, replaced or, where v
// is nil, removed. What does not change is shared.
func change(n *node, tokens []string, v *node, op string) (*node, bool) {
	if len(tokens) == 0 {
		if v == nil {
			v = &node{kind: nullKind}
		}
		return v, true
	}
	c := *n
	t, rest := tokens[0], tokens[1:]
	switch n.kind {
	case mapKind:
		at := -1
		for i := range n.ents {
			if n.ents[i].key == t {
				at = i // the last of equal keys counts
			}
		}
		c.ents = append([]entry(nil), n.ents...)
		switch {
		case len(rest) > 0 && at >= 0:
			child, ok := change(n.ents[at].val, rest, v, op)
			c.ents[at].val = child
			return &c, ok
		case len(rest) > 0, at < 0 && op != "add" && op != "copy":
			return nil, false
		case v == nil:
			c.ents = append(c.ents[:at], c.ents[at+1:]...)
		case at >= 0:
			c.ents[at] = entry{key: t, val: v}
		default:
			c.ents = append(c.ents, entry{key: t, val: v})
		}
		return &c, true
	case listKind:
		c.items = append([]*node(nil), n.items...)
		add := op == "add" || op == "copy"
		if len(rest) == 0 && add {
			i, ok := len(n.items), t == "-"
			if !ok {
				i, ok = position(t, len(n.items)+1)
			}
			if !ok {
				return nil, false
			}
			c.items = append(c.items[:i], append([]*node{v}, n.items[i:]...)...)
			return &c, true
		}
		i, ok := position(t, len(n.items))
		if !ok {
			return nil, false
		}
		switch {
		case len(rest) > 0:
			c.items[i], ok = change(n.items[i], rest, v, op)
		case v == nil:
			c.items = append(c.items[:i], c.items[i+1:]...)
		default:
			c.items[i] = v
		}
		return &c, ok
	}
	return nil, false
}

// checkMergePatch judges a JSON Merge Patch (RFC 7396) by what it writes, and,
// where the document is known, by what it makes of it.
func (f *Floor) checkMergePatch(c Change) ([]finding, error) {
	text, err := decodeText(c.Text)
	if err != nil {
		return nil, err
	}
	patch, err := parseJSON(text, false)
	if err != nil {
		return nil, err
	}
	var before *document
	if c.Before != nil {
		if before, err = f.present(c); err != nil {
			return nil, err
		}
	}
	m := merge{f: f, known: before != nil}
	if err := m.walk(patch, f.root.self, nil); err != nil || len(m.found) > 0 {
		return m.found, err
	}
	d := &document{format: JSON, trees: []*node{patch}}
	if d.views, err = f.views(d.trees); err != nil {
		return nil, err
	}
	empty := &document{views: []*view{{}}}
	for _, x := range f.compareDocuments(empty, d) {
		return []finding{x}, nil
	}
	if before == nil {
		return nil, nil
	}
	after := &document{format: before.format, trees: []*node{mergeNode(before.tree(), patch)}}
	if after.views, err = f.views(after.trees); err != nil {
		return nil, err
	}
	return f.compareDocuments(before, after), nil
}

// merge looks for what a merge patch takes away.
type merge struct {
	f     *Floor
	known bool // the document is known: what is lost shows in the result
	found []finding
}

func (m *merge) walk(n *node, at state, path []string) error {
	if len(path) > maxDepth {
		return unreadable("nested more than %d levels deep", maxDepth)
	}
	if n.kind != mapKind {
		w := write{f: m.f, values: []*node{n}, remove: n.kind == nullKind}
		if x, bad := w.losesUnknown(at, reach{names: path}); bad && !m.known {
			m.found = append(m.found, x)
		}
		return nil
	}
	for _, e := range n.ents {
		next, rule := m.f.step(at, e.key)
		under := append(path[:len(path):len(path)], e.key)
		if rule >= 0 {
			if e.val.kind == nullKind {
				m.found = append(m.found, finding{rule: rule, path: joinPath(under), what: whatRemoved})
			}
			continue
		}
		if !zone(next) {
			continue
		}
		if err := m.walk(e.val, next, under); err != nil {
			return err
		}
	}
	return nil
}

// mergeNode applies a merge patch.
func mergeNode(target, patch *node) *node {
	if patch.kind != mapKind {
		return patch
	}
	out := &node{kind: mapKind}
	if target != nil && target.kind == mapKind {
		out.ents = append(out.ents, target.ents...)
	}
	at := make(map[string]int, len(out.ents)) // the last of equal keys counts
	for i, e := range out.ents {
		at[e.key] = i
	}
	for _, e := range patch.ents {
		i, ok := at[e.key]
		switch {
		case e.val.kind == nullKind && ok:
			out.ents[i].val = nil // removed below
		case e.val.kind == nullKind:
		case ok:
			out.ents[i].val = mergeNode(out.ents[i].val, e.val)
		default:
			at[e.key] = len(out.ents)
			out.ents = append(out.ents, entry{key: e.key, val: mergeNode(nil, e.val)})
		}
	}
	out.ents = slices.DeleteFunc(out.ents, func(e entry) bool { return e.val == nil })
	return out
}
