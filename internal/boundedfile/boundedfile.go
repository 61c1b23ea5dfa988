// Package boundedfile reads files that have no business being large.
//
//	b, err := boundedfile.Read(path, 1<<20)
package boundedfile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrTooLarge is wrapped by the error about a file above the limit.
var ErrTooLarge = errors.New("file is too large")

// Read returns what is in the file, at most limit bytes. The error about a larger
// one names the file and wraps [ErrTooLarge]; no more of it than limit is read.
func Read(path string, limit int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(b) > limit {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", path, ErrTooLarge, limit)
	}
	return b, nil
}
