package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/dreamguard/dreamguard/internal/boundedfile"
)

// KeySize is the length of a key. 128 bits of a sha256 make an accidental
// collision among 2^40 texts less likely than 2^-48.
const KeySize = 16

// Key identifies a text.
type Key [KeySize]byte

// KeyOf returns the key of a text: the first bytes of its sha256.
func KeyOf(text string) Key {
	sum := sha256.Sum256([]byte(text))
	return Key(sum[:KeySize])
}

const (
	maxSegmentBytes = 1 << 30
	maxMetadata     = 1 << 20 // bytes of Arrow metadata: two columns need a few hundred
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func schema(dims int) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{
		{Name: "key", Type: &arrow.FixedSizeBinaryType{ByteWidth: KeySize}},
		{Name: "vector", Type: arrow.FixedSizeListOfNonNullable(int32(dims), arrow.PrimitiveTypes.Float32)},
	}, nil)
}

// encodeSegment returns an Arrow file with one record batch. vectors holds
// len(keys)*dims values.
func encodeSegment(keys []Key, vectors []float32, dims int) (b []byte, err error) {
	s := schema(dims)
	mem := memory.NewGoAllocator()

	kb := array.NewFixedSizeBinaryBuilder(mem, s.Field(0).Type.(*arrow.FixedSizeBinaryType))
	defer kb.Release()
	kb.Reserve(len(keys))
	for i := range keys {
		kb.Append(keys[i][:])
	}
	vb := array.NewFixedSizeListBuilderWithField(mem, int32(dims), arrow.Field{Name: "item", Type: arrow.PrimitiveTypes.Float32})
	defer vb.Release()
	vb.Reserve(len(keys))
	for range keys {
		vb.Append(true)
	}
	vb.ValueBuilder().(*array.Float32Builder).AppendValues(vectors, nil)

	ka, va := kb.NewArray(), vb.NewArray()
	defer ka.Release()
	defer va.Release()
	rec := array.NewRecordBatch(s, []arrow.Array{ka, va}, int64(len(keys)))
	defer rec.Release()

	var buf bytes.Buffer
	w, err := ipc.NewFileWriter(&buf, ipc.WithSchema(s), ipc.WithAllocator(mem))
	if err != nil {
		return nil, err
	}
	if err := w.Write(rec); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// segmentName names content after itself, so that equal names mean equal
// content and a changed file no longer fits its name.
func segmentName(keys []Key, content []byte) string {
	h := sha256.New()
	for i := range keys {
		h.Write(keys[i][:])
	}
	return fmt.Sprintf("seg-%s-%08x.arrow", hex.EncodeToString(h.Sum(nil)[:8]), crc32.Checksum(content, castagnoli))
}

// sumFromName returns the CRC that a segment's name states.
func sumFromName(name string) (string, bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(name, "seg-"), ".arrow"), "-")
	if len(parts) != 2 || len(parts[0]) != 16 || len(parts[1]) != 8 {
		return "", false
	}
	return parts[1], true
}

// segment is one file, mapped.
type segment struct {
	data    []byte    // the whole file
	keys    []byte    // KeySize bytes a row, copied: looking one up must not bring in the vectors around it
	vectors []float32 // dims values a row, in data
	dims    int
	unmap   func() error
}

func (s *segment) rows() int { return len(s.keys) / KeySize }

func (s *segment) key(row int) Key { return Key(s.keys[row*KeySize : (row+1)*KeySize]) }

func (s *segment) vector(row int) []float32 {
	lo, hi := row*s.dims, (row+1)*s.dims
	return s.vectors[lo:hi:hi]
}

// release takes the segment's pages out of this process until they are used
// again: checking a segment reads all of it, and a large cache would be counted
// as this process's memory.
func (s *segment) release() { releasePages(s.data) }

func (s *segment) close() error {
	if s.unmap == nil {
		return nil
	}
	unmap := s.unmap
	s.unmap, s.keys, s.vectors, s.data = nil, nil, nil, nil
	return unmap()
}

