package safetensors

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mixed is a file with weights of two widths and an int64 tensor beside them.
func mixed(t *testing.T) []byte {
	t.Helper()
	var buf bytes.Buffer
	err := WriteRaw(&buf, []Raw{
		{Name: "ids", DType: "I64", Shape: []int{1}, Bytes: []byte{7, 0, 0, 0, 0, 0, 0, 0}},
		{Name: "w", DType: "F32", Shape: []int{2}, Bytes: []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}},
		{Name: "b", DType: "BF16", Shape: []int{1}, Bytes: []byte{0x49, 0x40}},
		{Name: "none", DType: "F16", Shape: []int{0}, Bytes: []byte{}},
	}, map[string]string{"format": "pt"})
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestFile(t *testing.T) {
	b := mixed(t)
	f, err := NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	want, meta, err := ReadRaw(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(meta, f.Metadata()); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if len(f.Names()) != len(want) {
		t.Fatalf("names %q", f.Names())
	}
	for i, w := range want {
		if f.Names()[i] != w.Name {
			t.Errorf("name %d is %q, want %q", i, f.Names()[i], w.Name)
		}
		got, err := f.Read(w.Name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(w, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if _, err := f.Read("nothing"); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("a name that is not there: %v", err)
	}
	// The file shrinks between the header and the tensor.
	f.r = bytes.NewReader(b[:len(b)-1])
	if _, err := f.Read("b"); !errors.Is(err, ErrTruncated) {
		t.Errorf("a file that became shorter: %v", err)
	}
}

// NewFile and ReadRaw accept the same files.
func FuzzFile(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 0, 0, 0, 0))
	f.Add(file(`{"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F16","shape":[1],"data_offsets":[1,3]}}`, 0, 0, 0))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		raws, _, err := ReadRaw(b)
		opened, err2 := NewFile(bytes.NewReader(b), int64(len(b)))
		if (err == nil) != (err2 == nil) {
			t.Fatalf("ReadRaw: %v, NewFile: %v", err, err2)
		}
		for _, r := range raws {
			if got, err := opened.Read(r.Name); err != nil || !bytes.Equal(got.Bytes, r.Bytes) {
				t.Fatalf("tensor %q: %v", r.Name, err)
			}
		}
	})
}

