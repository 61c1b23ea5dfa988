package store

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/internal/lines"
)

// Sentinel errors.
var (
	// ErrEmpty is returned for a file without a trajectory, and when asked to
	// write one, since nothing could read it back.
	ErrEmpty = errors.New("holds no trajectory")
	// ErrFormat is returned for a file that is neither JSON lines nor Parquet
	// of ours, or a name that says neither.
	ErrFormat = errors.New("is not a trajectory file")
	// ErrDuplicate is returned when two trajectories of a file share an id.
	ErrDuplicate = errors.New("id is not unique")
)

// Error says where a file is wrong.
type Error struct {
	Path string
	Unit string // "line" or "row"
	N    int    // from 1; 0 when the error concerns the whole file
	Err  error  // often a *data.FieldError
}

func (e *Error) Error() string {
	if e.N == 0 {
		return e.Path + ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s: %s %d: %v", e.Path, e.Unit, e.N, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// source is one file form.
type source interface {
	next() (*data.Trajectory, error)
	unit() string
	at() int
	Close() error
}

// Reader reads one file. Make one with [Open]; it is not safe for concurrent use.
type Reader struct {
	path string
	file *os.File
	src  source
	n    int
	err  error // sticky
}

// Open opens path and finds out from its first bytes whether it is gzip,
// Parquet or plain JSON lines.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err // names the path already
	}
	src, err := open(f)
	if err != nil {
		f.Close() // the first error is the one to report
		return nil, &Error{Path: path, Err: err}
	}
	return &Reader{path: path, file: f, src: src}, nil
}

// NewReader reads JSON lines, plain or gzip, from a stream; name stands for the
// path in errors. Parquet keeps its index at the end and so needs a file.
func NewReader(r io.Reader, name string) *Reader {
	src, err := newStream(bufio.NewReaderSize(r, 1<<16))
	if err != nil {
		return &Reader{path: name, err: &Error{Path: name, Err: err}}
	}
	return &Reader{path: name, src: src}
}

var (
	gzipMagic    = []byte{0x1f, 0x8b}
	parquetMagic = []byte("PAR1")
)

func open(f *os.File) (source, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%w but a folder: name a file in it", ErrFormat)
	}
	// A pipe cannot be read twice, so the head is peeked at, not sought over.
	head := bufio.NewReaderSize(f, 1<<16)
	magic, err := head.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.Equal(magic, parquetMagic) {
		return openParquet(f, info.Size())
	}
	return newStream(head)
}

func newStream(head *bufio.Reader) (source, error) {
	magic, err := head.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.Equal(magic, parquetMagic):
		return nil, fmt.Errorf("%w that can be read from a stream: Parquet needs a file", ErrFormat)
	case bytes.HasPrefix(magic, gzipMagic):
		z, err := gzip.NewReader(head)
		if err != nil {
			return nil, lines.Unpacked(err)
		}
		return newJSONL(z, z), nil
	}
	return newJSONL(head, nil), nil
}

// Next returns the next trajectory, validated, and io.EOF after the last. Every
// other error is an [*Error], and final: the same comes back from then on. A
// file that ends without any trajectory is [ErrEmpty].
func (r *Reader) Next() (*data.Trajectory, error) {
	if r.err != nil {
		return nil, r.err
	}
	t, err := r.src.next()
	if err == nil {
		err = t.Validate()
	}
	switch {
	case err == nil:
		r.n++
		return t, nil
	case err == io.EOF && r.n == 0:
		r.err = &Error{Path: r.path, Err: ErrEmpty}
	case err == io.EOF:
		r.err = err
	default:
		r.err = &Error{Path: r.path, Unit: r.src.unit(), N: r.src.at(), Err: err}
	}
	return nil, r.err
}

// At says where the trajectory that Next returned stands: "line 7" or "row 7".
func (r *Reader) At() string {
	if r.src == nil {
		return "start"
	}
	return fmt.Sprintf("%s %d", r.src.unit(), r.src.at())
}

// N is the line, or in Parquet the row, that At names, from 1.
func (r *Reader) N() int {
	if r.src == nil {
		return 0
	}
	return r.src.at()
}

// All yields every trajectory left, and the error that ended reading early.
func (r *Reader) All() iter.Seq2[*data.Trajectory, error] {
	return func(yield func(*data.Trajectory, error) bool) {
		for {
			t, err := r.Next()
			if err == io.EOF {
				return
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// Close closes what Open opened. A stream given to NewReader stays open.
func (r *Reader) Close() error {
	var err error
	if r.src != nil {
		err = r.src.Close()
	}
	if r.file != nil {
		err = errors.Join(err, r.file.Close())
	}
	return err
}

// ReadAll reads a file whole. Two trajectories with one id are an error that
// wraps [ErrDuplicate] and names both places.
func ReadAll(path string) (_ []*data.Trajectory, err error) {
	r, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var all []*data.Trajectory
	first := map[string]int{}
	for t, err := range r.All() {
		if err != nil {
			return nil, err
		}
		if n, ok := first[t.ID]; ok {
			return nil, &Error{Path: path, Unit: r.src.unit(), N: r.src.at(), Err: &data.FieldError{
				Field: "id", Err: ErrDuplicate,
				Msg: fmt.Sprintf("%.200q stands on %s %d already: ids must be unique", t.ID, r.src.unit(), n),
			}}
		}
		first[t.ID] = r.src.at()
		all = append(all, t)
	}
	return all, nil
}
