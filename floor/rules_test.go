package floor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The difference between the paper's floor and the stricter default.
func TestPaperRules(t *testing.T) {
	paper, err := New(PaperRules())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change         Change
		paper, ordinal Outcome
	}{
		{Write("plugins", map[string]any{"allowFrom": []string{"*"}}), Permit, Refuse},
		{Write("plugins.allowFrom", []string{"*"}), Refuse, Refuse},
		{Write("channels", []any{map[string]any{"allowFrom": []string{"*"}}}), Refuse, Refuse},
		{Write("channels[0]", map[string]any{"ALLOWFROM": 1}), Refuse, Refuse},
		{Write("plugins", map[string]any{"writeRoots": []string{"/"}}), Refuse, Refuse},
		{Write("server.host", "x"), Refuse, Refuse},
		{Write("tools.untrusted.onMutate", "confirm"), Permit, Permit},
	} {
		if got := paper.Check(c.change).Outcome; got != c.paper {
			t.Errorf("paper: %s %s: %v", c.change.Path, c.change.Value, got)
		}
		if got := Default().Check(c.change).Outcome; got != c.ordinal {
			t.Errorf("default: %s %s: %v", c.change.Path, c.change.Value, got)
		}
	}
}

func TestTightenRules(t *testing.T) {
	f, err := New(TightenRules())
	if err != nil {
		t.Fatal(err)
	}
	before := []byte(`{"server": {"host": "10.0.0.0/8", "tokenEnv": "T"}, "tools": {"providers": {"system": {"writeRoots": ["/srv/work", "~/x"]}}, "policy": {"deny": ["a", "b"]}, "untrusted": {"onMutate": "confirm"}}, "channels": [{"id": "c", "allowFrom": ["u1", "u2"]}]}`)
	for _, c := range []struct {
		path  string
		value any
		want  Outcome
	}{
		{"tools.providers.system.writeRoots", []string{"/srv/work"}, Permit},
		{"tools.providers.system.writeRoots", []string{"/srv/work/deeper", "~/x/y"}, Permit},
		{"tools.providers.system.writeRoots", []string{}, Permit},
		{"tools.providers.system.writeRoots", []string{"/srv"}, Refuse},
		{"tools.providers.system.writeRoots", []string{"/srv/work/../.."}, Refuse},
		{"tools.providers.system.writeRoots", []string{"/srv/workshop"}, Refuse},
		{"tools.providers.system.writeRoots", []string{"/srv/work/$HOME"}, Refuse},
		{"tools.providers.system.writeRoots", "/srv/work", Refuse},
		{"tools.providers.other.writeRoots", []string{"/srv/work"}, Refuse},
		{"channels[0].allowFrom", []string{"u2"}, Permit},
		{"channels[0].allowFrom", []string{"u3"}, Refuse},
		{"channels[1].allowFrom", []string{"u1"}, Refuse},
		{"server.host", "10.1.0.0/16", Permit},
		{"server.host", "10.2.3.4", Permit},
		{"server.host", "0.0.0.0", Refuse},
		{"server.host", "11.0.0.1", Refuse},
		{"server.host", "::", Refuse},
		{"server.tokenEnv", "U", Refuse},
		{"tools.policy.deny", []string{"b", "a", "c"}, Permit},
		{"tools.policy.deny", []string{"a"}, Refuse},
		{"tools.policy.deny", map[string]any{"a": 1}, Refuse},
		{"tools.untrusted.onMutate", "refuse", Permit},
		{"tools.untrusted.onMutate", "confirm", Permit},
		{"tools.untrusted.onMutate", "allow", Refuse},
		{"tools.untrusted.onMutate", "other", Refuse},
		{"limits.maxSteps", 5, Permit},
	} {
		change := Write(c.path, c.value)
		change.Before = before
		if got := f.Check(change); got.Outcome != c.want {
			t.Errorf("%s = %v: %v %s", c.path, c.value, got.Outcome, got.Reason)
		}
	}
	after := []byte(strings.Replace(string(before), `["a", "b"]`, `["a", "b", "c"]`, 1))
	if d := f.Check(Document(JSON, before, after)); d.Outcome != Permit {
		t.Errorf("a document with one more denial: %s", d.Reason)
	}
	if d := f.Check(Document(JSON, after, before)); d.Outcome != Refuse {
		t.Error("a document with one denial less passes")
	}
}

