package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// entry is one tensor of the header.
type entry struct {
	name       string
	dtype      string
	shape      []int
	begin, end int
}

// Read reads a whole file. It returns the tensors in the order of their data and
// the metadata, nil where there is none. F16 and BF16 are widened to float32;
// any other dtype than these and F32 is refused. Data shares memory with b where
// b's alignment and the byte order of the machine allow it: do not change b
// afterwards. NaN and infinite values are let through, see [Finite].
//
// Errors are [ErrTruncated], [ErrHeaderSize], [ErrHeader], [ErrDuplicate],
// [ErrDType], [ErrShape] and [ErrOffsets]. Every byte after the header belongs to
// exactly one tensor, so nothing can hide in the file.
func Read(b []byte) ([]Tensor, map[string]string, error) {
	raws, meta, err := ReadRaw(b)
	if err != nil {
		return nil, nil, err
	}
	tensors := make([]Tensor, len(raws))
	for i, r := range raws {
		if tensors[i], err = r.Floats(); err != nil {
			return nil, nil, err
		}
	}
	return tensors, meta, nil
}

// parseHeader walks the tokens itself because encoding/json keeps the last of
// two equal keys and matches field names without regard to case: two readers
// could then see two different models in one file.
func parseHeader(header []byte) (entries []entry, meta map[string]string, err error) {
	if !utf8.Valid(header) {
		return nil, nil, fmt.Errorf("%w: not UTF-8", ErrHeader)
	}
	p := parser{dec: json.NewDecoder(bytes.NewReader(header))}
	p.dec.UseNumber()
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, fmt.Errorf("%w: does not start with {", ErrHeader)
	}
	seen := map[string]bool{}
	err = p.object(func(name string) error {
		if seen[name] {
			return fmt.Errorf("%w: tensor %.80q", ErrDuplicate, name)
		}
		seen[name] = true
		if name == metadataKey {
			meta = map[string]string{}
			return p.object(func(key string) error {
				if _, ok := meta[key]; ok {
					return fmt.Errorf("%w: metadata %.80q", ErrDuplicate, key)
				}
				v, err := p.text()
				meta[key] = v
				return err
			})
		}
		e, err := p.entry(name)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	// Padding may follow, and nothing else.
	if _, err := p.dec.Token(); err != io.EOF {
		return nil, nil, fmt.Errorf("%w: text after the closing brace", ErrHeader)
	}
	return entries, meta, nil
}

// parser reads the tokens of a header; every error is of kind ErrHeader or
// ErrDuplicate.
type parser struct{ dec *json.Decoder }

func (p parser) token() (json.Token, error) {
	t, err := p.dec.Token()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHeader, err)
	}
	return t, nil
}

func (p parser) delim(want json.Delim) error {
	t, err := p.token()
	if err == nil && t != want {
		err = fmt.Errorf("%w: found %.20q, want %v", ErrHeader, fmt.Sprint(t), want)
	}
	return err
}

// object calls member, which must consume the value, for every key.
func (p parser) object(member func(key string) error) error {
	if err := p.delim('{'); err != nil {
		return err
	}
	for p.dec.More() {
		key, err := p.text()
		if err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
	}
	return p.delim('}')
}

func (p parser) text() (string, error) {
	t, err := p.token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("%w: found %.20q, want a string", ErrHeader, fmt.Sprint(t))
	}
	return s, nil
}

// ints reads an array of integers that are not negative.
func (p parser) ints() ([]int, error) {
	if err := p.delim('['); err != nil {
		return nil, err
	}
	list := []int{}
	for p.dec.More() {
		t, err := p.token()
		if err != nil {
			return nil, err
		}
		num, ok := t.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%w: found %.20q, want a number", ErrHeader, fmt.Sprint(t))
		}
		n, err := strconv.Atoi(num.String())
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%w: %.80q is not an integer from 0 up", ErrHeader, num.String())
		}
		list = append(list, n)
	}
	return list, p.delim(']')
}

func (p parser) entry(name string) (entry, error) {
	e := entry{name: name}
	var offsets []int
	seen := map[string]bool{}
	err := p.object(func(key string) (err error) {
		if seen[key] {
			return fmt.Errorf("%w: key %.80q of tensor %.80q", ErrDuplicate, key, name)
		}
		seen[key] = true
		switch key {
		case "dtype":
			e.dtype, err = p.text()
		case "shape":
			e.shape, err = p.ints()
		case "data_offsets":
			offsets, err = p.ints()
		default:
			err = fmt.Errorf("%w: unknown key %.80q", ErrHeader, key)
		}
		return err
	})
	if err != nil {
		return e, fmt.Errorf("tensor %.80q: %w", name, err)
	}
	if len(seen) != 3 || len(offsets) != 2 {
		return e, fmt.Errorf("%w: tensor %.80q: want dtype, shape and two data_offsets", ErrHeader, name)
	}
	e.begin, e.end = offsets[0], offsets[1]
	return e, nil
}

// nativeLittle says that float32 has the file's byte order on this machine.
var nativeLittle = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// decode returns the values of b, whose length is a multiple of the dtype's size.
func decode(b []byte, dtype string) []float32 {
	if dtype == "F32" {
		if len(b) > 0 && nativeLittle && uintptr(unsafe.Pointer(&b[0]))%4 == 0 {
			// Weights are read only: a copy would double the memory of loading.
			return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4)
		}
		data := make([]float32, len(b)/4)
		for i := range data {
			data[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		return data
	}
	data := make([]float32, len(b)/2)
	for i := range data {
		u := binary.LittleEndian.Uint16(b[2*i:])
		if dtype == "BF16" {
			data[i] = math.Float32frombits(uint32(u) << 16)
		} else {
			data[i] = half(u)
		}
	}
	return data
}

// half widens an IEEE 754 binary16 value, which is always exact.
func half(u uint16) float32 {
	sign := uint32(u>>15) << 31
	exp := uint32(u>>10) & 31
	frac := uint32(u) & 1023
	switch exp {
	case 0: // zero and subnormal: frac * 2^-24
		x := float32(frac) / (1 << 24)
		return math.Float32frombits(math.Float32bits(x) | sign)
	case 31: // infinity and NaN
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
