package floor

import (
	"strings"
	"testing"
)

// A change given as {path, value} is a write whatever the format of the document
// it goes to.
func TestBatchWritesInAnyFormat(t *testing.T) {
	for _, format := range []string{"path", "yaml", "json", "toml", "jsonc"} {
		for change, want := range map[string]string{
			`{"path":"channels[0].allowFrom","value":["x"]}`: "refuse",
			`{"path":"server.host"}`:                         "refuse",
			`{"path":"server.port","value":1}`:               "permit",
		} {
			var out strings.Builder
			line := `{"id":1,"format":"` + format + `","before":null,"change":` + change + `}`
			if _, err := Default().Batch(strings.NewReader(line), &out); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), `"decision":"`+want+`"`) {
				t.Errorf("%s: %s: want %s", line, out.String(), want)
			}
		}
	}
}
