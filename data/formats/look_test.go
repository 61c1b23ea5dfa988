package formats

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLook(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{`[{"a":[{"b":"x"},[1,{"c":null}]],"d":{"e":2},"f":true}] {"g":"y"}`,
			[]string{".a", ".a.b", ".a.b=x", ".a.c", ".d", ".d.e", ".f", ".g", ".g=y"}},
		{`{"a":{"b":{"c":[[]]}},"d":[],"e":{},"f":"z"`, []string{".a", ".a.b", ".a.b.c", ".d", ".e", ".f", ".f=z"}},
		{`{"a":"` + "0123456789012345678901234567890123456789x" + `","b`, []string{".a"}},
		{`["x"]`, []string{"=x"}},
		{`}`, nil},
		{``, nil},
	} {
		if d := cmp.Diff(tt.want, slices.Sorted(maps.Keys(look([]byte(tt.in))))); d != "" {
			t.Errorf("%s: %s", tt.in, d)
		}
	}
}
