package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/filelock"
)

// Merge takes the segments of another cache folder over, by hard link where the
// file system can, by copy where it cannot; nothing is computed or rewritten, and
// the other folder is not changed. It returns the number of segments that were
// new. The other cache must belong to the same encoder, [ErrEncoder] otherwise;
// same decides that where identities that differ can mean one encoder, nil
// compares them.
func (c *Cache) Merge(ctx context.Context, dir string, same func(embed.ID) bool) (int, error) {
	h, err := readHeader(filepath.Join(dir, headerName))
	if err != nil {
		return 0, fmt.Errorf("merge into %s: %w", c.dir, err)
	}
	if h.Encoder != c.id && (same == nil || !same(h.Encoder)) {
		return 0, fmt.Errorf("merge %s into %s: %w: it was made by %v, digest %.12s, not by %v, digest %.12s",
			dir, c.dir, ErrEncoder, h.Encoder, h.Encoder.Digest, c.id, c.id.Digest)
	}
	names, err := segmentNames(dir)
	if err != nil {
		return 0, fmt.Errorf("merge %s: %w", dir, err)
	}
	unlock, err := filelock.Lock(filepath.Join(c.dir, lockName), filelock.Shared)
	if err != nil {
		return 0, fmt.Errorf("merge into %s: %w", c.dir, err)
	}
	defer unlock()
	added := 0
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return added, err
		}
		from, to := filepath.Join(dir, name), filepath.Join(c.dir, name)
		if _, err := os.Lstat(to); err == nil {
			continue // equal names mean equal content
		}
		// Checked before it is let in: a damaged one would keep this cache from opening.
		s, err := openSegment(from, c.id.Dims)
		if err != nil {
			return added, fmt.Errorf("merge into %s: %w", c.dir, err)
		}
		if err := s.close(); err != nil {
			return added, err
		}
		if err := c.takeOver(from, to); err != nil {
			return added, fmt.Errorf("merge into %s: %w", c.dir, err)
		}
		added++
	}
	return added, c.refresh()
}

// takeOver links or copies a file.
func (c *Cache) takeOver(from, to string) error {
	// A hard link to a symbolic link would be one more of it, which from another
	// folder can lead nowhere.
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	err = os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) { // another process was faster
		return atomicfile.SyncDir(c.dir)
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close() // read only: nothing to lose
	return c.write(to, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}
