package floor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Format says what kind of change a Change is.
type Format string

// The formats. The first four are whole documents.
const (
	YAML       Format = "yaml"
	JSON       Format = "json"
	TOML       Format = "toml"
	JSONC      Format = "jsonc" // JSON with comments and trailing commas
	JSONPatch  Format = "patch" // RFC 6902
	MergePatch Format = "merge-patch"
	PathWrite  Format = "path" // one value written to one path
)

// IsDocument reports whether a change of this format is a whole document.
func (f Format) IsDocument() bool {
	return f == YAML || f == JSON || f == TOML || f == JSONC
}

// Change is a proposed change of a configuration.
type Change struct {
	Format Format
	// Before is the present document. Nil means that it is not known, or that
	// there is none: a whole document is then judged as a new one, and a patch
	// or path by what it writes.
	Before []byte
	// BeforeFormat is the format of Before, for patches and paths; it is
	// recognised when empty.
	BeforeFormat Format
	// Text is the new document or the patch.
	Text []byte
	// Path and Value are what a PathWrite writes. Value holds JSON.
	Path  string
	Value json.RawMessage
	// Delete makes a PathWrite remove the field instead.
	Delete bool
}

// Document is the change from one whole document to another; before is nil where
// there was none.
func Document(format Format, before, after []byte) Change {
	return Change{Format: format, Before: before, Text: after}
}

// Write is the change that sets one field. The value is turned into JSON; one
// that cannot be is refused by Check.
func Write(path string, value any) Change {
	b, err := json.Marshal(value)
	if err != nil {
		b = nil
	}
	return Change{Format: PathWrite, Path: path, Value: b}
}

// Outcome is what the floor answers. Stricter outcomes are larger.
type Outcome int8

// The outcomes.
const (
	Permit Outcome = iota
	Hold           // a person decides: the change cannot be understood, and touches a sealed file
	Refuse
)

func (o Outcome) String() string {
	switch o {
	case Permit:
		return "permit"
	case Hold:
		return "hold"
	case Refuse:
		return "refuse"
	}
	return fmt.Sprintf("Outcome(%d)", int8(o))
}

// MarshalText writes permit, hold or refuse.
func (o Outcome) MarshalText() ([]byte, error) {
	if o < Permit || o > Refuse {
		return nil, fmt.Errorf("floor: %v is not an outcome", o)
	}
	return []byte(o.String()), nil
}

// UnmarshalText reads permit, hold or refuse.
func (o *Outcome) UnmarshalText(b []byte) error {
	for c := Permit; c <= Refuse; c++ {
		if string(b) == c.String() {
			*o = c
			return nil
		}
	}
	return fmt.Errorf("floor: %.20q is not an outcome: want permit, hold or refuse", b)
}

// Decision is the answer to a change.
type Decision struct {
	Outcome Outcome `json:"decision"`
	// Rule is the name of the rule that refused, or one of the Rule constants;
	// empty for a permitted change.
	Rule string `json:"rule"`
	// Path is the field in question, as far as it is known.
	Path string `json:"path,omitempty"`
	// Reason is text for the agent; empty for a permitted change.
	Reason string `json:"reason"`
	// Err says what could not be read where Rule is RuleUnreadable. It wraps
	// [ErrUnreadable].
	Err error `json:"-"`
}

// Rules that are not in a rule set.
const (
	RuleUnreadable = "unreadable" // the change cannot be read, or can be read in several ways
	RuleReference  = "reference"  // a reference, include or substitution in a protected block
	RulePrototype  = "prototype"  // a key that changes the defaults of every object
)

// ErrUnreadable is wrapped by every error about a document or patch that cannot
// be read in one way.
var ErrUnreadable = errors.New("cannot be read")

func unreadable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnreadable, fmt.Sprintf(format, args...))
}

// unreadableReason is the text of an error for the agent.
func unreadableReason(err error) string {
	return "the change cannot be read with certainty: " + strings.ReplaceAll(err.Error(), ErrUnreadable.Error()+": ", "")
}

// Floor checks changes against rules. It is safe for concurrent use.
type Floor struct {
	rules      Rules
	root       *trie
	anywhere   map[string]int // skeleton of a key: its rule
	names      []string       // skeletons of all segments of all rules
	blocks     []*trie        // by block number: the position that stands for the inside of the block
	blockNames []string       // by block number - 1
	// withinBlocks holds, by rule, the names of the blocks of Within.
	withinBlocks [][]string

	mu     sync.Mutex
	recent [cacheSize]*document
	turn   int
}

// cacheSize is how many parsed documents a Floor remembers: an agent changes the
// same file again and again.
const cacheSize = 8

// maxDocument bounds a document, in bytes.
const maxDocument = 16 << 20

var defaultFloor = sync.OnceValue(func() *Floor {
	f, err := New(DefaultRules())
	if err != nil {
		panic(err) // a test compiles the built-in rules
	}
	return f
})

// Default returns the floor with the built-in rules.
func Default() *Floor { return defaultFloor() }

// Check checks c against the built-in rules.
func Check(c Change) Decision { return Default().Check(c) }

// Rules returns the rules of f.
func (f *Floor) Rules() Rules { return f.rules }

