package floor

import (
	"bytes"
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var snippets = []string{
	"server: {host: 0.0.0.0}\n", "  host: 0.0.0.0\n", "  Host: x\n", "server.host: x\n", "<<: {server: {host: x}}\n", "  <<: *a\n", "x: &a {host: 0.0.0.0, deny: []}\n",
	"---\n", "...\n", "# c\n", "  onMutate: allow\n", "    onMutate: allow\n", "tools: {}\n", "writeRoots: [/]\n", "? host\n: x\n", "  ? host\n  : x\n", "\"server\": {}\n",
	"&a ", "*a", "!x ", "| \n", "- ", "  ", "\n", "\t", ": ", "{", "}", "[", "]", ",", "\"", "'", "#", "\x85", "\u2028", "\r", "null", "allow",
	`"host": "0.0.0.0",`, `"server": {},`, `"\u0068ost": 1,`, `"deny": [],`, `/* x */`, `// x` + "\n", `"tools": {"policy": {}},`,
	"[server]\n", "[[server]]\n", "server.host = \"x\"\n", "host = \"x\"\n", "[tools.untrusted]\nonMutate = \"allow\"\n",
}

// mangle changes a text at random.
func (g gen) mangle(text []byte) []byte {
	for range 1 + g.IntN(3) {
		lines := bytes.SplitAfter(text, []byte("\n"))
		i := g.IntN(len(lines))
		switch g.IntN(7) {
		case 0:
			lines = slices.Delete(lines, i, i+1)
		case 1:
			lines = slices.Insert(lines, i, lines[g.IntN(len(lines))])
		case 2:
			j := g.IntN(len(lines))
			lines[i], lines[j] = lines[j], lines[i]
		case 3, 4:
			lines = slices.Insert(lines, i, []byte(pick(g, snippets...)))
		case 5:
			at := g.IntN(len(lines[i]) + 1)
			lines[i] = slices.Concat(lines[i][:at], []byte(pick(g, snippets...)), lines[i][at:])
		default:
			at := g.IntN(len(lines[i]) + 1)
			end := min(len(lines[i]), at+g.IntN(12))
			lines[i] = slices.Concat(lines[i][:at], lines[i][end:])
		}
		text = bytes.Join(lines, nil)
		if len(text) == 0 {
			return text
		}
	}
	return text
}

// looseEffects is effectsOf with "not set" for documents that set nothing.
func looseEffects(v any) string {
	if m, ok := v.(object); ok {
		return effectsOf(m)
	}
	return effectsOf(object{"": v})
}

// No mangled text that passes has a protected effect, by any reader that reads it.
func TestNoMangledTextPasses(t *testing.T) {
	f := Default()
	n, permitted, read := changes(t), 0, 0
	for i := range n {
		g := gen{rand.New(rand.NewPCG(5, uint64(i)))}
		doc := any(g.document())
		format := pick(g, JSON, YAML, YAML, TOML)
		before := g.render(t, format, doc)
		if before == nil {
			continue
		}
		after := g.mangle(bytes.Clone(before))
		if f.Check(Document(format, before, after)).Outcome != Permit {
			continue
		}
		permitted++
		was := effectsOf(doc)
		for _, v := range readAs(format, after) {
			read++
			// An id that changed is no protected effect, and the readers of the
			// test name channels by it.
			if now := looseEffects(v); !kept(was, now) && !strings.Contains(was+now, "channels") {
				t.Fatalf("change %d (%s) passes:\nbefore %s\nafter  %s\n%s\n---\n%s", i, format, was, now, before, after)
			}
		}
	}
	t.Logf("%d texts: %d permitted, %d readings of them", n, permitted, read)
	if permitted < n/50 {
		t.Errorf("only %d of %d texts pass: the generator is too wild", permitted, n)
	}
}

// seeds gives a fuzz target the documents and patches of the lists.
func seeds(f *testing.F, formats ...Format) {
	for _, name := range []string{"bypass", "harmless"} {
		for _, l := range readList(f, name) {
			if slices.Contains(formats, l.change.Format) && len(l.change.Text) < 5000 {
				f.Add(l.change.Text)
			}
		}
	}
}

// FuzzJSON compares the parser with encoding/json.
func FuzzJSON(f *testing.F) {
	seeds(f, JSON, JSONC)
	for _, number := range []string{"0.0", "-0", "-0.0", "1e2", "1E+2", "100", "0.1e-400", "1e400", "12345678901234567890"} {
		f.Add([]byte(number)) // spelt in other ways than the parser keeps them
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = parse(JSONC, text) // must not panic
		trees, err := parse(JSON, text)
		var want any
		dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
		dec.UseNumber()
		valid := json.Valid(bytes.TrimPrefix(text, []byte("\ufeff"))) && dec.Decode(&want) == nil
		if err == nil && !valid && len(bytes.TrimSpace(text)) > 0 && !bytes.HasPrefix(text, []byte("\xff")) && !bytes.HasPrefix(text, []byte("\xfe")) && !bytes.HasPrefix(text, []byte("\ufeff")) {
			t.Fatalf("%q is no JSON and was read", text)
		}
		if err != nil || !valid {
			return
		}
		if got := toAny(trees[0]); !sameValue(got, want) && !bytes.Contains(text, []byte("\\u")) {
			t.Fatalf("%q: %v, want %v", text, got, want)
		}
	})
}

