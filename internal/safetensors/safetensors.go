package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxHeader bounds the JSON header in bytes: some 80,000 tensors. The reference
// implementation allows 100 MB, which no model of ours comes near.
const MaxHeader = 8 << 20

// Errors of this package. They come wrapped in a message that
// names the tensor: test with errors.Is.
var (
	ErrTruncated  = errors.New("safetensors: file ends early")
	ErrHeaderSize = errors.New("safetensors: header too large")
	ErrHeader     = errors.New("safetensors: malformed header")
	ErrName       = errors.New("safetensors: bad tensor name")
	ErrDuplicate  = errors.New("safetensors: duplicate name")
	ErrDType      = errors.New("safetensors: unsupported dtype")
	ErrShape      = errors.New("safetensors: shape does not fit the data")
	ErrOffsets    = errors.New("safetensors: data offsets overlap, leave a gap or leave the file")
	ErrNotFinite  = errors.New("safetensors: value is NaN or infinite")
	ErrMissing    = errors.New("safetensors: no tensor named")
	ErrIndex      = errors.New("safetensors: malformed index of shards")
)

// Tensor is a dense array of float32 in row-major order. The product of Shape is
// len(Data); a scalar has an empty Shape.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// metadataKey is the header entry that is no tensor.
const metadataKey = "__metadata__"

// Write writes the tensors as F32, sorted by name, with meta as the header's
// metadata. Equal tensors and meta give equal bytes, whatever their order. The
// data starts at a multiple of eight bytes, so that [Read] need not copy it.
// Errors are those of w, [ErrName], [ErrDuplicate], [ErrShape] and
// [ErrHeaderSize].
func Write(w io.Writer, tensors []Tensor, meta map[string]string) error {
	sorted := slices.Clone(tensors)
	slices.SortStableFunc(sorted, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	layout := make([]entry, len(sorted))
	for i, t := range sorted {
		layout[i] = entry{name: t.Name, dtype: "F32", shape: t.Shape, end: 4 * len(t.Data)}
	}
	header, err := marshalHeader(layout, meta)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	buf := make([]byte, 0, 1<<15)
	for _, t := range sorted {
		for chunk := range slices.Chunk(t.Data, cap(buf)/4) {
			buf = buf[:0]
			for _, x := range chunk {
				buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(x))
			}
			if _, err := w.Write(buf); err != nil {
				return err
			}
		}
	}
	return nil
}

// marshalHeader returns the length prefix and the padded JSON header of tensors
// that follow each other in the file; end is the size of each in bytes.
func marshalHeader(layout []entry, meta map[string]string) ([]byte, error) {
	h := append(make([]byte, 8), '{')
	for k, v := range meta {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return nil, fmt.Errorf("%w: metadata %.80q is not UTF-8", ErrHeader, k)
		}
	}
	if len(meta) > 0 {
		b, err := json.Marshal(meta) // sorts the keys
		if err != nil {
			return nil, err
		}
		h = append(h, `"`+metadataKey+`":`...)
		h = append(h, b...)
	}
	offset := 0
	seen := make(map[string]bool, len(layout))
	for _, e := range layout {
		if e.name == "" || e.name == metadataKey || !utf8.ValidString(e.name) {
			return nil, fmt.Errorf("%w: %.80q", ErrName, e.name)
		}
		if seen[e.name] {
			return nil, fmt.Errorf("%w: tensor %.80q", ErrDuplicate, e.name)
		}
		seen[e.name] = true
		if n, ok := product(e.shape); !ok || n*widths[e.dtype] != e.end {
			return nil, fmt.Errorf("%w: tensor %.80q of shape %v has %d bytes of %s", ErrShape, e.name, e.shape, e.end, e.dtype)
		}
		if len(h) > 9 {
			h = append(h, ',')
		}
		name, err := json.Marshal(e.name)
		if err != nil {
			return nil, err
		}
		shape, err := json.Marshal(append([]int{}, e.shape...)) // [] rather than null for a scalar
		if err != nil {
			return nil, err
		}
		h = fmt.Appendf(h, `%s:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, name, e.dtype, shape, offset, offset+e.end)
		offset += e.end
	}
	h = append(h, '}')
	for len(h)%8 != 0 {
		h = append(h, ' ')
	}
	if len(h)-8 > MaxHeader {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrHeaderSize, len(h)-8, MaxHeader)
	}
	binary.LittleEndian.PutUint64(h, uint64(len(h)-8))
	return h, nil
}

// product multiplies the dimensions. It fails on a negative dimension and on a
// product, even an intermediate one, whose bytes would not fit an int.
func product(shape []int) (int, bool) {
	const limit = math.MaxInt / 8
	n := 1
	for _, d := range shape {
		if d < 0 || (d > 0 && n > limit/d) {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// Finite returns an error of kind [ErrNotFinite] that names the first NaN or
// infinite value of t.
func Finite(t Tensor) error {
	for i, x := range t.Data {
		// An all-ones exponent is what NaN and the infinities share.
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return fmt.Errorf("%w: tensor %.80q, value %d", ErrNotFinite, t.Name, i)
		}
	}
	return nil
}
