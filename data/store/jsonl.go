package store

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/internal/lines"
)

type jsonl struct {
	r      *lines.Reader
	closer io.Closer // the gzip reader, if there is one
}

func newJSONL(r io.Reader, c io.Closer) *jsonl {
	return &jsonl{r: lines.NewReader(r, lines.Max), closer: c}
}

func (j *jsonl) unit() string { return "line" }
func (j *jsonl) at() int      { return j.r.Line() }

func (j *jsonl) Close() error {
	if j.closer == nil {
		return nil
	}
	return j.closer.Close()
}

func (j *jsonl) next() (*data.Trajectory, error) {
	line, err := j.r.Next()
	if err != nil {
		return nil, lines.Unpacked(err) // io.EOF as it is
	}
	if c := firstByte(line); c != '{' {
		return nil, fmt.Errorf("%w: a line starts with %q, not with {; use import for other formats", ErrFormat, c)
	}
	if len(line) > maxInner && innerValues(line) > maxInner {
		return nil, fmt.Errorf("%w: more than %d values in one line", lines.ErrTooLong, maxInner)
	}
	t := new(data.Trajectory)
	if err := json.Unmarshal(line, t); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("is not valid JSON at byte %d: %w", syntax.Offset, err)
		}
		return nil, err
	}
	if len(t.Steps) == 0 {
		if key := foreign(line); key != "" {
			return nil, fmt.Errorf("%w: a line has %q and no steps, as logs of other programs have; use import for other formats", ErrFormat, key)
		}
	}
	return t, nil
}

// foreign returns a key of a line that trajectories do not have and the logs that
// import reads do, "" if there is none.
func foreign(line []byte) string {
	var keys map[string]json.RawMessage
	if json.Unmarshal(line, &keys) != nil || keys["steps"] != nil {
		return ""
	}
	for _, key := range [...]string{"messages", "role", "sessionId", "contents", "user_task_id"} {
		if keys[key] != nil {
			return key
		}
	}
	return ""
}

// maxInner bounds the values within a line. Empty ones take three bytes in the
// file and a hundred in memory.
const maxInner = 1 << 22

// innerValues is an upper bound of the values that line holds.
func innerValues(line []byte) int {
	n, inString := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == ',' || c == '{' || c == '[':
			n++
		}
	}
	return n
}

func firstByte(line []byte) byte {
	for _, c := range line {
		if c != ' ' && c != '\t' {
			return c
		}
	}
	return 0
}

func writeJSONL(w io.Writer, seq iter.Seq2[*data.Trajectory, error]) error {
	for t, err := range seq {
		if err != nil {
			return err
		}
		// MarshalJSON directly: json.Marshal would escape HTML in its output.
		b, err := t.MarshalJSON()
		if err != nil {
			return fmt.Errorf("%.200q: %w", t.ID, err)
		}
		if len(b) > lines.Max {
			return fmt.Errorf("%.200q: %w", t.ID, tooLarge(len(b)))
		}
		if _, err := w.Write(append(b, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// writeGzip leaves name and time out of the header, so that equal content
// gives equal bytes.
func writeGzip(w io.Writer, seq iter.Seq2[*data.Trajectory, error]) error {
	z := gzip.NewWriter(w)
	if err := writeJSONL(z, seq); err != nil {
		return err
	}
	return z.Close()
}
