package floor

import (
	"strconv"
)

// finding is one thing that the floor refuses.
type finding struct {
	rule    int
	path    string
	what    string // how the field changes: "is set", "is removed", ...
	special string // one of the special constants where no rule is broken
}

const (
	whatSet     = "cannot be set"
	whatChanged = "cannot be changed"
	whatRemoved = "cannot be removed"
	whatValue   = "cannot have this value"
	whatWider   = "can only be made narrower"
)

// compareDocuments returns what the change from one document to another does to
// protected fields. A reader reads both in the same way, so each way to read the
// new one must amount to the same way to read the old one.
func (f *Floor) compareDocuments(before, after *document) []finding {
	return f.compareReadings(before.views, after.views)
}

func (f *Floor) compareReadings(before, after []*view) []finding {
	for _, r := range readingsOf(before, after) {
		olds, news := inReading(before, r), inReading(after, r)
		for i, a := range news {
			// Of several documents a reader takes the first, the last, or all; and
			// both texts may stand there in two ways of splitting them into lines.
			var as []*view
			switch {
			case len(news) == 1:
				as = olds
			case i == 0:
				as = olds[:1]
			case i == len(news)-1:
				as = olds[len(olds)-1:]
			}
			var best []finding
			if as != nil {
				for _, b := range as {
					if best = f.compareViews(b, a); len(best) > 0 {
						break
					}
				}
			} else {
				for _, b := range olds {
					if best = f.compareViews(b, a); len(best) == 0 {
						break
					}
				}
			}
			if len(best) > 0 && r.noMerge && len(olds) == len(news) {
				// What merge keys brought in may be written out.
				merged := r
				merged.noMerge = false
				best = f.compareViews(inReading(before, merged)[i], a)
			}
			if len(best) > 0 {
				return best
			}
		}
	}
	return nil
}

// readingsOf returns the readings in which either document is worth a look, the
// plain one first.
func readingsOf(before, after []*view) []reading {
	equals, merges := false, false
	for _, vs := range [][]*view{before, after} {
		for _, v := range vs {
			equals, merges = equals || v.equals, merges || v.merges
		}
	}
	out := []reading{{}}
	if equals {
		out = append(out, reading{equal: first}, reading{equal: last})
	}
	if merges {
		for _, r := range out {
			out = append(out, reading{r.equal, true})
		}
	}
	return out
}

// inReading returns the views of a document, one for each tree, in the given
// reading, or in the plain one where the two do not differ.
func inReading(views []*view, r reading) []*view {
	out := make([]*view, 0, 1)
	for i, v := range views {
		if v.reading != (reading{}) {
			continue // belongs to a tree before it
		}
		want := r
		if !v.equals {
			want.equal = all
		}
		want.noMerge = want.noMerge && v.merges
		for _, o := range views[i:] {
			if o.reading == want {
				v = o
				break
			}
		}
		out = append(out, v)
	}
	return out
}

func (f *Floor) compareViews(b, a *view) []finding {
	c := comparer{f: f}
	c.parts(b.root, a.root)
	was := make(map[special]bool, len(b.specials))
	for _, s := range b.specials {
		s.path = withoutPositions(s.path)
		was[s] = true
	}
	for _, s := range a.specials {
		path := s.path
		if s.path = withoutPositions(s.path); !was[s] {
			c.found = append(c.found, finding{rule: -1, path: path, special: s.what})
		}
	}
	return c.found
}

// withoutPositions takes list positions out of a path: an element that moved is
// the same element.
func withoutPositions(path string) string {
	b := make([]byte, 0, len(path))
	depth := 0
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case '[':
			depth++
		case ']':
			depth--
		default:
			if depth == 0 {
				b = append(b, path[i])
			}
		}
	}
	return string(b)
}

// comparer collects what differs between two views.
type comparer struct {
	f     *Floor
	found []finding
	path  []string
	write bool // the new part is written on purpose: a Fixed field may not even be written with its own value
}

func (c *comparer) add(rule int, what string) {
	c.found = append(c.found, finding{rule: rule, path: joinPath(c.path), what: what})
}

// parts compares what stood at a place with what stands there now; either may be
// nil.
func (c *comparer) parts(b, a *part) {
	switch {
	case a == nil && b == nil:
	case a == nil:
		c.each(b, func(p *part) { c.add(p.rule, whatRemoved) })
	case b == nil:
		c.each(a, func(p *part) { c.leaf(nil, p) })
	case b.rule >= 0 && a.rule >= 0:
		c.leaf(b, a)
	case b.rule >= 0 || a.rule >= 0 || b.kind != a.kind:
		c.parts(b, nil)
		c.parts(nil, a)
	case a.kind == listKind:
		c.lists(b, a)
	default:
		c.maps(b, a)
	}
}

// each calls do for every protected field in p, with the path at it.
func (c *comparer) each(p *part, do func(*part)) {
	if p.rule >= 0 {
		do(p)
		return
	}
	for _, e := range p.ents {
		c.path = append(c.path, e.key)
		c.each(e.p, do)
		c.path = c.path[:len(c.path)-1]
	}
	for _, e := range p.items {
		c.path = append(c.path, "["+strconv.Itoa(e.index)+"]")
		c.each(e.p, do)
		c.path = c.path[:len(c.path)-1]
	}
}

