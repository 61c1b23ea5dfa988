package floor

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const agentYAML = `# The agent.
server:
  host: 127.0.0.1 # loopback only
limits: {maxSteps: 10}
tools:
  policy:
    deny: ["exec(rm *)"]
  untrusted:
    onMutate: refuse
`

func agentFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(file, []byte(agentYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func guard(t *testing.T, file string, o GuardOptions) *Guarded {
	t.Helper()
	g, err := Guard(file, Default(), o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestGuardedWrites(t *testing.T) {
	file := agentFile(t)
	g := guard(t, file, GuardOptions{})
	if d, err := g.Apply(Write("limits.maxSteps", 60)); err != nil || d.Outcome != Permit {
		t.Fatal(d, err)
	}
	got := read(t, file)
	for _, want := range []string{"maxSteps: 60", "# The agent.", "# loopback only", "exec(rm *)"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if read(t, file+".bak") != agentYAML {
		t.Error("the backup is not the old content")
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, c := range []Change{
		Write("server.host", "0.0.0.0"),
		Write("tools.untrusted.onMutate", "allow"),
		Write("server", map[string]any{"port": 1}),
		Document(YAML, nil, []byte("limits: {}\n")),
		{Format: PathWrite, Path: "tools.policy", Delete: true},
	} {
		d, err := g.Apply(c)
		if !errors.Is(err, ErrRefused) || d.Outcome != Refuse || !strings.Contains(err.Error(), "person") && !strings.Contains(err.Error(), "cannot") {
			t.Errorf("%+v: %+v, %v", c, d, err)
		}
		if read(t, file) != got {
			t.Fatalf("%+v was written", c)
		}
	}
	if _, err := g.Apply(Change{Format: JSON, Text: []byte("{}")}); err == nil {
		t.Error("a JSON document goes to a YAML file")
	}
	if _, err := g.Apply(Write("$..maxSteps", 1)); !errors.Is(err, ErrCannotEdit) {
		t.Errorf("a path to many fields: %v", err)
	}
}

// A file that is a link, has a second name, or whose name changes hands, is not
// written.
func TestGuardedLinks(t *testing.T) {
	file := agentFile(t)
	g := guard(t, file, GuardOptions{})
	second := filepath.Join(filepath.Dir(file), "second.yaml")
	if err := os.Link(file, second); err != nil {
		t.Skip(err)
	}
	if _, err := g.Apply(Write("limits.maxSteps", 1)); !errors.Is(err, ErrNotPlain) {
		t.Errorf("a file with two names: %v", err)
	}
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, second); err != nil {
		t.Fatal(err)
	}
	if _, err := Guard(second, Default(), GuardOptions{}); !errors.Is(err, ErrNotPlain) {
		t.Errorf("a link: %v", err)
	}
	// The name now leads to another file: a rename over, or a link put there.
	other := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.Rename(file, other); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, file); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Apply(Write("limits.maxSteps", 1)); !errors.Is(err, ErrNotPlain) {
		t.Errorf("a link put in its place: %v", err)
	}
	if read(t, other) != agentYAML {
		t.Error("the file behind the link was written")
	}
	if _, err := Guard(filepath.Dir(file), Default(), GuardOptions{Format: YAML}); err == nil {
		t.Error("a folder is guarded")
	}
	if _, err := Guard("agent.conf", Default(), GuardOptions{}); err == nil || !strings.Contains(err.Error(), "format") {
		t.Errorf("a name without format: %v", err)
	}
}

func TestSeal(t *testing.T) {
	file := agentFile(t)
	if _, err := Guard(file, Default(), GuardOptions{RequireSeal: true}); !errors.Is(err, ErrSealBroken) {
		t.Errorf("no seal: %v", err)
	}
	s, err := SealFile(file, Default(), GuardOptions{})
	if err != nil || len(s.Fields) != 3 {
		t.Fatal(s, err)
	}
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		text   string
		intact bool
	}{
		"unchanged":       {agentYAML, true},
		"another layout":  {"limits: {maxSteps: 3}\ntools: {untrusted: {\"onMutate\": 'refuse'}, policy: {deny: ['exec(rm *)']}}\nserver: {host: \"127.0.0.1\"}\n", true},
		"host":            {strings.Replace(agentYAML, "127.0.0.1", "0.0.0.0", 1), false},
		"deny removed":    {strings.Replace(agentYAML, "    deny:", "    x:", 1), false},
		"stricter check":  {strings.Replace(agentYAML, "refuse", "confirm", 1), false},
		"another field":   {agentYAML + "channels: [{allowFrom: ['*']}]\n", false},
		"equal keys":      {agentYAML + "server: {host: 0.0.0.0}\n", false},
		"another comment": {strings.Replace(agentYAML, "loopback only", "x", 1), true},
	} {
		put(c.text)
		_, err := Guard(file, Default(), GuardOptions{RequireSeal: true})
		if (err == nil) != c.intact {
			t.Errorf("%s: %v", name, err)
		}
	}
	put(agentYAML)
	// A permitted change of a sealed field renews the seal; others keep it.
	g := guard(t, file, GuardOptions{RequireSeal: true})
	for _, c := range []Change{Write("tools.untrusted.onMutate", "confirm"), Write("limits.maxSteps", 3)} {
		if _, err := g.Apply(c); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Read(); err != nil {
			t.Errorf("after %s: %v", c.Path, err)
		}
	}
	// A broken seal stops every write.
	put(strings.Replace(agentYAML, "127.0.0.1", "0.0.0.0", 1))
	if _, err := g.Apply(Write("limits.maxSteps", 4)); !errors.Is(err, ErrSealBroken) || !strings.Contains(err.Error(), "server.host was changed") {
		t.Errorf("%v", err)
	}
}

func TestSealKeyAndTampering(t *testing.T) {
	key := []byte("0123456789abcdef")
	s, err := Default().Seal(YAML, []byte(agentYAML), key)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(s Seal, key []byte) error { return Default().Verify(s, YAML, []byte(agentYAML), key) }
	if err := verify(s, key); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"no key":      verify(s, nil),
		"another key": verify(s, []byte("fedcba9876543210")),
		"schema":      verify(Seal{Schema: "x"}, key),
		"field": verify(func() Seal {
			x := s
			x.Fields = append([]SealField(nil), s.Fields...)
			x.Fields[0].Digest = strings.Repeat("0", 64)
			return x
		}(), key),
	} {
		if !errors.Is(err, ErrSealBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tight, err := New(TightenRules())
	if err != nil {
		t.Fatal(err)
	}
	if err := tight.Verify(s, YAML, []byte(agentYAML), key); !errors.Is(err, ErrSealBroken) {
		t.Errorf("other rules: %v", err)
	}
	if _, err := ReadSeal([]byte(`{"schema": "x", "more": 1}`)); !errors.Is(err, ErrSealBroken) {
		t.Errorf("an unknown field: %v", err)
	}
	if _, err := Default().Seal(YAML, []byte("server: {host: a}\nserver: {}\n"), nil); !errors.Is(err, ErrUnreadable) {
		t.Errorf("a document with two readings is sealed: %v", err)
	}
}

func TestGuardedConcurrent(t *testing.T) {
	file := agentFile(t)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			g, err := Guard(file, Default(), GuardOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := g.Apply(Write("extra.k"+string(rune('a'+i)), i)); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	got := read(t, file)
	for i := range 6 {
		if !strings.Contains(got, "k"+string(rune('a'+i))+":") {
			t.Errorf("change %d was lost:\n%s", i, got)
		}
	}
}

func TestEditJSON(t *testing.T) {
	const text = "{\n  \"a\": {\"b\": 1, \"c\": [1, 2, 3]}, // note\n  \"d\": {},\n  \"e\": 5\n}\n"
	for _, c := range []struct {
		path, value, want string
	}{
		{"a.b", `"x"`, strings.Replace(text, `"b": 1`, `"b": "x"`, 1)},
		{"a.c[1]", `9`, strings.Replace(text, "2", "9", 1)},
		{"a.c.-", `4`, strings.Replace(text, "3]", "3, 4]", 1)},
		{"a.new.er", `true`, strings.Replace(text, "3]", `3], "new": {"er": true}`, 1)},
		{"d.x", `null`, strings.Replace(text, `{},`, `{"x": null},`, 1)},
		{"f", `1`, strings.Replace(text, `"e": 5`, `"e": 5, "f": 1`, 1)},
		{"a.b", ``, strings.Replace(text, `"b": 1, `, ``, 1)},
		{"a.c[2]", ``, strings.Replace(text, `, 3`, ``, 1)},
		{"e", ``, strings.Replace(text, ",\n  \"e\": 5", "", 1)},
		{"nothing", ``, text},
	} {
		ch := Change{Format: PathWrite, Path: c.path, Value: json.RawMessage(c.value), Delete: c.value == ""}
		if c.value == "" {
			ch.Value = nil
		}
		got, err := Edit(JSONC, []byte(text), ch)
		if err != nil || string(got) != c.want {
			t.Errorf("%s = %s: %v\n%s\nwant\n%s", c.path, c.value, err, got, c.want)
		}
		if _, err := parse(JSONC, got); err != nil {
			t.Errorf("%s: %v", c.path, err)
		}
	}
	for path, want := range map[string]error{"e.x": ErrCannotEdit, "a.c[9]": ErrCannotEdit, "a.*": ErrCannotEdit, "": ErrCannotEdit} {
		if _, err := Edit(JSONC, []byte(text), Write(path, 1)); !errors.Is(err, want) {
			t.Errorf("%q: %v", path, err)
		}
	}
	patched, err := Edit(JSON, []byte(`{"a": 1}`), Change{Format: JSONPatch, Text: []byte(`[{"op": "test", "path": "/a", "value": 1}, {"op": "add", "path": "/b", "value": [2.5]}]`)})
	if err != nil || !bytes.Equal(patched, []byte("{\n  \"a\": 1,\n  \"b\": [\n    2.5\n  ]\n}\n")) {
		t.Errorf("%s, %v", patched, err)
	}
	if _, err := Edit(JSON, []byte(`{"a": 1}`), Change{Format: JSONPatch, Text: []byte(`[{"op": "test", "path": "/a", "value": 2}]`)}); !errors.Is(err, ErrCannotEdit) {
		t.Errorf("a failed test: %v", err)
	}
	if _, err := Edit(TOML, []byte("a = 1\n"), Write("a", 2)); !errors.Is(err, ErrCannotEdit) {
		t.Errorf("TOML: %v", err)
	}
}