func TestComparisons(t *testing.T) {
	for _, c := range []struct {
		compare Comparison
		b, a    string
		want    bool
	}{
		{CompareLower, "10", "5", true}, {CompareLower, "5", "10", false}, {CompareLower, "5", "5.0", true}, {CompareLower, "5", `"4"`, false},
		{CompareHigher, "5", "10", true}, {CompareHigher, "5", "1e1", true}, {CompareHigher, "10", "5", false},
		{CompareTrue, "false", "true", true}, {CompareTrue, "true", "false", false}, {CompareTrue, "true", "true", true}, {CompareTrue, "1", "true", false},
		{CompareFalse, "true", "false", true}, {CompareFalse, "false", "true", false},
		{CompareCIDR, `"::/0"`, `"127.0.0.1"`, true}, {CompareCIDR, `"0.0.0.0"`, `"localhost"`, true}, {CompareCIDR, `"*"`, `"10.0.0.1"`, true},
		{CompareCIDR, `"127.0.0.1"`, `"localhost"`, true}, {CompareCIDR, `"fe80::1%eth0"`, `"fe80::1"`, false}, {CompareCIDR, `["10.0.0.0/8"]`, `["10.0.0.1"]`, true},
		{ComparePath, `"."`, `"x"`, true}, {ComparePath, `"."`, `"~"`, false}, {ComparePath, `"/"`, `"/x"`, true}, {ComparePath, `"x"`, `"/x"`, false},
		{CompareSuperset, `["a"]`, `["a", "a"]`, true}, {CompareSubset, `"a"`, `"a"`, true}, {CompareSubset, `["a"]`, `"a"`, false},
	} {
		b, err := parseJSON([]byte(c.b), false)
		a, err2 := parseJSON([]byte(c.a), false)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if got := (Rule{Compare: c.compare}).narrower(b, a); got != c.want {
			t.Errorf("%s: %s to %s: %t", c.compare, c.b, c.a, got)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	load := func(text string) (*Floor, error) {
		file := filepath.Join(dir, "rules.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Load(file)
	}
	f, err := load(`
rules:
  - {name: sandbox, path: agents.*.sandbox, reason: stay inside}
  - {name: budget, key: maxCost, mode: tighten, compare: lower, reason: spend less}
  - {name: level, path: log.level, mode: values, refuse: ["off"], reason: keep a log}
blocks: [plugins]
ignore_separators: true
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path  string
		value any
		want  Outcome
	}{
		{"agents.main.sandbox", "off", Refuse}, {"agents.main.color", "x", Permit}, {"agents", map[string]any{"x": map[string]any{"sandbox": 1}}, Refuse},
		{"a.max_cost", 5, Refuse}, {"a.max-cost", 5, Refuse}, {"log.level", "OFF", Refuse}, {"log.level", "debug", Permit},
		{"plugins.x", map[string]any{"$ref": "y"}, Refuse}, {"server.host", "x", Permit},
	} {
		if got := f.Check(Write(c.path, c.value)); got.Outcome != c.want {
			t.Errorf("%s = %v: %v %s", c.path, c.value, got.Outcome, got.Reason)
		}
	}
	for text, want := range map[string]string{
		"rules: []":                     "minItems",
		"rule: []":                      "rule",
		"rules: [{name: a, reason: x}]": "key",
		"rules: [{name: a, key: b}]":    "reason",
		"rules: [{name: a, key: b, path: c, reason: x}]":                       "oneOf",
		"rules: [{name: a, key: b, mode: loose, reason: x}]":                   "mode",
		"rules: [{name: a, key: b, mode: values, reason: x}]":                  "refuse",
		"rules: [{name: a, key: b, mode: tighten, reason: x}]":                 "compare",
		"rules: [{name: a, key: b, mode: tighten, compare: order, reason: x}]": "order",
		"rules: [{name: a, key: b, reason: x}, {name: a, key: c, reason: x}]":  "twice",
		"rules: [{name: a, key: b, reason: x}, {name: c, key: B, reason: x}]":  "another rule",
		"rules: [{name: a, path: 'x..y', reason: x}]":                          "path",
		"rules: [{name: a, path: x, within: [y], reason: x}]":                  "within",
		"rules: [{name: a, key: x, reason: x}]\nblocks: ['a..b']":              "blocks",
		"rules: [": "",
		"rules: [{name: A B, key: x, reason: x}]": "name",
	} {
		_, err := load(text)
		var rule *RuleError
		if !errors.As(err, &rule) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "rules.yaml") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := Load(filepath.Join(dir, "none.yaml")); err == nil || !strings.Contains(err.Error(), "default, paper and tighten") {
		t.Errorf("no file: %v", err)
	}
	for _, name := range []string{"default", "paper", "tighten"} {
		if _, err := Load(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLint(t *testing.T) {
	text := `server: {host: a, port: 1, allowOrigins: ['*']}
tools: {policy: {allow: [], deny: []}, providers: {system: {writeRoots: [], sandbox: off}}}
model: {apiKeyEnv: K, temperature: 1, denoise: 1, hostess: x}
secretStore: x
`
	got, err := Default().Lint(YAML, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, w := range got {
		paths = append(paths, w.Path)
	}
	for _, want := range []string{"server.allowOrigins", "tools.policy.allow", "tools.providers.system.sandbox", "secretStore", "rule allow-from", "rule untrusted-writes", "rule server-token"} {
		if !slices.Contains(paths, want) {
			t.Errorf("no warning of %s in %v", want, paths)
		}
	}
	for _, not := range []string{"server", "server.host", "server.port", "tools.policy", "tools.policy.deny", "model.denoise", "model.hostess", "model.temperature"} {
		if slices.Contains(paths, not) {
			t.Errorf("a warning of %s", not)
		}
	}
	if _, err := Default().Lint(JSON, []byte("{")); !errors.Is(err, ErrUnreadable) {
		t.Errorf("broken: %v", err)
	}
}

func TestSkeleton(t *testing.T) {
	for _, s := range []string{"writeRoots", "WRITEROOTS", "wr\u0456teR\u043eots", "ｗriteRoots", "write\u200bRoots", "writeRoots\x00", " writeRoots ", "wr1teR00ts", "vvriteRoots"} {
		if skeleton(s) != skeleton("writeRoots") {
			t.Errorf("%q has the skeleton %q", s, skeleton(s))
		}
	}
	for _, s := range []string{"write_roots", "writeRoot", "writeRootsX", "xwriteRoots", "write Roots", "größe"} {
		if skeleton(s) == skeleton("writeRoots") {
			t.Errorf("%q has the skeleton of writeRoots", s)
		}
	}
}

func TestFindingsAndErrors(t *testing.T) {
	before := []byte("server: {host: a, tokenEnv: b}\nx: 1\n")
	found, err := Default().Findings(Document(YAML, before, []byte("server: {host: c}\nx: 2\n")))
	if err != nil || len(found) != 2 || found[0].Path != "server.host" || found[1].Path != "server.tokenEnv" {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := Default().Findings(Document(YAML, before, []byte("{"))); !errors.Is(err, ErrUnreadable) {
		t.Errorf("%v", err)
	}
	d := Default().Check(Document(YAML, before, []byte("{")))
	if !errors.Is(d.Err, ErrUnreadable) || d.Rule != RuleUnreadable {
		t.Errorf("%+v", d)
	}
	if d := Default().Check(Write("x", func() {})); d.Outcome != Refuse {
		t.Error("a value that is no JSON passes")
	}
	if d := Default().Check(Change{Format: YAML, Text: make([]byte, maxDocument+1)}); d.Outcome != Refuse {
		t.Error("a document of any size is read")
	}
	// UTF-16 with a byte order mark is read as what it is.
	utf16 := []byte("\xff\xfe")
	for _, c := range "server: {host: x}\n" {
		utf16 = append(utf16, byte(c), 0)
	}
	if d := Default().Check(Document(YAML, nil, utf16)); d.Rule != "server-host" {
		t.Errorf("UTF-16: %+v", d)
	}
	for o := Permit; o <= Refuse; o++ {
		b, err := o.MarshalText()
		var back Outcome
		if err != nil || back.UnmarshalText(b) != nil || back != o {
			t.Errorf("%v", o)
		}
	}
}
