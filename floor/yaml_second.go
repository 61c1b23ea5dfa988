package floor

import (
	"bytes"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxSecond bounds, in bytes, what the second YAML parser is given.
const maxSecond = 256 << 10

// secondYAML reads YAML with another parser, goccy/go-yaml, which differs from the
// first in places where one of them is wrong. It returns nil where that parser
// fails: a runtime that uses it does not load the document then.
func secondYAML(text []byte) (trees []*node) {
	defer func() {
		if recover() != nil {
			trees = nil
		}
	}()
	text, err := decodeText(text)
	if err != nil || len(text) > maxSecond {
		return nil
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil
	}
	for _, doc := range file.Docs {
		c := secondConverter{anchors: map[string]*node{}}
		n := c.node(doc.Body, 0)
		if c.failed {
			return nil
		}
		trees = append(trees, n)
	}
	for len(trees) > 1 && trees[len(trees)-1].kind == nullKind {
		trees = trees[:len(trees)-1]
	}
	return trees
}

type secondConverter struct {
	anchors map[string]*node
	failed  bool
}

func (c *secondConverter) node(y ast.Node, depth int) *node {
	if depth > maxDepth {
		c.failed = true
		return &node{}
	}
	switch y := y.(type) {
	case *ast.MappingNode:
		n := &node{kind: mapKind}
		for _, v := range y.Values {
			c.entry(n, v, depth)
		}
		return n
	case *ast.MappingValueNode:
		n := &node{kind: mapKind}
		c.entry(n, y, depth)
		return n
	case *ast.SequenceNode:
		n := &node{kind: listKind}
		for _, v := range y.Values {
			n.items = append(n.items, c.node(v, depth+1))
		}
		return n
	case *ast.AnchorNode:
		n := c.node(y.Value, depth+1)
		c.anchors[nameOf(y.Name)] = n
		return n
	case *ast.AliasNode:
		if n, ok := c.anchors[nameOf(y.Value)]; ok {
			return n
		}
		c.failed = true
		return &node{}
	case *ast.TagNode:
		n := *c.node(y.Value, depth+1)
		if t := y.Start.Value; !strings.HasPrefix(t, "!!") {
			n.tag = t
		}
		return &n
	case *ast.LiteralNode:
		return &node{kind: textKind, scalar: y.Value.Value}
	case *ast.StringNode:
		if y.Token.Type == token.SingleQuoteType || y.Token.Type == token.DoubleQuoteType {
			return &node{kind: textKind, scalar: y.Value}
		}
		return plainNode(y.Value)
	case nil:
		return &node{kind: nullKind}
	case *ast.NullNode:
		return &node{kind: nullKind}
	case ast.ScalarNode:
		return plainNode(strings.TrimSpace(y.GetToken().Value))
	}
	c.failed = true // comments alone and whatever comes later
	return &node{}
}

func plainNode(s string) *node {
	n := &node{}
	n.kind, n.scalar = plain12(s)
	return n
}

func nameOf(y ast.Node) string { return strings.TrimSpace(y.GetToken().Value) }

func (c *secondConverter) entry(n *node, v *ast.MappingValueNode, depth int) {
	e := entry{val: c.node(v.Value, depth+1)}
	switch k := v.Key.(type) {
	case *ast.MergeKeyNode:
		e.key, e.merge = "<<", true
	case *ast.StringNode:
		e.key = k.Value
	case *ast.MappingKeyNode: // "? key"
		if k := c.node(k.Value, depth+1); k.kind < listKind {
			e.key = k.scalar
		} else {
			e.key, e.odd = v.Key.String(), true
		}
	default:
		if k := c.node(v.Key, depth+1); k.kind < listKind {
			e.key = k.scalar
		} else {
			e.key, e.odd = v.Key.String(), true
		}
	}
	n.ents = append(n.ents, e)
}
