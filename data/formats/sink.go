package formats

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/store"
)

// sink checks, counts and hands on what an importer makes.
type sink struct {
	Report
	name string
	emit func(*data.Trajectory) error
	seen map[string]int // line of each id
}

func newSink(format, name string, emit func(*data.Trajectory) error) *sink {
	return &sink{
		Report: Report{Format: format, Dropped: map[string]int{}, Repaired: map[string]int{}},
		name:   name, emit: emit, seen: map[string]int{},
	}
}

// emitError carries an error of the caller's emit past those of the file.
type emitError struct{ error }

// put hands on one run, which started on the given line.
func (s *sink) put(t *data.Trajectory, line int) error {
	if len(t.Steps) == 0 {
		s.Read++
		s.Dropped[NoSteps]++
		return nil
	}
	if err := t.Validate(); err != nil {
		return at(line, err)
	}
	if first, ok := s.seen[t.ID]; ok {
		return at(line, &data.FieldError{Field: "id", Err: store.ErrDuplicate, Msg: fmt.Sprintf("%.200q stands on line %d already: ids must be unique", t.ID, first)})
	}
	s.seen[t.ID] = line
	if err := s.emit(t); err != nil {
		return emitError{err}
	}
	s.Read++
	s.Kept++
	return nil
}

// finish gives the report, and err with the name of the file.
func (s *sink) finish(err error) (Report, error) {
	var (
		emit emitError
		pos  *store.Error
	)
	switch {
	case errors.As(err, &emit):
		return s.Report, emit.error
	case errors.As(err, &pos):
		pos.Path = s.name
		return s.Report, pos
	case err != nil:
		return s.Report, &store.Error{Path: s.name, Err: err}
	case s.Read == 0:
		return s.Report, &store.Error{Path: s.name, Err: store.ErrEmpty}
	}
	return s.Report, nil
}

// each calls f with every value of r.
func each(r io.Reader, f func(value) error) error {
	vs := newValues(r)
	for {
		v, err := vs.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(v); err != nil {
			return at(v.line, err)
		}
	}
}

// taskGroup is the split group of a run whose source has none: runs of one task
// must not be torn apart, and the task's text is all there is to know them by.
func taskGroup(dataset, task, id string) string {
	task = strings.Join(strings.Fields(task), " ")
	if task == "" {
		return id
	}
	sum := sha256.Sum256([]byte(task))
	return dataset + "/task-" + hex.EncodeToString(sum[:8])
}

// setExtra keeps a value of the source under key. Null and "" say nothing.
func setExtra(t *data.Trajectory, key string, raw json.RawMessage) error {
	switch string(raw) {
	case "", "null", `""`, "{}", "[]":
		return nil
	}
	// Through the type's own decoder, so that it is in the form that a file
	// gives back.
	var one data.Trajectory
	b, err := json.Marshal(map[string]json.RawMessage{key: raw})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	if t.Extra == nil {
		t.Extra = map[string]json.RawMessage{}
	}
	t.Extra[key] = one.Extra[key]
	return nil
}

// asString is a JSON string or number as text, "" for anything else.
func asString(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return ""
		}
		return s
	}
	if raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
		return string(raw)
	}
	return ""
}
