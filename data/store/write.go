package store

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/lines"
)

// Write writes a file, in the form that the end of its name asks for: .jsonl,
// .jsonl.gz or .parquet, and returns how many trajectories it holds. The file is
// there whole or not at all. An error from seq ends writing and is returned
// as it is. Every trajectory is validated and must be valid UTF-8; none at all is
// [ErrEmpty]. Equal trajectories give equal bytes. That ids are unique is left
// to [ReadAll], since checking it here would keep every id in memory.
func Write(path string, seq iter.Seq2[*data.Trajectory, error]) (int, error) {
	encode, err := encoder(path)
	if err != nil {
		return 0, err
	}
	n := 0
	var unread error // of seq: the file to write has no part in it
	checked := func(yield func(*data.Trajectory, error) bool) {
		for t, err := range seq {
			n++
			if unread = err; err == nil {
				err = check(t, n)
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
	err = atomicfile.Write(path, func(w io.Writer) error {
		if err := encode(w, checked); err != nil {
			return err
		}
		if n == 0 {
			return ErrEmpty
		}
		return nil
	})
	if err := cmp.Or(unread, err); err != nil {
		return 0, err
	}
	return n, nil
}

// WriteAll is [Write] for a slice.
func WriteAll(path string, ts []*data.Trajectory) error {
	_, err := Write(path, Values(ts))
	return err
}

// Values makes a slice fit for [Write].
func Values(ts []*data.Trajectory) iter.Seq2[*data.Trajectory, error] {
	return func(yield func(*data.Trajectory, error) bool) {
		for _, t := range ts {
			if !yield(t, nil) {
				return
			}
		}
	}
}

// maxSteps bounds the steps of one run, and its tools.
const maxSteps = 1 << 20

// check refuses what could not be read back as it was.
func check(t *data.Trajectory, n int) error {
	fail := func(err error) error { return fmt.Errorf("trajectory %d (%.200q): %w", n, t.ID, err) }
	if err := t.Validate(); err != nil {
		return fail(err)
	}
	var field string
	size := 0
	eachText(t, func(name, s string) {
		size += len(s)
		if field == "" && !utf8.ValidString(s) {
			field = name
		}
	})
	if field != "" {
		return fail(&data.FieldError{Field: field, Err: lines.ErrUTF8, Msg: "is not valid UTF-8: convert or cut the text at a character"})
	}
	if size > lines.Max {
		return fail(tooLarge(size))
	}
	if n := max(len(t.Steps), len(t.Tools)); n > maxSteps {
		return fail(fmt.Errorf("%w: %d steps or tools, at most %d", lines.ErrTooLong, n, maxSteps))
	}
	return nil
}

type encodeFunc func(io.Writer, iter.Seq2[*data.Trajectory, error]) error

func encoder(path string) (encodeFunc, error) {
	switch {
	case strings.HasSuffix(path, ".jsonl"):
		return writeJSONL, nil
	case strings.HasSuffix(path, ".jsonl.gz"):
		return writeGzip, nil
	case strings.HasSuffix(path, ".parquet"):
		return writeParquet, nil
	}
	return nil, fmt.Errorf("write %s: the name %w: end it in .jsonl, .jsonl.gz or .parquet", path, ErrFormat)
}

// eachText calls f with the name and the value of every text of t.
func eachText(t *data.Trajectory, f func(name, s string)) {
	for _, x := range [...]struct{ name, s string }{
		{"id", t.ID}, {"dataset", t.Dataset}, {"group", t.Group}, {"agent_model", t.AgentModel},
		{"task", t.Task}, {"context", t.Context}, {"hazard_label", t.HazardLabel}, {"suite", t.Suite},
		{"user_task", t.UserTask}, {"injection_task", t.InjectionTask}, {"attack", t.Attack}, {"attack_tool", t.AttackTool},
	} {
		f(x.name, x.s)
	}
	for i := range t.Tools {
		f("tools", t.Tools[i].Name)
		f("tools", t.Tools[i].Description)
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		for _, x := range [...]string{s.Type, s.Tool, s.Args, s.Text, s.Result, s.Error} {
			f("steps", x)
		}
	}
	for k, v := range t.Extra {
		f("extra", k)
		f("extra", string(v))
	}
}

// tooLarge is the error for a trajectory that could not be read back.
func tooLarge(n int) error {
	return fmt.Errorf("%w: %d bytes, at most %d", lines.ErrTooLong, n, lines.Max)
}
