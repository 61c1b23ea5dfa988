package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// file builds a file from a header and data, without any check.
func file(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func TestWriteBytes(t *testing.T) {
	var got bytes.Buffer
	err := Write(&got, []Tensor{
		{Name: "b", Shape: []int{2}, Data: []float32{1, -2}},
		{Name: "a", Data: []float32{0.5}},
	}, map[string]string{"z": "1", "k": "v"})
	if err != nil {
		t.Fatal(err)
	}
	header := `{"__metadata__":{"k":"v","z":"1"},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`
	header += strings.Repeat(" ", 7-(len(header)+7)%8)
	want := file(header, 0, 0, 0, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0)
	if diff := cmp.Diff(want, got.Bytes()); diff != "" {
		t.Fatalf("bytes differ (-want +got):\n%s", diff)
	}
}

// The file below was laid out by hand from the format description.
func TestReadWidens(t *testing.T) {
	b := file(`{"h":{"shape":[2,3],"dtype":"F16","data_offsets":[0,12]},"g":{"dtype":"BF16","data_offsets":[12,16],"shape":[2]},"none":{"dtype":"F32","shape":[0,7],"data_offsets":[16,16]}}   `,
		0x00, 0x3c, // 1
		0x00, 0xc0, // -2
		0x01, 0x00, // 2^-24, the smallest subnormal
		0xff, 0x7b, // 65504, the largest finite
		0x00, 0x7c, // +Inf
		0x00, 0x80, // -0
		0x80, 0x3f, // 1
		0x49, 0x40, // 3.140625
	)
	got, meta, err := Read(b)
	if err != nil {
		t.Fatal(err)
	}
	want := []Tensor{
		{"h", []int{2, 3}, []float32{1, -2, 0x1p-24, 65504, float32(math.Inf(1)), float32(math.Copysign(0, -1))}},
		{"g", []int{2}, []float32{1, 3.140625}},
		{"none", []int{0, 7}, []float32{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !math.Signbit(float64(got[0].Data[5])) {
		t.Error("the sign of -0 is lost")
	}
	if meta != nil {
		t.Errorf("metadata %v, want nil", meta)
	}
	if err := Finite(got[0]); !errors.Is(err, ErrNotFinite) || !strings.Contains(err.Error(), "value 4") {
		t.Errorf("Finite: %v", err)
	}
	if err := Finite(got[1]); err != nil {
		t.Errorf("Finite: %v", err)
	}
	if err := Finite(Tensor{Data: []float32{float32(math.NaN())}}); !errors.Is(err, ErrNotFinite) {
		t.Errorf("Finite(NaN): %v", err)
	}
}

func TestHalfExhaustive(t *testing.T) {
	for i := range 1 << 16 {
		u := uint16(i)
		exp, frac := int(u>>10)&31, float64(u&1023)
		want := math.Ldexp(1+frac/1024, exp-15)
		switch {
		case exp == 0:
			want = math.Ldexp(frac, -24)
		case exp == 31 && frac == 0:
			want = math.Inf(1)
		case exp == 31:
			want = math.NaN()
		}
		if u>>15 == 1 {
			want = -want
		}
		got := float64(half(u))
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("half(%#04x) = %v, want %v", u, got, want)
		}
	}
}

func TestReadSharesMemory(t *testing.T) {
	var buf bytes.Buffer
	if err := Write(&buf, []Tensor{{"a", []int{3}, []float32{1, 2, 3}}}, nil); err != nil {
		t.Fatal(err)
	}
	aligned := make([]byte, buf.Len()+1)
	for shift := range 2 {
		b := aligned[shift : shift+buf.Len()]
		copy(b, buf.Bytes())
		got, _, err := Read(b)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got[0].Data, []float32{1, 2, 3}) {
			t.Errorf("shift %d: %v", shift, got[0].Data)
		}
		b[len(b)-1] ^= 0x80 // flips the sign of the last value
		shared := got[0].Data[2] == -3
		if want := shift == 0 && nativeLittle; shared != want {
			t.Errorf("shift %d: shares memory: %v, want %v", shift, shared, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	const one = `{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`
	huge := file("{}")
	binary.LittleEndian.PutUint64(huge, math.MaxUint64)
	tests := []struct {
		name string
		b    []byte
		want error
	}{
		{"empty", nil, ErrTruncated},
		{"short length", []byte{1, 2, 3}, ErrTruncated},
		{"header beyond the file", file("{}")[:9], ErrTruncated},
		{"header length 2^64-1", huge, ErrHeaderSize},
		{"no header", file(""), ErrHeader},
		{"leading space", file(" {}"), ErrHeader},
		{"not an object", file("[]"), ErrHeader},
		{"unclosed", file(`{"a":`), ErrHeader},
		{"not UTF-8", file("{\"\xff\":" + one + "}"), ErrHeader},
		{"second value", file("{}{}"), ErrHeader},
		{"tensor is a number", file(`{"a":1}`), ErrHeader},
		{"missing shape", file(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, 0, 0, 0, 0), ErrHeader},
		{"one offset", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}}`, 0, 0, 0, 0), ErrHeader},
		{"unknown key", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}}`, 0, 0, 0, 0), ErrHeader},
		{"key in capitals", file(`{"a":{"DTYPE":"F32","shape":[1],"data_offsets":[0,4]}}`, 0, 0, 0, 0), ErrHeader},
		{"negative dimension", file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 0, 0, 0, 0), ErrHeader},
		{"fraction", file(`{"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}`, 0, 0, 0, 0), ErrHeader},
		{"number beyond int", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,99999999999999999999]}}`), ErrHeader},
		{"metadata of numbers", file(`{"__metadata__":{"a":1}}`), ErrHeader},
		{"duplicate tensor", file(`{"a":` + one + `,"a":` + one + `}`), ErrDuplicate},
		{"duplicate by escape", file(`{"a":` + one + `,"\u0061":` + one + `}`), ErrDuplicate},
		{"duplicate key", file(`{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}`), ErrDuplicate},
		{"duplicate metadata", file(`{"__metadata__":{"a":"1","a":"2"}}`), ErrDuplicate},
		{"dtype", file(`{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}`, 0, 0, 0, 0, 0, 0, 0, 0), ErrDType},
		{"shape", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 0, 0, 0, 0), ErrShape},
		{"shape overflow", file(`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`), ErrShape},
		{"shape overflow to nothing", file(`{"a":{"dtype":"F32","shape":[4611686018427387904,4,0],"data_offsets":[0,0]}}`), ErrShape},
		{"overlap", file(`{"a":`+one+`,"b":`+one+`}`, 0, 0, 0, 0), ErrOffsets},
		{"gap", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 0, 0, 0, 0, 0, 0, 0, 0), ErrOffsets},
		{"end before begin", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 0, 0, 0, 0), ErrOffsets},
		{"data missing", file(`{"a":`+one+`}`, 0, 0, 0), ErrTruncated},
		{"data left over", file(`{"a":`+one+`}`, 0, 0, 0, 0, 0), ErrOffsets},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := Read(tt.b); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

func TestWriteRefuses(t *testing.T) {
	long := make([]Tensor, 200)
	for i := range long {
		long[i] = Tensor{Name: fmt.Sprint(i, strings.Repeat("n", MaxHeader/200)), Data: []float32{0}}
	}
	tests := []struct {
		name    string
		tensors []Tensor
		want    error
	}{
		{"no name", []Tensor{{Data: []float32{0}}}, ErrName},
		{"metadata's name", []Tensor{{Name: metadataKey, Data: []float32{0}}}, ErrName},
		{"name not UTF-8", []Tensor{{Name: "\xff", Data: []float32{0}}}, ErrName},
		{"duplicate", []Tensor{{Name: "a", Data: []float32{0}}, {Name: "a", Data: []float32{0}}}, ErrDuplicate},
		{"shape", []Tensor{{Name: "a", Shape: []int{2}, Data: []float32{0}}}, ErrShape},
		{"negative", []Tensor{{Name: "a", Shape: []int{-1}}}, ErrShape},
		{"overflow", []Tensor{{Name: "a", Shape: []int{math.MaxInt, math.MaxInt}}}, ErrShape},
		{"header", long, ErrHeaderSize},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var buf bytes.Buffer
			if err := Write(&buf, tt.tensors, nil); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if buf.Len() != 0 {
				t.Errorf("%d bytes were written before the refusal", buf.Len())
			}
		})
	}
	if err := Write(&bytes.Buffer{}, nil, map[string]string{"\xff": ""}); !errors.Is(err, ErrHeader) {
		t.Errorf("metadata that is not UTF-8: %v", err)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z."\\é]{1,8}`), 0, 6, rapid.ID).Draw(t, "names")
		var in []Tensor
		for _, name := range names {
			shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3).Draw(t, "shape")
			n, _ := product(shape)
			data := rapid.SliceOfN(rapid.Float32(), n, n).Draw(t, "data")
			in = append(in, Tensor{name, append([]int{}, shape...), append([]float32{}, data...)})
		}
		meta := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "meta")
		var one, two bytes.Buffer
		if err := Write(&one, in, meta); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(in)
		if err := Write(&two, in, meta); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Fatal("the order of the input shows in the file")
		}
		out, gotMeta, err := Read(one.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		byName := func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) }
		slices.SortFunc(in, byName)
		slices.SortFunc(out, byName) // empty tensors share an offset
		if diff := cmp.Diff(in, out, cmp.Comparer(func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })); len(in) > 0 && diff != "" {
			t.Fatalf("(-in +out):\n%s", diff)
		}
		if len(meta) > 0 && !cmp.Equal(meta, gotMeta) {
			t.Fatalf("metadata %v, want %v", gotMeta, meta)
		}
	})
}

