package floor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrCannotEdit is wrapped where a change cannot be made in the text of a file.
var ErrCannotEdit = errors.New("the change cannot be made in place")

// Edit makes the new text of a document from a path write or, for JSON, a patch.
// Comments stay where a single field is written. It checks nothing: Guarded does,
// before and after.
func Edit(format Format, text []byte, c Change) ([]byte, error) {
	if c.Format != PathWrite {
		return editPatch(format, text, c)
	}
	keys, err := plainPath(c.Path)
	if err != nil {
		return nil, err
	}
	switch format {
	case JSON, JSONC:
		return editJSON(text, keys, c.Value, format == JSONC)
	case YAML:
		return editYAML(text, keys, c.Value)
	}
	return nil, fmt.Errorf("%w: %s files are only written whole", ErrCannotEdit, format)
}

// editPatch applies a patch to a JSON file, which is laid out anew.
func editPatch(format Format, text []byte, c Change) ([]byte, error) {
	if format != JSON {
		return nil, fmt.Errorf("%w: patches are applied to JSON files; write single fields, or the whole document", ErrCannotEdit)
	}
	root, err := parseJSON(bytes.TrimPrefix(text, []byte("\ufeff")), false)
	if err != nil {
		return nil, err
	}
	patch, err := parseJSON(c.Text, false)
	if err != nil {
		return nil, err
	}
	if c.Format == MergePatch {
		root = mergeNode(root, patch)
	} else {
		for i, item := range patch.items {
			o, err := readOp(item)
			if err != nil {
				return nil, err
			}
			ok := false
			root, ok = applyPatchOp(root, o)
			if !ok {
				return nil, fmt.Errorf("%w: operation %d does not apply", ErrCannotEdit, i+1)
			}
		}
	}
	var b, out bytes.Buffer
	if err := writeJSON(&b, root, 0); err != nil {
		return nil, err
	}
	if err := json.Indent(&out, b.Bytes(), "", "  "); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrCannotEdit, err)
	}
	return append(out.Bytes(), '\n'), nil
}

// applyPatchOp applies one operation, tests among them.
func applyPatchOp(root *node, o patchOp) (*node, bool) {
	switch o.op {
	case "test":
		v, ok := lookup(root, o.path)
		return root, ok && equalNodes(v, o.value)
	case "move", "copy":
		v, ok := lookup(root, o.from)
		if !ok {
			return nil, false
		}
		return apply(root, o, []*node{v})
	}
	return apply(root, o, []*node{o.value})
}

// plainPath returns the keys of a path that names exactly one field.
func plainPath(path string) ([]string, error) {
	readings, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, s := range readings[0] {
		if len(s.keys) != 1 || s.any || s.descend {
			return nil, fmt.Errorf("%w: %.100q does not name one field", ErrCannotEdit, path)
		}
		keys = append(keys, s.keys[0])
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: want a path", ErrCannotEdit)
	}
	return keys, nil
}

// editYAML sets or removes a value in YAML.
func editYAML(text []byte, keys []string, value json.RawMessage) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, unreadable("%v", err)
	}
	var v *yaml.Node
	if value != nil {
		var d yaml.Node
		if err := yaml.Unmarshal(value, &d); err != nil || len(d.Content) != 1 {
			return nil, unreadable("the value cannot be written as YAML")
		}
		v = d.Content[0]
		blockStyle(v)
	}
	if doc.Kind == 0 {
		doc = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
	}
	if err := setYAML(doc.Content[0], keys, v); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrCannotEdit, err)
	}
	return b.Bytes(), nil
}

// blockStyle drops the flow style and quotes that a value has from its JSON form.
func blockStyle(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		blockStyle(c)
	}
}

func setYAML(n *yaml.Node, keys []string, v *yaml.Node) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return fmt.Errorf("%w: %s is shared through an anchor", ErrCannotEdit, keys[0])
	}
	key, rest := keys[0], keys[1:]
	switch n.Kind {
	case yaml.SequenceNode:
		i, ok := position(key, len(n.Content))
		switch {
		case key == "-" && len(rest) == 0 && v != nil:
			n.Content = append(n.Content, v)
		case !ok:
			return fmt.Errorf("%w: the list has no position %.20q", ErrCannotEdit, key)
		case len(rest) > 0:
			return setYAML(n.Content[i], rest, v)
		case v == nil:
			n.Content = append(n.Content[:i], n.Content[i+1:]...)
		default:
			n.Content[i] = keepComments(n.Content[i], v)
		}
		return nil
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value != key {
				continue
			}
			switch {
			case len(rest) > 0:
				if c := n.Content[i+1]; c.Kind == yaml.ScalarNode && c.ShortTag() == "!!null" {
					*c = yaml.Node{Kind: yaml.MappingNode}
				}
				return setYAML(n.Content[i+1], rest, v)
			case v == nil:
				n.Content = append(n.Content[:i], n.Content[i+2:]...)
			default:
				n.Content[i+1] = keepComments(n.Content[i+1], v)
			}
			return nil
		}
		if v == nil {
			return nil
		}
		child := v
		if len(rest) > 0 {
			child = &yaml.Node{Kind: yaml.MappingNode}
			if err := setYAML(child, rest, v); err != nil {
				return err
			}
		}
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, child)
		n.Style &^= yaml.FlowStyle
		return nil
	}
	return fmt.Errorf("%w: %.40q is inside a value that is no map or list", ErrCannotEdit, key)
}

