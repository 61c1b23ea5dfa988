package floor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"

	goccy "github.com/goccy/go-yaml"
)

// changes returns how many changes a property test generates:
// DREAMGUARD_FLOOR_CHANGES, or a few by default.
func changes(t *testing.T) int {
	s := os.Getenv("DREAMGUARD_FLOOR_CHANGES")
	if s == "" {
		return 4000
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("DREAMGUARD_FLOOR_CHANGES=%q: want a number", s)
	}
	return n
}

type object = map[string]any

// gen makes random configurations and changes of them.
type gen struct{ *rand.Rand }

func pick[T any](g gen, from ...T) T { return from[g.IntN(len(from))] }

var plainNames = []string{"name", "mode", "port", "enabled", "allow", "hosts", "hostname", "denyList", "note", "x", "timeout", "backend", "writeRootsNote", "fromAllow", "0", "größe", "a-b"}

func (g gen) scalar() any {
	return pick[any](g, "text", "", "allow", "0.0.0.0", "yes", "12", "a: b", "- x", "# no", "line\nbreak", "quote\"'", 1, -7, 2.5, true, false, "~", "é", "<<")
}

// value is a value without protected keys.
func (g gen) value(depth int) any {
	switch k := g.IntN(6); {
	case depth > 2 || k < 3:
		return g.scalar()
	case k == 3:
		var out []any
		for range g.IntN(4) {
			out = append(out, g.value(depth+1))
		}
		if out == nil {
			out = []any{}
		}
		return out
	}
	out := object{}
	for range g.IntN(4) {
		out[pick(g, plainNames...)] = g.value(depth + 1)
	}
	return out
}

func (g gen) texts(words ...string) []any {
	out := []any{}
	for _, w := range words {
		if g.IntN(2) == 0 {
			out = append(out, w)
		}
	}
	return out
}

// document is a configuration that has most of the protected fields.
func (g gen) document() object {
	maybe := func(m object, key string, v any) {
		if g.IntN(4) > 0 {
			m[key] = v
		}
	}
	server := object{"enabled": g.IntN(2) == 0, "port": 7420}
	maybe(server, "host", pick[any](g, "127.0.0.1", "::1", "localhost"))
	maybe(server, "tokenEnv", pick[any](g, "TOKEN", "API_TOKEN"))
	policy := object{"mode": "allow", "allow": g.texts("exec(git *)", "exec(ls)")}
	maybe(policy, "deny", g.texts("exec(rm *)", "exec(curl *)", "exec(dd *)"))
	untrusted := object{"note": "x"}
	maybe(untrusted, "onMutate", pick[any](g, "refuse", "confirm"))
	system := object{"timeout": 5}
	maybe(system, "writeRoots", g.texts("/srv/work", "~/x"))
	channels := []any{}
	for i := range g.IntN(4) {
		c := object{"id": fmt.Sprintf("c%d", i), "type": pick[any](g, "telegram", "slack")}
		maybe(c, "allowFrom", g.texts("@a", "@b", "*"))
		channels = append(channels, c)
	}
	doc := object{
		"server": server, "channels": channels, "notes": g.value(0), "limits": object{"maxSteps": g.IntN(50)},
		"tools": object{"pinned": []any{"now"}, "providers": object{"system": system, "web": object{"backend": "x"}}, "policy": policy, "untrusted": untrusted},
	}
	for _, k := range []string{"server", "channels", "notes"} {
		if g.IntN(8) == 0 {
			delete(doc, k)
		}
	}
	return doc
}

func clone(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for k, x := range v {
			out[k] = clone(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = clone(x)
		}
		return out
	}
	return v
}

// isProtected is the test's own statement of the rules, without normalisation
// beyond letter case.
func isProtected(path []string) bool {
	last := strings.ToLower(path[len(path)-1])
	if last == "writeroots" || last == "allowfrom" {
		return true
	}
	switch strings.ToLower(strings.Join(path, "/")) {
	case "server/host", "server/tokenenv", "tools/policy/deny", "tools/untrusted/onmutate":
		return true
	}
	return false
}

