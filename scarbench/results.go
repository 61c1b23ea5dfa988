package scarbench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dreamguard/dreamguard/internal/filelock"
	"github.com/dreamguard/dreamguard/internal/lines"
)

// maxRecord bounds one line of a results file, in bytes.
const maxRecord = 4 << 20

// Results is a results file that is open for appending: JSON Lines, one [Record]
// each. A line is written in one piece, and one that a crash tore is cut off when
// the file is opened next. One process at a time has it open.
type Results struct {
	file   *os.File
	unlock func()
	known  map[key]bool
}

// OpenResults opens or creates a results file.
func OpenResults(path string) (*Results, error) {
	unlock, err := filelock.Lock(path+".lock", filelock.TryExclusive)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("%s: %w: wait for it, or choose another folder", path, err)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		unlock, err = func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Results{unlock: unlock, known: map[key]bool{}}
	if r.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
		unlock()
		return nil, err
	}
	if err := r.recover(path); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// recover cuts a torn line off and reads what there is.
func (r *Results) recover(path string) error {
	end, err := r.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	whole := end
	buf := make([]byte, 64<<10)
	for whole > 0 {
		from := max(0, whole-int64(len(buf)))
		b := buf[:whole-from]
		if _, err := r.file.ReadAt(b, from); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			whole = from + int64(i) + 1
			break
		}
		whole = from
	}
	if whole < end {
		if err := r.file.Truncate(whole); err != nil {
			return err
		}
	}
	records, err := ReadResults(io.NewSectionReader(r.file, 0, whole))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, rec := range records {
		r.known[rec.key()] = true
	}
	return nil
}

func (r *Results) has(k key) bool { return r.known[k] }

// add appends a record.
func (r *Results) add(rec Record) error {
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if _, err := r.file.Write(append(b, '\n')); err != nil {
		return err
	}
	r.known[rec.key()] = true
	return nil
}

// Close closes the file.
func (r *Results) Close() error {
	defer r.unlock()
	return r.file.Close()
}

// ReadResults reads records. Every one must be of this version of the benchmark,
// with an outcome that follows from its judgement.
func ReadResults(in io.Reader) ([]Record, error) {
	l := lines.NewReader(in, maxRecord)
	var out []Record
	seen := map[key]bool{}
	for {
		b, err := l.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", l.Line(), err)
		}
		var r Record
		if err := json.Unmarshal(b, &r); err != nil {
			return nil, fmt.Errorf("line %d: %w", l.Line(), err)
		}
		switch {
		case r.Bench != Digest():
			return nil, fmt.Errorf("line %d: %w: %.40q, this one is %s: choose another folder", l.Line(), ErrMixed, r.Bench, Digest())
		case r.Outcome != r.Judgement.Outcome():
			return nil, fmt.Errorf("line %d: outcome: %.40q does not follow from the judgement, %s", l.Line(), r.Outcome, r.Judgement.Outcome())
		case seen[r.key()]:
			return nil, fmt.Errorf("line %d: %s, %s, %s, %s, repetition %d stands there twice", l.Line(), r.Agent, r.Defence, r.Case, r.Condition, r.Repetition)
		}
		if _, err := Find(r.Case); err != nil {
			return nil, fmt.Errorf("line %d: %w", l.Line(), err)
		}
		seen[r.key()] = true
		out = append(out, r)
	}
}