func keepComments(old, v *yaml.Node) *yaml.Node {
	v.HeadComment, v.LineComment, v.FootComment = old.HeadComment, old.LineComment, old.FootComment
	return v
}

// editJSON sets or removes a value in JSON, leaving all other bytes as they are.
func editJSON(text []byte, keys []string, value json.RawMessage, relaxed bool) ([]byte, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	p := &jsonParser{s: text, relaxed: relaxed}
	if _, err := p.document(); err != nil { // what follows only looks at parts
		return nil, err
	}
	splice := func(from, to int, middle string) []byte {
		out := append([]byte(nil), text[:from]...)
		out = append(out, middle...)
		return append(out, text[to:]...)
	}
	p.i, p.depth = 0, 0
	if err := p.space(); err != nil {
		return nil, err
	}
	for n, key := range keys {
		c, err := p.container()
		if err != nil {
			return nil, fmt.Errorf("at %.40q: %w", key, err)
		}
		i, err := c.index(key)
		if err != nil {
			return nil, err
		}
		rest := keys[n+1:]
		switch {
		case i >= 0 && len(rest) > 0:
			p.i, p.depth = c.members[i].from, 0
			continue
		case i >= 0 && value != nil:
			return splice(c.members[i].from, c.members[i].to, string(value)), nil
		case i > 0:
			return splice(c.members[i-1].to, c.members[i].to, ""), nil
		case i == 0 && len(c.members) > 1:
			return splice(c.members[0].start, c.members[1].start, ""), nil
		case i == 0:
			return splice(c.open, c.shut, ""), nil
		case value == nil:
			return text, nil // nothing to remove
		case c.list && key != "-":
			return nil, fmt.Errorf("%w: the list has no position %.20q", ErrCannotEdit, key)
		}
		v := string(value)
		for k := len(rest) - 1; k >= 0; k-- {
			v = "{" + jsonString(rest[k]) + ": " + v + "}"
		}
		if !c.list {
			v = jsonString(key) + ": " + v
		}
		if len(c.members) == 0 {
			return splice(c.open, c.open, v), nil
		}
		at := c.members[len(c.members)-1].to
		return splice(at, at, ", "+v), nil
	}
	return nil, fmt.Errorf("%w: want a path", ErrCannotEdit)
}

func jsonString(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return strconv.Quote(s)
	}
	return string(b)
}

// container is an object or list in JSON text.
type container struct {
	list       bool
	members    []member
	open, shut int // after the opening bracket, before the closing one
}

// member is one of its members: where it starts, and its value.
type member struct {
	key             string
	start, from, to int
}

// index returns the position of a key among the members, -1 if it is not there.
func (c container) index(key string) (int, error) {
	at := -1
	for i, m := range c.members {
		if m.key == key {
			if at >= 0 {
				return 0, unreadable("%.40q stands there twice", key)
			}
			at = i
		}
	}
	return at, nil
}

// container reads the object or list at the parser's place.
func (p *jsonParser) container() (container, error) {
	if p.i >= len(p.s) || p.s[p.i] != '{' && p.s[p.i] != '[' {
		return container{}, fmt.Errorf("%w: it is inside a value that is no object or list", ErrCannotEdit)
	}
	c := container{list: p.s[p.i] == '[', open: p.i + 1}
	end := byte('}')
	if c.list {
		end = ']'
	}
	if err := p.enter(); err != nil {
		return c, err
	}
	for first := true; ; first = false {
		over, err := p.next(end, first)
		if err != nil {
			return c, err
		}
		if over {
			c.shut = p.i - 1
			return c, nil
		}
		m := member{key: strconv.Itoa(len(c.members)), start: p.i}
		if !c.list {
			if m.key, err = p.member(); err != nil {
				return c, err
			}
		}
		m.from = p.i
		if _, err := p.value(); err != nil {
			return c, err
		}
		m.to = p.i
		c.members = append(c.members, m)
	}
}

// Lookup returns the value at a path in a document as JSON, for showing it.
func Lookup(format Format, text []byte, path string) (json.RawMessage, bool, error) {
	trees, err := parse(format, text)
	if err != nil {
		return nil, false, err
	}
	n, ok := trees[0], true
	if strings.TrimSpace(path) != "" {
		keys, err := plainPath(path)
		if err != nil {
			return nil, false, err
		}
		if n, ok = lookup(n, keys); !ok {
			return nil, false, nil
		}
	}
	var b bytes.Buffer
	if err := writeJSON(&b, n, 0); err != nil {
		return nil, false, err
	}
	return b.Bytes(), true, nil
}

func writeJSON(b *bytes.Buffer, n *node, depth int) error {
	if depth > maxDepth || b.Len() > maxDocument {
		return unreadable("it is too large to show")
	}
	switch n.kind {
	case nullKind:
		b.WriteString("null")
	case boolKind:
		b.WriteString(n.scalar)
	case numberKind:
		s := strings.TrimPrefix(n.scalar, "f")
		if !json.Valid([]byte(s)) {
			s = jsonString(s)
		}
		b.WriteString(s)
	case textKind:
		b.WriteString(jsonString(n.scalar))
	case listKind:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, item, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case mapKind:
		b.WriteByte('{')
		for i, e := range n.ents {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(jsonString(e.key) + ":")
			if err := writeJSON(b, e.val, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	}
	return nil
}
