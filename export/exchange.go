package export

import (
	"errors"
	"os"
)

// exchangeByRename puts temp in the place of dir and leaves the old folder at
// temp. Between the renames there is no dir; both folders are whole all the
// time.
func exchangeByRename(temp, dir string) error {
	old := temp + "-old"
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(dir, old); err != nil {
		return err
	}
	if err := os.Rename(temp, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.Rename(old, temp)
}
