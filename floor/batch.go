package floor

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"

	"github.com/dreamguard/dreamguard/internal/lines"
)

// BatchDecision is one line that Batch writes.
type BatchDecision struct {
	ID       json.RawMessage `json:"id"`
	Decision Outcome         `json:"decision"`
	Rule     string          `json:"rule"`
	Reason   string          `json:"reason"`
}

// BatchCount says what a batch held.
type BatchCount struct {
	Permitted, Refused, Unreadable int
}

// Batch reads changes, one JSON object a line with the fields id, format, before
// and change, and writes one decision a line in the same order. A line that
// cannot be read is refused like any change that cannot; only a line too long to
// find the end of, or an error of r or w, ends the batch.
//
// before is the text of the present document, or null. change is the text of the
// new document or patch, or an object {"path": ..., "value": ...}; a path write
// without value removes the field.
func (f *Floor) Batch(r io.Reader, w io.Writer) (BatchCount, error) {
	var n BatchCount
	in := lines.NewReader(r, lines.Max)
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			return n, out.Flush()
		}
		d := BatchDecision{ID: json.RawMessage("null")}
		var got Decision
		switch {
		case err == nil:
			d.ID, got = f.batchLine(line)
		case errors.Is(err, lines.ErrNUL), errors.Is(err, lines.ErrUTF8):
			got = refuseUnreadable(unreadable("the line %v", err))
		default:
			return n, errors.Join(err, out.Flush())
		}
		d.Decision, d.Rule, d.Reason = got.Outcome, got.Rule, got.Reason
		switch {
		case got.Outcome == Permit:
			n.Permitted++
		case got.Rule == RuleUnreadable:
			n.Unreadable++
			n.Refused++
		default:
			n.Refused++
		}
		if err := enc.Encode(d); err != nil {
			return n, err
		}
	}
}

func (f *Floor) batchLine(line []byte) (id json.RawMessage, d Decision) {
	id = json.RawMessage("null")
	defer func() {
		// One line that the code did not foresee must not end the batch, nor pass.
		if p := recover(); p != nil {
			d = refuseUnreadable(unreadable("checking it failed: this is a bug"))
		}
	}()
	fields, err := rawJSON(line)
	if err != nil {
		return id, refuseUnreadable(err)
	}
	if v, ok := fields["id"]; ok {
		id = v
	}
	c, err := ParseChange(fields)
	if err != nil {
		return id, refuseUnreadable(err)
	}
	return id, f.Check(c)
}

// ParseChange makes a Change of the fields format, before and change of one line
// of a batch.
func ParseChange(fields map[string]json.RawMessage) (Change, error) {
	var c Change
	var format string
	if err := json.Unmarshal(orNull(fields["format"]), &format); err != nil || format == "" {
		return c, unreadable("want a format")
	}
	c.Format = Format(format)
	if format == "yml" {
		c.Format = YAML
	}
	before, err := textOf(fields["before"])
	if err != nil {
		return c, unreadable("before: %v", err)
	}
	c.Before = before
	raw := orNull(fields["change"])
	switch c.Format {
	case YAML, JSON, TOML, JSONC, JSONPatch, MergePatch:
		if writesPath(raw) {
			c.Format = PathWrite // the format is that of the document written to
		}
	}
	if c.Format != PathWrite {
		if c.Text, err = textOf(raw); err == nil && c.Text == nil {
			err = unreadable("want the new document or patch as text")
		}
		if err != nil {
			return c, unreadable("change: %v", err)
		}
		return c, nil
	}
	if raw[0] == '"' { // an object written as text
		if raw, err = textOf(raw); err != nil {
			return c, err
		}
	}
	write, err := rawJSON(raw)
	if err != nil {
		return c, unreadable("change: %v", err)
	}
	return c, c.setWrite(write)
}

// writesPath reports whether raw is {path, value} as such, not as text: a whole
// document is given as text.
func writesPath(raw json.RawMessage) bool {
	if raw[0] != '{' {
		return false
	}
	write, err := rawJSON(raw)
	if err != nil || write["path"] == nil {
		return false
	}
	_, valued := write["value"]
	return len(write) == 1 || len(write) == 2 && valued
}

// setWrite reads path and value of a path write.
func (c *Change) setWrite(write map[string]json.RawMessage) error {
	raw, ok := write["path"]
	if !ok {
		return unreadable("change: want a path")
	}
	if err := json.Unmarshal(raw, &c.Path); err != nil {
		var keys []any
		if err := json.Unmarshal(raw, &keys); err != nil {
			return unreadable("change: a path is text")
		}
		if c.Path, err = JoinPath(keys); err != nil {
			return err
		}
	}
	c.Value, ok = write["value"]
	c.Delete = !ok
	return nil
}

func orNull(b json.RawMessage) json.RawMessage {
	if len(b) == 0 {
		return json.RawMessage("null")
	}
	return b
}

// textOf returns the text of a JSON string, nil for null, and the JSON itself of
// any other value: a document that was not turned into text.
func textOf(raw json.RawMessage) ([]byte, error) {
	raw = orNull(raw)
	switch raw[0] {
	case 'n':
		return nil, nil
	case '"':
		// Through the floor's own reader, which keeps half a surrogate pair apart
		// from the text around it in the same way as in documents.
		n, err := parseJSON(raw, false)
		if err != nil {
			return nil, err
		}
		return []byte(n.scalar), nil
	}
	return raw, nil
}

func refuseUnreadable(err error) Decision {
	return Decision{Outcome: Refuse, Rule: RuleUnreadable, Err: err, Reason: unreadableReason(err)}
}
