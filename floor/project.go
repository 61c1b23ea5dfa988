package floor

import (
	"slices"
	"strconv"
	"strings"
)

// The part of a document that matters to the floor is small. A view is that part
// under one way of reading the document: the protected fields with the keys and
// list positions that lead to them, and the places where something could bring a
// protected field in unseen.
type view struct {
	root     *part // nil when nothing is protected
	specials []special
	equals   bool // a key that leads to something protected stands there twice
	merges   bool // the document has YAML merge keys
	reading  reading
}

// part is a protected field, or a map or list with one inside.
type part struct {
	rule  int   // the rule of a protected field, -1 for what leads to one
	val   *node // of a protected field: its value
	kind  kind  // of what leads to one: mapKind or listKind
	ents  []partEntry
	items []partItem
	list  *node // of a list: its items, for telling them apart
}

type partEntry struct {
	key string
	p   *part
}

type partItem struct {
	index int
	p     *part
}

// special is a place where a protected field could come in unseen.
type special struct {
	path string
	what string // one of the special constants
	val  string // what stands there: the same at the same place is no change
}

const (
	specialPrototype = "prototype"
	specialRef       = "a reference or include"
	specialEnv       = "a substitution"
	specialTag       = "a YAML tag"
	specialKey       = "a key that is no text"
)

// reading says which of several equal keys counts, and whether merge keys are
// followed.
type reading struct {
	equal   int // all, first, last
	noMerge bool
}

const (
	all = iota
	first
	last
)

