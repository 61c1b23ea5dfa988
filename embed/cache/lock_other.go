//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package cache

import "errors"

// lockFile does nothing where the system has no advisory locks: temporary files
// of a killed process then stay until the folder is deleted.
func lockFile(_ string, mode lockMode) (unlock func(), err error) {
	if mode == tryExclusive {
		return nil, errors.ErrUnsupported
	}
	return func() {}, nil
}
