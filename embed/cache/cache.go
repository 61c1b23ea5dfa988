package cache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/filelock"
)

// Format is the version of the folder's layout, stated in cache.json.
const Format = "dreamguard.cache/v1"

const (
	headerName = "cache.json"
	lockName   = ".lock"

	maxHeader   = 64 << 10 // bytes of cache.json
	maxDims     = 1 << 16
	maxSegments = 20_000 // each is one memory mapping, of which a process has some 65,000
)

// Errors that [Open] and [Cache.Fill] wrap.
var (
	// ErrEncoder says that the cache holds vectors of another encoder.
	ErrEncoder = errors.New("cache belongs to another encoder")
	// ErrDamaged says that a segment is torn, changed or not a segment at all.
	ErrDamaged = errors.New("damaged segment")
	// ErrHeader says that cache.json cannot be understood.
	ErrHeader = errors.New("bad cache header")
)

// header is the content of cache.json.
type header struct {
	Format  string   `json:"format"`
	Encoder embed.ID `json:"encoder"`
}

// ref is where a vector is.
type ref struct{ seg, row uint32 }

// Cache is an open cache folder. It is safe for concurrent use, by several
// goroutines and by several processes.
type Cache struct {
	dir string
	id  embed.ID

	filling sync.Mutex   // one Fill at a time
	mu      sync.RWMutex // guards what follows
	segs    []*segment
	known   map[string]bool // segments loaded, by name
	index   index
	closed  bool

	// write is atomicfile.Write, except in tests of a full disk.
	write func(path string, fill func(io.Writer) error) error
}

// Open opens the cache in dir, making it if there is none, and maps every
// segment into memory after checking it. A cache of another encoder is
// [ErrEncoder], a bad segment [ErrDamaged]; both name the file.
func Open(dir string, id embed.ID) (*Cache, error) {
	if id.Dims < 1 || id.Dims > maxDims {
		return nil, fmt.Errorf("open cache %s: encoder %v has %d dims, want 1 to %d", dir, id, id.Dims, maxDims)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("open cache: %w", err)
	}
	if err := claim(dir, id); err != nil {
		return nil, err
	}
	c := &Cache{dir: dir, id: id, known: map[string]bool{}, write: atomicfile.Write}
	if err := c.refresh(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// claim checks that dir belongs to the encoder, and makes it so if it is new.
func claim(dir string, id embed.ID) error {
	path := filepath.Join(dir, headerName)
	h, err := readHeader(path)
	if errors.Is(err, fs.ErrNotExist) {
		// Two processes that start at once must not both become the owner.
		unlock, lockErr := filelock.Lock(filepath.Join(dir, lockName), filelock.Exclusive)
		if lockErr != nil {
			return fmt.Errorf("open cache %s: %w", dir, lockErr)
		}
		defer unlock()
		if h, err = readHeader(path); errors.Is(err, fs.ErrNotExist) {
			return writeHeader(path, header{Format: Format, Encoder: id})
		}
	}
	if err != nil {
		return err
	}
	if h.Encoder != id {
		return fmt.Errorf("%s: %w: it was made by %v, digest %.12s, and %v, digest %.12s, is wanted: use another folder, or delete this one",
			path, ErrEncoder, h.Encoder, h.Encoder.Digest, id, id.Digest)
	}
	// A kill leaves a temporary file behind. Nobody writes while the exclusive
	// lock is held, so every such file is dead; if somebody does, it can wait.
	if unlock, err := filelock.Lock(filepath.Join(dir, lockName), filelock.TryExclusive); err == nil {
		defer unlock()
		// A cache that cannot be written to can still be read.
		_ = atomicfile.Clean(dir)
	}
	return nil
}

// Identity returns the encoder that the cache in dir belongs to, without opening
// its segments. Where there is no cache the error is fs.ErrNotExist.
func Identity(dir string) (embed.ID, error) {
	h, err := readHeader(filepath.Join(dir, headerName))
	return h.Encoder, err
}

func readHeader(path string) (header, error) {
	b, err := boundedfile.Read(path, maxHeader)
	if errors.Is(err, boundedfile.ErrTooLarge) || errors.Is(err, boundedfile.ErrNotRegular) {
		return header{}, fmt.Errorf("%w: %w", ErrHeader, err)
	}
	if err != nil {
		return header{}, fmt.Errorf("open cache: %w", err)
	}
	var h header
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&h); err != nil {
		return header{}, fmt.Errorf("%s: %w: %w", path, ErrHeader, err)
	}
	if h.Format != Format {
		return header{}, fmt.Errorf("%s: %w: format is %.40q, this program reads %q", path, ErrHeader, h.Format, Format)
	}
	if h.Encoder.Dims < 1 || h.Encoder.Dims > maxDims {
		return header{}, fmt.Errorf("%s: %w: encoder.dims is %d, want 1 to %d", path, ErrHeader, h.Encoder.Dims, maxDims)
	}
	return h, nil
}

func writeHeader(path string, h header) error {
	b, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, append(b, '\n'))
}

