//go:build unix

package floor

import (
	"os"
	"syscall"
)

// linkCount returns how many names a file has.
func linkCount(fi os.FileInfo) uint64 {
	if s, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}
