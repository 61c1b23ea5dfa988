package formats

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/store"
	"github.com/dreamguard/dreamguard/internal/lines"
)

// A value is one JSON value of a file: an element of a top-level array, or a
// value that stands on its own, as on a line of JSON lines. A value without
// bytes marks the end of a top-level array.
type value struct {
	raw  []byte // valid until the next call of values.next
	line int    // where it starts, from 1
}

func (v value) endOfArray() bool { return v.raw == nil }

// maxInner bounds the values within one value. Empty ones take two bytes in the
// file and fifty times that in memory.
const maxInner = 1 << 22

// values splits a stream into JSON values without decoding it, so that an array
// of any length is read one element at a time and a JSON document and JSON lines
// are read the same way.
type values struct {
	r       *bufio.Reader
	max     int
	line    int
	inArray bool
	started bool
	buf     []byte
}

func newValues(r io.Reader) *values {
	return &values{r: bufio.NewReaderSize(r, 1<<16), max: lines.Max, line: 1}
}

// next returns the next value, and io.EOF at the end. Its other errors are a
// *store.Error without a path.
func (s *values) next() (value, error) {
	for {
		c, err := s.r.ReadByte()
		if err == io.EOF && s.inArray {
			return value{}, at(s.line, errors.New("the file ends inside an array: it is cut short, get it again"))
		}
		if err == io.EOF {
			return value{}, io.EOF
		}
		if err != nil {
			return value{}, at(s.line, lines.Unpacked(err))
		}
		if !s.started && c == 0xEF { // a byte order mark
			if mark, _ := s.r.Peek(2); string(mark) == "\xBB\xBF" {
				if _, err := s.r.Discard(2); err != nil {
					return value{}, at(s.line, err)
				}
				continue
			}
		}
		s.started = true
		switch {
		case c == '\n':
			s.line++
		case c == ' ' || c == '\t' || c == '\r' || s.inArray && c == ',':
		case c == '[' && !s.inArray:
			s.inArray = true
		case c == ']' && s.inArray:
			s.inArray = false
			return value{line: s.line}, nil
		case c == '{' || c == '[':
			return s.compound(c)
		case c == 0 || c == 0xFF || c == 0xFE:
			return value{}, at(s.line, lines.ErrNUL)
		default:
			return value{}, at(s.line, fmt.Errorf("is not JSON: %q stands where { is expected", rune(c)))
		}
	}
}

// compound reads an object or an array, whose first byte has been read.
func (s *values) compound(first byte) (value, error) {
	v := value{line: s.line}
	s.buf = append(s.buf[:0], first)
	depth, inString := 1, false
	count := 0 // of values within, at most
	for depth > 0 {
		c, err := s.r.ReadByte()
		if err == io.EOF {
			return value{}, at(v.line, errors.New("is not valid JSON: what starts here is not closed at the end of the file"))
		}
		if err != nil {
			return value{}, at(s.line, lines.Unpacked(err))
		}
		if len(s.buf) >= s.max {
			return value{}, at(v.line, fmt.Errorf("%w: more than %d bytes in one value", lines.ErrTooLong, s.max))
		}
		if count > maxInner {
			return value{}, at(v.line, fmt.Errorf("%w: more than %d values in one", lines.ErrTooLong, maxInner))
		}
		s.buf = append(s.buf, c)
		switch {
		case c == '\n':
			s.line++
			// A string cannot hold a line end. One that does is damaged, and
			// would swallow the rest of the file.
			if inString {
				return value{}, at(s.line-1, errors.New("is not valid JSON: the line ends inside a string"))
			}
		case c == 0:
			return value{}, at(s.line, lines.ErrNUL)
		case inString && c == '\\':
			c, err := s.r.ReadByte()
			if err != nil {
				continue // reported by the next read
			}
			s.buf = append(s.buf, c)
			if c == '\n' {
				s.line++
			}
		case c == '"':
			inString = !inString
		case inString:
		case c == ',':
			count++
		case c == '{' || c == '[':
			depth++
			count++
		case c == '}' || c == ']':
			depth--
		}
	}
	v.raw = s.buf
	if !utf8.Valid(v.raw) {
		return value{}, at(v.line, lines.ErrUTF8)
	}
	return v, nil
}

// decode is json.Unmarshal with an error that names the line.
func (v value) decode(into any) error {
	err := json.Unmarshal(v.raw, into)
	var (
		syntax *json.SyntaxError
		typ    *json.UnmarshalTypeError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		before := v.raw[:min(int(syntax.Offset), len(v.raw))]
		return at(v.line+bytes.Count(before, []byte("\n")), fmt.Errorf("is not valid JSON: %w", err))
	case errors.As(err, &typ):
		return at(v.line, &data.FieldError{Field: typ.Field, Err: err, Msg: fmt.Sprintf("is a JSON %s, which this format does not have there: name another format", typ.Value)})
	}
	return at(v.line, err)
}

// object is v as its fields.
func (v value) object() (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if v.raw[0] != '{' {
		return nil, at(v.line, errors.New("is an array where an object is expected: name another format"))
	}
	err := v.decode(&m)
	return m, err
}

// at says on which line err stands.
func at(line int, err error) error {
	var have *store.Error
	if errors.As(err, &have) {
		return err
	}
	return &store.Error{Unit: "line", N: line, Err: err}
}

// field is a [data.FieldError] with the message and the cause of [fmt.Errorf].
func field(name, format string, a ...any) error {
	err := fmt.Errorf(format, a...)
	return &data.FieldError{Field: name, Msg: err.Error(), Err: errors.Unwrap(err)}
}
