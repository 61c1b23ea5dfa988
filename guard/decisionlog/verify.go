package decisionlog

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
)

// Kind says what is wrong with a log.
type Kind string

// The kinds of problems.
const (
	Changed  Kind = "changed"  // the line is not what was written
	Removed  Kind = "removed"  // records that stood before this line are missing
	Moved    Kind = "moved"    // the record stands behind a later one
	Repeated Kind = "repeated" // a record of this number stood in the log before
)

// Problem is one thing that is wrong with a log.
type Problem struct {
	Kind   Kind   `json:"kind"`
	File   string `json:"file"`
	Line   int    `json:"line"`             // from 1
	Record uint64 `json:"record,omitempty"` // number of the record, the first of several; 0 if unknown
	Text   string `json:"text"`             // one sentence
}

func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Kind, p.Text) }

// Bounds on what a report keeps of a log of which nothing is right.
const (
	maxProblems = 1000
	maxGaps     = 1 << 16
)

// Report is what Verify found.
type Report struct {
	Records   int       `json:"records"`
	First     uint64    `json:"first"` // number of the first record; above 1 where older files are not there
	Last      uint64    `json:"last"`
	Head      string    `json:"head"`            // hash of the last record
	Recovered int       `json:"recovered"`       // events that tell of a line that was cut short
	Torn      int       `json:"torn"`            // bytes at the end that are no whole line: the next writer removes them
	Problems  []Problem `json:"problems"`        // the first thousand
	More      int       `json:"more"`            // problems beyond them
	Found     bool      `json:"found,omitempty"` // Verifier.Head stands in the log
}

// OK reports whether every line is what was written, in its place.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// Verify checks the files of one log, in any order. The error says that a file
// cannot be read; what is wrong with its content is in the report.
func Verify(paths ...string) (*Report, error) {
	v := Verifier{}
	return v.Files(paths...)
}

// Verifier checks a log. The zero value is ready to use, once.
type Verifier struct {
	// Head is the hash of a record, kept elsewhere, that must stand in the log; "" for
	// none.
	Head string

	report   Report
	problems []numbered
	next     uint64 // number expected, 0 before the first record
	prev     string // hash of record next-1
	broken   int    // lines just before that cannot be read, any of which may be a record
	gaps     []gap  // records that did not come yet
	lines    int    // so far, in all files
	cut      bool   // the last file ended within a line
}

// numbered is a problem with the number of its line among those of all files.
type numbered struct {
	Problem
	number int
}

// gap is a range of records that were not seen, noticed at a line.
type gap struct {
	from, to uint64 // to included
	file     string
	line     int
	number   int
}

// Files checks the files of one log and returns the report.
func (v *Verifier) Files(paths ...string) (*Report, error) {
	type file struct {
		path  string
		first uint64
	}
	files := make([]file, len(paths))
	for i, p := range paths {
		n, err := firstRecord(p)
		if err != nil {
			return nil, err
		}
		files[i] = file{p, n}
	}
	slices.SortStableFunc(files, func(a, b file) int { return cmp.Compare(a.first, b.first) })
	for _, f := range files {
		if err := v.file(f.path); err != nil {
			return nil, err
		}
	}
	return v.Report(), nil
}

func (v *Verifier) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // read only
	return v.Read(path, f)
}

// firstRecord is the number of the first record that can be read.
func firstRecord(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() // read only
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		b, err := readUpTo(r)
		if err == io.EOF {
			return 0, nil // and it does not matter where it stands
		}
		if err != nil && !errors.Is(err, errTooLong) {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		if x, err := readLine(bytes.TrimSuffix(b, []byte("\n"))); err == nil {
			return x.seq, nil
		}
	}
}

// Read checks the next file of the log.
func (v *Verifier) Read(name string, from io.Reader) error {
	if v.cut {
		v.cut, v.report.Torn = false, 0
		v.problem(Changed, name, 1, 0, "the file before this one ends within a line")
	}
	r := bufio.NewReaderSize(from, 64<<10)
	for n := 1; ; n++ {
		b, err := readUpTo(r)
		if err == io.EOF {
			return nil
		}
		v.lines++
		switch {
		case errors.Is(err, errTooLong):
			v.unreadable(name, n, err)
			continue
		case err != nil:
			return fmt.Errorf("%s: line %d: %w", name, n, err)
		}
		body, whole := bytes.CutSuffix(b, []byte("\n"))
		x, err := readLine(body)
		switch {
		case err == nil:
			v.record(name, n, x)
		case !whole:
			v.cut, v.report.Torn = true, len(b)
		default:
			v.unreadable(name, n, err)
		}
	}
}