// views returns what is protected in a document, one view per way to read it: for
// each tree the plain reading and then the others that differ from it.
func (f *Floor) views(trees []*node) ([]*view, error) {
	var out []*view
	for _, t := range trees {
		base, err := f.view(t, reading{})
		if err != nil {
			return nil, err
		}
		out = append(out, base)
		var more []reading
		if base.equals {
			more = append(more, reading{equal: first}, reading{equal: last})
		}
		if base.merges {
			more = append(more, reading{noMerge: true})
			if base.equals {
				more = append(more, reading{equal: first, noMerge: true}, reading{equal: last, noMerge: true})
			}
		}
		for _, r := range more {
			v, err := f.view(t, r)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
	}
	return out, nil
}

func (f *Floor) view(t *node, r reading) (*view, error) {
	w := walker{f: f, reading: r, view: &view{reading: r}}
	p, err := w.walk(t, f.root.self)
	if err != nil {
		return nil, err
	}
	w.view.root = p
	return w.view, nil
}

// walker makes a view.
type walker struct {
	f       *Floor
	reading reading
	view    *view
	path    []string // keys and positions that lead to the present node
	visits  int
}

// step returns the state after key, and the rule that protects a field of this
// name here, or -1.
func (f *Floor) step(at state, key string) (state, int) {
	var buf [64]byte
	if plainKey(key) && len(key) <= len(buf) && !f.rules.IgnoreSeparators {
		return f.stepSegment(at, appendFold(buf[:0], key), key)
	}
	var next state
	rule := -1
	for _, segments := range segmentations(key) {
		to, r := at, -1
		for _, s := range segments {
			if f.rules.IgnoreSeparators {
				s = f.skeleton(s)
			}
			if to, r = f.stepSegment(to, []byte(s), s); r >= 0 {
				break
			}
		}
		if r >= 0 && (rule < 0 || r < rule) {
			rule = r
		}
		next = union(next, to)
	}
	return next, rule
}

// stepSegment goes down by one segment.
func (f *Floor) stepSegment(at state, name []byte, raw string) (state, int) {
	if r, ok := f.anywhere[string(name)]; ok && f.within(at, r) {
		return nil, r
	}
	if len(at) == 0 {
		return nil, -1
	}
	if isIndex(raw) {
		return at, -1 // positions are left out of paths
	}
	if len(at) == 1 {
		return f.down(at[0], name)
	}
	var next state
	rule := -1
	for _, t := range at {
		to, r := f.down(t, name)
		if r >= 0 && (rule < 0 || r < rule) {
			rule = r
		}
		next = union(next, to)
	}
	return next, rule
}

func (f *Floor) down(t *trie, name []byte) (state, int) {
	c := t.next[string(name)]
	switch {
	case c == nil && t.any == nil:
		if t.block > 0 {
			return f.blocks[t.block].self, -1
		}
		return nil, -1
	case c == nil:
		return t.any.self, t.any.rule
	case t.any == nil || c.rule >= 0:
		return c.self, c.rule
	}
	return state{c, t.any}, t.any.rule
}

// within reports whether key rule r counts at a place.
func (f *Floor) within(at state, r int) bool {
	blocks := f.withinBlocks[r]
	if len(blocks) == 0 {
		return true
	}
	for _, t := range at {
		if t.block > 0 {
			if slices.Contains(blocks, f.blockNames[t.block-1]) {
				return true
			}
		}
	}
	return false
}

func union(a, b state) state {
	if len(a) == 0 {
		return b
	}
	out := a
next:
	for _, t := range b {
		for _, have := range out {
			if have == t {
				continue next
			}
		}
		out = append(out[:len(out):len(out)], t)
	}
	return out
}

// zone reports whether a place leads to protected fields by path, or lies in a
// protected block.
func zone(at state) bool { return len(at) > 0 }

// walk returns the protected part of n, nil if there is none.
func (w *walker) walk(n *node, at state) (*part, error) {
	if w.visits++; w.visits > maxNodes {
		return nil, unreadable("aliases make more than %d values of it", maxNodes)
	}
	if zone(at) && n.tag != "" && n.tag != "time" {
		w.special(specialTag, n.tag+" "+n.scalar)
	}
	switch n.kind {
	case mapKind:
		return w.walkMap(n, at)
	case listKind:
		return w.walkList(n, at)
	case textKind:
		if zone(at) && substitutes(n.scalar) {
			w.special(specialEnv, n.scalar)
		}
	}
	return nil, nil
}

func (w *walker) special(what, val string) {
	w.view.specials = append(w.view.specials, special{joinPath(w.path), what, val})
}

func (w *walker) walkList(n *node, at state) (*part, error) {
	var out *part
	for i, item := range n.items {
		if item.tag == "" && (item.kind < textKind || item.kind == textKind && len(at) == 0) {
			continue // nothing can be in it
		}
		w.path = append(w.path, "["+strconv.Itoa(i)+"]")
		p, err := w.walk(item, at)
		w.path = w.path[:len(w.path)-1]
		if err != nil {
			return nil, err
		}
		if p != nil {
			if out == nil {
				out = &part{rule: -1, kind: listKind, list: n}
			}
			out.items = append(out.items, partItem{i, p})
		}
	}
	return out, nil
}

func (w *walker) walkMap(n *node, at state) (*part, error) {
	var out *part
	winners := w.winners(n)
	var names map[string]int // made when needed
	for i := range n.ents {
		e := &n.ents[i]
		if e.merge {
			w.view.merges = true
			if !w.reading.noMerge {
				p, err := w.merge(n, e.val, at, out)
				if err != nil {
					return nil, err
				}
				out = p
				continue
			}
		}
		if winners != nil && winners[w.f.skeleton(e.key)] != i {
			continue // another entry of the same key counts
		}
		next, rule := w.f.step(at, e.key)
		if rule < 0 && len(next) == 0 && !e.odd && plainKey(e.key) && e.val.kind <= textKind && !zone(at) {
			continue // the usual case: a scalar that nothing protects
		}
		w.path = append(w.path, e.key)
		w.keySpecials(e, at)
		var p *part
		var err error
		if rule >= 0 {
			p = &part{rule: rule, val: e.val}
		} else {
			p, err = w.walk(e.val, next)
		}
		w.path = w.path[:len(w.path)-1]
		if err != nil {
			return nil, err
		}
		if p == nil {
			continue
		}
		if out == nil {
			out = &part{rule: -1, kind: mapKind}
		}
		out.ents = append(out.ents, partEntry{e.key, p})
		if !w.view.equals && w.reading.equal == all && len(n.ents) > 1 {
			if names == nil {
				names = w.names(n)
			}
			w.view.equals = names[w.f.skeleton(e.key)] > 1
		}
	}
	return out, nil
}

// merge adds what a YAML merge key brings into map n. Keys of the map itself
// come before it for most readers, not for all, so both count.
func (w *walker) merge(n, from *node, at state, out *part) (*part, error) {
	sources := []*node{from}
	if from.kind == listKind {
		sources = from.items
	}
	var names map[string]int // made when needed
	for _, s := range sources {
		p, err := w.walk(s, at)
		if err != nil {
			return nil, err
		}
		if p == nil || p.kind != mapKind {
			continue
		}
		if out == nil {
			out = &part{rule: -1, kind: mapKind}
		}
		if names == nil {
			names = w.names(n)
		}
		for _, e := range p.ents {
			own := names[w.f.skeleton(e.key)] > 0
			if own && w.reading.equal != all {
				continue
			}
			w.view.equals = w.view.equals || own
			out.ents = append(out.ents, e)
		}
	}
	return out, nil
}

// names counts the keys of a map by what a lenient reader takes them for.
func (w *walker) names(n *node) map[string]int {
	out := make(map[string]int, len(n.ents))
	for _, e := range n.ents {
		out[w.f.skeleton(e.key)]++
	}
	return out
}

// winners returns which entry counts for each key in the present reading, nil
// where all do.
func (w *walker) winners(n *node) map[string]int {
	if w.reading.equal == all {
		return nil
	}
	out := make(map[string]int, len(n.ents))
	for i := range n.ents {
		name := w.f.skeleton(n.ents[i].key)
		if _, ok := out[name]; !ok || w.reading.equal == last {
			out[name] = i
		}
	}
	return out
}

// keySpecials notes what a key alone does: refer, substitute, reach into
// prototypes.
func (w *walker) keySpecials(e *entry, at state) {
	key := e.key
	if !zone(at) && !e.odd && plainKey(key) && key[0] != '_' && len(key) != len("constructor") {
		return
	}
	switch s := skeleton(key); {
	case s == "__proto__" || s == protoParent && e.val.kind == mapKind && hasKey(e.val, protoChild):
		if w.f.touches(e.val, 0) {
			w.special(specialPrototype, describe(e.val))
		}
	case !zone(at):
	case e.odd:
		w.special(specialKey, key)
	case refers(s, at):
		w.special(specialRef, key+" "+describe(e.val))
	case substitutesKey(key):
		w.special(specialEnv, key)
	}
}

var protoParent, protoChild = skeleton("constructor"), skeleton("prototype")

func hasKey(n *node, name string) bool {
	for _, e := range n.ents {
		if skeleton(e.key) == name {
			return true
		}
	}
	return false
}

// touches reports whether any key inside n has the name of a protected field or
// of what leads to one.
func (f *Floor) touches(n *node, depth int) bool {
	if depth > 100 {
		return true
	}
	for _, e := range n.ents {
		for _, segments := range segmentations(e.key) {
			for _, s := range segments {
				for _, name := range f.names {
					if s == name {
						return true
					}
				}
			}
		}
		if f.touches(e.val, depth+1) {
			return true
		}
	}
	for _, item := range n.items {
		if f.touches(item, depth+1) {
			return true
		}
	}
	return false
}

// describe is a short text of a value, to tell specials apart.
func describe(n *node) string {
	switch n.kind {
	case mapKind, listKind:
		var b strings.Builder
		for i, e := range n.ents {
			if i == 20 {
				break
			}
			b.WriteString(e.key + ":" + e.val.scalar + ",")
		}
		for i, item := range n.items {
			if i == 20 {
				break
			}
			b.WriteString(item.scalar + ",")
		}
		return b.String() + strconv.Itoa(len(n.ents)+len(n.items))
	}
	return n.scalar
}

// joinPath writes a path for people: keys joined by dots, odd ones quoted.
func joinPath(path []string) string {
	var b strings.Builder
	for _, s := range path {
		switch {
		case strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]"):
			b.WriteString(s)
			continue
		case b.Len() > 0:
			b.WriteByte('.')
		}
		if plainKey(s) {
			b.WriteString(s)
		} else {
			b.WriteString(strconv.QuoteToASCII(s))
		}
	}
	return clip(b.String(), 200)
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n-3] + "..."
}
