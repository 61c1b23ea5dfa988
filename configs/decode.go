package configs

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dreamguard/dreamguard/internal/suggest"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a configuration file, in bytes and in opening brackets. The parser
// takes time that grows with the square of the first and the cube of the second:
// 64 KB of "[" keep it busy for half a minute.
const (
	maxFile     = 32 << 10
	maxBrackets = 256
)

// baseKey names, in a file, the preset that the file starts from.
const baseKey = "base"

// parse reads one YAML document. It returns nil for one without content.
func parse(file string, src []byte) (node ast.Node, err error) {
	if len(src) > maxFile {
		return nil, &Error{File: file, Reason: fmt.Sprintf("is %d bytes long: a configuration has at most %d", len(src), maxFile)}
	}
	if n := bytes.Count(src, []byte("[")) + bytes.Count(src, []byte("{")); n > maxBrackets {
		return nil, &Error{File: file, Reason: fmt.Sprintf("has %d opening brackets: a configuration has at most %d", n, maxBrackets)}
	}
	// The parser indexes its tokens without checks in some malformed inputs.
	defer func() {
		if p := recover(); p != nil {
			node, err = nil, &Error{File: file, Reason: "is not valid YAML"}
		}
	}()
	f, err := parser.ParseBytes(src, 0)
	if err != nil {
		e := &Error{File: file, Reason: err.Error()}
		var ye yaml.Error
		if errors.As(err, &ye) {
			e.Reason = ye.GetMessage()
			if t := ye.GetToken(); t != nil && t.Position != nil {
				e.Line = t.Position.Line
			}
		}
		return nil, e
	}
	for _, doc := range f.Docs {
		if doc.Body == nil {
			continue
		}
		if node != nil {
			return nil, &Error{File: file, Line: line(doc.Body), Reason: "a configuration is one YAML document: remove the second"}
		}
		node = doc.Body
	}
	return node, nil
}

func line(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// decoder copies a YAML tree over a Config. The library's own decoder is not
// used because its errors name neither the full key nor the nearest known one.
type decoder struct{ file string }

func (d decoder) errorf(n ast.Node, key, format string, args ...any) error {
	return &Error{File: d.file, Line: line(n), Key: key, Reason: fmt.Sprintf(format, args...)}
}

// entries returns the key-value pairs of a mapping.
func (d decoder) entries(n ast.Node, key string) ([]*ast.MappingValueNode, error) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, nil
	}
	return nil, d.errorf(n, key, "want a mapping of keys to values, not %s", describe(n))
}

// decode copies n to v. Mappings of structs are merged, so that keys not named
// keep the base's value; a list or a map of the user's own names replaces it.
func (d decoder) decode(n ast.Node, v reflect.Value, key string) error {
	switch v.Kind() {
	case reflect.Struct:
		values, err := d.entries(n, key)
		if err != nil {
			return err
		}
		var errs []error
		for _, e := range values {
			errs = append(errs, d.field(e, v, key))
		}
		return errors.Join(errs...)
	case reflect.Slice:
		seq, ok := n.(*ast.SequenceNode)
		if !ok {
			return d.errorf(n, key, "want a list such as [4, 8, 16], not %s", describe(n))
		}
		out := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
		for i, item := range seq.Values {
			if err := d.decode(item, out.Index(i), fmt.Sprintf("%s[%d]", key, i)); err != nil {
				return err
			}
		}
		v.Set(out)
		return nil
	case reflect.Map:
		values, err := d.entries(n, key)
		if err != nil {
			return err
		}
		out := reflect.MakeMapWithSize(v.Type(), len(values))
		for _, e := range values {
			name := keyName(e)
			item := reflect.New(v.Type().Elem()).Elem()
			if err := d.decode(e.Value, item, join(key, name)); err != nil {
				return err
			}
			out.SetMapIndex(reflect.ValueOf(name), item)
		}
		v.Set(out)
		return nil
	}
	return d.scalar(n, v, key)
}

func (d decoder) field(e *ast.MappingValueNode, v reflect.Value, key string) error {
	name := keyName(e)
	if key == "" && name == baseKey {
		return nil // read before
	}
	f, ok := fieldByName(v, name)
	if !ok {
		return d.errorf(e.Key, join(key, name), "%s", unknown(name, key, names(v.Type())))
	}
	return d.decode(e.Value, f, join(key, name))
}

