//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package cache

import (
	"io"
	"io/fs"
)

// mapFile reads a file into memory, where the system cannot map it.
func mapFile(path string) ([]byte, func() error, error) {
	f, size, err := statSegment(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() // read only: nothing to lose
	data := make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return data, func() error { return nil }, nil
}

// releasePages does nothing: the file was read, not mapped.
func releasePages([]byte) {}
