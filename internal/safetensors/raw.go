package safetensors

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// widths are the bytes per value of the dtypes that this package lets through.
var widths = map[string]int{
	"F64": 8, "I64": 8, "U64": 8,
	"F32": 4, "I32": 4, "U32": 4,
	"F16": 2, "BF16": 2, "I16": 2, "U16": 2,
	"I8": 1, "U8": 1, "BOOL": 1,
}

// Raw is a tensor of any dtype as it lies in the file, in row-major order and
// little-endian. len(Bytes) is the product of Shape times the width of DType.
type Raw struct {
	Name  string
	DType string // as the format spells it: F32, I8 and so on
	Shape []int
	Bytes []byte // shares memory with the file that was read
}

// ReadRaw reads a whole file as [Read] does, with the same checks and errors,
// but keeps every tensor in its own dtype and copies nothing.
func ReadRaw(b []byte) ([]Raw, map[string]string, error) {
	if len(b) < 8 {
		return nil, nil, fmt.Errorf("%w: %d bytes, not even a header length", ErrTruncated, len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	if err := checkHeader(n, int64(len(b))); err != nil {
		return nil, nil, err
	}
	body := b[8+n:]
	entries, meta, err := parseLayout(b[8:8+n], int64(len(body)))
	if err != nil {
		return nil, nil, err
	}
	raws := make([]Raw, len(entries))
	for i, e := range entries {
		raws[i] = Raw{Name: e.name, DType: e.dtype, Shape: e.shape, Bytes: body[e.begin:e.end:e.end]}
	}
	return raws, meta, nil
}

// checkHeader checks the header length n of a file of size bytes, 8 or more.
func checkHeader(n uint64, size int64) error {
	if n > MaxHeader {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrHeaderSize, n, MaxHeader)
	}
	if n > uint64(size-8) {
		return fmt.Errorf("%w: header of %d bytes in a file of %d", ErrTruncated, n, size)
	}
	return nil
}

// parseLayout returns the tensors in the order of their data, after a check that
// together they cover the size bytes behind the header, each byte once.
func parseLayout(header []byte, size int64) ([]entry, map[string]string, error) {
	entries, meta, err := parseHeader(header)
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	at := 0
	for _, e := range entries {
		if e.begin != at || e.end < e.begin {
			return nil, nil, fmt.Errorf("%w: tensor %.80q at [%d, %d), expected to start at %d", ErrOffsets, e.name, e.begin, e.end, at)
		}
		if int64(e.end) > size {
			return nil, nil, fmt.Errorf("%w: tensor %.80q ends at %d of %d data bytes", ErrTruncated, e.name, e.end, size)
		}
		width, ok := widths[e.dtype]
		if !ok {
			return nil, nil, fmt.Errorf("%w: tensor %.80q is %.20q", ErrDType, e.name, e.dtype)
		}
		if n, ok := product(e.shape); !ok || n != (e.end-e.begin)/width || n*width != e.end-e.begin {
			return nil, nil, fmt.Errorf("%w: tensor %.80q has %d bytes", ErrShape, e.name, e.end-e.begin)
		}
		at = e.end
	}
	if int64(at) != size {
		return nil, nil, fmt.Errorf("%w: %d bytes after the last tensor", ErrOffsets, size-int64(at))
	}
	return entries, meta, nil
}

// Floats returns the values of an F32, F16 or BF16 tensor as float32; any other
// dtype is [ErrDType]. Data shares memory with r.Bytes where their alignment and
// the byte order of the machine allow it.
func (r Raw) Floats() (Tensor, error) {
	switch r.DType {
	case "F32", "F16", "BF16":
		return Tensor{Name: r.Name, Shape: r.Shape, Data: decode(r.Bytes, r.DType)}, nil
	}
	return Tensor{}, fmt.Errorf("%w: tensor %.80q is %.20q, want F32, F16 or BF16", ErrDType, r.Name, r.DType)
}

// Raw returns the tensor as F32. Its bytes are a copy.
func (t Tensor) Raw() Raw {
	b := make([]byte, 0, 4*len(t.Data))
	for _, x := range t.Data {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return Raw{Name: t.Name, DType: "F32", Shape: t.Shape, Bytes: b}
}

// WriteRaw writes tensors of any dtype, with meta as the header's metadata:
// those of wide values first, so that each starts at a multiple of its width,
// and sorted by name among equals. Equal tensors and meta give equal bytes,
// whatever their order. Errors are those of [Write] and [ErrDType].
func WriteRaw(w io.Writer, tensors []Raw, meta map[string]string) error {
	for _, t := range tensors {
		if widths[t.DType] == 0 {
			return fmt.Errorf("%w: tensor %.80q is %.20q", ErrDType, t.Name, t.DType)
		}
	}
	sorted := slices.Clone(tensors)
	slices.SortStableFunc(sorted, func(a, b Raw) int {
		return cmp.Or(cmp.Compare(widths[b.DType], widths[a.DType]), strings.Compare(a.Name, b.Name))
	})
	layout := make([]entry, len(sorted))
	for i, t := range sorted {
		layout[i] = entry{name: t.Name, dtype: t.DType, shape: t.Shape, end: len(t.Bytes)}
	}
	header, err := marshalHeader(layout, meta)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, t := range sorted {
		if _, err := w.Write(t.Bytes); err != nil {
			return err
		}
	}
	return nil
}
