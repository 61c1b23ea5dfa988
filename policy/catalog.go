package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors of NewCatalog.
var (
	ErrNoName    = errors.New("policy: a tool has no name")
	ErrDuplicate = errors.New("policy: a tool stands in the catalogue twice")
	ErrSchema    = errors.New("policy: a tool's schema cannot be used")
)

// maxSchema bounds a tool's schema, in bytes.
const maxSchema = 1 << 20

// Catalog is what an auditor knows about tools: what they do, what they act on,
// and how they are called in a repair. It is immutable and safe for concurrent
// use. The zero value and nil know no tool: calls are then read by their names.
type Catalog struct {
	tools map[string]*tool
	order []*tool
}

// tool is a Tool with all that was derived.
type tool struct {
	Tool
	classes []class
	words   []string // stems of name, objects and description
	params  []param
}

// param is one argument of a tool.
type param struct {
	name     string
	required bool
	kind     string // JSON type, "" when the schema names none
	value    any    // default, const or only enum value
	fixed    bool   // value is set
}

// NewCatalog makes a catalogue. Errors wrap [ErrNoName], [ErrDuplicate] or
// [ErrSchema], and name the tool.
func NewCatalog(tools ...Tool) (*Catalog, error) {
	c := &Catalog{tools: map[string]*tool{}}
	for _, t := range tools {
		switch {
		case t.Name == "":
			return nil, ErrNoName
		case c.tools[t.Name] != nil:
			return nil, fmt.Errorf("%w: %s", ErrDuplicate, t.Name)
		}
		params, err := parameters(t.Schema)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrSchema, t.Name, err)
		}
		x := derive(t)
		x.params = params
		if x.Targets == nil && params != nil {
			var names []string
			for _, p := range params {
				if p.kind == "" || p.kind == "string" || p.kind == "array" || p.kind == "integer" || p.kind == "number" {
					names = append(names, p.name)
				}
			}
			x.Targets = rankTargets(names, x.Objects)
			if x.Targets == nil {
				x.Targets = []string{}
			}
		}
		c.tools[t.Name] = x
		c.order = append(c.order, x)
	}
	return c, nil
}

// find returns the entry of a tool, or one derived from its name alone.
func (c *Catalog) find(name string) *tool {
	if c != nil {
		if t := c.tools[name]; t != nil {
			return t
		}
	}
	return derive(Tool{Name: name})
}

// light verbs leave the meaning to the noun behind them: create_backup.
var light = set("create make take perform do run start request obtain trigger issue schedule generate send add get submit open file give place")

// nouny are words that are verbs and, more often in names, nouns.
var nouny = set(`mail email message text order record call post transfer access plan backup dump snapshot book file test check review copy release change
update archive log store lock register report query scale issue ship process sync cache import export list mark set rent loan share open print`)

func derive(t Tool) *tool {
	x := &tool{Tool: t}
	var parts []string
	splitWords(lastSegment(t.Name), func(w string) { parts = append(parts, w) })
	verb := -1
	for i, w := range parts {
		if !isVerb(w) {
			if b, ok := lemma(w); !ok || !isVerb(b) || b == w {
				continue
			}
		}
		if verb < 0 || nouny[parts[verb]] && !nouny[w] && verb > 0 || nouny[parts[verb]] && verb == 0 && !nouny[w] && i == len(parts)-1 {
			verb = i
		}
	}
	if x.Actions == nil {
		if verb >= 0 {
			v, _ := lemma(parts[verb])
			if i := verb + 1; i < len(parts) && particleVerbs[v+"-"+parts[i]] != "" {
				v += "-" + parts[i]
			}
			x.Actions = []string{v}
			if light[v] {
				for _, n := range parts[verb+1:] {
					if s, ok := stepNouns[n]; ok {
						x.Actions = []string{s}
					} else if s, ok := actNouns[n]; ok && v != "get" {
						x.Actions = []string{s}
					} else if v == "create" || v == "add" || v == "schedule" {
						if n == "event" || n == "meeting" || n == "appointment" {
							x.Actions = append(x.Actions, "book")
						}
					} else if v == "send" && (n == "money" || n == "funds") {
						x.Actions = []string{"pay"}
					}
				}
			}
			if v == "get" && len(x.Actions) == 1 && x.Actions[0] == v {
				x.Actions = []string{"read"}
			}
		} else if slices.Contains(parts, "get") || slices.Contains(parts, "is") || slices.Contains(parts, "has") {
			x.Actions = []string{"read"}
		}
	}
	for _, a := range x.Actions {
		if c := classOf(a); !slices.Contains(x.classes, c) {
			x.classes = append(x.classes, c)
		}
	}
	if t.Actions == nil && !t.ReadOnly && len(x.classes) > 0 {
		x.ReadOnly = !slices.ContainsFunc(x.classes, func(c class) bool { return !readsOnly[c] })
	}
	if x.Objects == nil {
		for i, w := range parts {
			if i != verb && !generic[w] {
				x.Objects = append(x.Objects, w)
			}
		}
	}
	if x.Undoes == nil {
		for _, c := range x.classes {
			if c == "delete" || c == "cancel" {
				for _, o := range x.Objects {
					if s, ok := stepNouns[o]; ok {
						x.Undoes = append(x.Undoes, s)
					}
				}
			}
		}
	}
	add := func(w string) { x.words = append(x.words, stem(w)) }
	splitWords(t.Name, add)
	for _, o := range x.Objects {
		splitWords(o, add)
	}
	return x
}

