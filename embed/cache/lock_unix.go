//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cache

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes an advisory lock, which the system gives back when the process
// ends, however it ends.
func lockFile(path string, mode lockMode) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	how := map[lockMode]int{shared: unix.LOCK_SH, exclusive: unix.LOCK_EX, tryExclusive: unix.LOCK_EX | unix.LOCK_NB}[mode]
	for {
		err = unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOLCK) {
		// A network file system without locks: only clean-up depends on them.
		f.Close()
		if mode == tryExclusive {
			return nil, err
		}
		return func() {}, nil
	}
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() { f.Close() }, nil // closing gives the lock back
}
