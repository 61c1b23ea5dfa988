package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// plain has Trajectory's fields without its methods.
type plain Trajectory

// known maps every JSON name of a trajectory to itself, and its lower-case
// form to it as well.
var known = func() map[string]string {
	m := map[string]string{"n_steps": "n_steps"}
	t := reflect.TypeFor[plain]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "-" {
			m[name] = name
		}
	}
	return m
}()

// UnmarshalJSON reads one trajectory and keeps fields it does not know in
// Extra, compacted. A null there says nothing and is dropped. Errors about a
// field are a [*FieldError]. It does not call Validate.
func (t *Trajectory) UnmarshalJSON(b []byte) error {
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return fieldError(err, b)
	}
	err := eachField(b, func(key, value []byte) error {
		name, err := fieldName(key)
		if err != nil {
			return err
		}
		if name == "n_steps" {
			var n int
			if err := json.Unmarshal(value, &n); err != nil || n != len(p.Steps) {
				return &FieldError{Field: name, Msg: fmt.Sprintf("is %.20s but there are %d steps: the line is damaged or was edited", value, len(p.Steps))}
			}
			return nil
		}
		if known[name] == name {
			return nil
		}
		// encoding/json matches names whatever their case, so this value has
		// already gone into the known field, perhaps over the right one.
		if like := known[strings.ToLower(name)]; like != "" {
			return &FieldError{Field: name, Msg: fmt.Sprintf("differs from the field %q in case only: write %q", like, like)}
		}
		if bytes.Equal(value, []byte("null")) {
			return nil
		}
		var raw bytes.Buffer
		if err := json.Compact(&raw, value); err != nil {
			return err
		}
		if p.Extra == nil {
			p.Extra = map[string]json.RawMessage{}
		}
		// encoding/json replaces invalid UTF-8 in the other fields too.
		p.Extra[name] = bytes.ToValidUTF8(raw.Bytes(), []byte("\uFFFD"))
		return nil
	})
	if err != nil {
		return err
	}
	*t = Trajectory(p)
	return nil
}

// fieldError gives the errors of encoding/json that concern one field the
// project's form. b is the trajectory that was read.
func fieldError(err error, b []byte) error {
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typ):
		field := typ.Field
		if field == "" {
			field = "trajectory"
		}
		if rest, ok := strings.CutPrefix(field, "steps"); ok && (rest == "" || rest[0] == '.') {
			field = "steps" + stepIndex(b) + rest
		}
		return &FieldError{Field: field, Msg: fmt.Sprintf("is a JSON %s: want %s", typ.Value, jsonKind(typ.Type)), Err: err}
	case errors.Is(err, ErrLabel):
		return &FieldError{Field: "label", Msg: strings.TrimPrefix(err.Error(), "label "), Err: err}
	}
	return err
}

// stepIndex returns the index of the first step that is of a wrong type, as
// "[3]": encoding/json leaves it out. It is "" where no step is to blame.
func stepIndex(b []byte) string {
	var t struct {
		Steps []json.RawMessage `json:"steps"`
	}
	// The error of another field may come first; the steps are read all the same.
	var typ *json.UnmarshalTypeError
	if err := json.Unmarshal(b, &t); err != nil && !errors.As(err, &typ) {
		return ""
	}
	for i, raw := range t.Steps {
		var s Step
		if err := json.Unmarshal(raw, &s); errors.As(err, &typ) {
			return fmt.Sprintf("[%d]", i)
		}
	}
	return ""
}

// jsonKind says what a Go type looks like in JSON.
func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return jsonKind(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true, false or null"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Int:
		return "a whole number"
	}
	return "a value of type " + t.String()
}

func fieldName(key []byte) (string, error) {
	if utf8.Valid(key) && bytes.IndexByte(key, '\\') < 0 {
		return string(key[1 : len(key)-1]), nil
	}
	var name string
	err := json.Unmarshal(key, &name)
	return name, err
}

// eachField calls f with the key (a JSON string, quotes included) and the value
// of every member of the JSON object b, which must be valid JSON; null has no
// members. It exists because the alternative, a map of raw messages, reads and
// copies every text a second time to find the few fields that are extra.
func eachField(b []byte, f func(key, value []byte) error) error {
	b = bytes.TrimLeft(b, " \t\r\n")
	if len(b) == 0 || b[0] != '{' {
		return nil
	}
	b = b[1:]
	for {
		b = bytes.TrimLeft(b, " \t\r\n,")
		if b[0] == '}' {
			return nil
		}
		n := valueLen(b)
		key := b[:n]
		b = bytes.TrimLeft(b[n:], " \t\r\n:")
		n = valueLen(b)
		if err := f(key, b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
}

// valueLen is the length of the JSON value that b, valid JSON, starts with.
func valueLen(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
			if depth < 0 { // the end of the object around a number or a word
				return i
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}

// MarshalJSON writes one trajectory, Extra's keys after the known ones in
// sorted order, so that equal trajectories give equal bytes.
func (t Trajectory) MarshalJSON() ([]byte, error) {
	head, err := marshal(plain(t))
	if err != nil || len(t.Extra) == 0 {
		return head, err
	}
	for k := range t.Extra {
		if like := known[strings.ToLower(k)]; like != "" {
			return nil, &FieldError{Field: k, Msg: "stands in Extra but is a field of its own: set the field"}
		}
	}
	tail, err := marshal(t.Extra)
	if err != nil {
		return nil, err
	}
	out := append(head[:len(head)-1], ',')
	return append(out, tail[1:]...), nil
}

// marshal is json.Marshal without HTML escaping, which would bloat tool output.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}
