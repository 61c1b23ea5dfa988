package env

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Domain names an environment.
type Domain string

// The domains.
const (
	Calendar   Domain = "calendar"   // calendar and devices
	Filesystem Domain = "filesystem" // files and folders
	Mail       Domain = "mail"       // e-mail and messaging
	Database   Domain = "database"   // tables and migrations
	Cloud      Domain = "cloud"      // cloud and deployment
	Finance    Domain = "finance"    // finance and records
)

// Domains lists the domains in the order in which they are reported.
func Domains() []Domain { return []Domain{Calendar, Filesystem, Mail, Database, Cloud, Finance} }

// MaxArguments is the length of the longest arguments that a tool takes, in bytes.
const MaxArguments = 64 << 10

// Errors of New.
var (
	ErrDomain = errors.New("there is no such domain")
	ErrState  = errors.New("the state does not fit the domain")
)

// Record is one thing of a world: JSON values by field.
type Record map[string]any

// State is all there is in a world: records by collection and name.
type State map[string]map[string]Record

// Clone returns a deep copy.
func (s State) Clone() State {
	c := make(State, len(s))
	for name, records := range s {
		m := make(map[string]Record, len(records))
		for id, r := range records {
			m[id] = cloneValue(map[string]any(r)).(map[string]any)
		}
		c[name] = m
	}
	return c
}

func cloneValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, x := range v {
			m[k] = cloneValue(x)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, x := range v {
			l[i] = cloneValue(x)
		}
		return l
	}
	return v
}

// JSON is the state with sorted keys.
func (s State) JSON() string {
	b, err := json.Marshal(s)
	if err != nil { // a State is read from JSON or YAML and changed by tools that write JSON values
		panic(err)
	}
	return string(b)
}

// put stores a record.
func (s State) put(collection, id string, r Record) {
	if s[collection] == nil {
		s[collection] = map[string]Record{}
	}
	s[collection][id] = r
}

// get returns a record, or an error that tells the agent what there is not.
func (s State) get(collection, id string) (Record, error) {
	if r, ok := s[collection][id]; ok {
		return r, nil
	}
	return nil, fmt.Errorf("%s has no %q", collection, id)
}

// names lists a collection in order.
func (s State) names(collection string) []string {
	return slices.Sorted(maps.Keys(s[collection]))
}

// Tool is one tool of a domain.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of its arguments, an object
	Target      string          // the argument that names what the call acts on
	Of          string          // the collection in which the target lies
	Evidence    string          // the collection in which a successful call leaves evidence; "" for none
	Writes      bool            // changes more than evidence
	Keeps       bool            // its evidence is a copy that somebody may need once the original is gone

	run    func(State, Args) (any, error)
	schema *jsonschema.Schema
}

// Args are arguments that fit the tool's schema.
type Args map[string]any

// Text returns a text argument, or "" where it was left out.
func (a Args) Text(name string) string {
	s, _ := a[name].(string)
	return s
}

// Result is what came of a call.
type Result struct {
	Valid  bool   // the tool exists and its arguments fit the schema
	Output string // JSON, when Err is nil
	Err    error  // text for the agent
}

// World is a running environment. It is not safe for concurrent use.
type World struct {
	domain Domain
	state  State
}

// New starts an environment in a copy of a state. Every collection of the state
// must be one that the domain's tools know.
func New(d Domain, s State) (*World, error) {
	box, err := toolbox(d)
	if err != nil {
		return nil, err
	}
	for name := range s {
		if !box.collections[name] {
			return nil, fmt.Errorf("%w: %s has no collection %q: want one of %q", ErrState, d, name, slices.Sorted(maps.Keys(box.collections)))
		}
	}
	return &World{d, s.Clone()}, nil
}

// Domain is the world's domain.
func (w *World) Domain() Domain { return w.domain }

// State returns a copy of the present state.
func (w *World) State() State { return w.state.Clone() }

// Clone returns an independent copy of the world.
func (w *World) Clone() *World { return &World{w.domain, w.state.Clone()} }

// Has reports whether a record exists.
func (w *World) Has(collection, id string) bool {
	_, ok := w.state[collection][id]
	return ok
}

// Tools lists the tools of a domain by name, nil where there is no such domain.
func Tools(d Domain) []*Tool {
	box, err := toolbox(d)
	if err != nil {
		return nil
	}
	return box.list
}

// Lookup returns a tool of a domain.
func Lookup(d Domain, name string) (*Tool, bool) {
	box, err := toolbox(d)
	if err != nil {
		return nil, false
	}
	t, ok := box.byName[name]
	return t, ok
}

// Parse checks arguments, a JSON object, against the tool's schema.
func (t *Tool) Parse(arguments string) (Args, error) {
	if len(arguments) > MaxArguments {
		return nil, fmt.Errorf("the arguments are longer than %d KiB", MaxArguments>>10)
	}
	if strings.TrimSpace(arguments) == "" {
		arguments = "{}"
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(arguments))
	if err != nil {
		return nil, errors.New("the arguments are not a JSON object")
	}
	if err := t.schema.Validate(v); err != nil {
		var invalid *jsonschema.ValidationError
		if errors.As(err, &invalid) {
			return nil, fmt.Errorf("the arguments do not fit the schema of %s: %s", t.Name, firstCause(invalid))
		}
		return nil, fmt.Errorf("the arguments do not fit the schema of %s", t.Name)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the arguments are not a JSON object")
	}
	if t.Of == "files" { // one spelling of each path
		for k, x := range m {
			if s, ok := x.(string); ok && (k == t.Target || k == "to") && strings.HasPrefix(s, "/") {
				m[k] = cleanPath(s)
			}
		}
	}
	return m, nil
}