// Check judges a change. A whole document is judged by what it changes: protected
// values that stay what they were may be laid out anew. A path or patch is judged
// by what it writes. What cannot be read, or can be read in several ways of which
// one changes a protected field, is refused.
func (f *Floor) Check(c Change) Decision {
	findings, err := f.findings(c)
	switch {
	case err != nil:
		return refuseUnreadable(err)
	case len(findings) > 0:
		return f.decision(findings[0])
	}
	return Decision{}
}

// Findings lists everything in a change that the floor refuses, and an error
// where the change cannot be read.
func (f *Floor) Findings(c Change) ([]Decision, error) {
	findings, err := f.findings(c)
	if err != nil {
		return nil, err
	}
	out := make([]Decision, len(findings))
	for i := range findings {
		out[i] = f.decision(findings[i])
	}
	return out, nil
}

func (f *Floor) findings(c Change) ([]finding, error) {
	if max(len(c.Before), len(c.Text), len(c.Value), len(c.Path)) > maxDocument {
		return nil, unreadable("it is larger than %d MiB", maxDocument>>20)
	}
	switch c.Format {
	case YAML, JSON, TOML, JSONC:
		return f.checkDocument(c)
	case PathWrite:
		return f.checkPath(c)
	case JSONPatch:
		return f.checkPatch(c)
	case MergePatch:
		return f.checkMergePatch(c)
	}
	return nil, unreadable("unknown format %.20q: want yaml, json, toml, jsonc, patch, merge-patch or path", c.Format)
}

// checkDocument compares two whole documents.
func (f *Floor) checkDocument(c Change) ([]finding, error) {
	if c.Before != nil && bytes.Equal(c.Before, c.Text) {
		return nil, nil // whatever it says, it says nothing new
	}
	format := c.Format
	if c.BeforeFormat != "" {
		format = c.BeforeFormat
	}
	before, err := f.document(format, c.Before)
	if err == nil && format == c.Format && f.small(before, c.Text) {
		return nil, nil
	}
	if err != nil && c.BeforeFormat == "" {
		before, err = f.present(c) // it may be of another format than the new one
	}
	if err != nil {
		return nil, fmt.Errorf("the present document: %w", err)
	}
	after, err := f.document(c.Format, c.Text)
	if err != nil {
		return nil, fmt.Errorf("the new document: %w", err)
	}
	if found := f.compareDocuments(before, after); len(found) > 0 {
		return found, nil
	}
	// By the second parser, where it can read both.
	olds := before.second
	if before.format != YAML || len(bytes.TrimSpace(before.text)) == 0 {
		olds = before.views // there is one way to read it
	}
	if len(olds) == 0 || len(after.second) == 0 {
		return nil, nil
	}
	return f.compareReadings(olds, after.second), nil
}

// document parses text, or finds it among those parsed lately.
func (f *Floor) document(format Format, text []byte) (*document, error) {
	f.mu.Lock()
	for i, d := range f.recent {
		if d != nil && d.format == format && bytes.Equal(d.text, text) {
			if i == f.turn { // in use: the next one goes instead
				f.turn = (f.turn + 1) % cacheSize
			}
			f.mu.Unlock()
			return d, d.err
		}
	}
	f.mu.Unlock()
	d := &document{format: format, text: bytes.Clone(text)}
	d.trees, d.err = parse(format, d.text)
	if d.err == nil {
		d.views, d.err = f.views(d.trees)
	}
	if d.err == nil && format == YAML {
		if trees := secondYAML(d.text); trees != nil {
			d.second, _ = f.views(trees) // where that fails, the first parser's views stand
		}
	}
	f.mu.Lock()
	f.recent[f.turn] = d
	f.turn = (f.turn + 1) % cacheSize
	f.mu.Unlock()
	return d, d.err
}

// document is a parsed document.
type document struct {
	format Format
	text   []byte
	trees  []*node // one per way to split the text into lines and documents; the first is the usual one
	views  []*view // what is protected in it, one per way to read it
	second []*view // of YAML: the same by another parser, none where it fails
	err    error

	lines     []int           // of YAML: where each line starts
	plain     map[int32]*node // of YAML: by line, the plain scalar that ends it and that no rule sees
	plainOnce sync.Once
}

func (d *document) tree() *node { return d.trees[0] }

func (f *Floor) decision(x finding) Decision {
	d := Decision{Outcome: Refuse, Path: x.path}
	where := x.path
	if where == "" {
		where = "the document"
	}
	switch {
	case x.special == specialPrototype:
		d.Rule = RulePrototype
		d.Reason = fmt.Sprintf("%s would set defaults of every object, protected fields among them", where)
	case x.special != "":
		d.Rule = RuleReference
		d.Reason = fmt.Sprintf("%s: %s in a protected block could bring in what nobody has checked: write the value itself", where, x.special)
	default:
		r := f.rules.Rules[x.rule]
		d.Rule = r.Name
		d.Reason = fmt.Sprintf("%s %s: %s", where, x.what, r.Reason)
	}
	return d
}

// skeleton is the skeleton of a key under the rules of f.
func (f *Floor) skeleton(key string) string {
	s := skeleton(key)
	if f.rules.IgnoreSeparators {
		s = strings.Map(func(r rune) rune {
			if r == '_' || r == '-' {
				return -1
			}
			return r
		}, s)
	}
	return s
}