func write(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFolder(t *testing.T) {
	one := file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"unlisted":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 0, 0, 0x80, 0x3f, 0, 0, 0, 0)
	two := file(`{"b":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}`, 0, 0x40)
	const index = `{"metadata":{"total_size":6,"nested":[{}]},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}}`
	values := func(t *testing.T, d *Folder, name string) []float32 {
		t.Helper()
		r, err := d.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		x, err := r.Floats()
		if err != nil {
			t.Fatal(err)
		}
		return x.Data
	}

	dir := t.TempDir()
	write(t, dir, "m-1.safetensors", one)
	write(t, dir, "m-2.safetensors", two)
	write(t, dir, indexFile, []byte(index))
	d, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Names(), []string{"a", "b"}) || !d.Has("b") || d.Has("unlisted") {
		t.Errorf("names %q", d.Names())
	}
	if a, b := values(t, d, "a"), values(t, d, "b"); a[0] != 1 || b[0] != 2 {
		t.Errorf("a = %v, b = %v", a, b)
	}
	if shape, err := d.Shape("a"); err != nil || !slices.Equal(shape, []int{1}) {
		t.Errorf("shape %v, error %v", shape, err)
	}
	for _, err := range []error{second(d.Shape("unlisted")), second(d.Read("unlisted"))} {
		if !errors.Is(err, ErrMissing) {
			t.Errorf("a tensor outside the index: %v", err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read("a"); err == nil {
		t.Error("read after Close")
	}

	// The single file wins, and is found behind a link into another folder.
	blobs := t.TempDir()
	write(t, blobs, "blob", mixed(t))
	if err := os.Symlink(filepath.Join(blobs, "blob"), filepath.Join(dir, singleFile)); err != nil {
		t.Skip(err)
	}
	d, err = OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if got := values(t, d, "w"); !slices.Equal(got, []float32{1, 2}) || d.Has("a") {
		t.Errorf("w = %v, names %q", got, d.Names())
	}
	ids, err := d.Read("ids")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ids.Floats(); !errors.Is(err, ErrDType) {
		t.Errorf("int64 as weights: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestFolderRefuses(t *testing.T) {
	good := file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 0, 0, 0, 0)
	many := `{"weight_map":{`
	for i := range maxShards + 1 {
		many += strings.Repeat(",", min(i, 1)) + strings.ReplaceAll(`"N":"N.safetensors"`, "N", strings.Repeat("n", i%7+1)+string(rune('a'+i%26))+string(rune('α'+i)))
	}
	many += "}}"
	tests := []struct {
		name, index string
		want        error
		says        string
	}{
		{"nothing", "", fs.ErrNotExist, indexFile},
		{"not JSON", "weights", ErrIndex, indexFile},
		{"list", "[]", ErrIndex, ""},
		{"no map", `{"metadata":{}}`, ErrIndex, "weight_map"},
		{"empty map", `{"weight_map":{}}`, ErrIndex, "weight_map"},
		{"two maps", `{"weight_map":{"a":"m.safetensors"},"weight_map":{"a":"m.safetensors"}}`, ErrDuplicate, ""},
		{"tensor twice", `{"weight_map":{"a":"m.safetensors","a":"m.safetensors"}}`, ErrDuplicate, `"a"`},
		{"number", `{"weight_map":{"a":1}}`, ErrIndex, ""},
		{"cut", `{"weight_map":{"a":"m.safetensors"`, ErrIndex, ""},
		{"way out", `{"weight_map":{"a":"../m.safetensors"}}`, ErrIndex, `"../m.safetensors"`},
		{"way out on Windows", `{"weight_map":{"a":"..\\m.safetensors"}}`, ErrIndex, ""},
		{"absolute", `{"weight_map":{"a":"/m.safetensors"}}`, ErrIndex, ""},
		{"other kind", `{"weight_map":{"a":"m.bin"}}`, ErrIndex, `"m.bin"`},
		{"many shards", many, ErrIndex, "shards"},
		{"long", `{"weight_map":` + strings.Repeat(" ", maxIndex), ErrIndex, "bytes"},
		{"no such shard", `{"weight_map":{"a":"gone.safetensors"}}`, fs.ErrNotExist, "gone.safetensors"},
		{"not in the shard", `{"weight_map":{"b":"m.safetensors"}}`, ErrMissing, `"b" in shard m.safetensors`},
		{"broken shard", `{"weight_map":{"a":"cut.safetensors"}}`, ErrTruncated, "cut.safetensors"},
		{"folder", `{"weight_map":{"a":"dir.safetensors"}}`, nil, "not a regular file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "m.safetensors", good)
			write(t, dir, "cut.safetensors", good[:len(good)-1])
			if err := os.Mkdir(filepath.Join(dir, "dir.safetensors"), 0o700); err != nil {
				t.Fatal(err)
			}
			if tt.index != "" {
				write(t, dir, indexFile, []byte(tt.index))
			}
			d, err := OpenFolder(dir)
			if err == nil {
				d.Close()
				t.Fatal("opened")
			}
			if tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %v and %q", err, tt.want, tt.says)
			}
		})
	}
	dir := t.TempDir()
	write(t, dir, singleFile, good[:len(good)-1])
	if _, err := OpenFolder(dir); !errors.Is(err, ErrTruncated) || !strings.Contains(err.Error(), singleFile) {
		t.Errorf("broken single file: %v", err)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{},"weight_map":{"a":"m.safetensors"}}`))
	f.Add([]byte(`{"weight_map":{"a":"../m.safetensors"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		shardOf, err := parseIndex(b)
		if err != nil {
			if !errors.Is(err, ErrIndex) {
				t.Fatal(err)
			}
			return
		}
		for name, shard := range shardOf {
			if !filepath.IsLocal(shard) || filepath.Base(shard) != shard {
				t.Fatalf("tensor %q is in %q", name, shard)
			}
		}
	})
}