func TestRaw(t *testing.T) {
	in := []Raw{
		{Name: "bytes", DType: "U8", Shape: []int{3}, Bytes: []byte("abc")},
		{Name: "ids", DType: "I64", Shape: []int{1}, Bytes: []byte{1, 0, 0, 0, 0, 0, 0, 0}},
		{Name: "rows", DType: "I8", Shape: []int{2, 2}, Bytes: []byte{1, 255, 127, 129}},
		{Name: "scale", DType: "F32", Shape: []int{2}, Bytes: []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}},
	}
	if diff := cmp.Diff(in[3], Tensor{"scale", []int{2}, []float32{1, 2}}.Raw()); diff != "" {
		t.Errorf("Raw (-want +got):\n%s", diff)
	}
	var one, two bytes.Buffer
	if err := WriteRaw(&one, in, map[string]string{"k": "v"}); err != nil {
		t.Fatal(err)
	}
	got, meta, err := ReadRaw(one.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	// Wide values first: each tensor starts at a multiple of its width.
	if diff := cmp.Diff([]Raw{in[1], in[3], in[0], in[2]}, got); diff != "" || meta["k"] != "v" {
		t.Errorf("metadata %v (-want +got):\n%s", meta, diff)
	}
	slices.Reverse(in)
	if err := WriteRaw(&two, in, map[string]string{"k": "v"}); err != nil || !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Errorf("the order of the input shows in the file (%v)", err)
	}
	if x, err := got[1].Floats(); err != nil || !slices.Equal(x.Data, []float32{1, 2}) {
		t.Errorf("Floats: %v, %v", x, err)
	}
	if _, err := got[3].Floats(); !errors.Is(err, ErrDType) {
		t.Errorf("Floats of I8: %v", err)
	}
	if _, _, err := Read(one.Bytes()); !errors.Is(err, ErrDType) {
		t.Errorf("Read: %v", err)
	}
	for _, tt := range []struct {
		name string
		in   []Raw
		want error
	}{
		{"dtype", []Raw{{Name: "a", DType: "F8_E4M3", Shape: []int{1}, Bytes: []byte{0}}}, ErrDType},
		{"shape", []Raw{{Name: "a", DType: "F32", Shape: []int{1}, Bytes: []byte{0}}}, ErrShape},
		{"duplicate of another width", []Raw{{Name: "a", DType: "F16", Bytes: []byte{0, 0}}, {Name: "a", DType: "U8", Bytes: []byte{0}}}, ErrDuplicate},
	} {
		var buf bytes.Buffer
		if err := WriteRaw(&buf, tt.in, nil); !errors.Is(err, tt.want) || buf.Len() > 0 {
			t.Errorf("%s: error %v, want %v; %d bytes written", tt.name, err, tt.want, buf.Len())
		}
	}
}