// sameValue reports whether two decoded values are the same, numbers by what they
// are worth: whole ones exactly, others as float64.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case object:
		b, ok := b.(object)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, x := range a {
			y, ok := b[k]
			if !ok || !sameValue(x, y) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		if x, ok := new(big.Int).SetString(string(a), 10); ok {
			if y, ok := new(big.Int).SetString(string(b), 10); ok {
				return x.Cmp(y) == 0
			}
		}
		x, err := a.Float64()
		y, err2 := b.Float64()
		return err == nil && err2 == nil && x == y
	}
	return a == b
}

// toAny turns a node into what encoding/json would make of it.
func toAny(n *node) any {
	switch n.kind {
	case boolKind:
		return n.scalar == "true"
	case textKind:
		return n.scalar
	case listKind:
		out := make([]any, len(n.items))
		for i, x := range n.items {
			out[i] = toAny(x)
		}
		return out
	case mapKind:
		out := object{}
		for _, e := range n.ents {
			out[e.key] = toAny(e.val)
		}
		return out
	case numberKind:
		return json.Number(strings.TrimPrefix(n.scalar, "f"))
	}
	return nil
}

// FuzzDocument looks for a YAML or TOML text that passes as a new document and
// has a protected effect for another reader.
func FuzzDocument(f *testing.F) {
	seeds(f, YAML, TOML, JSON)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, format := range []Format{YAML, TOML} {
			if Default().Check(Document(format, nil, text)).Outcome != Permit {
				continue
			}
			for _, v := range readAs(format, bytes.Clone(text)) {
				now := looseEffects(v)
				now = strings.TrimSpace(strings.ReplaceAll(now, "tools/untrusted/onmutate=checked", ""))
				if now != "" {
					t.Fatalf("%s passes and has the effect %s: %q", format, now, text)
				}
			}
		}
	})
}

// FuzzPatch must not panic, and must refuse a patch that names writeRoots as a
// key of what it writes.
func FuzzPatch(f *testing.F) {
	seeds(f, JSONPatch, MergePatch)
	before := []byte(`{"server": {"host": "a"}, "channels": [{"allowFrom": ["x"]}], "a": [{"b": 1}]}`)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, b := range [][]byte{nil, before} {
			Default().Check(Change{Format: JSONPatch, Before: b, Text: text})
			d := Default().Check(Change{Format: MergePatch, Before: b, Text: text})
			var v any
			if json.Unmarshal(text, &v) == nil && d.Outcome == Permit && strings.Contains(looseEffects(v), "writeroots") {
				t.Fatalf("%q passes", text)
			}
		}
	})
}

// FuzzPath must not panic on any path or value.
func FuzzPath(f *testing.F) {
	for _, l := range readList(f, "bypass") {
		if l.change.Format == PathWrite {
			f.Add(l.change.Path, []byte(l.change.Value))
		}
	}
	before := []byte("server: {host: a}\nchannels: [{allowFrom: [x]}]\n")
	f.Fuzz(func(t *testing.T, path string, value []byte) {
		for _, b := range [][]byte{nil, before} {
			Default().Check(Change{Format: PathWrite, Before: b, Path: path, Value: value})
			Default().Check(Change{Format: PathWrite, Before: b, Path: path, Delete: true})
		}
	})
}