func (d decoder) scalar(n ast.Node, v reflect.Value, key string) error {
	switch v.Kind() {
	case reflect.String:
		if s, ok := n.(*ast.StringNode); ok {
			v.SetString(s.Value)
			return nil
		}
		return d.errorf(n, key, "want text, not %s: put it in quotes", describe(n))
	case reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			v.SetBool(b.Value)
			return nil
		}
		return d.errorf(n, key, "want true or false, not %s", describe(n))
	case reflect.Int:
		if i, ok := n.(*ast.IntegerNode); ok {
			switch x := i.Value.(type) {
			case int64:
				v.SetInt(x)
				return nil
			case uint64:
				if x <= math.MaxInt64 {
					v.SetInt(int64(x))
					return nil
				}
			}
		}
		return d.errorf(n, key, "want a whole number, not %s", describe(n))
	case reflect.Uint64:
		if i, ok := n.(*ast.IntegerNode); ok {
			switch x := i.Value.(type) {
			case int64:
				if x >= 0 {
					v.SetUint(uint64(x))
					return nil
				}
			case uint64:
				v.SetUint(x)
				return nil
			}
		}
		return d.errorf(n, key, "want a whole number from 0 up, not %s", describe(n))
	case reflect.Float64:
		switch x := n.(type) {
		case *ast.IntegerNode:
			switch i := x.Value.(type) {
			case int64:
				v.SetFloat(float64(i))
				return nil
			case uint64:
				v.SetFloat(float64(i))
				return nil
			}
		case *ast.FloatNode:
			v.SetFloat(x.Value)
			return nil
		case *ast.StringNode:
			if f, ok := exponent(x); ok {
				v.SetFloat(f)
				return nil
			}
		}
		return d.errorf(n, key, "want a number, not %s", describe(n))
	}
	return d.errorf(n, key, "cannot hold %s", describe(n)) // no field has such a type: a test checks every leaf
}

// exponent reads an unquoted number such as 1e-3, which is a float in YAML 1.2
// and text to the parser.
func exponent(n *ast.StringNode) (float64, bool) {
	if n.Token.Type != token.StringType || strings.Trim(n.Value, "+-.0123456789eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	return f, err == nil
}

func describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode, *ast.TagNode:
		return "a YAML anchor, alias or tag, which a configuration does not have"
	case *ast.StringNode:
		return fmt.Sprintf("%.40q", n.Value)
	default:
		return fmt.Sprintf("%.40s", strings.TrimSpace(n.String()))
	}
}

// keyName returns the key of a mapping entry without quotes.
func keyName(e *ast.MappingValueNode) string {
	if s, ok := e.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return strings.TrimSpace(e.Key.String())
}

func join(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// fieldByName finds the field with the given yaml name.
func fieldByName(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("yaml") == name {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// names lists the yaml names of a struct's fields in their order.
func names(t reflect.Type) []string {
	out := make([]string, t.NumField())
	for i := range out {
		out[i] = t.Field(i).Tag.Get("yaml")
	}
	return out
}

// Keys lists the full path of every leaf in the order of the structs. Entries
// of the maps among them are not listed: data.weights stands for
// data.weights.DATASET.
func Keys() []string { return leaves(reflect.TypeFor[Config](), "") }

func leaves(t reflect.Type, key string) []string {
	if t.Kind() != reflect.Struct {
		return []string{key}
	}
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		out = append(out, leaves(f.Type, join(key, f.Tag.Get("yaml")))...)
	}
	return out
}

// unknown says that name is no key of parent and which one was probably meant:
// a sibling spelt alike, a key of that name elsewhere, or any key spelt alike.
func unknown(name, parent string, siblings []string) string {
	if near, ok := suggest.Nearest(name, siblings); ok {
		return fmt.Sprintf("unknown key: did you mean %s?", join(parent, near))
	}
	keys := Keys()
	for _, k := range keys {
		if strings.HasSuffix(k, "."+name) {
			return fmt.Sprintf("unknown key: did you mean %s?", k)
		}
	}
	if near, ok := suggest.Nearest(join(parent, name), keys); ok {
		return fmt.Sprintf("unknown key: did you mean %s?", near)
	}
	if parent == "" {
		return "unknown key: the sections are " + strings.Join(siblings, ", ")
	}
	return fmt.Sprintf("unknown key: %s has %s", parent, strings.Join(slices.Clone(siblings), ", "))
}
