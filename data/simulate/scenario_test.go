package simulate

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const goodRow = `
id: data/x
title: X
part: train
tasks: ["one $f1", "two $f1", "three $f1"]
plan: [f1, "compute f1?", send r1]
r1: colleague
others: [a, b]
outside: [x/y, z]
files:
  - {path: a.csv, kind: table, level: internal, title: A, facts: ["Sum=amount"], secrets: ["IBAN=iban"]}
  - {path: b.md, kind: note, level: internal, title: B}
  - {path: c.md, kind: note, level: internal, title: C}
`

// TestScenarioErrors: a wrong row of a table is refused with the reason.
func TestScenarioErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{`"three $f1"`, "", "at least 3 phrasings"},
		{"part: train", "part: dev", `part "dev"`},
		{"r1: colleague", "", "no recipient"},
		{"kind: table", "kind: sheet", `file kind "sheet"`},
		{`, secrets: ["IBAN=iban"]`, "", "no file holds a secret"},
		{"send r1", "send", "names no recipient"},
		{"send r1", "send r2", "no such recipient"},
		{"[f1,", "[f7,", "no such file"},
		{"send r1", "sing r1", `unknown action kind "sing"`},
		{"send r1", "delete", "does not say what to use"},
		{"send r1", "send r1 loudly", `"loudly" is not understood`},
		{"Sum=amount", "Sum", "want label=kind"},
		{"Sum=amount", "Sum=colour", `unknown kind of value "colour"`},
		{"one $f1", "one $file", "unknown slot $file"},
		{"title: X", "titel: X", "titel"},
	} {
		var sc scenario
		err := yaml.UnmarshalWithOptions([]byte(strings.Replace(goodRow, c.old, c.new, 1)), &sc, yaml.Strict())
		if err == nil {
			err = sc.check()
		}
		switch {
		case c.want == "" && err != nil:
			t.Errorf("the good row is refused: %v", err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q for %q: error %v, want one with %q", c.new, c.old, err, c.want)
		}
	}
}
