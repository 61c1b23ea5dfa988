package hash

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/dreamguard/dreamguard/embed"
)

// Version is part of the encoder's identity. It changes with every change that
// moves a vector.
const Version = 1

// MaxDims bounds the vector length.
const MaxDims = 1 << 16

// ErrLength is returned by Encode for a dst of the wrong length.
var ErrLength = errors.New("hash: dst does not hold one vector per text")

// Encoder is the hashed n-gram encoder. Make one with [New]. It is safe for
// concurrent use.
type Encoder struct {
	id   embed.ID
	dims int
	pool sync.Pool // of *scratch
}

var _ embed.Encoder = (*Encoder)(nil)

// New returns the encoder with vectors of dims values. It panics unless dims is
// in 1 to [MaxDims]: check numbers that come from a file with [Valid] first.
func New(dims int) *Encoder {
	if !Valid(dims) {
		panic(fmt.Sprintf("hash: %d dimensions, want 1 to %d", dims, MaxDims))
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "dreamguard embed/hash version %d dims %d", Version, dims))
	return &Encoder{
		id: embed.ID{
			Kind:   "hash",
			Name:   fmt.Sprintf("hash-v%d-%d", Version, dims),
			Dims:   dims,
			Digest: hex.EncodeToString(sum[:]),
		},
		dims: dims,
		pool: sync.Pool{New: func() any { return new(scratch) }},
	}
}

// Valid reports whether dims is a vector length that New accepts.
func Valid(dims int) bool { return dims >= 1 && dims <= MaxDims }

// ID returns the encoder's identity. Its digest covers Version and the length,
// which together determine every vector.
func (e *Encoder) ID() embed.ID { return e.id }

// Encode implements [embed.Encoder]. Its errors are [ErrLength] and that of ctx.
// Invalid UTF-8 separates words, as punctuation does. After warm-up it does not
// allocate. Its cost is linear in the texts, so callers clip them first.
func (e *Encoder) Encode(ctx context.Context, texts []string, dst []float32) error {
	if len(dst) != len(texts)*e.dims {
		return fmt.Errorf("%w: %d values for %d texts of %d dimensions", ErrLength, len(dst), len(texts), e.dims)
	}
	s := e.pool.Get().(*scratch)
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			e.pool.Put(s)
			return err
		}
		s.encode(text, dst[i*e.dims:(i+1)*e.dims])
	}
	if len(s.slots) <= maxPooled {
		e.pool.Put(s)
	}
	return nil
}

// Feature kinds. The kind seeds the hash, so that the word "the" and the three
// characters "the" are different features.
const (
	kindWord = iota
	kindPair
	kindTri
	kindQuad
)

// weights balance the kinds: a word of six letters has about eleven character
// runs, whose squared weights add up to about the word's own.
var weights = [...]float32{kindWord: 1, kindPair: 0.6, kindTri: 0.3, kindQuad: 0.3}

// stop holds words that say nothing of what a call does. Negations stay in.
var stop = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`a an and are as at be been but by can could did do does for from had has have
		he her his i if in into is it its me my of on or our she so such than that the their them then there these they
		this those to us was we were which will with would you your`) {
		m[w] = true
	}
	return m
}()

const (
	longestStop = 5
	maxPooled   = 1 << 16 // slots: larger scratch goes back to the collector
	wordStart   = 1       // bytes that no word contains
	wordEnd     = 2
)

// slot is one feature of the text, in an open-addressing table.
type slot struct {
	hash  uint64 // 0 = free
	count uint32
	kind  uint32
}

// scratch is the working memory of one Encode. Between texts all slots are free.
type scratch struct {
	slots []slot
	used  []uint32 // slots in order of first appearance
	word  []byte   // current word, lower-case UTF-8, between wordStart and wordEnd
	ends  []int32  // offset in word after each of its characters, from 0
	prev  uint64   // hash of the last word that is not a stop word; 0 = none
}

