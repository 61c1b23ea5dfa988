package floor

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads YAML. Readers differ in three ways that are followed: which
// document of several counts, whether U+0085, U+2028 and U+2029 end a line (YAML
// 1.1) or not (1.2), and what some plain scalars are.
func parseYAML(text []byte) ([]*node, error) {
	if !bytes.ContainsFunc(text, isOddBreak) {
		trees, err := parseYAMLStream(text)
		if err != nil {
			return nil, err
		}
		return trees, nil
	}
	var trees []*node
	var failed error
	good := false
	for _, as := range []rune{'\u00b7', '\n'} { // a character like any other, or the end of a line
		one, err := parseYAMLStream(bytes.Map(func(r rune) rune {
			if isOddBreak(r) {
				return as
			}
			return r
		}, text))
		failed = errors.Join(failed, err)
		good = good || err == nil
		trees = append(trees, one...) // a reader of the first document sees no later error
	}
	if !good {
		return nil, failed
	}
	return trees, nil
}

// maxYAMLDocuments bounds the documents of a stream.
const maxYAMLDocuments = 1000

// parseYAMLStream returns the documents up to the end or the first error.
func parseYAMLStream(text []byte) ([]*node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(knownVersion(text)))
	var trees []*node
	for {
		var doc yaml.Node
		err := decodeYAML(dec, &doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return trees, unreadable("%s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		if len(trees) == maxYAMLDocuments {
			return trees, unreadable("more than %d documents in one stream", maxYAMLDocuments)
		}
		c := yamlConverter{done: map[*yaml.Node]*node{}}
		n, err := c.node(&doc, 0)
		if err != nil {
			return trees, err
		}
		trees = append(trees, n)
	}
	// Empty documents at the end are what a trailing "---" leaves.
	for len(trees) > 1 && trees[len(trees)-1].kind == nullKind {
		trees = trees[:len(trees)-1]
	}
	if len(trees) == 0 {
		return []*node{{kind: nullKind}}, nil
	}
	return trees, nil
}

// knownVersion replaces the version of a %YAML directive at the start, of which the
// parser knows 1.1 only: what a plain scalar is, is worked out for both here.
func knownVersion(text []byte) []byte {
	for at := 0; at < len(text); {
		line, _, _ := bytes.Cut(text[at:], []byte("\n"))
		t := bytes.TrimSpace(line)
		if len(t) > 0 && t[0] != '#' && t[0] != '%' {
			break
		}
		if bytes.HasPrefix(line, []byte("%YAML 1.2")) && len(bytes.TrimSpace(line)) == len("%YAML 1.2") {
			text = bytes.Clone(text)
			text[at+len("%YAML 1.")] = '1'
			break
		}
		at += len(line) + 1
	}
	return text
}

// decodeYAML keeps a panic of the parser from ending the program.
func decodeYAML(dec *yaml.Decoder, doc *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the parser gave up on it")
		}
	}()
	return dec.Decode(doc)
}

// yamlConverter turns parsed YAML into nodes. Aliases share the node of their
// anchor.
type yamlConverter struct {
	done map[*yaml.Node]*node
}

func (c *yamlConverter) node(y *yaml.Node, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, unreadable("line %d: nested more than %d levels deep", y.Line, maxDepth)
	}
	switch y.Kind {
	case 0:
		return &node{kind: nullKind}, nil
	case yaml.DocumentNode:
		if len(y.Content) == 0 {
			return &node{kind: nullKind}, nil
		}
		return c.node(y.Content[0], depth)
	case yaml.AliasNode:
		return c.node(y.Alias, depth+1)
	}
	if n, ok := c.done[y]; ok {
		if n == nil {
			return nil, unreadable("line %d: an alias inside what it stands for", y.Line)
		}
		return n, nil
	}
	if y.Anchor != "" {
		c.done[y] = nil
	}
	n, err := c.convert(y, depth)
	if err == nil && y.Anchor != "" {
		c.done[y] = n
	}
	return n, err
}

func (c *yamlConverter) convert(y *yaml.Node, depth int) (*node, error) {
	n := &node{tag: oddTag(y)}
	switch y.Kind {
	case yaml.ScalarNode:
		yamlScalar(n, y)
		if y.Style == 0 {
			n.from, n.to = int32(y.Line), int32(y.Column)
		}
		return n, nil
	case yaml.SequenceNode:
		n.kind = listKind
		n.items = make([]*node, 0, len(y.Content))
		for _, item := range y.Content {
			v, err := c.node(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, v)
		}
		return n, nil
	case yaml.MappingNode:
		n.kind = mapKind
		n.ents = make([]entry, 0, len(y.Content)/2)
		for i := 0; i+1 < len(y.Content); i += 2 {
			e, err := c.key(y.Content[i], depth+1)
			if err != nil {
				return nil, err
			}
			if e.val, err = c.node(y.Content[i+1], depth+1); err != nil {
				return nil, err
			}
			n.ents = append(n.ents, e)
		}
		return n, nil
	}
	return nil, unreadable("line %d: an unknown kind of YAML node", y.Line)
}

