package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
)

// Digests remembers the digests of an artifact's files in a file that only its
// owner can use, so that a process per call need not hash megabytes each time. A
// digest stands for one path, size, time of change and inode; of anything else it
// is taken again. Large files are mapped and not read; on a system that can do
// that, do not write into the files of an artifact in use: replace them. A file that was changed within the last seconds is not
// remembered: another change could leave the same time.
type Digests struct {
	Path string // of the memory; "" for none
}

// fresh is how old a change must be to tell it from the next by its time.
const fresh = 2 * time.Second

const (
	maxDigests   = 1 << 20 // bytes of the memory
	maxArtifacts = 64      // files remembered
)

// known is what is remembered of a file.
type known struct {
	Size   int64  `json:"size"`
	MTime  int64  `json:"mtime"` // nanoseconds
	Inode  uint64 `json:"inode"`
	SHA256 string `json:"sha256"`
}

func (k known) matches(info fs.FileInfo) bool {
	return k.SHA256 != "" && k.Size == info.Size() && k.MTime == info.ModTime().UnixNano() && k.Inode == inode(info)
}

// Open is guard.Open with digests from the memory. A tar is opened without it.
func (d Digests) Open(path string, opts ...guard.Option) (*guard.Model, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() || d.Path == "" {
		return guard.Open(path, opts...)
	}
	dir, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open artifact: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open artifact: %w", err)
	}
	defer root.Close() // read only
	memory := d.load()
	fsys := &digestFS{fsys: root.FS(), dir: dir, memory: memory, now: time.Now()}
	if e := fsys.encoder(); e != nil {
		opts = append([]guard.Option{guard.WithEncoder(e)}, opts...)
	}
	m, err := guard.OpenFS(fsys, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if fsys.changed {
		d.save(memory) // without it the next process hashes again
	}
	return m, nil
}

// load returns what is remembered: nothing, if others could have written it.
func (d Digests) load() map[string]known {
	memory := map[string]known{}
	info, err := os.Lstat(d.Path)
	if err != nil || !info.Mode().IsRegular() || private(info) != nil {
		return memory
	}
	b, err := boundedfile.Read(d.Path, maxDigests)
	if err != nil || json.Unmarshal(b, &memory) != nil || memory == nil {
		return map[string]known{}
	}
	return memory
}

func (d Digests) save(memory map[string]known) {
	for path := range memory {
		if len(memory) <= maxArtifacts {
			break
		}
		delete(memory, path) // any: it is taken again when it is needed
	}
	_ = atomicfile.WritePrivate(d.Path, func(w io.Writer) error { return json.NewEncoder(w).Encode(memory) })
}

// digestFS is an artifact folder whose files know their digests.
type digestFS struct {
	fsys    fs.FS
	dir     string
	memory  map[string]known
	changed bool
	now     time.Time
}

func (d *digestFS) Stat(name string) (fs.FileInfo, error)  { return fs.Stat(d.fsys, name) }
func (d *digestFS) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(d.fsys, name) }
func (d *digestFS) ReadLink(name string) (string, error)   { return fs.ReadLink(d.fsys, name) }

func (d *digestFS) Open(name string) (fs.File, error) {
	f, err := d.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	if name == artifact.ManifestFile || name == artifact.CalibrationFile {
		return f, nil // their digests are taken of what is parsed
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	path := filepath.Join(d.dir, filepath.FromSlash(name))
	h := &digestFile{File: f, of: d, path: path, before: info}
	k := d.memory[path]
	if !k.matches(info) {
		return h, nil
	}
	h.sum = k.SHA256
	if info.Size() >= mapFrom {
		if b := mapFile(f, info.Size()); b != nil {
			return mappedFile{h, b}, nil
		}
	}
	return h, nil
}

// mapFrom is the size from which a file is mapped rather than read: of the table of
// an encoder a call touches a few pages.
const mapFrom = 1 << 20

// mappedFile is a file whose content is used in place. It stays mapped: the model
// goes on using it.
type mappedFile struct {
	*digestFile
	content []byte
}

// Bytes returns the content. See artifact.OpenFS.
func (f mappedFile) Bytes() []byte { return f.content }

// encoder makes the artifact's static encoder without hashing its table once more.
// It is nil if that is not to be had; the artifact's loader then says why, or makes
// it itself. It checks the encoder's identity in any case.
func (d *digestFS) encoder() embed.Encoder {
	f, err := d.Open(artifact.EncoderFile)
	if err != nil {
		return nil
	}
	defer f.Close() // read only
	m, ok := f.(mappedFile)
	if !ok {
		return nil
	}
	var sum [sha256.Size]byte
	if n, err := hex.Decode(sum[:], []byte(m.SHA256())); err != nil || n != len(sum) {
		return nil
	}
	e, err := static.ParseKnown(m.content, sum)
	if err != nil {
		return nil
	}
	return e
}

// digestFile keeps what is read where the digest has to be taken.
type digestFile struct {
	fs.File
	of     *digestFS
	path   string
	before fs.FileInfo
	sum    string
	read   []byte
}

func (f *digestFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	if f.sum == "" {
		f.read = append(f.read, p[:n]...)
	}
	return n, err
}

// SHA256 returns the digest of what was read: see artifact.OpenFS.
func (f *digestFile) SHA256() string {
	after, err := f.Stat()
	same := err == nil && after.Size() == f.before.Size() && after.ModTime().Equal(f.before.ModTime())
	switch {
	case f.sum != "" && same:
		return f.sum
	case f.sum != "": // it was changed while it was read
		return ""
	}
	sum := artifact.Sum(f.read)
	if same && f.of.now.Sub(after.ModTime()) > fresh {
		f.of.memory[f.path] = known{Size: after.Size(), MTime: after.ModTime().UnixNano(), Inode: inode(after), SHA256: sum}
		f.of.changed = true
	}
	return sum
}
