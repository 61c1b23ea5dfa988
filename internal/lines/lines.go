// Package lines reads text files line by line within a bound, so that one
// endless line, or a small gzip file that unpacks to one, cannot fill memory.
//
//	r := lines.NewReader(f, lines.Max)
//	for {
//		line, err := r.Next() // valid until the next call
//		if err == io.EOF { break }
//		use(r.Line(), line)
//	}
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Max is the longest line that the project reads, in bytes: 64 MiB.
const Max = 64 << 20

// Errors of a line that cannot be text of the expected kind.
var (
	ErrTooLong = errors.New("is too long")
	ErrNUL     = errors.New("holds a NUL byte: the file is damaged, or is UTF-16, or is no text at all")
	ErrUTF8    = errors.New("is not valid UTF-8: convert the file first")
)

// Reader reads lines. Make one with [NewReader].
type Reader struct {
	r    *bufio.Reader
	max  int
	line int
	cut  bool
	buf  []byte
}

// NewReader reads the lines of r, each at most max bytes long.
func NewReader(r io.Reader, max int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 1<<16), max: max}
}

// Line is the number, from 1, of the line that Next returned or failed on.
func (r *Reader) Line() int { return r.line }

// Cut reports whether the line that Next returned has no line end: whoever wrote it may
// not have come to the end.
func (r *Reader) Cut() bool { return r.cut }

// Next returns the next line that is not blank, without its line end and, on
// the first line, without a byte order mark. The slice is valid until the next
// call. At the end it returns io.EOF. A line that is too long, or holds a NUL
// byte or invalid UTF-8, is an error; what follows a line that is too long has
// not been read.
func (r *Reader) Next() ([]byte, error) {
	for {
		line, err := r.read()
		if err != nil {
			return nil, err
		}
		if r.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		line = bytes.TrimRight(line, "\r\n")
		if bytes.IndexByte(line, 0) >= 0 {
			return nil, ErrNUL
		}
		if !utf8.Valid(line) {
			return nil, ErrUTF8
		}
		if len(bytes.TrimSpace(line)) > 0 {
			return line, nil
		}
	}
}

func (r *Reader) read() ([]byte, error) {
	r.line++
	r.cut = false
	r.buf = r.buf[:0]
	for {
		part, err := r.r.ReadSlice('\n')
		if len(r.buf)+len(part) > r.max+1 {
			return nil, fmt.Errorf("%w: more than %d bytes: write each record on a line of its own, and cut very long texts", ErrTooLong, r.max)
		}
		if err == nil && len(r.buf) == 0 {
			return part, nil // no copy for a line that fits the buffer
		}
		r.buf = append(r.buf, part...)
		switch {
		case err == nil:
			return r.buf, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(r.buf) > 0:
			r.cut = true
			return r.buf, nil
		default:
			return nil, err
		}
	}
}