// effects lists the protected fields of a configuration with their values. An
// element of a list goes by its id, where it has one.
func effects(v any, path []string, out map[string]string) {
	switch v := v.(type) {
	case object:
		for k, x := range v {
			p := append(slices.Clone(path), k)
			if isProtected(p) {
				b, err := json.Marshal(x)
				if err != nil {
					b = []byte(fmt.Sprint(x))
				}
				name := strings.ToLower(strings.Join(p, "/"))
				text := string(b)
				if name == "tools/untrusted/onmutate" && !strings.EqualFold(text, `"allow"`) {
					text = "checked"
				}
				out[name] = text
				continue
			}
			effects(x, p, out)
		}
	case []any:
		for i, x := range v {
			id := strconv.Itoa(i)
			if m, ok := x.(object); ok && m["id"] != nil {
				id = fmt.Sprint(m["id"])
			}
			effects(x, append(slices.Clone(path), "#"+id), out)
		}
	}
}

func effectsOf(v any) string {
	out := map[string]string{}
	effects(v, nil, out)
	keys := make([]string, 0, len(out))
	for k, x := range out {
		keys = append(keys, k+"="+x)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

// kept reports whether effects are what they were; a check on untrusted content
// where there was none is no widening.
func kept(was, now string) bool {
	const checked = "tools/untrusted/onmutate=checked"
	if !strings.Contains(was, checked) {
		now = strings.TrimSpace(strings.ReplaceAll(now, checked, ""))
	}
	return was == now
}

// place is somewhere in a configuration: a map or list, with the keys to it.
type place struct {
	path []string
	node any
	set  func(any) // puts another value there
}

// places lists every map and list.
func places(root *any) []place {
	var out []place
	var walk func(v any, path []string, set func(any))
	walk = func(v any, path []string, set func(any)) {
		switch v := v.(type) {
		case object:
			out = append(out, place{path, v, set})
			keys := make([]string, 0, len(v))
			for k := range v {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			for _, k := range keys {
				walk(v[k], append(slices.Clone(path), k), func(x any) { v[k] = x })
			}
		case []any:
			out = append(out, place{path, v, set})
			for i := range v {
				walk(v[i], append(slices.Clone(path), strconv.Itoa(i)), func(x any) { v[i] = x })
			}
		}
	}
	walk(*root, nil, func(x any) { *root = x })
	return out
}

func under(path []string) bool { // a protected field, or something inside one
	for i := range path {
		names := slices.DeleteFunc(slices.Clone(path[:i+1]), func(s string) bool { _, err := strconv.Atoi(s); return err == nil && s != "" })
		if len(names) > 0 && isProtected(names) {
			return true
		}
	}
	return false
}

// harmless changes a configuration without touching a protected field.
func (g gen) harmless(root *any) {
	for range 1 + g.IntN(3) {
		all := slices.DeleteFunc(places(root), func(p place) bool { return under(p.path) })
		p := all[g.IntN(len(all))]
		switch v := p.node.(type) {
		case object:
			key := pick(g, plainNames...)
			keys := make([]string, 0, len(v))
			for k := range v {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			if len(keys) > 0 && g.IntN(2) == 0 {
				key = keys[g.IntN(len(keys))]
			}
			old, had := v[key]
			here := append(slices.Clone(p.path), key)
			if under(here) || effectsOf(object{"x": old}) != "" || effectsOf(nest(here, old)) != "" || key == "id" {
				continue // on the way to a protected field, or one
			}
			if had && g.IntN(3) == 0 {
				delete(v, key)
			} else {
				v[key] = g.value(1)
			}
		case []any:
			// At the end, or in front where elements have ids.
			if g.IntN(3) == 0 && len(p.path) == 1 && p.path[0] == "channels" {
				p.set(append([]any{object{"id": "new" + strconv.Itoa(g.IntN(1e6)), "type": "x"}}, v...))
			} else if len(p.path) == 1 && p.path[0] == "channels" {
				p.set(append(v, object{"id": "new" + strconv.Itoa(g.IntN(1e6))}))
			} else {
				p.set(append(v, g.value(1)))
			}
		}
	}
}

// nest puts a value at a path of map keys.
func nest(path []string, v any) any {
	for i := len(path) - 1; i >= 0; i-- {
		v = object{path[i]: v}
	}
	return v
}

var protectedNames = []string{"writeRoots", "allowFrom", "host", "tokenEnv", "deny", "onMutate", "server", "policy", "untrusted", "tools", "providers", "channels", "system"}

// hostile changes a configuration in any way, protected fields with preference.
func (g gen) hostile(root *any) {
	for range 1 + g.IntN(2) {
		all := places(root)
		p := all[g.IntN(len(all))]
		hot := slices.DeleteFunc(slices.Clone(all), func(p place) bool { return effectsOf(nest(p.path, p.node)) == "" })
		if len(hot) > 0 && g.IntN(3) > 0 {
			p = hot[g.IntN(len(hot))]
		}
		switch v := p.node.(type) {
		case object:
			key := pick(g, protectedNames...)
			keys := make([]string, 0, len(v))
			for k := range v {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			if len(keys) > 0 && g.IntN(2) == 0 {
				key = keys[g.IntN(len(keys))]
			}
			if key == "id" {
				continue // by which effects tells channels apart, and no protected field
			}
			switch g.IntN(6) {
			case 0:
				delete(v, key)
			case 1: // rename
				if old, ok := v[key]; ok {
					delete(v, key)
					v[pick(g, append(plainNames, protectedNames...)...)] = old
				}
			case 2: // another case
				if old, ok := v[key]; ok {
					delete(v, key)
					v[strings.ToUpper(key)] = old
				}
			case 3: // move somewhere else
				if old, ok := v[key]; ok {
					if to, ok := all[g.IntN(len(all))].node.(object); ok {
						to[key] = clone(old)
						if g.IntN(2) == 0 {
							delete(v, key)
						}
					}
				}
			case 4:
				v[key] = pick[any](g, []any{"*"}, []any{}, "0.0.0.0", "allow", "ALLOW", "confirm", nil, object{}, "refuse", object{"host": "x"}, object{"deny": []any{}}, object{"onMutate": "allow"})
			default:
				v[pick(g, protectedNames...)] = object{pick(g, protectedNames...): pick[any](g, []any{"*"}, "allow", object{pick(g, protectedNames...): "x"})}
			}
		case []any:
			switch {
			case len(v) > 0 && g.IntN(3) == 0:
				i := g.IntN(len(v))
				p.set(append(slices.Clone(v[:i]), v[i+1:]...))
			case len(v) > 1 && g.IntN(2) == 0:
				i, j := g.IntN(len(v)), g.IntN(len(v))
				v[i], v[j] = v[j], v[i]
			default:
				p.set(append(v, pick[any](g, "x", object{"id": "y", "allowFrom": []any{"*", "y"}}, object{"writeRoots": []any{}})))
			}
		}
	}
}

// render writes a configuration in a random layout of the format.
func (g gen) render(t *testing.T, f Format, v any) []byte {
	switch f {
	case JSON, JSONC:
		return []byte(g.json(v, f == JSONC))
	case TOML:
		var b bytes.Buffer
		if err := toml.NewEncoder(&b).Encode(v); err != nil {
			return nil // null and mixed lists are not for TOML
		}
		return b.Bytes()
	}
	switch g.IntN(4) {
	case 0: // JSON is YAML
		b, err := json.MarshalIndent(v, "", strings.Repeat(" ", g.IntN(5)))
		if err != nil {
			t.Fatal(err)
		}
		return b
	case 1:
		b, err := goccy.Marshal(v)
		if err == nil {
			return b
		}
	}
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		t.Fatal(err)
	}
	g.style(&n)
	b, err := yaml.Marshal(&n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (g gen) style(n *yaml.Node) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str" && g.IntN(3) == 0:
		n.Style = pick(g, yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle)
	case n.Kind == yaml.MappingNode:
		for i := 0; i+3 < len(n.Content); i += 2 {
			if g.IntN(3) == 0 {
				n.Content[i], n.Content[i+2] = n.Content[i+2], n.Content[i]
				n.Content[i+1], n.Content[i+3] = n.Content[i+3], n.Content[i+1]
			}
		}
		fallthrough
	case n.Kind == yaml.SequenceNode:
		if g.IntN(4) == 0 {
			n.Style = yaml.FlowStyle
		}
	}
	for i, c := range n.Content {
		if g.IntN(8) == 0 && (n.Kind != yaml.MappingNode || i%2 == 0) && n.Style != yaml.FlowStyle {
			c.HeadComment = "# host: 0.0.0.0"
		}
		g.style(c)
	}
}

func (g gen) json(v any, comments bool) string {
	gap := func() string {
		s := pick(g, "", " ", "\n", "\t ")
		if comments && g.IntN(4) == 0 {
			s += pick(g, "/* \"host\": 1, */", "// { }\n", "/**/")
		}
		return s
	}
	text := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		out := string(b)
		if s != "" && s[0] < 0x80 && s[0] > ' ' && s[0] != '"' && s[0] != '\\' && s[0] != '<' && g.IntN(5) == 0 {
			out = fmt.Sprintf("\"\\u%04x", s[0]) + out[2:]
		}
		return out
	}
	switch v := v.(type) {
	case object:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		g.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		var b strings.Builder
		b.WriteString("{" + gap())
		for i, k := range keys {
			if i > 0 {
				b.WriteString("," + gap())
			}
			b.WriteString(text(k) + gap() + ":" + gap() + g.json(v[k], comments) + gap())
		}
		if comments && len(keys) > 0 && g.IntN(4) == 0 {
			b.WriteString(",")
		}
		return b.String() + "}"
	case []any:
		var b strings.Builder
		b.WriteString("[" + gap())
		for i, x := range v {
			if i > 0 {
				b.WriteString("," + gap())
			}
			b.WriteString(g.json(x, comments) + gap())
		}
		return b.String() + "]"
	case string:
		return text(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// readAs reads a document with the parsers that runtimes use, none of them the
// floor's own way.
func readAs(f Format, text []byte) []any {
	var out []any
	try := func(read func(*any) error) {
		var v any
		if read(&v) == nil {
			out = append(out, normal(v))
		}
	}
	switch f {
	case JSON:
		try(func(v *any) error { return json.Unmarshal(text, v) })
	case YAML:
		try(func(v *any) error { return yaml.Unmarshal(text, v) })
		try(func(v *any) error { return goccy.Unmarshal(text, v) })
	case TOML:
		try(func(v *any) error { var m object; err := toml.Unmarshal(text, &m); *v = m; return err })
	}
	return out
}

// normal turns what parsers return into the types of encoding/json.
func normal(v any) any {
	switch v := v.(type) {
	case object:
		for k, x := range v {
			v[k] = normal(x)
		}
		return v
	case map[any]any:
		out := object{}
		for k, x := range v {
			out[fmt.Sprint(k)] = normal(x)
		}
		return out
	case []object:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = normal(x)
		}
		return out
	case []any:
		for i, x := range v {
			v[i] = normal(x)
		}
	}
	return v
}

// mergeDiff is the JSON Merge Patch from a to b.
func mergeDiff(a, b object) object {
	out := object{}
	for k, x := range b {
		old, had := a[k]
		am, okA := old.(object)
		bm, okB := x.(object)
		switch {
		case okA && okB:
			if d := mergeDiff(am, bm); len(d) > 0 {
				out[k] = d
			}
		case !had || !sameJSON(old, x):
			out[k] = x
		}
	}
	for k := range a {
		if _, ok := b[k]; !ok {
			out[k] = nil
		}
	}
	return out
}

func sameJSON(a, b any) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

// patchDiff is a JSON Patch from a to b, by whole values where maps end.
func patchDiff(a, b object, at string) []any {
	var out []any
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	names := make([]string, 0, len(keys))
	for k := range keys {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		p := at + "/" + strings.ReplaceAll(strings.ReplaceAll(k, "~", "~0"), "/", "~1")
		old, had := a[k]
		x, has := b[k]
		am, okA := old.(object)
		bm, okB := x.(object)
		switch {
		case okA && okB:
			out = append(out, patchDiff(am, bm, p)...)
		case had && !has:
			out = append(out, object{"op": "remove", "path": p})
		case !had && has:
			out = append(out, object{"op": "add", "path": p, "value": x})
		case !sameJSON(old, x):
			out = append(out, object{"op": "replace", "path": p, "value": x})
		}
	}
	return out
}

// change renders the step from before to after in a random form. A path or patch
// names what it writes, so the forms that replace a whole list are left out where
// the list has protected fields inside and forms is false.
func (g gen) change(t *testing.T, before, after any, forms bool) (Change, bool) {
	a, okA := before.(object)
	b, okB := after.(object)
	if forms && okA && okB && g.IntN(3) == 0 {
		text := g.render(t, JSON, before)
		if g.IntN(2) == 0 {
			p, err := json.Marshal(mergeDiff(a, b))
			if err != nil {
				t.Fatal(err)
			}
			return Change{Format: MergePatch, Before: text, Text: p}, true
		}
		ops := patchDiff(a, b, "")
		if ops == nil {
			ops = []any{}
		}
		p, err := json.Marshal(ops)
		if err != nil {
			t.Fatal(err)
		}
		return Change{Format: JSONPatch, Before: text, Text: p}, true
	}
	f := pick(g, JSON, JSONC, YAML, YAML, TOML)
	x, y := g.render(t, f, before), g.render(t, f, after)
	return Document(f, x, y), x != nil && y != nil
}

// No change that is permitted has a protected effect, by any reader.
func TestNoProtectedEffectPasses(t *testing.T) {
	f := Default()
	n, refused, permitted := changes(t), 0, 0
	for i := range n {
		g := gen{rand.New(rand.NewPCG(1, uint64(i)))}
		before := any(g.document())
		after := clone(before)
		g.hostile(&after)
		c, ok := g.change(t, before, after, true)
		if !ok {
			continue
		}
		if d := f.Check(c); d.Outcome != Permit {
			refused++
			continue
		}
		permitted++
		was := effectsOf(before)
		var afters []any
		if c.Format != TOML { // which has no null: the text says less than the change
			afters = append(afters, after)
		}
		if c.Format.IsDocument() {
			afters = append(afters, readAs(c.Format, c.Text)...)
		}
		for _, v := range afters {
			if now := effectsOf(v); !kept(was, now) {
				t.Fatalf("change %d (%s) passes:\nbefore %s\nafter  %s\n%s\n---\n%s", i, c.Format, was, now, c.Before, c.Text)
			}
		}
	}
	t.Logf("%d changes: %d refused, %d permitted", n, refused, permitted)
	if refused < n/3 {
		t.Errorf("only %d of %d changes are refused: the generator is tame", refused, n)
	}
}

// Every change that touches no protected field passes.
func TestEveryHarmlessChangePasses(t *testing.T) {
	f := Default()
	for i := range changes(t) {
		g := gen{rand.New(rand.NewPCG(2, uint64(i)))}
		before := any(g.document())
		after := clone(before)
		g.harmless(&after)
		if effectsOf(before) != effectsOf(after) {
			t.Fatalf("change %d: the generator made a change that is not harmless", i)
		}
		// A patch that replaces the whole list of channels writes their allowFrom.
		lists := sameJSON(before.(object)["channels"], after.(object)["channels"])
		c, ok := g.change(t, before, after, lists)
		if !ok {
			continue
		}
		if d := f.Check(c); d.Outcome != Permit {
			t.Fatalf("change %d (%s) is refused: %s %s\n%s\n---\n%s", i, c.Format, d.Rule, d.Reason, c.Before, c.Text)
		}
	}
}

// respell writes a key so that a lenient reader still takes it for the same.
func (g gen) respell(key string) string {
	switch g.IntN(6) {
	case 0:
		return strings.ToUpper(key)
	case 1:
		i := g.IntN(len(key) + 1)
		return key[:i] + pick(g, "\u200b", "\u200d", "\u00ad", "\ufeff", "\u2060", "\ufe0f", "\u0301") + key[i:]
	case 2:
		i := g.IntN(len(key))
		if alts := []rune(imitations[strings.ToLower(key)[i]]); len(alts) > 0 {
			return key[:i] + string(alts[g.IntN(len(alts))]) + key[i+1:]
		}
	case 3:
		var b strings.Builder
		for _, r := range key {
			if r > ' ' && r < 0x7f {
				r += 0xfee0
			}
			b.WriteRune(r)
		}
		return b.String()
	case 4:
		return key + "\x00"
	}
	return key
}

// A protected path in any syntax and spelling is refused, whatever the value.
func TestEveryProtectedPathIsRefused(t *testing.T) {
	f := Default()
	for i := range changes(t) {
		g := gen{rand.New(rand.NewPCG(3, uint64(i)))}
		keys := pick(g, []string{"server", "host"}, []string{"server", "tokenEnv"}, []string{"tools", "policy", "deny"}, []string{"tools", "untrusted", "onMutate"},
			[]string{"channels", "0", "allowFrom"}, []string{"tools", "providers", "system", "writeRoots"}, []string{"a", "b", "writeRoots"}, []string{"allowFrom"})
		spelt := slices.Clone(keys)
		for k := range spelt {
			if _, err := strconv.Atoi(spelt[k]); err != nil {
				spelt[k] = g.respell(spelt[k])
			}
		}
		path := ""
		switch g.IntN(4) {
		case 0:
			for _, k := range spelt {
				path += "/" + k
			}
		case 1:
			path = strings.Join(spelt, ".")
		case 2:
			path = "$"
			for _, k := range spelt {
				path += fmt.Sprintf("[%q]", k)
			}
		default:
			for k, s := range spelt {
				switch {
				case g.IntN(2) == 0:
					path += "['" + s + "']"
				case k > 0:
					path += "." + s
				default:
					path += s
				}
			}
		}
		value := any("allow")
		if keys[len(keys)-1] != "onMutate" {
			value = g.value(1)
		}
		if d := f.Check(Write(path, value)); d.Outcome != Refuse {
			t.Fatalf("change %d: %q (%v) passes", i, path, keys)
		}
		// The same inside a value written to the first key.
		inner := any(value)
		for k := len(spelt) - 1; k > 0; k-- {
			if _, err := strconv.Atoi(spelt[k]); err == nil {
				inner = []any{inner}
			} else {
				inner = object{spelt[k]: inner}
			}
		}
		if len(spelt) > 1 {
			if d := f.Check(Write(spelt[0], inner)); d.Outcome != Refuse {
				t.Fatalf("change %d: %q = %v passes", i, spelt[0], inner)
			}
		}
	}
}

// The same configuration in any layout is no change.
func TestLayoutIsNoChange(t *testing.T) {
	f := Default()
	for i := range changes(t) / 2 {
		g := gen{rand.New(rand.NewPCG(4, uint64(i)))}
		doc := any(g.document())
		c, ok := g.change(t, doc, doc, false)
		if !ok {
			continue
		}
		if d := f.Check(c); d.Outcome != Permit {
			t.Fatalf("change %d (%s): %s\n%s\n---\n%s", i, c.Format, d.Reason, c.Before, c.Text)
		}
	}
}