func (s *scratch) encode(text string, dst []float32) {
	s.prev = 0
	s.begin()
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
				s.add(c)
			case 'A' <= c && c <= 'Z':
				s.add(c + 'a' - 'A')
			default:
				s.end()
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		switch {
		case r == utf8.RuneError && size == 1:
			s.end()
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			s.word = utf8.AppendRune(s.word, unicode.ToLower(r))
			s.ends = append(s.ends, int32(len(s.word)))
		case unicode.Is(unicode.Cf, r):
			// Zero-width characters must not hide a word.
		default:
			s.end()
		}
	}
	s.end()
	s.project(dst)
}

func (s *scratch) begin() {
	s.word = append(s.word[:0], wordStart)
	s.ends = append(s.ends[:0], 0, 1)
}

func (s *scratch) add(c byte) {
	s.word = append(s.word, c)
	s.ends = append(s.ends, int32(len(s.word)))
}

// end counts the features of the current word and starts the next.
func (s *scratch) end() {
	w := s.word[1:]
	if len(w) == 0 {
		return
	}
	if len(w) <= longestStop && stop[string(w)] {
		s.begin()
		return
	}
	h := sum64(kindWord, w)
	s.count(h, kindWord)
	if s.prev != 0 {
		// Rotation makes the pair differ from its reverse.
		s.count(mix(bits.RotateLeft64(s.prev, 23)^h), kindPair)
	}
	s.prev = h

	s.add(wordEnd)
	for n := 3; n <= 4; n++ {
		kind := uint32(kindTri + n - 3)
		for i := 0; i+n < len(s.ends); i++ {
			s.count(sum64(uint64(kind), s.word[s.ends[i]:s.ends[i+n]]), kind)
		}
	}
	s.begin()
}

// count adds one to a feature. Two features with the same 64 bits would count as
// one, which no text is long enough to notice.
func (s *scratch) count(h uint64, kind uint32) {
	if h == 0 {
		h = 1
	}
	if 2*len(s.used) >= len(s.slots) {
		s.grow()
	}
	mask := uint64(len(s.slots) - 1)
	for at := h & mask; ; at = (at + 1) & mask {
		switch p := &s.slots[at]; p.hash {
		case h:
			p.count++
			return
		case 0:
			*p = slot{h, 1, kind}
			s.used = append(s.used, uint32(at))
			return
		}
	}
}

func (s *scratch) grow() {
	old := s.slots
	s.slots = make([]slot, max(1<<12, 2*len(old)))
	mask := uint64(len(s.slots) - 1)
	for i, from := range s.used {
		at := old[from].hash & mask
		for s.slots[at].hash != 0 {
			at = (at + 1) & mask
		}
		s.slots[at] = old[from]
		s.used[i] = uint32(at)
	}
}

// project adds the counted features up in order of first appearance, frees the
// slots and scales dst to unit length. The conversions keep the compiler from
// fusing multiplication and addition, which would change bits between machines.
func (s *scratch) project(dst []float32) {
	clear(dst)
	for _, at := range s.used {
		p := &s.slots[at]
		x := float32(weights[p.kind] * scale(p.count))
		if p.hash&(1<<63) != 0 {
			x = -x
		}
		// The table probes with the low bits, the sign takes the top one, and the
		// bucket those below it.
		bucket, _ := bits.Mul64(p.hash<<1, uint64(len(dst)))
		dst[bucket] += x
		*p = slot{}
	}
	s.used = s.used[:0]
	var norm float64
	for _, x := range dst {
		norm += float64(float64(x) * float64(x))
	}
	if norm == 0 {
		return
	}
	inv := float32(1 / math.Sqrt(norm))
	for i := range dst {
		dst[i] *= inv
	}
}

var logs = func() (t [64]float32) {
	for i := 1; i < len(t); i++ {
		t[i] = float32(1 + math.Log(float64(i)))
	}
	return t
}()

// scale is 1 + ln n.
func scale(n uint32) float32 {
	if int(n) < len(logs) {
		return logs[n]
	}
	return float32(1 + math.Log(float64(n)))
}

// sum64 is 64-bit FNV-1a over b, started from a seed of its own and finished
// with mix, since FNV-1a leaves the high bits of short keys poorly spread.
func sum64(seed uint64, b []byte) uint64 {
	h := 14695981039346656037 ^ seed*0x9e3779b97f4a7c15
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return mix(h)
}

// mix is the finaliser of MurmurHash3 (Appleby, public domain).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
