// Package atomicfile writes files that are either wholly there or not at all: a
// crash, a kill or a full disk leaves the old content in place.
//
//	err := atomicfile.Write("report.json", func(w io.Writer) error { return render(w) })
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// TempPrefix starts the names of temporary files, which a kill can leave
// behind: Clean removes them.
const TempPrefix = ".dreamguard-tmp-"

// ErrNotRegular is returned for the path of a folder, a device or a pipe: renaming
// over it would fail after the work, or put a file in the place of the device.
var ErrNotRegular = errors.New("no regular file, and only such a one can be replaced: name another")

// Write calls fill with a buffered writer to a temporary file beside path,
// syncs it, and renames it over path. The mode is 0o666 less the umask,
// or that of the file it replaces, which must be a regular one.
func Write(path string, fill func(io.Writer) error) error {
	return write(path, 0o666, fill)
}

// WritePrivate is Write for a file that only its owner may read or write,
// whatever the umask and the mode of the file it replaces.
func WritePrivate(path string, fill func(io.Writer) error) error {
	return write(path, 0o600, fill)
}

func write(path string, mode os.FileMode, fill func(io.Writer) error) (err error) {
	old, err := os.Stat(path)
	there := err == nil
	if there && !old.Mode().IsRegular() {
		return fmt.Errorf("write %s: %w", path, ErrNotRegular)
	}
	dir := filepath.Dir(path)
	f, err := createTemp(dir, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()           // the first error is the one to report
			os.Remove(f.Name()) // nothing half-written stays
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	if mode == 0o666 && there {
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	w := bufio.NewWriterSize(f, 1<<16)
	if err := fill(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// WriteFile writes b to path atomically.
func WriteFile(path string, b []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// SyncDir makes a rename in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(ignoreUnsupported(d.Sync()), d.Close())
}

// ignoreUnsupported drops the error of file systems that cannot sync a folder.
func ignoreUnsupported(err error) error {
	if errors.Is(err, os.ErrInvalid) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// Clean removes temporary files that a kill left in dir. A folder that is not there
// holds none.
func Clean(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), TempPrefix) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// createTemp is os.CreateTemp with the given mode less the umask: most of these
// files are results to share, not secrets.
func createTemp(dir string, mode os.FileMode) (*os.File, error) {
	for try := 0; ; try++ {
		name := filepath.Join(dir, fmt.Sprintf("%s%d-%d", TempPrefix, os.Getpid(), try))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, os.ErrExist) && try < 10000 {
			continue
		}
		return f, err
	}
}
