package floor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	goccy "github.com/goccy/go-yaml"
	"go.yaml.in/yaml/v3"
)

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
