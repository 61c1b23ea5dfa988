package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrShard says that a text is no shard.
var ErrShard = errors.New("not a shard: want I/N with I from 1 to N, for example 2/4")

// maxShards bounds N: each shard is at least one process and one segment.
const maxShards = 10_000

// Shard is one of Count disjoint parts of all texts. The part that a text
// belongs to follows from its key alone, so processes that work on different
// shards of one corpus never embed the same text, on whatever machine they run
// and in whatever order they read it. The zero Shard is all texts.
type Shard struct {
	Index int // 1 to Count
	Count int // 0 = all texts
}

// ParseShard reads "I/N". The error is [ErrShard].
func ParseShard(s string) (Shard, error) {
	index, count, _ := strings.Cut(s, "/")
	i, err1 := strconv.Atoi(index)
	n, err2 := strconv.Atoi(count)
	if err1 != nil || err2 != nil || n > maxShards || i < 1 || i > n {
		return Shard{}, fmt.Errorf("%.40q is %w, N at most %d", s, ErrShard, maxShards)
	}
	return Shard{Index: i, Count: n}, nil
}

func (s Shard) String() string {
	if s.Count == 0 {
		return "all"
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

// Has reports whether a text with that key belongs to the shard.
func (s Shard) Has(k Key) bool {
	// The index places a key by its first eight bytes; these are the others.
	return s.Count <= 1 || binary.LittleEndian.Uint64(k[8:])%uint64(s.Count) == uint64(s.Index-1)
}