func FuzzRead(f *testing.F) {
	var buf bytes.Buffer
	if err := Write(&buf, []Tensor{{"a", []int{2}, []float32{1, 2}}, {"b", nil, []float32{3}}}, map[string]string{"k": "v"}); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes())
	f.Add(file(`{"h":{"shape":[1],"dtype":"F16","data_offsets":[0,2]}}`, 0, 0x3c))
	f.Add(file(`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`))
	f.Add(file(`{"r":{"dtype":"I8","shape":[2,1],"data_offsets":[0,2]}}`, 1, 255))
	f.Fuzz(func(t *testing.T, b []byte) {
		if raws, meta, err := ReadRaw(b); err == nil {
			if err := WriteRaw(io.Discard, raws, meta); err != nil && !errors.Is(err, ErrName) {
				t.Fatal(err)
			}
		}
		tensors, meta, err := Read(b)
		if err != nil {
			return
		}
		var total int
		for _, x := range tensors {
			if n, ok := product(x.Shape); !ok || n != len(x.Data) {
				t.Fatalf("tensor %q: shape %v, %d values", x.Name, x.Shape, len(x.Data))
			}
			total += len(x.Data)
		}
		if total > len(b) {
			t.Fatalf("%d values out of %d bytes", total, len(b))
		}
		// What was read can be written, except under a name Write refuses.
		var buf bytes.Buffer
		if err := Write(&buf, tensors, meta); err != nil && !errors.Is(err, ErrName) {
			t.Fatal(err)
		}
	})
}

func ExampleWrite() {
	var file bytes.Buffer
	err := Write(&file, []Tensor{{Name: "w", Shape: []int{2, 2}, Data: []float32{1, 2, 3, 4}}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	tensors, _, err := Read(file.Bytes())
	fmt.Println(tensors[0].Name, tensors[0].Shape, tensors[0].Data, err)
	// Output: w [2 2] [1 2 3 4] <nil>
}
