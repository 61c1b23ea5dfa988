package artifact

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// bundle holds the files of a tar in memory.
type bundle map[string][]byte

func (b bundle) file(name string, max int64) ([]byte, string, error) {
	data, ok := b[name]
	if !ok {
		return nil, "", fmt.Errorf("%s: %w", name, ErrMissing)
	}
	if int64(len(data)) > max {
		return nil, "", fmt.Errorf("%s: %w: %d bytes, at most %d", name, ErrTooLarge, len(data), max)
	}
	return data, "", nil
}

func openTar(name string) (bundle, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: neither a folder nor a regular file", ErrPath)
	case info.Size() > 2*maxWeights:
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, info.Size())
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return parseTar(b)
}

const tarBlock = 512

// parseTar reads a POSIX ustar archive, without copying. The entries may stand
// in one folder, as `tar cf a.tar artifact` leaves them. It does not use
// archive/tar because that links os/user, and with it cgo, into every program
// that runs a guard.
func parseTar(b []byte) (bundle, error) {
	files := bundle{}
	for len(b) >= tarBlock && b[0] != 0 {
		h := b[:tarBlock]
		b = b[tarBlock:]
		size, ok := tarNumber(h[124:136])
		if sum, sound := tarNumber(h[148:156]); !ok || !sound || sum != tarSum(h) {
			return nil, fmt.Errorf("%w: give the folder, or a tar of it made without compression", ErrTar)
		}
		name := tarText(h[:100])
		if prefix := tarText(h[345:500]); prefix != "" && string(h[257:263]) == "ustar\x00" {
			name = prefix + "/" + name
		}
		if size > int64(len(b)) {
			return nil, fmt.Errorf("%w: entry %.60q announces %d bytes, %d are left: the file is cut off", ErrTar, name, size, len(b))
		}
		data := b[:size:size]
		b = b[min(int64(len(b)), (size+tarBlock-1)/tarBlock*tarBlock):]
		clean := path.Clean(name)
		switch kind := h[156]; {
		case kind == 'x' || kind == 'g':
			continue // extended attributes, which no name as short as ours needs
		case !fs.ValidPath(clean) || strings.HasPrefix(name, "/"):
			return nil, fmt.Errorf("%w: tar entry %.60q", ErrPath, name)
		case kind == '5': // folder
			continue
		case kind != '0' && kind != 0:
			return nil, fmt.Errorf("%w: tar entry %.60q is a link or a device", ErrPath, name)
		}
		if _, twice := files[clean]; twice {
			return nil, fmt.Errorf("%w: entry %.60q stands twice", ErrTar, name)
		}
		files[clean] = data
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w: it holds no file: give the folder, or a tar of it made without compression", ErrTar)
	}
	return files.unwrap(), nil
}

func tarText(field []byte) string {
	text, _, _ := bytes.Cut(field, []byte{0})
	return string(text)
}

// tarNumber reads an octal field. The binary form for 8 GiB and more is refused.
func tarNumber(field []byte) (int64, bool) {
	n, err := strconv.ParseUint(strings.Trim(tarText(field), " "), 8, 40)
	return int64(n), err == nil
}

// tarSum adds up the header's bytes, those of the checksum itself as blanks.
func tarSum(h []byte) (sum int64) {
	for i, c := range h {
		if i >= 148 && i < 156 {
			c = ' '
		}
		sum += int64(c)
	}
	return sum
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