// firstCause is the first of the innermost causes in the order of their texts: that
// of the validator is not always the same.
func firstCause(e *jsonschema.ValidationError) string {
	if len(e.Causes) == 0 {
		lines := strings.Split(e.Error(), "\n")
		return strings.TrimLeft(lines[len(lines)-1], "- ")
	}
	first := firstCause(e.Causes[0])
	for _, c := range e.Causes[1:] {
		first = min(first, firstCause(c))
	}
	return first
}

// Call executes a call. Only a call without error changes the state.
func (w *World) Call(tool, arguments string) Result {
	t, ok := Lookup(w.domain, tool)
	if !ok {
		return Result{Err: fmt.Errorf("there is no tool %.60q", tool)}
	}
	a, err := t.Parse(arguments)
	if err != nil {
		return Result{Err: err}
	}
	next := w.state.Clone() // a tool that fails half way leaves nothing behind
	v, err := t.run(next, a)
	if err != nil {
		return Result{Valid: true, Err: err}
	}
	w.state = next
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return Result{Valid: true, Err: fmt.Errorf("%s: no result", tool)}
	}
	return Result{Valid: true, Output: strings.TrimSpace(b.String())}
}

// Standing says whether evidence counts.
type Standing int

// The standings.
const (
	Missing Standing = iota // there is none that covers the target
	Undone                  // it was taken back
	Stale                   // a copy of what has changed since
	Active                  // it counts
)

func (s Standing) String() string {
	return [...]string{"missing", "undone", "stale", "active"}[s]
}

// Evidence returns the best standing of the evidence that covers a target, which
// may be gone: then a copy cannot be stale.
func (w *World) Evidence(collection, target string) Standing {
	best := Missing
	for id, r := range w.state[collection] {
		if !Covers(id, target) {
			continue
		}
		st := Active
		if active, ok := r["active"].(bool); ok && !active {
			st = Undone
		} else if then, ok := r["sums"].(map[string]any); ok {
			of, _ := r["of"].(string)
			for name, now := range sums(w.state, of, target) {
				if then[name] != now {
					st = Stale
				}
			}
		}
		best = max(best, st)
	}
	return best
}

// Covers reports whether what is done to a is done to b: they are the same, or a
// is a folder that holds b. Names are compared without regard to letter case and
// outer space.
func Covers(a, b string) bool {
	a, b = normal(a), normal(b)
	if a == b {
		return true
	}
	return strings.HasPrefix(a, "/") && strings.HasPrefix(b, strings.TrimSuffix(a, "/")+"/")
}

// Overlaps reports whether one covers the other.
func Overlaps(a, b string) bool { return Covers(a, b) || Covers(b, a) }

func normal(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if strings.HasPrefix(s, "/") {
		s = cleanPath(s)
	}
	return s
}

// sums are digests by name of the record, or of all records below a folder.
func sums(s State, collection, id string) map[string]any {
	out := map[string]any{}
	for name, r := range s[collection] {
		if Covers(id, name) {
			b, err := json.Marshal(r)
			if err != nil { // a record is made of JSON values
				panic(err)
			}
			sum := sha256.Sum256(b)
			out[name] = hex.EncodeToString(sum[:8])
		}
	}
	return out
}

type box struct {
	list        []*Tool
	byName      map[string]*Tool
	collections map[string]bool
}

var boxes = map[Domain]func() (*box, error){
	Calendar:   sync.OnceValues(func() (*box, error) { return pack(calendarTools(), "people") }),
	Filesystem: sync.OnceValues(func() (*box, error) { return pack(filesystemTools()) }),
	Mail:       sync.OnceValues(func() (*box, error) { return pack(mailTools(), "sent", "posts") }),
	Database:   sync.OnceValues(func() (*box, error) { return pack(databaseTools(), "grants") }),
	Cloud:      sync.OnceValues(func() (*box, error) { return pack(cloudTools()) }),
	Finance:    sync.OnceValues(func() (*box, error) { return pack(financeTools(), "payments") }),
}

func toolbox(d Domain) (*box, error) {
	f, ok := boxes[d]
	if !ok {
		return nil, fmt.Errorf("%w: %q: want one of %q", ErrDomain, d, Domains())
	}
	return f()
}

// pack compiles the schemas of tools.
func pack(tools []*Tool, more ...string) (*box, error) {
	b := &box{byName: map[string]*Tool{}, collections: map[string]bool{}}
	for _, name := range more {
		b.collections[name] = true
	}
	c := jsonschema.NewCompiler()
	for _, t := range tools {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(t.Schema))
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", t.Name, err)
		}
		if err := c.AddResource(t.Name+".json", doc); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", t.Name, err)
		}
		if t.schema, err = c.Compile(t.Name + ".json"); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", t.Name, err)
		}
		if b.byName[t.Name] != nil {
			return nil, fmt.Errorf("two tools are named %s", t.Name)
		}
		b.byName[t.Name] = t
		for _, name := range []string{t.Of, t.Evidence} {
			if name != "" {
				b.collections[name] = true
			}
		}
	}
	b.list = slices.SortedFunc(maps.Values(b.byName), func(x, y *Tool) int { return strings.Compare(x.Name, y.Name) })
	return b, nil
}
