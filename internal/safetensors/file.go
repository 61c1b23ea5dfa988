package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
)

// File is a file whose tensors are read one at a time, for weights that do not
// fit twice into memory or of which only a part is wanted. It is safe for
// concurrent use if its reader is.
type File struct {
	r      io.ReaderAt
	data   int64 // where the data starts
	names  []string
	byName map[string]entry
	meta   map[string]string
}

// NewFile reads the header of a file of size bytes and checks it against that
// size, with the checks and errors of [Read].
func NewFile(r io.ReaderAt, size int64) (*File, error) {
	var prefix [8]byte
	if size < 8 {
		return nil, fmt.Errorf("%w: %d bytes, not even a header length", ErrTruncated, size)
	}
	if err := readAt(r, prefix[:], 0); err != nil {
		return nil, fmt.Errorf("read header length: %w", err)
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if err := checkHeader(n, size); err != nil {
		return nil, err
	}
	header := make([]byte, n)
	if err := readAt(r, header, 8); err != nil {
		return nil, fmt.Errorf("read header: %w", err)
	}
	f := &File{r: r, data: 8 + int64(n), byName: map[string]entry{}}
	entries, meta, err := parseLayout(header, size-f.data)
	if err != nil {
		return nil, err
	}
	f.meta = meta
	for _, e := range entries {
		f.names = append(f.names, e.name)
		f.byName[e.name] = e
	}
	return f, nil
}

// Names lists the tensors in the order of their data.
func (f *File) Names() []string { return f.names }

// Metadata is nil where the file has none.
func (f *File) Metadata() map[string]string { return f.meta }

// Read reads one tensor. A name that is not in the file is [ErrMissing].
func (f *File) Read(name string) (Raw, error) {
	e, ok := f.byName[name]
	if !ok {
		return Raw{}, fmt.Errorf("%w %.80q", ErrMissing, name)
	}
	b := make([]byte, e.end-e.begin)
	if err := readAt(f.r, b, f.data+int64(e.begin)); err != nil {
		return Raw{}, fmt.Errorf("read tensor %.80q: %w", name, err)
	}
	return Raw{Name: name, DType: e.dtype, Shape: e.shape, Bytes: b}, nil
}

// readAt fills b. The file may have become shorter since its size was taken.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil // a reader may report io.EOF along with the last byte
	}
	if err == nil || err == io.EOF {
		return fmt.Errorf("%w: at byte %d", ErrTruncated, at+int64(n))
	}
	return err
}
