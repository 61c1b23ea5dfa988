package floor

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// A path can be written in several languages, and one text may mean different
// fields in two of them. parsePath follows all that can apply.
//
//	tools.policy.deny          dotted
//	channels[0].allowFrom      with positions
//	server["host"]             with quoted keys
//	$.server.host, $..host     JSONPath, with wildcards, filters and descent
//	/tools/policy/deny         JSON Pointer (RFC 6901), also as a fragment #/...

// maxPathSteps bounds the steps of a path.
const maxPathSteps = 1000

// pathStep is one step of a path.
type pathStep struct {
	keys    []string // the keys it may go to; none with any set
	any     bool     // every key or position
	descend bool     // this step may be at any depth below the last
}

// chained turns the operators with which programs go from a value to its field
// into dots.
var chained = strings.NewReplacer("?.", ".", "!.", ".", "->", ".")

// parsePath returns the ways to read a path.
func parsePath(path string) ([][]pathStep, error) {
	var out [][]pathStep
	texts := readings(strings.TrimSpace(strings.TrimPrefix(path, "\ufeff")))
	if s := chained.Replace(texts[0]); s != texts[0] {
		texts = append(texts, s)
	}
	for _, p := range texts {
		if !utf8.ValidString(p) {
			return nil, unreadable("the path is not valid UTF-8")
		}
		if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "#/") || p == "#" {
			out = append(out, pointerPath(p))
			continue
		}
		steps, err := dottedPath(p)
		if err != nil {
			return nil, err
		}
		out = append(out, steps)
	}
	for _, steps := range out {
		if len(steps) > maxPathSteps {
			return nil, unreadable("the path has more than %d steps", maxPathSteps)
		}
	}
	return out, nil
}

// pointerPath splits a JSON Pointer; its escapes are undone by segmentations,
// which looks at both ways to read them.
func pointerPath(p string) []pathStep {
	p = strings.TrimPrefix(p, "#")
	if p == "" {
		return nil
	}
	var steps []pathStep
	for s := range strings.SplitSeq(p[1:], "/") {
		key := strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
		steps = append(steps, pathStep{keys: []string{key}})
	}
	return steps
}

// dottedPath splits a dotted path or JSONPath.
func dottedPath(p string) ([]pathStep, error) {
	var steps []pathStep
	descend := false
	add := func(s pathStep) {
		s.descend, descend = descend, false
		steps = append(steps, s)
	}
	i := 0
	if p != "" && (p[0] == '$' || p[0] == '@') && (len(p) == 1 || p[1] == '.' || p[1] == '[') {
		i = 1
	}
	for i < len(p) {
		switch c := p[i]; {
		case c == '.':
			if i++; i < len(p) && p[i] == '.' {
				descend = true
				for i < len(p) && p[i] == '.' {
					i++
				}
			}
		case c == '[':
			s, n, err := bracket(p[i:])
			if err != nil {
				return nil, err
			}
			add(s)
			i += n
		case c == '"' || c == '\'' || c == '`':
			key, n, err := quotedKey(p[i:])
			if err != nil {
				return nil, err
			}
			add(pathStep{keys: []string{key}})
			i += n
		default:
			end := i
			for end < len(p) && p[end] != '.' && p[end] != '[' {
				if p[end] == '\\' && end+1 < len(p) {
					end++
				}
				end++
			}
			key := p[i:min(end, len(p))]
			switch t := strings.TrimSpace(key); {
			case t == "*" || t == "**":
				descend = descend || t == "**"
				add(pathStep{any: true})
			case t != "":
				add(pathStep{keys: []string{key}})
			}
			i = end
		}
	}
	return steps, nil
}

// bracket reads what stands in brackets: positions, quoted keys and their
// unions, wildcards, slices and filters. It returns the length read.
func bracket(p string) (pathStep, int, error) {
	var s pathStep
	depth := 0
	i := 1
	start := i
	item := func(end int) {
		if t := strings.TrimSpace(p[start:end]); t != "" {
			switch {
			case t == "*" || t[0] == '?' || t[0] == '(' || isSlice(t):
				s.any = true
			default:
				s.keys = append(s.keys, t)
			}
		}
	}
	for i < len(p) {
		switch c := p[i]; {
		case (c == '"' || c == '\'' || c == '`') && depth == 0 && strings.TrimSpace(p[start:i]) == "":
			key, n, err := quotedKey(p[i:])
			if err != nil {
				return s, 0, err
			}
			s.keys = append(s.keys, key)
			i += n
			start = i
			continue
		case c == '"' || c == '\'':
			_, n, err := quotedKey(p[i:])
			if err != nil {
				return s, 0, err
			}
			i += n
			continue
		case c == '(' || c == '[':
			depth++
		case c == ']' && depth == 0:
			item(i)
			if len(s.keys) == 0 && !s.any {
				s.any = true // []
			}
			return s, i + 1, nil
		case c == ')' || c == ']':
			depth--
		case c == ',' && depth == 0:
			item(i)
			start = i + 1
		}
		i++
	}
	return s, 0, unreadable("the path has a bracket without an end")
}