// key reads the key of a map's entry.
func (c *yamlConverter) key(y *yaml.Node, depth int) (entry, error) {
	for hops := 0; y.Kind == yaml.AliasNode; hops++ {
		if hops > 10 {
			return entry{}, unreadable("line %d: a key behind too many aliases", y.Line)
		}
		y = y.Alias
	}
	if y.Kind != yaml.ScalarNode {
		// A list or map as key: some readers make text of it.
		var texts []string
		for _, k := range y.Content {
			texts = append(texts, k.Value)
		}
		return entry{key: strings.Join(texts, "."), odd: true}, nil
	}
	e := entry{key: y.Value, odd: oddTag(y) != ""}
	if y.ShortTag() == "!!binary" {
		if b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(y.Value), "")); err == nil && utf8.Valid(b) {
			e.key = string(b)
		}
	}
	e.merge = y.ShortTag() == "!!merge" || y.Value == "<<" && y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
	return e, nil
}

// oddTag returns a tag that is not of the core schema, which a loader may turn
// into anything: the content of a file, a variable, an object.
func oddTag(y *yaml.Node) string {
	if y.Style&yaml.TaggedStyle == 0 {
		return ""
	}
	switch t := y.ShortTag(); t {
	case "", "!", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq", "!!timestamp", "!!merge":
		return ""
	default:
		return t
	}
}

// yamlScalar gives n the value of a scalar under YAML 1.2 (core schema) and,
// where it differs, under 1.1.
func yamlScalar(n *node, y *yaml.Node) {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	tag := ""
	if y.Style&yaml.TaggedStyle != 0 {
		tag = y.ShortTag()
	}
	if tag == "!!str" || tag == "!" || tag == "" && y.Style&quoted != 0 {
		n.kind, n.scalar = textKind, y.Value
		return
	}
	n.kind, n.scalar = plain12(y.Value)
	k, s := plain11(y.Value)
	if k != n.kind || s != n.scalar {
		n.other = k.String() + " " + s
	}
	if tag != "" && n.tag == "" {
		n.other = tag + " " + n.other // a core tag forced on it: equal only to itself
	}
}

// plain12 resolves a plain scalar by the core schema of YAML 1.2.2, section 10.3.
func plain12(s string) (kind, string) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return nullKind, ""
	case "true", "True", "TRUE":
		return boolKind, "true"
	case "false", "False", "FALSE":
		return boolKind, "false"
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", ".nan", ".NaN", ".NAN":
		return numberKind, strings.ToLower(strings.TrimPrefix(s, "+"))
	}
	if c := s[0]; c != '-' && c != '+' && c != '.' && (c < '0' || c > '9') {
		return textKind, s
	}
	for prefix, base := range map[string]int{"0o": 8, "0x": 16} {
		if digits, ok := strings.CutPrefix(s, prefix); ok && digits != "" && strings.Trim(digits, "0123456789abcdefABCDEF") == "" {
			if i, ok := new(big.Int).SetString(digits, base); ok {
				return numberKind, i.String()
			}
		}
	}
	t := strings.TrimLeft(s, "+-")
	if len(s)-len(t) > 1 || t == "" || strings.Trim(t, "0123456789.eE+-") != "" {
		return textKind, s
	}
	if strings.Trim(t, "0123456789") == "" {
		return numberKind, canonicalNumber(strings.TrimPrefix(s, "+"))
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return numberKind, "f" + strconv.FormatFloat(f, 'g', -1, 64)
	}
	return textKind, s
}

// plain11 resolves a plain scalar by the types of YAML 1.1 (yaml.org/type), as
// far as they differ from 1.2.
func plain11(s string) (kind, string) {
	switch s {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return boolKind, "true"
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return boolKind, "false"
	case "=":
		return textKind, "=default"
	}
	if s == "" || strings.Trim(s[:1], "+-.0123456789") != "" {
		return plain12(s)
	}
	t := strings.ReplaceAll(s, "_", "")
	sign := ""
	if u := strings.TrimLeft(t, "+-"); len(t)-len(u) == 1 {
		sign, t = strings.TrimPrefix(t[:1], "+"), u
	}
	if t == "" {
		return plain12(s)
	}
	for _, b := range []struct {
		prefix, digits string
		base           int
	}{{"0b", "01", 2}, {"0x", "0123456789abcdefABCDEF", 16}, {"0", "01234567", 8}} {
		if digits, ok := strings.CutPrefix(t, b.prefix); ok && digits != "" && strings.Trim(digits, b.digits) == "" {
			if i, ok := new(big.Int).SetString(sign+digits, b.base); ok {
				return numberKind, i.String()
			}
		}
	}
	if strings.Contains(t, ":") && strings.Trim(t, "0123456789:.") == "" { // sexagesimal
		return numberKind, sign + t
	}
	if len(t) >= 8 && t[0] >= '0' && t[0] <= '9' && strings.Count(t, "-") >= 2 && strings.Trim(t, "0123456789-:.TtZz+ ") == "" {
		return textKind, "time " + s
	}
	if k, v := plain12(sign + t); k != textKind {
		return k, v
	}
	return textKind, s
}

func sortEntries(e []entry) {
	slices.SortFunc(e, func(a, b entry) int { return strings.Compare(a.key, b.key) })
}
