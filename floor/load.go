package floor

import (
	"bytes"
	_ "embed" // the schema
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// RulesSchema is the JSON Schema of rule files.
//
//go:embed rules.schema.json
var RulesSchema []byte

// schemaURL is the name of the schema, not a place that is looked at.
const schemaURL = "https://github.com/dreamguard/dreamguard/floor/rules.schema.json"

// maxRules bounds a rule file, in bytes.
const maxRules = 1 << 20

var rulesSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(RulesSchema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return c.Compile(schemaURL)
})

// Load reads a rule file in YAML, checks it against RulesSchema and compiles it.
// The names default, paper and tighten stand for the built-in rules.
func Load(name string) (*Floor, error) {
	if r, ok := Builtin(name); ok {
		return New(r)
	}
	text, err := boundedfile.Read(name, maxRules)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &RuleError{File: name, Reason: "there is no such file, and the built-in rules are default, paper and tighten"}
	}
	if err != nil {
		return nil, err
	}
	r, err := ParseRules(text)
	if err != nil {
		return nil, &RuleError{File: name, Reason: err.Error()}
	}
	f, err := New(r)
	var rule *RuleError
	if errors.As(err, &rule) {
		rule.File = name
	}
	return f, err
}

// ParseRules reads rules from YAML and checks them against RulesSchema.
func ParseRules(text []byte) (Rules, error) {
	var r Rules
	if len(text) > maxRules {
		return r, fmt.Errorf("a rule file is smaller than %d KiB", maxRules>>10)
	}
	var raw any
	if err := yaml.Unmarshal(text, &raw); err != nil {
		return r, err
	}
	b, err := json.Marshal(raw)
	if err != nil {
		return r, fmt.Errorf("a key that is no text: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return r, err
	}
	schema, err := rulesSchema()
	if err != nil {
		return r, err
	}
	if err := schema.Validate(doc); err != nil {
		// The first line names the schema, the others what is wrong.
		_, what, _ := strings.Cut(err.Error(), "\n")
		return r, errors.New(strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(what), "- "), "\n", " "))
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&r); err != nil {
		return r, err
	}
	return r, nil
}