// lastSegment is the name of a tool without the server that an MCP client puts in
// front: mcp__server__tool.
func lastSegment(name string) string {
	if i := strings.LastIndex(name, "__"); i >= 0 && i+2 < len(name) {
		return name[i+2:]
	}
	if i := strings.LastIndexAny(name, "/:"); i >= 0 && i+1 < len(name) {
		return name[i+1:]
	}
	return name
}

// content are arguments that hold what is said, and not what is acted on.
var content = set(`content contents body text message messages subject description note notes comment comments format limit amount amounts currency reason dry
force recursive confirm title count size priority language timeout encoding mode value data payload fields values updates changes level verbose
overwrite offset sort order_by quantity price memo html caption prompt question answer summary instructions details duration temperature`)

// strong are arguments that say what is acted on.
var strong = set(`id ids path paths file files filename filepath folder directory dir table database db bucket account recipient recipients to email
address addresses name names key host server service resource target targets url uri branch repo repository device event order invoice record volume instance
cluster user username customer client channel container image job project query command sql glob pattern range document item payee beneficiary iban`)

// rankTargets picks the arguments that say what is acted on, the primary first.
func rankTargets(names, objects []string) []string {
	rank := func(name string) int {
		var parts []string
		splitWords(name, func(w string) { parts = append(parts, w) })
		if len(parts) == 0 || content[parts[0]] && (len(parts) == 1 || parts[0] == "dry") || parts[0] == "new" || content[parts[len(parts)-1]] {
			return 0
		}
		for _, p := range parts {
			for _, o := range objects {
				if stem(p) == stem(o) {
					return 4
				}
			}
		}
		switch {
		case parts[0] == "to", parts[0] == "recipient", parts[0] == "recipients":
			return 3
		case strong[parts[len(parts)-1]] || strong[parts[0]]:
			return 2
		}
		return 1
	}
	kept := make([]string, 0, len(names))
	for _, n := range names {
		if rank(n) > 0 {
			kept = append(kept, n)
		}
	}
	slices.SortStableFunc(kept, func(a, b string) int { return rank(b) - rank(a) })
	if len(kept) > 0 && rank(kept[0]) > 1 { // weak names count only where there is nothing better
		kept = slices.DeleteFunc(kept, func(n string) bool { return rank(n) == 1 })
	}
	return kept
}

// parameters reads the properties of a JSON Schema, in their order.
func parameters(schema []byte) ([]param, error) {
	if len(schema) == 0 {
		return nil, nil
	}
	if len(schema) > maxSchema {
		return nil, fmt.Errorf("%d bytes, at most %d", len(schema), maxSchema)
	}
	var s struct {
		Type       any             `json:"type"`
		Required   []string        `json:"required"`
		Properties json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	out := []param{}
	if len(s.Properties) == 0 || string(s.Properties) == "null" {
		return out, nil
	}
	dec := json.NewDecoder(bytes.NewReader(s.Properties))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("properties is no object")
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		p := param{name: name, required: slices.Contains(s.Required, name)}
		var d struct {
			Type    any               `json:"type"`
			Default json.RawMessage   `json:"default"`
			Const   json.RawMessage   `json:"const"`
			Enum    []json.RawMessage `json:"enum"`
		}
		if json.Unmarshal(raw, &d) == nil { // a schema may also be true
			p.kind, _ = d.Type.(string)
			switch {
			case d.Const != nil:
				p.fixed = json.Unmarshal(d.Const, &p.value) == nil
			case d.Default != nil:
				p.fixed = json.Unmarshal(d.Default, &p.value) == nil
			case len(d.Enum) == 1:
				p.fixed = json.Unmarshal(d.Enum[0], &p.value) == nil
			}
		}
		out = append(out, p)
	}
	return out, nil
}
