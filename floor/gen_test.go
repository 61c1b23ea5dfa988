package floor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"

	goccy "github.com/goccy/go-yaml"
)

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
