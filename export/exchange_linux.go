package export

import "golang.org/x/sys/unix"

// exchange swaps the two folders in one step where the file system can.
func exchange(temp, dir string) error {
	if unix.Renameat2(unix.AT_FDCWD, temp, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE) == nil {
		return nil
	}
	return exchangeByRename(temp, dir)
}
