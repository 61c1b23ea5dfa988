package floor

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// kind is the kind of a node.
type kind uint8

const (
	nullKind kind = iota
	boolKind
	numberKind
	textKind
	listKind
	mapKind
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "text", "a list", "a map"}[k]
}

// node is a value of any of the formats. Maps keep every entry in its place,
// equal keys too, since readers differ in which of them counts.
type node struct {
	kind kind
	// scalar is the value of a scalar in canonical form; other is what a reader
	// of YAML 1.1 takes it for where that differs ("" otherwise), with its kind
	// in front.
	scalar string
	other  string
	tag    string // a YAML tag that is not of the core schema
	ents   []entry
	items  []*node
	// Where the value stands in the text: bytes in JSON, a line in YAML, there for
	// plain scalars only.
	from, to int32
}

type entry struct {
	key   string
	val   *node
	merge bool // a YAML merge key
	odd   bool // the key is a collection or has a tag: readers differ in what it becomes
}

// maxDepth bounds the nesting of documents.
const maxDepth = 10_000

// maxNodes bounds how many nodes are looked at, aliases followed, in one
// document.
const maxNodes = 2_000_000

// parse reads a document. It returns more than one tree where readers differ in
// where its lines or its documents end.
func parse(format Format, text []byte) ([]*node, error) {
	text, err := decodeText(text)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return []*node{{kind: nullKind}}, nil // no document: nothing is set
	}
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return nil, unreadable("it holds a NUL byte at offset %d", i)
	}
	switch format {
	case JSON:
		return one(parseJSON(text, false))
	case JSONC:
		return one(parseJSON(text, true))
	case TOML:
		return one(parseTOML(text))
	case YAML:
		return parseYAML(text)
	}
	return nil, unreadable("format %.20q has no documents", format)
}

func one(n *node, err error) ([]*node, error) {
	if err != nil {
		return nil, err
	}
	return []*node{n}, nil
}

// recognise parses a document of unknown format: the present document that a
// patch or path applies to.
func recognise(text []byte) (Format, []*node, error) {
	var first error
	// TOML before YAML, which takes many a short TOML text for a list or a map.
	for _, f := range []Format{JSON, JSONC, TOML, YAML} {
		trees, err := parse(f, text)
		if err == nil && (f != YAML || trees[0].kind != textKind) {
			return f, trees, nil
		}
		if first == nil || f == YAML {
			first = err
		}
	}
	if first == nil {
		first = unreadable("it is neither JSON, YAML nor TOML")
	}
	return "", nil, first
}

// decodeText turns text into UTF-8 without a byte order mark.
func decodeText(b []byte) ([]byte, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(b, []byte("\xff\xfe\x00\x00")), bytes.HasPrefix(b, []byte("\x00\x00\xfe\xff")):
		return nil, unreadable("it is UTF-32: convert it to UTF-8")
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		b = bytes.TrimPrefix(b, []byte("\ufeff"))
		if !utf8.Valid(b) {
			return nil, unreadable("it is not valid UTF-8")
		}
		return b, nil
	}
	b = b[2:]
	if len(b)%2 != 0 {
		return nil, unreadable("it is UTF-16 with half a character at its end")
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = order.Uint16(b[2*i:])
	}
	return []byte(string(utf16.Decode(units))), nil
}

// equalNodes reports whether two values are the same for every reader. The order
// of the keys of a map does not matter, that of equal keys does.
func equalNodes(a, b *node) bool {
	if a.kind != b.kind || a.scalar != b.scalar || a.other != b.other || a.tag != b.tag {
		return false
	}
	if len(a.ents) != len(b.ents) || len(a.items) != len(b.items) {
		return false
	}
	for i := range a.items {
		if !equalNodes(a.items[i], b.items[i]) {
			return false
		}
	}
	if len(a.ents) == 0 {
		return true
	}
	at := make(map[string][]int, len(b.ents))
	for i, e := range b.ents {
		at[e.key] = append(at[e.key], i)
	}
	for _, e := range a.ents {
		is := at[e.key]
		if len(is) == 0 {
			return false
		}
		o := b.ents[is[0]]
		at[e.key] = is[1:]
		if e.merge != o.merge || e.odd != o.odd || !equalNodes(e.val, o.val) {
			return false
		}
	}
	return true
}

// get returns the value at key, the last of several, and whether there is one.
func (n *node) get(key string) (*node, bool) {
	for i := len(n.ents) - 1; i >= 0; i-- {
		if n.ents[i].key == key {
			return n.ents[i].val, true
		}
	}
	return nil, false
}

// canonicalNumber returns one spelling for equal numbers of the same kind: whole
// numbers and others stay apart, since some readers keep them apart.
func canonicalNumber(s string) string {
	if !strings.ContainsAny(s, ".eE") {
		if i, ok := new(big.Int).SetString(s, 10); ok && len(s) < 400 {
			return i.String()
		}
		return s
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	return "f" + strconv.FormatFloat(f, 'g', -1, 64)
}
