//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cache

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// mapFile maps a file into memory, read-only. The content stays valid when the
// file is removed or replaced meanwhile.
func mapFile(path string) ([]byte, func() error, error) {
	f, size, err := statSegment(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() // the mapping outlives the descriptor
	if size == 0 {
		return nil, func() error { return nil }, nil // an empty mapping is an error
	}
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, &fs.PathError{Op: "mmap", Path: path, Err: err}
	}
	return data, func() error { return unix.Munmap(data) }, nil
}

// releasePages gives mapped pages back. It is advice, so its failure is none.
func releasePages(data []byte) {
	if len(data) > 0 {
		_ = unix.Madvise(data, unix.MADV_DONTNEED)
	}
}
