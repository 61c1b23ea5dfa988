package simulate

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTemplate(t *testing.T) {
	var v slots
	v[sPath], v[sBody] = `a"b\c`, "one\ntwo\tü\x01"
	for _, c := range []struct{ in, want, js string }{
		{"plain (text) only", "plain (text) only", "plain (text) only"},
		{"$path.", `a"b\c.`, `a\"b\\c.`},
		{"$$path costs $$5", "$path costs $5", "$path costs $5"},
		{"$body", "one\ntwo\tü\x01", `one\ntwo\tü\u0001`},
		{"(x|x) (y|y)", "x y", "x y"},
		{"open ( and (no bar", "open ( and (no bar", "open ( and (no bar"},
		{"(f((x|x))", "(f(x)", "(f(x)"},
	} {
		tpl, err := compile(c.in)
		if err != nil {
			t.Errorf("compile(%q): %v", c.in, err)
			continue
		}
		if got := tpl.text(&v, newRNG(1, 1, 1)); got != c.want {
			t.Errorf("%q as text: %q, want %q", c.in, got, c.want)
		}
		if got := tpl.json(&v, newRNG(1, 1, 1)); got != c.js {
			t.Errorf("%q in JSON: %q, want %q", c.in, got, c.js)
		}
	}
	for _, in := range []string{"$nothing", "a $ b", "(x|$oops)"} {
		if _, err := compile(in); err == nil || !strings.Contains(err.Error(), "unknown slot") {
			t.Errorf("compile(%q): error %v, want one about an unknown slot", in, err)
		}
	}
}

// FuzzTemplate: compiling never panics, and slot values keep JSON valid.
func FuzzTemplate(f *testing.F) {
	f.Add("(a|$path) $$", "x\"\\\n")
	f.Add("$body(", "\xff\x00")
	f.Fuzz(func(t *testing.T, in, value string) {
		var v slots
		for i := range v {
			v[i] = value
		}
		if tpl, err := compile(in); err == nil {
			tpl.text(&v, newRNG(1, 2, 3))
		}
		tpl, err := compile(`{"a": "$path"}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := tpl.json(&v, newRNG(1, 2, 3)); !json.Valid([]byte(got)) {
			t.Errorf("value %q gives invalid JSON %q", value, got)
		}
	})
}
