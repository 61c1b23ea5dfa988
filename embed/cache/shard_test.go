package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dreamguard/dreamguard/embed"
	"pgregory.net/rapid"
)

func TestParseShard(t *testing.T) {
	for s, want := range map[string]Shard{"1/1": {1, 1}, "2/4": {2, 4}, "4/4": {4, 4}, "10000/10000": {10000, 10000}} {
		if got, err := ParseShard(s); err != nil || got != want || got.String() != s {
			t.Errorf("ParseShard(%q) = %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "1", "/", "0/4", "5/4", "-1/4", "1/0", "1/4/2", "a/b", "1/10001", " 1/4"} {
		if got, err := ParseShard(s); !errors.Is(err, ErrShard) {
			t.Errorf("ParseShard(%q) = %v, %v, want ErrShard", s, got, err)
		}
	}
}

// Every text belongs to exactly one shard.
func TestShardsAreAPartition(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k := KeyOf(rapid.String().Draw(rt, "text"))
		n := rapid.IntRange(1, 50).Draw(rt, "shards")
		owners := 0
		for i := range n {
			if (Shard{i + 1, n}).Has(k) {
				owners++
			}
		}
		if owners != 1 || !(Shard{}).Has(k) {
			rt.Fatalf("%x belongs to %d of %d shards", k, owners, n)
		}
	})
}

// Shards that are filled at the same time, in one folder or in several, embed
// each text once; merged they are the whole, and no segment is written again.
func TestShards(t *testing.T) {
	const n, shards = 10_000, 4
	texts := numbered(0, n)
	for _, together := range []bool{true, false} {
		t.Run(fmt.Sprint("together=", together), func(t *testing.T) {
			root, enc := t.TempDir(), newFake(4)
			dirs := make([]string, shards)
			var wg sync.WaitGroup
			var mu sync.Mutex
			embedded := 0
			for i := range shards {
				dirs[i] = filepath.Join(root, fmt.Sprint(i))
				if together {
					dirs[i] = root
				}
				wg.Go(func() {
					c, err := Open(dirs[i], enc.ID())
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Close()
					shard := Shard{i + 1, shards}
					fresh, err := c.Count(t.Context(), Seq(texts), shard)
					if err != nil {
						t.Error(err)
					}
					stats, err := c.Fill(t.Context(), enc, Seq(texts), Options{Shard: shard})
					if err != nil || stats.Texts != fresh || stats.Embedded != fresh || fresh < n/shards*9/10 || fresh > n/shards*11/10 {
						t.Errorf("shard %v: %+v, %d fresh, error %v", shard, stats, fresh, err)
					}
					mu.Lock()
					defer mu.Unlock()
					embedded += stats.Embedded
				})
			}
			wg.Wait()
			if embedded != n {
				t.Errorf("%d texts embedded, want %d", embedded, n)
			}
			whole := open(t, filepath.Join(root, "whole"), enc.ID())
			merged := dirs
			if together {
				merged = dirs[:1]
			}
			for _, dir := range merged {
				before, err := segmentNames(dir)
				if err != nil {
					t.Fatal(err)
				}
				for again := range 2 {
					added, err := whole.Merge(t.Context(), dir, nil)
					if want := len(before) * (1 - again); err != nil || added != want {
						t.Fatalf("Merge added %d of %d segments, error %v", added, want, err)
					}
				}
				for _, name := range before { // moved as they are
					if _, err := os.Stat(filepath.Join(root, "whole", name)); err != nil {
						t.Error(err)
					}
				}
			}
			if stats := fill(t, whole, enc, texts); stats.Embedded != 0 || whole.Len() != n {
				t.Errorf("after merging: %+v, %d vectors", stats, whole.Len())
			}
			check(t, whole, enc, texts)
		})
	}
}

func TestMergeRefuses(t *testing.T) {
	enc, other := newFake(4), newFake(4)
	other.id.Digest = "bb22"
	from, dir := t.TempDir(), t.TempDir()
	fill(t, open(t, from, other.ID()), other, numbered(0, 10))
	c := open(t, dir, enc.ID())
	if _, err := c.Merge(t.Context(), from, nil); !errors.Is(err, ErrEncoder) || !strings.Contains(err.Error(), from) {
		t.Errorf("another encoder: %v", err)
	}
	if _, err := c.Merge(t.Context(), filepath.Join(dir, "none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if c.Len() != 0 {
		t.Errorf("%d vectors came from refused merges", c.Len())
	}
	if added, err := c.Merge(t.Context(), from, func(id embed.ID) bool { return id == other.ID() }); err != nil || added != 1 || c.Len() != 10 {
		t.Errorf("declared the same: %d segments, %d vectors, error %v", added, c.Len(), err)
	}

	// A damaged segment is not let in.
	damaged := t.TempDir()
	fill(t, open(t, damaged, enc.ID()), enc, numbered(10, 10))
	names, err := segmentNames(damaged)
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if err := os.WriteFile(filepath.Join(damaged, names[0]), []byte("torn"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Merge(t.Context(), damaged, nil); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), names[0]) {
		t.Errorf("damaged: %v", err)
	}
	if again := open(t, dir, enc.ID()); again.Len() != 10 {
		t.Errorf("%d vectors after a refused merge", again.Len())
	}
}

// A segment that is a symbolic link is taken over as what it leads to: its target
// is relative to the folder that it came from.
func TestMergeFollowsLinks(t *testing.T) {
	enc, root := newFake(4), t.TempDir()
	from, dir := filepath.Join(root, "from"), filepath.Join(root, "deep", "whole")
	fill(t, open(t, from, enc.ID()), enc, numbered(0, 10))
	names, err := segmentNames(from)
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if err := os.Rename(filepath.Join(from, names[0]), filepath.Join(root, names[0])); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..", names[0]), filepath.Join(from, names[0])); err != nil {
		t.Skip(err)
	}
	c := open(t, dir, enc.ID())
	if added, err := c.Merge(t.Context(), from, nil); err != nil || added != 1 || c.Len() != 10 {
		t.Errorf("%d segments, %d vectors, error %v; want 1 and 10", added, c.Len(), err)
	}
}
