// Package boundedfile reads files that have no business being large.
//
//	b, err := boundedfile.Read(path, 1<<20)
package boundedfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Errors, wrapped in a message that names the file.
var (
	// ErrTooLarge: the file is larger than the limit.
	ErrTooLarge = errors.New("file is too large")
	// ErrNotRegular: it is a folder, a pipe, a socket or a device.
	ErrNotRegular = errors.New("not a regular file")
)

// Read returns what is in the file, at most limit bytes. Errors are those of
// [Open], and [ErrTooLarge] for a larger one; no more of it than limit is read.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// The size is a hint: that of a file in /proc is 0, and a file can grow.
	var b bytes.Buffer
	b.Grow(int(min(info.Size(), limit)) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", path, ErrTooLarge, limit)
	}
	return b.Bytes(), nil
}

// Open opens a regular file for reading, or what a symbolic link to one leads to.
// Everything else is [ErrNotRegular]: opening a named pipe would wait for a writer,
// and reading a device for whatever it is.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path) // before opening, which may be what waits
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: it is %s", path, ErrNotRegular, kind(info.Mode()))
	}
	return os.Open(path)
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