// segmentNames lists the segments of dir in a fixed order.
func segmentNames(dir string) ([]string, error) {
	// Not filepath.Glob: the folder's name may hold what that gives a meaning to.
	names, err := fs.Glob(os.DirFS(dir), "seg-*.arrow")
	slices.Sort(names)
	return names, err
}

// refresh loads the segments that appeared since the last call, of this process
// or of another one.
func (c *Cache) refresh() error {
	names, err := segmentNames(c.dir)
	if err != nil {
		return fmt.Errorf("open cache %s: %w", c.dir, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("cache %s: %w", c.dir, fs.ErrClosed)
	}
	if len(names) > maxSegments {
		return fmt.Errorf("open cache %s: %d segments, at most %d are supported: delete the folder and fill it again in one go", c.dir, len(names), maxSegments)
	}
	for _, name := range names {
		if c.known[name] {
			continue
		}
		s, err := openSegment(filepath.Join(c.dir, name), c.id.Dims)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since it was listed
		}
		if err != nil {
			return err
		}
		seg := uint32(len(c.segs))
		c.segs = append(c.segs, s)
		c.known[name] = true
		c.index.reserve(s.rows(), c.keyOf)
		for row := range s.rows() {
			k := s.key(row)
			if _, ok := c.find(k); !ok { // two processes may both have embedded it
				c.index.add(k, ref{seg, uint32(row)})
			}
		}
		s.release()
	}
	return nil
}

// find looks a key up. The caller holds mu.
func (c *Cache) find(k Key) (ref, bool) {
	return c.index.find(k, func(r ref) bool { return c.keyOf(r) == k })
}

func (c *Cache) keyOf(r ref) Key { return c.segs[r.seg].key(int(r.row)) }

// Get returns the vector of a text. It aliases read-only mapped memory: it must
// not be written to, nor used after Close.
func (c *Cache) Get(text string) ([]float32, bool) {
	k := KeyOf(text)
	c.mu.RLock()
	defer c.mu.RUnlock()
	r, ok := c.find(k)
	if !ok {
		return nil, false
	}
	return c.segs[r.seg].vector(int(r.row)), true
}

// locate is find for those who do not hold mu.
func (c *Cache) locate(k Key) (ref, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.find(k)
}

// WriteFile puts a file of another kind into the cache's folder, out of the way of
// other processes that clean up there.
func (c *Cache) WriteFile(name string, b []byte) error {
	unlock, err := filelock.Lock(filepath.Join(c.dir, lockName), filelock.Shared)
	if err != nil {
		return err
	}
	defer unlock()
	return atomicfile.WriteFile(filepath.Join(c.dir, name), b)
}

// ID returns the encoder that the cache belongs to.
func (c *Cache) ID() embed.ID { return c.id }

// Len returns the number of texts that have a vector.
func (c *Cache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.n
}

// Segments returns the number of segment files in use.
func (c *Cache) Segments() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.segs)
}

// Close unmaps the segments. Vectors that Get returned must not be used
// any more. A second Close does nothing.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var errs []error
	for _, s := range c.segs {
		errs = append(errs, s.close())
	}
	c.segs, c.known, c.index = nil, nil, index{}
	return errors.Join(errs...)
}