func (v *Verifier) unreadable(name string, n int, err error) {
	v.broken++
	v.problem(Changed, name, n, 0, err.Error())
}

func (v *Verifier) record(name string, n int, x link) {
	v.report.Records++
	if x.event == Recovered {
		v.report.Recovered++
	}
	if v.Head != "" && x.hash == v.Head {
		v.report.Found = true
	}
	if v.next == 0 {
		v.report.First = x.seq
		if x.seq == 1 && x.prev != noPrev {
			v.problem(Changed, name, n, x.seq, "it is the first record, and names one before it")
		}
		v.advance(x)
		return
	}
	switch {
	case x.seq < v.next:
		if v.fill(x.seq) {
			v.problem(Moved, name, n, x.seq, fmt.Sprintf("record %d stands behind record %d", x.seq, v.next-1))
		} else {
			v.problem(Repeated, name, n, x.seq, fmt.Sprintf("record %d stands behind record %d, and is there twice or was made up", x.seq, v.next-1))
		}
		return // what comes next continues the record before this one
	case x.seq > v.next+uint64(v.broken):
		if len(v.gaps) < maxGaps {
			v.gaps = append(v.gaps, gap{v.next + uint64(v.broken), x.seq - 1, name, n, v.lines})
		} else {
			v.problem(Removed, name, n, v.next, "records before it are missing")
		}
	case x.seq == v.next && x.prev != v.prev:
		v.problem(Changed, name, n, x.seq, fmt.Sprintf("it does not continue record %d as that stands here: one of the two was written anew", x.seq-1))
	}
	v.advance(x)
}

func (v *Verifier) advance(x link) {
	v.next, v.prev, v.broken = x.seq+1, x.hash, 0
	v.report.Last, v.report.Head = x.seq, x.hash
}

// fill takes a record out of the gaps and reports whether it was in one.
func (v *Verifier) fill(seq uint64) bool {
	i := sort.Search(len(v.gaps), func(i int) bool { return v.gaps[i].to >= seq })
	if i == len(v.gaps) || v.gaps[i].from > seq {
		return false
	}
	g := v.gaps[i]
	switch {
	case g.from == g.to:
		v.gaps = slices.Delete(v.gaps, i, i+1)
	case g.from == seq:
		v.gaps[i].from++
	case g.to == seq:
		v.gaps[i].to--
	default:
		v.gaps[i].from = seq + 1
		g.to = seq - 1
		v.gaps = slices.Insert(v.gaps, i, g)
	}
	return true
}

func (v *Verifier) problem(k Kind, file string, line int, record uint64, text string) {
	v.add(Problem{k, file, line, record, text}, v.lines)
}

func (v *Verifier) add(p Problem, number int) {
	if len(v.problems) >= maxProblems {
		v.report.More++
		return
	}
	v.problems = append(v.problems, numbered{p, number})
}

// Report returns what was found in all that was read. It ends the verification.
func (v *Verifier) Report() *Report {
	for _, g := range v.gaps {
		text := fmt.Sprintf("record %d is missing", g.from)
		if g.to > g.from {
			text = fmt.Sprintf("records %d to %d are missing", g.from, g.to)
		}
		v.add(Problem{Removed, g.file, g.line, g.from, text}, g.number)
	}
	v.gaps = nil
	if v.Head != "" && !v.report.Found {
		v.add(Problem{Kind: Removed, Text: fmt.Sprintf("no record has the hash %s, which was noted earlier: the log was cut off or written anew", v.Head)}, v.lines+1)
	}
	slices.SortStableFunc(v.problems, func(a, b numbered) int { return cmp.Compare(a.number, b.number) })
	v.report.Problems = make([]Problem, len(v.problems))
	for i, p := range v.problems {
		v.report.Problems[i] = p.Problem
	}
	return &v.report
}

var errTooLong = fmt.Errorf("%w: it is longer than %d bytes", errLine, MaxLine)

// readUpTo reads a line with its end. Of one that is too long it returns errTooLong
// and skips the rest.
func readUpTo(r *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > MaxLine {
			line, long = nil, true
		}
		if !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && (len(line) > 0 || long), err == nil:
			if long {
				return nil, errTooLong
			}
			return line, nil
		default:
			return nil, err
		}
	}
}
