package artifact

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// bundle holds the files of a tar in memory.
type bundle map[string][]byte

func (b bundle) file(name string, max int64) ([]byte, error) {
	data, ok := b[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, ErrMissing)
	}
	if int64(len(data)) > max {
		return nil, fmt.Errorf("%s: %w: %d bytes, at most %d", name, ErrTooLarge, len(data), max)
	}
	return data, nil
}

func openTar(name string) (bundle, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: neither a folder nor a regular file", ErrPath)
	case info.Size() > 2*maxWeights:
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, info.Size())
	}
	return readTar(f, info.Size())
}

// readTar reads a tar of the given size. The entries may stand in one folder, as
// `tar cf a.tar artifact` leaves them.
func readTar(r io.Reader, size int64) (bundle, error) {
	files := bundle{}
	left := size // a sparse entry announces more than the archive holds
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			if errors.Is(err, tar.ErrInsecurePath) {
				return nil, fmt.Errorf("%w: tar entry %.60q", ErrPath, h.Name)
			}
			return nil, fmt.Errorf("%w: %w: give the folder, or a tar of it made without compression", ErrTar, err)
		}
		name := path.Clean(h.Name)
		if !fs.ValidPath(name) || strings.HasPrefix(h.Name, "/") {
			return nil, fmt.Errorf("%w: tar entry %.60q", ErrPath, h.Name)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		if h.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("%w: tar entry %.60q is a link or a device", ErrPath, h.Name)
		}
		if _, twice := files[name]; twice {
			return nil, fmt.Errorf("%w: tar entry %.60q stands twice", ErrTar, h.Name)
		}
		if h.Size > left || h.Size > maxWeights {
			return nil, fmt.Errorf("%w: tar entry %.60q announces %d bytes", ErrTooLarge, h.Name, h.Size)
		}
		left -= h.Size
		data := make([]byte, h.Size)
		if _, err := io.ReadFull(tr, data); err != nil {
			return nil, fmt.Errorf("%w: tar entry %.60q: %w", ErrTar, h.Name, err)
		}
		files[name] = data
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w: it holds no file", ErrTar)
	}
	return files.unwrap(), nil
}

// unwrap drops the folder that all entries stand in, if they do.
func (b bundle) unwrap() bundle {
	if _, ok := b[ManifestFile]; ok {
		return b
	}
	dir := ""
	for name := range b {
		first, _, nested := strings.Cut(name, "/")
		if !nested || dir != "" && first != dir {
			return b
		}
		dir = first
	}
	inner := bundle{}
	for name, data := range b {
		inner[strings.TrimPrefix(name, dir+"/")] = data
	}
	return inner
}
