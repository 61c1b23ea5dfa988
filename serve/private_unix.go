//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// private reports why others than this user could use a folder or file.
func private(info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return errors.New("belongs to another user")
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return fmt.Errorf("can be used by others (mode %04o): chmod go= it, or name another folder", perm)
	}
	return nil
}

// inode tells files of the same name apart.
func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}

// mapFile maps a file into memory, read only; nil if it cannot be done.
func mapFile(f fs.File, size int64) []byte {
	file, ok := f.(*os.File)
	if !ok || size > 1<<30 {
		return nil
	}
	b, err := unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return b
}
