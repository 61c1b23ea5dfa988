package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// maxDepth bounds how deep a tool's result is read.
const maxDepth = 1000

// ResultText returns what a tool's result says: a text as it is, and of anything
// else every text and number in it in the order of the document, each on a line of its own.
// As JSON the line ends and quotes of the texts would be hidden, and with them
// where a sentence begins. What is no JSON is returned as it is.
func ResultText(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	var b strings.Builder
	if err := appendTexts(&b, raw); err != nil {
		return string(raw)
	}
	return b.String()
}

// appendTexts appends the strings and numbers of a JSON value that are no names of members,
// and no values of a member "type", which names the form and not the content.
func appendTexts(b *strings.Builder, raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	// Of each open value: whether it is an object, and whether a name comes next.
	type level struct{ object, name bool }
	var open []level
	key := ""
	for {
		t, err := dec.Token()
		if errors.Is(err, io.EOF) && len(open) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		var top *level
		if len(open) > 0 {
			top = &open[len(open)-1]
		}
		if top != nil && top.object && top.name {
			if name, ok := t.(string); ok {
				key, top.name = name, false
				continue
			}
		}
		switch t := t.(type) {
		case json.Delim:
			if t == '}' || t == ']' {
				open = open[:len(open)-1]
				break
			}
			if top != nil {
				top.name = true
			}
			if len(open) >= maxDepth {
				return errors.New("too deep")
			}
			open = append(open, level{object: t == '{', name: true})
			continue
		case string:
			if !(top != nil && top.object && key == "type") {
				line(b, t)
			}
		case json.Number: // amounts
			line(b, t.String())
		}
		if len(open) > 0 {
			open[len(open)-1].name = true
		}
	}
}

func line(b *strings.Builder, s string) {
	if s == "" {
		return
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	b.WriteString(s)
}
