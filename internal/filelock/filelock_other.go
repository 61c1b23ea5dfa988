//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package filelock

import "errors"

// Lock does nothing where the system has no advisory locks; TryExclusive fails
// with errors.ErrUnsupported.
func Lock(_ string, mode Mode) (unlock func(), err error) {
	if mode == TryExclusive {
		return nil, errors.ErrUnsupported
	}
	return func() {}, nil
}
