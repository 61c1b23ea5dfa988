package formats

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/store"
	"github.com/dreamguard/dreamguard/internal/lines"
)

// Format reads one upstream format.
type Format interface {
	// Name is the short name that a user types.
	Name() string
	// Detect reports whether a file that starts with head is of this format. The
	// head is unpacked text and may end anywhere.
	Detect(head []byte) bool
	// Import calls emit with each run of r, in order, and reports what it read
	// up to an error. name stands for r in errors, which are a [*store.Error],
	// and in ids. An error of emit ends reading and is returned as it is.
	Import(r io.Reader, name string, emit func(*data.Trajectory) error) (Report, error)
}

// Report says what became of a file. Read = Kept + the sum of Dropped.
type Report struct {
	Format   string         `json:"format"`
	Read     int            `json:"read"`     // runs found
	Kept     int            `json:"kept"`     // runs handed on
	Dropped  map[string]int `json:"dropped"`  // runs left out, by reason
	Repaired map[string]int `json:"repaired"` // places changed or left out in runs that were kept, by reason
}

// NoSteps is the reason in [Report.Dropped] of runs in which the agent did
// nothing.
const NoSteps = "no agent step"

// Reasons in Report.Repaired.
const (
	fixUserTurn  = "user turn after a tool call: kept as the reply to an empty message"
	fixRepeat    = "user turn after a tool call that repeats the task left out"
	fixDefence   = "prompt of a defence before the first step left out"
	fixWorkflow  = "workflow turn after a tool call put into its result"
	fixEmptyTurn = "empty assistant turn left out"
	fixNoID      = "tool result without a call id: given to the next open call"
	fixOrphan    = "tool result without a call left out"
	fixSystem    = "system prompt kept as an extra field"
	fixSidechain = "step of a subagent left out"
	fixMeta      = "line that nobody typed left out"
	fixNoTurn    = "line that is no turn left out"
	fixBadArgs   = "arguments of a tool call that are no valid JSON kept as they stand"
	fixNotText   = "content that is not text (image, audio, file) replaced by a mark"
)

// Sentinel errors.
var (
	// ErrUnknown is returned when no format fits a file, or none has the name.
	ErrUnknown = errors.New("unknown format")
	// ErrMixed is returned when a file turns to another format midway.
	ErrMixed = errors.New("mixed formats in one file: split it and import each part")
)

// All returns every format, in the order in which they are tried.
func All() []Format {
	return []Format{Project{}, AgentDojo{}, ASSEBench{}, ClaudeCode{}, Anthropic{}, OpenAI{}}
}

// names lists the names of all formats for messages.
func names() string {
	var out []string
	for _, f := range All() {
		out = append(out, f.Name())
	}
	return strings.Join(out, ", ")
}

// Named returns the format of that name, or an error that wraps [ErrUnknown].
func Named(name string) (Format, error) {
	for _, f := range All() {
		if f.Name() == name {
			return f, nil
		}
	}
	return nil, fmt.Errorf("%w %.40q: want one of %s", ErrUnknown, name, names())
}

// Detect returns the format that fits the head of a file, unpacked. The first
// value decides where it can, so that a file that turns to another format later
// is an error of that later line. The error wraps [ErrUnknown], or
// [store.ErrEmpty] for a blank head; where the first value is not valid JSON it is
// a [*store.Error] without a path that says what is wrong with it.
func Detect(head []byte) (Format, error) {
	if len(bytes.TrimSpace(head)) == 0 {
		return nil, store.ErrEmpty
	}
	f := first(firstValue(head))
	// A conversation without calls is the same in both message formats.
	if f == nil || f == (OpenAI{}) && !(OpenAI{}).sure(firstValue(head)) {
		f = first(head)
	}
	if f == nil {
		if err := syntax(head, false); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: the file is none of %s: name the format, or convert the file to the project's JSON lines", ErrUnknown, names())
	}
	return f, nil
}

func first(head []byte) Format {
	for _, f := range All() {
		if f.Detect(head) {
			return f
		}
	}
	return nil
}

// firstValue is the head up to the end of the first JSON value, or all of it.
func firstValue(head []byte) []byte {
	text := bytes.TrimPrefix(head, []byte("\uFEFF"))
	dec := json.NewDecoder(bytes.NewReader(text))
	var raw json.RawMessage
	if dec.Decode(&raw) != nil {
		return head
	}
	return text[:dec.InputOffset()]
}

// syntax returns what is wrong with the first value of a head that looks like
// JSON, nil if it is valid. One that is only cut where the head ends is wrong if
// the head is the whole file.
func syntax(head []byte, whole bool) error {
	text := bytes.TrimPrefix(head, []byte("\uFEFF"))
	if start := bytes.TrimSpace(text); len(start) == 0 || start[0] != '{' && start[0] != '[' {
		return nil
	}
	var raw json.RawMessage
	err := json.NewDecoder(bytes.NewReader(text)).Decode(&raw)
	var wrong *json.SyntaxError
	switch {
	case errors.As(err, &wrong):
		before := text[:min(max(int(wrong.Offset)-1, 0), len(text))]
		return at(1+bytes.Count(before, []byte("\n")), fmt.Errorf("is not valid JSON: %w", err))
	case errors.Is(err, io.ErrUnexpectedEOF) && whole:
		return at(1, errors.New("is not valid JSON: what starts here is not closed at the end of the file"))
	}
	return nil
}

// HeadSize is how many bytes of a file [Import] shows to Detect.
const HeadSize = 1 << 18

// Import reads a file, plain or gzip, in the format of that name; "" detects
// it. Errors are as for [Format.Import].
func Import(path, formatName string, emit func(*data.Trajectory) error) (Report, error) {
	return ImportAs(path, baseName(path), formatName, emit)
}

// ImportAs is [Import] with the name that stands for the file in the ids of runs
// which have none of their own. [Stems] gives several files different names.
func ImportAs(path, stem, formatName string, emit func(*data.Trajectory) error) (Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return Report{Format: formatName}, err // names the path
	}
	defer f.Close() // only read from
	fail := func(err error) (Report, error) {
		var pos *store.Error
		if errors.As(err, &pos) {
			pos.Path = path
			return Report{Format: formatName}, pos
		}
		return Report{Format: formatName}, &store.Error{Path: path, Err: err}
	}
	if info, err := f.Stat(); err != nil {
		return fail(err)
	} else if info.IsDir() {
		return fail(errors.New("is a folder: name a file in it"))
	}
	r := bufio.NewReaderSize(f, HeadSize)
	if magic, _ := r.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return fail(lines.Unpacked(err))
		}
		r = bufio.NewReaderSize(z, HeadSize)
	}
	head, err := r.Peek(HeadSize)
	whole := errors.Is(err, io.EOF)
	if err != nil && !errors.Is(err, io.EOF) {
		return fail(lines.Unpacked(err))
	}
	var format Format
	if formatName == "" {
		format, err = Detect(head)
		if errors.Is(err, ErrUnknown) {
			err = cmp.Or(syntax(head, whole), err)
		}
	} else {
		format, err = Named(formatName)
	}
	if err != nil {
		return fail(err)
	}
	if format == (Project{}) && bytes.HasPrefix(head, parquetMagic) {
		src, err := store.Open(path) // a stream is not enough for Parquet
		if err != nil {
			return Report{Format: format.Name()}, err
		}
		defer src.Close()
		return importStore(src, path, emit)
	}
	return format.Import(stemmed{r, stem}, path, emit)
}