func isSlice(t string) bool {
	return strings.Contains(t, ":") && strings.Trim(t, "0123456789:- ") == ""
}

// quotedKey reads a key in quotes, with the escapes of JSON and of JavaScript.
func quotedKey(p string) (key string, n int, err error) {
	quote := p[0]
	var b strings.Builder
	for i := 1; i < len(p); {
		switch c := p[i]; {
		case c == quote:
			return b.String(), i + 1, nil
		case c == '\\' && i+1 < len(p):
			if n, r := escapeAt(p[i:]); n > 0 {
				b.WriteRune(r)
				i += n
				continue
			}
			b.WriteByte(p[i+1])
			i += 2
		default:
			b.WriteByte(c)
			i++
		}
	}
	return "", 0, unreadable("the path has a quote without an end")
}

// reach is where a path may lead.
type reach struct {
	states  []state  // the places of the value written
	rule    int      // the rule of a protected field on the way or at the end, or -1
	exact   bool     // that field is what the path ends at, and not on the way
	at      string   // the path of that field, or of the special
	special string   // a special constant where the path itself is one
	proto   bool     // the path leads through the prototype of an object
	names   []string // the steps, for messages
}

// follow returns where steps lead.
func (f *Floor) follow(steps []pathStep) reach {
	r := reach{rule: -1, states: []state{f.root.self}}
	parent := ""
	for i, s := range steps {
		hit := func(rule int) {
			if rule >= 0 && (r.rule < 0 || rule < r.rule) {
				r.rule, r.at, r.exact = rule, joinPath(r.names), i == len(steps)-1
			}
		}
		r.names = append(r.names, stepName(s))
		if s.descend {
			r.states = f.below(r.states)
		}
		var next []state
		add := func(to state) {
			for _, have := range next {
				if sameState(have, to) {
					return
				}
			}
			next = append(next, to)
		}
		for _, at := range r.states {
			if s.any {
				add(at)
				for _, t := range at {
					for _, c := range t.children() {
						hit(c.rule)
						add(c.self)
					}
				}
			}
			for _, key := range s.keys {
				if rule, ok := f.anyName(key); ok {
					hit(rule)
				}
				to, rule := f.step(at, key)
				hit(rule)
				add(to)
				if x := keySpecial(key, at); x != "" && r.special == "" {
					r.special, r.at = x, joinPath(r.names)
				}
				name := skeleton(key)
				r.proto = r.proto || name == "__proto__" || name == protoChild && parent == protoParent
				parent = name
			}
		}
		r.states = next
	}
	return r
}

// anyName reports whether a key of a path is one that a key rule protects,
// whatever its blocks.
func (f *Floor) anyName(key string) (int, bool) {
	for _, segments := range segmentations(key) {
		for _, s := range segments {
			if r, ok := f.anywhere[f.skeleton(s)]; ok {
				return r, true
			}
		}
	}
	return 0, false
}

// keySpecial is what a key in a path does beside naming a field.
func keySpecial(key string, at state) string {
	switch {
	case !zone(at):
	case refers(skeleton(key), at):
		return specialRef
	case substitutesKey(key):
		return specialEnv
	}
	return ""
}

// below returns the places at any depth below the given ones, themselves among
// them.
func (f *Floor) below(from []state) []state {
	out := from
	for i := 0; i < len(out) && len(out) < 1000; i++ {
		for _, t := range out[i] {
			for _, c := range t.children() {
				out = append(out[:len(out):len(out)], c.self)
			}
		}
	}
	return out
}

func (t *trie) children() []*trie {
	var out []*trie
	for _, c := range t.next {
		out = append(out, c)
	}
	if t.any != nil {
		out = append(out, t.any)
	}
	return out
}

func sameState(a, b state) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func stepName(s pathStep) string {
	if len(s.keys) == 0 {
		return "[*]"
	}
	if isIndex(s.keys[0]) {
		return "[" + s.keys[0] + "]"
	}
	return s.keys[0]
}

// JoinPath writes keys and positions as one path, with every key in quotes.
func JoinPath(keys []any) (string, error) {
	var b strings.Builder
	b.WriteByte('$')
	for _, k := range keys {
		switch k := k.(type) {
		case string:
			b.WriteString("[" + strconv.Quote(k) + "]")
		case int:
			b.WriteString("[" + strconv.Itoa(k) + "]")
		case float64:
			b.WriteString("[" + strconv.FormatFloat(k, 'f', -1, 64) + "]")
		default:
			return "", unreadable("a step of a path is text or a number, not %T", k)
		}
	}
	return b.String(), nil
}
