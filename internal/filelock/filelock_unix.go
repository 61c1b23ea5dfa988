//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package filelock

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes the lock on path, making the file if needed. On a file system
// without locks, Shared and Exclusive succeed without one and TryExclusive fails
// with errors.ErrUnsupported.
func Lock(path string, mode Mode) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	how := map[Mode]int{Shared: unix.LOCK_SH, Exclusive: unix.LOCK_EX, TryExclusive: unix.LOCK_EX | unix.LOCK_NB}[mode]
	for {
		err = unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOLCK) {
		// A network file system without locks: only clean-up depends on them.
		f.Close()
		if mode == TryExclusive {
			return nil, &fs.PathError{Op: "lock", Path: path, Err: errors.ErrUnsupported}
		}
		return func() {}, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrHeld
	}
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() { f.Close() }, nil // closing gives the lock back
}
