package floor

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// parseTOML reads TOML 1.1. The format forbids equal keys, and so does the
// parser.
func parseTOML(text []byte) (*node, error) {
	if deepBrackets(text) {
		return nil, unreadable("nested more than %d levels deep", maxTOMLDepth)
	}
	var m map[string]any
	if _, err := toml.Decode(string(text), &m); err != nil {
		return nil, unreadable("%s", strings.TrimPrefix(err.Error(), "toml: "))
	}
	return fromTOML(m, 0)
}

// maxTOMLDepth bounds nesting before the parser, which recurses, sees the text.
const maxTOMLDepth = 1000

// deepBrackets reports whether the text opens more brackets, or joins more names
// to one key, than any sane document.
func deepBrackets(text []byte) bool {
	open, dots := 0, 0
	for _, c := range text {
		switch c {
		case '[', '{':
			open++
			dots = 0
		case ']', '}':
			open--
		case '.':
			dots++
		case '\n', '=', ',':
			dots = 0
		}
		if open > maxTOMLDepth || dots > 5*maxTOMLDepth {
			return true
		}
	}
	return false
}

func fromTOML(v any, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, unreadable("nested more than %d levels deep", maxDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		n := &node{kind: mapKind, ents: make([]entry, 0, len(v))}
		for k, item := range v {
			c, err := fromTOML(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.ents = append(n.ents, entry{key: k, val: c})
		}
		sortEntries(n.ents)
		return n, nil
	case []any:
		n := &node{kind: listKind}
		for _, item := range v {
			c, err := fromTOML(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, c)
		}
		return n, nil
	case []map[string]any:
		n := &node{kind: listKind}
		for _, item := range v {
			c, err := fromTOML(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, c)
		}
		return n, nil
	case string:
		return &node{kind: textKind, scalar: v}, nil
	case bool:
		return &node{kind: boolKind, scalar: strconv.FormatBool(v)}, nil
	case int64:
		return &node{kind: numberKind, scalar: strconv.FormatInt(v, 10)}, nil
	case float64:
		return &node{kind: numberKind, scalar: "f" + strconv.FormatFloat(v, 'g', -1, 64)}, nil
	case time.Time:
		return &node{kind: textKind, scalar: v.Format(time.RFC3339Nano), tag: "time"}, nil
	}
	return nil, fmt.Errorf("%w: a value of type %T", ErrUnreadable, v)
}