// openSegment maps a segment and checks that it is what its name says.
func openSegment(path string, dims int) (*segment, error) {
	want, ok := sumFromName(filepath.Base(path))
	if !ok {
		return nil, damaged(path, errors.New("this program gives no segment such a name: it was renamed or comes from elsewhere"))
	}
	data, unmap, err := mapFile(path)
	if err != nil {
		if errors.Is(err, errTooLarge) {
			return nil, damaged(path, err)
		}
		return nil, err
	}
	s, err := checkedSegment(data, want, dims)
	if err != nil {
		unmap()
		return nil, damaged(path, err)
	}
	s.unmap = unmap
	return s, nil
}

func damaged(path string, err error) error {
	return fmt.Errorf("%s: %w: %w: delete the file and its vectors are computed again", path, ErrDamaged, err)
}

func checkedSegment(data []byte, sum string, dims int) (*segment, error) {
	if got := fmt.Sprintf("%08x", crc32.Checksum(data, castagnoli)); got != sum {
		return nil, fmt.Errorf("its %d bytes have the checksum %s, its name says %s: torn or changed", len(data), got, sum)
	}
	return decodeSegment(data, dims)
}

// decodeSegment reads an Arrow file without copying its vectors. It trusts nothing: a
// checksum protects from accidents, not from a hostile file.
func decodeSegment(data []byte, dims int) (s *segment, err error) {
	// The Arrow reader follows flatbuffer offsets without checking each one.
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, errFrame
		}
	}()
	if err := checkFrame(data); err != nil {
		return nil, err
	}
	r, err := ipc.NewMappedFileReader(data, ipc.WithSchema(schema(dims)),
		ipc.WithMetadataSizeLimit(maxMetadata), ipc.WithBodySizeLimit(maxSegmentBytes))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	rec, err := r.RecordBatch(0)
	if err != nil {
		return nil, err
	}
	keys, ok1 := rec.Column(0).(*array.FixedSizeBinary)
	list, ok2 := rec.Column(1).(*array.FixedSizeList)
	if !ok1 || !ok2 {
		return nil, errors.New("its columns are not keys and vectors")
	}
	values, ok := list.ListValues().(*array.Float32)
	if !ok {
		return nil, errors.New("its vectors are not float32")
	}
	n := int(rec.NumRows())
	switch {
	case n < 1 || keys.Len() != n || list.Len() != n || values.Len() != n*dims:
		return nil, fmt.Errorf("its columns disagree: %d rows, %d keys, %d vectors, %d values of %d dims", n, keys.Len(), list.Len(), values.Len(), dims)
	case keys.NullN() != 0 || list.NullN() != 0 || values.NullN() != 0:
		return nil, errors.New("it holds nulls")
	case keys.Data().Offset() != 0 || list.Data().Offset() != 0 || values.Data().Offset() != 0:
		return nil, errors.New("its columns do not start at their first row")
	}
	raw := keys.Data().Buffers()[1].Bytes()
	vec := values.Float32Values()
	if len(raw) < n*KeySize || len(vec) != n*dims {
		return nil, errors.New("its columns are shorter than its rows")
	}
	for i, x := range vec {
		if x-x != 0 { // NaN or infinite
			return nil, fmt.Errorf("value %d of vector %d is %v", i%dims, i/dims, x)
		}
	}
	return &segment{data: data, keys: bytes.Clone(raw[:n*KeySize]), vectors: vec, dims: dims}, nil
}

// errTooLarge is returned by mapFile.
var errTooLarge = fmt.Errorf("larger than %d bytes", maxSegmentBytes)

// statSegment opens a file and returns its size.
func statSegment(path string) (*os.File, int, error) {
	f, err := boundedfile.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() > maxSegmentBytes {
		err = errTooLarge
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, int(info.Size()), nil
}
