package static

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"sync"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/tokenize"
)

// Version is part of the encoder's identity. It changes with every change of
// code that moves a vector.
const Version = 1

// MaxText is how many bytes of one text are encoded, clipped as by [embed.Clip].
// No text that package embed makes of a task, a call with a tool's name of up to
// 256 bytes, or a result is longer.
const MaxText = embed.MaxText + 260

// ErrLength is returned by Encode for a dst of the wrong length.
var ErrLength = errors.New("static: dst does not hold one vector per text")

// Encoder is a static encoder. Make one with [Open] or [Parse]. It is safe for
// concurrent use.
type Encoder struct {
	id    embed.ID
	file  []byte
	table *Table
	words *tokenize.Tokenizer
	pool  sync.Pool // of *scratch
}

var _ embed.Encoder = (*Encoder)(nil)

// Open reads the file [FileName] of fsys. Where the opened file has a method
// Bytes() []byte, as that of checkpoints/shipped has, what it returns is used in
// place; otherwise the file is read into memory once.
func Open(fsys fs.FS) (*Encoder, error) {
	b, err := readFile(fsys)
	if err != nil {
		return nil, fmt.Errorf("open static encoder: %w", err)
	}
	e, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("open static encoder: %s: %w", FileName, err)
	}
	return e, nil
}

func readFile(fsys fs.FS) ([]byte, error) {
	info, err := fs.Stat(fsys, FileName) // before opening: a named pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is %v, not a regular file", FileName, info.Mode().Type())
	}
	f, err := fsys.Open(FileName)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	if held, ok := f.(interface{ Bytes() []byte }); ok {
		return held.Bytes(), nil
	}
	if info.Size() > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, info.Size(), MaxBytes)
	}
	b := make([]byte, info.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, fmt.Errorf("read %s: %w", FileName, err)
	}
	return b, nil
}

// Parse returns the encoder of a file's bytes, which it goes on using: do not
// change them. Errors are those of [ParseTable].
func Parse(b []byte) (*Encoder, error) {
	file := make(chan [sha256.Size]byte, 1)
	go func() { file <- sha256.Sum256(b) }() // takes as long as the rest
	return parse(b, file)
}

// ParseKnown is Parse of bytes whose sha256 the caller knows, and answers for: it
// becomes part of the encoder's identity.
func ParseKnown(b []byte, sum [sha256.Size]byte) (*Encoder, error) {
	file := make(chan [sha256.Size]byte, 1)
	file <- sum
	return parse(b, file)
}

func parse(b []byte, file <-chan [sha256.Size]byte) (*Encoder, error) {
	t, err := parseTable(b)
	if err != nil {
		return nil, err
	}
	if err := t.checkValues(); err != nil {
		return nil, err
	}
	words, err := tokenize.FromVocabulary(t.Tokens, true) // refuses tokens that stand there twice
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrVocabulary, err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "dreamguard embed/static version %d %x", Version, <-file))
	return &Encoder{
		id:    embed.ID{Kind: "static", Name: t.Manifest.Name, Dims: t.Manifest.Dims, Digest: hex.EncodeToString(sum[:])},
		file:  b,
		table: t,
		words: words,
		pool: sync.Pool{New: func() any {
			return &scratch{count: make([]int32, len(t.Tokens))}
		}},
	}, nil
}

// ID returns the encoder's identity. Its digest covers [Version] and every byte
// of the file.
func (e *Encoder) ID() embed.ID { return e.id }

// File returns the bytes that the encoder was made of, for a copy to lie beside a
// model. They are shared: do not change them.
func (e *Encoder) File() []byte { return e.file }

// Table is what the encoder runs on. It is shared: do not change it.
func (e *Encoder) Table() *Table { return e.table }

// scratch is the working memory of one Encode.
type scratch struct {
	ids     []int32   // tokens of a text; then each once
	weights []float32 // of the rows of ids
	count   []int32   // by token; zeros between texts
}

// Encode implements [embed.Encoder]. Its errors are [ErrLength] and that of ctx.
// A text without content has the zero vector. After warm-up it does not allocate,
// but once for each text that is longer than [MaxText].
func (e *Encoder) Encode(ctx context.Context, texts []string, dst []float32) error {
	dims := e.id.Dims
	if len(dst) != len(texts)*dims {
		return fmt.Errorf("%w: %d values for %d texts of %d dimensions", ErrLength, len(dst), len(texts), dims)
	}
	s := e.pool.Get().(*scratch)
	defer e.pool.Put(s)
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.ids = e.words.Append(s.ids[:0], embed.Clip(text, MaxText))
		s.weigh(e.table.Scale)
		v := dst[i*dims : (i+1)*dims]
		clear(v)
		sum(v, e.table.Rows, s.ids, s.weights)
		unit(v)
	}
	return nil
}

// weigh leaves each token once in ids, in order of first appearance, and sets the
// weights of their rows.
func (s *scratch) weigh(scale []float32) {
	distinct := s.ids[:0]
	for _, id := range s.ids {
		if s.count[id]++; s.count[id] == 1 {
			distinct = append(distinct, id)
		}
	}
	s.ids, s.weights = distinct, s.weights[:0]
	for _, id := range distinct {
		s.weights = append(s.weights, scale[id]*float32(Damp(int(s.count[id]))))
		s.count[id] = 0
	}
}

// Damp is how much n occurrences of a token in a text count for: the square root
// of n. Results of tools repeat themselves, and an attacker can repeat anything.
func Damp(n int) float64 {
	if n == 1 {
		return 1
	}
	return math.Sqrt(float64(n))
}

// sum adds the rows of the tokens times their weights to dst, four at a time. The
// conversions keep the compiler from fusing multiplication and addition, which
// would change bits between machines.
func sum(dst []float32, rows []int8, ids []int32, weights []float32) {
	dims := len(dst)
	weights = weights[:len(ids)]
	for ; len(ids) >= 4; ids, weights = ids[4:], weights[4:] {
		wa, wb, wc, wd := weights[0], weights[1], weights[2], weights[3]
		// All of one known length, so that no access needs a check.
		a, b := rows[int(ids[0])*dims:][:len(dst)], rows[int(ids[1])*dims:][:len(dst)]
		c, d := rows[int(ids[2])*dims:][:len(dst)], rows[int(ids[3])*dims:][:len(dst)]
		for i := range dst {
			x := float32(wa*float32(a[i])) + float32(wb*float32(b[i]))
			y := float32(wc*float32(c[i])) + float32(wd*float32(d[i]))
			dst[i] += x + y
		}
	}
	for k, id := range ids {
		w, row := weights[k], rows[int(id)*dims:][:len(dst)]
		for i := range dst {
			dst[i] += float32(w * float32(row[i]))
		}
	}
}

// unit scales v to unit length, and leaves zeros alone.
func unit(v []float32) {
	var norm float64
	for _, x := range v {
		norm += float64(float64(x) * float64(x))
	}
	if norm == 0 {
		return
	}
	inv := 1 / math.Sqrt(norm)
	for i, x := range v {
		v[i] = float32(float64(x) * inv)
	}
}
