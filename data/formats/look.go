package formats

import (
	"bytes"
	"encoding/json"
)

// look lists what the head of a JSON file holds: the path of every field, array
// indices left out (".messages.role"), and for short strings also the path with
// the value (".messages.role=user"). It stops where the head is cut.
func look(head []byte) map[string]bool {
	found := map[string]bool{}
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(head, []byte("\uFEFF"))))
	dec.UseNumber()
	type level struct {
		path   string
		object bool
		key    bool // the next string is a key
	}
	stack := []level{{}}
	for {
		tok, err := dec.Token()
		if err != nil {
			return found
		}
		top := &stack[len(stack)-1]
		if top.object && top.key {
			if name, ok := tok.(string); ok {
				top.key = false
				base := stack[len(stack)-2].path
				top.path = base + "." + name
				if len(top.path) > 200 || len(found) > 10_000 {
					return found // no format that we know looks like this
				}
				found[top.path] = true
				continue
			}
		}
		switch x := tok.(type) {
		case json.Delim:
			switch x {
			case '{':
				top.key = top.object
				stack = append(stack, level{path: top.path}, level{object: true, key: true})
				continue
			case '[':
				top.key = top.object
				stack = append(stack, level{path: top.path})
				continue
			case '}':
				stack = stack[:len(stack)-2]
			case ']':
				stack = stack[:len(stack)-1]
			}
		case string:
			if len(x) <= 40 {
				found[top.path+"="+x] = true
			}
			if top.object {
				top.key = true
			}
		default:
			if top.object {
				top.key = true
			}
		}
	}
}
