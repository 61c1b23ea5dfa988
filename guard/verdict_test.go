package guard

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/verdict"
)

func TestVerdictJSON(t *testing.T) {
	m := testModel(t, WithLayers(fixed{"rules", Hold, verdict.ReasonPolicy, []Call{{Tool: "ask", Arguments: "{}"}}}))
	s := m.Start(testTask)
	off := Verdict{Thresholds: Thresholds{Hold: 0.5, Block: 1}, ModelDigest: strings.Repeat("a", 64)}
	full := s.Judge(context.Background(), Call{Tool: "send_money", Arguments: `{"to":"x"}`})
	for _, v := range []Verdict{full, off, testModel(t, ScoresOnly()).Start(testTask).Judge(context.Background(), Call{Text: "hi"})} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var back Verdict
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(back)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(b), string(again)); diff != "" {
			t.Errorf("round trip: %s", diff)
		}
		if back.Thresholds != v.Thresholds || back.Scores != v.Scores || back.Decision != v.Decision {
			t.Errorf("read back %+v, want %+v", back, v)
		}
		var doc any
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		schema := readSchema(t)
		conform(t, schema, schema, doc, "verdict")
	}
	var v Verdict
	if err := json.Unmarshal([]byte(`{"schema":"dreamguard.verdict/v2"}`), &v); err == nil {
		t.Error("another schema was read")
	}
}

type object = map[string]any

func readSchema(t *testing.T) object {
	b, err := os.ReadFile("../docs/reference/verdict.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema object
	if err := json.Unmarshal(b, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// conform checks the keywords that decide which keys there are; the ranges of
// the values are tested where they are made.
func conform(t *testing.T, root, schema object, doc any, path string) {
	t.Helper()
	if ref, ok := schema["$ref"].(string); ok {
		def := root["$defs"].(object)[strings.TrimPrefix(ref, "#/$defs/")]
		schema = def.(object)
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, doc) {
		t.Errorf("%s: %v is not in %v", path, doc, enum)
	}
	if want, ok := schema["const"]; ok && want != doc {
		t.Errorf("%s: %v, want %v", path, doc, want)
	}
	switch d := doc.(type) {
	case object:
		properties, _ := schema["properties"].(object)
		for key, x := range d {
			sub, ok := properties[key].(object)
			if !ok {
				t.Errorf("%s.%s is not in the schema", path, key)
				continue
			}
			conform(t, root, sub, x, path+"."+key)
		}
		for _, key := range schema["required"].([]any) {
			if _, ok := d[key.(string)]; !ok {
				t.Errorf("%s.%s is required and missing", path, key)
			}
		}
	case []any:
		for _, x := range d {
			conform(t, root, schema["items"].(object), x, path+"[]")
		}
	}
}

// The schema's list of reasons is the one of package verdict.
func TestSchemaReasons(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../verdict/verdict.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "Reason" {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				declared[value] = true
			}
		}
		return true
	})
	listed := map[string]bool{}
	for _, r := range readSchema(t)["$defs"].(object)["reason"].(object)["enum"].([]any) {
		listed[r.(string)] = true
	}
	if diff := cmp.Diff(declared, listed); diff != "" || len(declared) == 0 {
		t.Errorf("reasons (-package +schema):\n%s", diff)
	}
}

// The runtime stays small.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	deps := map[string]bool{}
	for dep := range strings.FieldsSeq(string(out)) {
		deps[dep] = true
	}
	if !deps["gonum.org/v1/gonum/blas/blas32"] {
		t.Fatal("go list does not name what is known to be there")
	}
	for _, dep := range slices.Sorted(maps.Keys(deps)) {
		for _, banned := range []string{"/train", "/export", "/eval", "/pipeline", "/configs", "/checkpoints/shipped"} {
			if dep == "github.com/dreamguard/dreamguard"+banned {
				t.Errorf("imports %s", dep)
			}
		}
		for _, banned := range []string{"arrow", "parquet", "gomlx", "go-yaml", "cobra"} {
			if strings.Contains(dep, banned) {
				t.Errorf("imports %s", dep)
			}
		}
		if dep == "net" || strings.HasPrefix(dep, "net/") || dep == "runtime/cgo" || dep == "testing" {
			t.Errorf("imports %s", dep)
		}
	}
}