// leaf compares a protected field with what it was; b is nil where it was not
// set, or where that is not known.
func (c *comparer) leaf(b, a *part) {
	r := c.f.rules.Rules[a.rule]
	same := b != nil && equalNodes(b.val, a.val)
	switch {
	case same && !(c.write && r.Mode == Fixed):
	case r.Mode == Values:
		if c.f.refused(r, a.val) {
			c.add(a.rule, whatValue)
		}
	case r.Mode == Tighten && b != nil:
		if !r.narrower(b.val, a.val) {
			c.add(a.rule, whatWider)
		}
	case b == nil:
		c.add(a.rule, whatSet)
	default:
		c.add(a.rule, whatChanged)
	}
}

// refused reports whether a rule of mode Values refuses v. A value that is no
// plain word is refused too: a lenient reader could make the refused one of it.
func (f *Floor) refused(r Rule, v *node) bool {
	if v.kind != textKind || v.tag != "" || v.other != "" || substitutes(v.scalar) {
		return true
	}
	for _, s := range readings(trimQuotes(v.scalar)) {
		got := skeleton(trimQuotes(s))
		if got == "" {
			return true
		}
		for _, word := range r.Refuse {
			if got == skeleton(word) {
				return true
			}
		}
	}
	return false
}

// trimQuotes takes off the quotes that a value written as text may carry.
func trimQuotes(s string) string {
	for len(s) >= 2 && (s[0] == '"' || s[0] == '\'' || s[0] == '`') && s[len(s)-1] == s[0] {
		s = s[1 : len(s)-1]
	}
	return s
}

// maps compares two maps. A key may stand in a map twice, when all readings are
// looked at together: then each value must be one that was there.
func (c *comparer) maps(b, a *part) {
	under := func(key string, b, a *part) []finding {
		d := comparer{f: c.f, path: append(c.path, key), write: c.write}
		d.parts(b, a)
		return d.found
	}
	was := make(map[string][]int, len(b.ents))
	for i, o := range b.ents {
		was[o.key] = append(was[o.key], i)
	}
	is := make(map[string]bool, len(a.ents))
	for _, e := range a.ents {
		is[e.key] = true
		var best []finding
		n := 0
		for _, i := range was[e.key] {
			o := b.ents[i]
			found := under(e.key, o.p, e.p)
			if n == 0 || len(found) == 0 {
				best = found
			}
			if n++; len(found) == 0 {
				break
			}
		}
		if n == 0 {
			best = under(e.key, nil, e.p)
		}
		c.found = append(c.found, best...)
	}
	for _, o := range b.ents {
		if !is[o.key] {
			c.found = append(c.found, under(o.key, o.p, nil)...)
		}
	}
}

// lists compares two lists. The protected fields of an element must stay, and
// stay with that element: at its place, or wherever it moved when other elements
// came, went or changed places.
func (c *comparer) lists(b, a *part) {
	byIndex := c.byIndex(b, a)
	if len(byIndex) == 0 || c.moved(b, a) {
		return
	}
	c.found = append(c.found, byIndex...)
}

func (c *comparer) byIndex(b, a *part) []finding {
	d := comparer{f: c.f, path: c.path, write: c.write}
	for i, j := 0, 0; i < len(b.items) || j < len(a.items); {
		var bp, ap *part
		index := 0
		switch {
		case j == len(a.items) || i < len(b.items) && b.items[i].index < a.items[j].index:
			bp, index = b.items[i].p, b.items[i].index
			i++
		case i == len(b.items) || a.items[j].index < b.items[i].index:
			ap, index = a.items[j].p, a.items[j].index
			j++
		default:
			bp, ap, index = b.items[i].p, a.items[j].p, a.items[j].index
			i++
			j++
		}
		d.path = append(d.path, "["+strconv.Itoa(index)+"]")
		d.parts(bp, ap)
		d.path = d.path[:len(d.path)-1]
	}
	return d.found
}

// maxMoved bounds the elements without a name that moved compares, each with
// each.
const maxMoved = 500

// moved reports whether the elements with protected fields are the same in both
// lists, each told apart from the others by its name or by all it holds.
func (c *comparer) moved(b, a *part) bool {
	if len(b.items) != len(a.items) {
		return false
	}
	named := namesOf(b.list)
	byName := make(map[string]int, len(b.items))
	for k, bi := range b.items {
		if name := named[bi.index]; name != "" {
			byName[name] = k
		}
	}
	names := namesOf(a.list)
	taken := make([]bool, len(b.items))
	same := func(k int, ai partItem) bool {
		d := comparer{f: c.f, write: c.write}
		d.parts(b.items[k].p, ai.p)
		return len(d.found) == 0
	}
	for _, ai := range a.items {
		match := -1
		if k, ok := byName[names[ai.index]]; ok && !taken[k] && same(k, ai) {
			match = k
		}
		for k := 0; match < 0 && k < len(b.items) && len(b.items) <= maxMoved; k++ {
			if !taken[k] && equalNodes(b.list.items[b.items[k].index], a.list.items[ai.index]) && same(k, ai) {
				match = k
			}
		}
		if match < 0 {
			return false
		}
		taken[match] = true
	}
	return true
}

// namesOf returns, for each element of a list, its id or name, "" where it has
// none or another element has the same.
func namesOf(list *node) []string {
	out := make([]string, len(list.items))
	count := map[string]int{}
	for i, item := range list.items {
		for _, key := range []string{"id", "name"} {
			if v, ok := item.get(key); ok && v.kind <= textKind && v.kind != nullKind {
				out[i] = key + "\x00" + v.kind.String() + "\x00" + v.scalar + "\x00" + v.other
				count[out[i]]++
				break
			}
		}
	}
	for i := range out {
		if count[out[i]] > 1 {
			out[i] = ""
		}
	}
	return out
}
