package artifact_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/embed/hash"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

var tiny = artifact.Dims{D: 4, F: 3, P: 2, H: 3, G: 2, C: 2, Q: 2, T: 2, N: 3}

// tensors returns exported tensors of tiny with small values; feat.scale is positive.
func tensors() []safetensors.Tensor {
	var list []safetensors.Tensor
	for k, s := range artifact.Tensors(tiny) {
		if !s.Export {
			continue
		}
		n := 1
		for _, d := range s.Shape {
			n *= d
		}
		data := make([]float32, n)
		for i := range data {
			data[i] = float32((i*7+k*3)%11+1) / 16
		}
		if strings.HasSuffix(s.Name, ".trees") {
			clear(data) // leaves of value 0
		}
		list = append(list, safetensors.Tensor{Name: s.Name, Shape: s.Shape, Data: data})
	}
	return list
}

// build returns a sound artifact made of the given parts.
func build(t testing.TB, list []safetensors.Tensor, edit func(*artifact.Manifest), calibrate func(*artifact.Calibration)) fstest.MapFS {
	t.Helper()
	var model bytes.Buffer
	if err := safetensors.Write(&model, list, nil); err != nil {
		t.Fatal(err)
	}
	features := []byte("{}")
	m := &artifact.Manifest{
		Format:     artifact.Format,
		Files:      map[string]string{artifact.ModelFile: artifact.Sum(model.Bytes()), artifact.FeaturesFile: artifact.Sum(features)},
		Dims:       tiny,
		UniformMix: 0.01,
		Latent:     artifact.Probabilities,
		Encoder:    hash.New(tiny.D).ID(),
		Features:   artifact.FeatureSet{Version: 1, Digest: artifact.Sum(nil)},
		Seed:       20260701,
		Data:       map[string]artifact.Fingerprint{"train": {Digest: artifact.Sum(nil), N: 10}},
		Config:     []byte(`{"name":"a < b","model":{"hidden":3}}`),
		Tool:       "dreamguard test",
	}
	if edit != nil {
		edit(m)
	}
	b, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{
		artifact.ManifestFile: {Data: b},
		artifact.ModelFile:    {Data: model.Bytes()},
		artifact.FeaturesFile: {Data: features},
	}
	hold, block := 0.5, 0.75
	c := &artifact.Calibration{
		ModelDigest: artifact.Sum(b),
		Fusion:      calib.Fusion{TempHazard: 1, TempPrefix: 2, WeightHazard: 1, WeightEMA: 0.5, WeightWindow: 0.5, Beta: 0.8, Window: 4},
		Thresholds:  artifact.Thresholds{Hold: &hold, Block: &block},
		Certificate: artifact.Certificate{Alpha: 0.05, AlphaBlock: 0.01, N: 200, Groups: 40, KHold: 193, KBlock: 199},
	}
	if calibrate != nil {
		calibrate(c)
	}
	if b, err = c.Marshal(); err != nil {
		t.Fatal(err)
	}
	files[artifact.CalibrationFile] = &fstest.MapFile{Data: b}
	return files
}

func TestOpen(t *testing.T) {
	files := build(t, tensors(), nil, nil)
	a, err := artifact.OpenFS(files)
	if err != nil {
		t.Fatal(err)
	}
	if a.Digest != artifact.Sum(files[artifact.ManifestFile].Data) {
		t.Error("the model digest is not that of manifest.json")
	}
	for _, want := range tensors() {
		if diff := cmp.Diff(want, a.Tensors[want.Name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.Name, diff)
		}
	}
	if hold, block := a.Calibration.Thresholds.Levels(); hold != 0.5 || block != 0.75 {
		t.Errorf("levels %v and %v", hold, block)
	}

	dir := t.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	fromFolder, err := artifact.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, fromFolder); diff != "" {
		t.Errorf("folder (-fs +folder):\n%s", diff)
	}
	for _, prefix := range []string{"", "./", "artifact/"} {
		name := filepath.Join(t.TempDir(), "a.tar")
		writeTar(t, name, files, prefix)
		fromTar, err := artifact.Open(name)
		if err != nil {
			t.Fatalf("tar with prefix %q: %v", prefix, err)
		}
		if diff := cmp.Diff(a, fromTar); diff != "" {
			t.Errorf("tar with prefix %q (-fs +tar):\n%s", prefix, diff)
		}
	}

	delete(files, artifact.CalibrationFile)
	if a, err = artifact.OpenFS(files); err != nil || a.Calibration != nil {
		t.Errorf("uncalibrated: %v, %v", a.Calibration, err)
	}
}

// replace swaps text in one file of the artifact.
func replace(name, old, new string) func(*testing.T, fstest.MapFS) {
	return func(t *testing.T, files fstest.MapFS) {
		before := files[name].Data
		after := bytes.Replace(before, []byte(old), []byte(new), 1)
		if bytes.Equal(before, after) {
			t.Fatalf("%s does not hold %q", name, old)
		}
		files[name] = &fstest.MapFile{Data: after}
	}
}

func TestOpenRefusesText(t *testing.T) {
	tests := []struct {
		name   string
		damage func(*testing.T, fstest.MapFS)
		want   error
	}{
		{"no manifest", func(_ *testing.T, f fstest.MapFS) { delete(f, artifact.ManifestFile) }, artifact.ErrMissing},
		{"manifest not JSON", func(_ *testing.T, f fstest.MapFS) { f[artifact.ManifestFile].Data = []byte("{") }, artifact.ErrManifest},
		{"later format", replace(artifact.ManifestFile, `"format": 1`, `"format": 2`), artifact.ErrFormat},
		{"unknown field", replace(artifact.ManifestFile, `"seed"`, `"x": 1, "seed"`), artifact.ErrManifest},
		{"duplicate field", replace(artifact.ManifestFile, `"seed"`, `"seed": 1, "seed"`), artifact.ErrManifest},
		{"field in capitals", replace(artifact.ManifestFile, `"seed"`, `"SEED"`), artifact.ErrManifest},
		{"reformatted", replace(artifact.ManifestFile, "\n", "\n "), artifact.ErrManifest},
		{"size out of range", replace(artifact.ManifestFile, `"hidden": 3`, `"hidden": 99999999`), artifact.ErrManifest},
		{"one class", replace(artifact.ManifestFile, `"classes": 2`, `"classes": 1`), artifact.ErrManifest},
		{"latent", replace(artifact.ManifestFile, `"latent": "probabilities"`, `"latent": "sampled"`), artifact.ErrManifest},
		{"mix", replace(artifact.ManifestFile, `"uniform_mix": 0.01`, `"uniform_mix": 1`), artifact.ErrManifest},
		{"table of an encoder that has none", replace(artifact.ManifestFile, `"features.json":`, `"encoder.safetensors": "`+artifact.Sum(nil)+`",
    "features.json":`), artifact.ErrManifest},
		{"encoder size", replace(artifact.ManifestFile, `"encoder": 4`, `"encoder": 5`), artifact.ErrManifest},
		{"path outside", replace(artifact.ManifestFile, `"features.json":`, `"../features.json":`), artifact.ErrPath},
		{"rooted path", replace(artifact.ManifestFile, `"features.json":`, `"/etc/passwd":`), artifact.ErrPath},
		{"features not listed", replace(artifact.ManifestFile, `"features.json":`, `"other.json":`), artifact.ErrManifest},
		{"no weights", func(_ *testing.T, f fstest.MapFS) { delete(f, artifact.ModelFile) }, artifact.ErrMissing},
		{"weights changed", func(_ *testing.T, f fstest.MapFS) { b := f[artifact.ModelFile].Data; b[len(b)-1] ^= 1 }, artifact.ErrDigest},
		{"features changed", replace(artifact.FeaturesFile, "{}", "{ }"), artifact.ErrDigest},
		{"manifest too large", func(_ *testing.T, f fstest.MapFS) { f[artifact.ManifestFile].Data = make([]byte, 2<<20) }, artifact.ErrTooLarge},
		{"a folder", func(_ *testing.T, f fstest.MapFS) {
			delete(f, artifact.ModelFile)
			f[artifact.ModelFile+"/x"] = &fstest.MapFile{}
		}, artifact.ErrPath},
		{"threshold edited", replace(artifact.CalibrationFile, `"hold": 0.5`, `"hold": 0.625`), artifact.ErrCalibration},
		{"threshold off the grid", replace(artifact.CalibrationFile, `"hold": 0.5`, `"hold": 0.1`), artifact.ErrCalibration},
		{"threshold 0", replace(artifact.CalibrationFile, `"hold": 0.5`, `"hold": 0`), artifact.ErrCalibration},
		{"temperature", replace(artifact.CalibrationFile, `"temp_hazard": 1`, `"temp_hazard": 0`), artifact.ErrCalibration},
		{"schema", replace(artifact.CalibrationFile, "calibration/v1", "calibration/v9"), artifact.ErrCalibration},
		{"calibration not JSON", func(_ *testing.T, f fstest.MapFS) { f[artifact.CalibrationFile].Data = nil }, artifact.ErrCalibration},
		{"calibration of another model", func(t *testing.T, f fstest.MapFS) {
			other := build(t, tensors(), func(m *artifact.Manifest) { m.Seed++ }, nil)
			f[artifact.CalibrationFile] = other[artifact.CalibrationFile]
		}, artifact.ErrCalibrationModel},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := build(t, tensors(), nil, nil)
			tt.damage(t, files)
			if _, err := artifact.OpenFS(files); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

// withTable is an artifact of a static encoder that carries its table.
func withTable(t testing.TB, table []byte) fstest.MapFS {
	files := build(t, tensors(), func(m *artifact.Manifest) {
		m.Encoder.Kind = artifact.StaticEncoder
		m.Files[artifact.EncoderFile] = artifact.Sum(table)
	}, nil)
	files[artifact.EncoderFile] = &fstest.MapFile{Data: table}
	return files
}

// held is a file system whose files can be used in place.
type held struct{ fstest.MapFS }

type heldFile struct {
	fs.File
	b []byte
}

func (h held) Open(name string) (fs.File, error) {
	f, err := h.MapFS.Open(name)
	if err != nil {
		return nil, err
	}
	return heldFile{f, h.MapFS[name].Data}, nil
}

func (h heldFile) Bytes() []byte { return h.b }

func TestOpenTable(t *testing.T) {
	table := []byte("package artifact does not look inside")
	files := withTable(t, table)
	a, err := artifact.OpenFS(files)
	if err != nil || !bytes.Equal(a.Encoder, table) || &a.Encoder[0] == &table[0] {
		t.Errorf("read: %q, %v", a.Encoder, err)
	}
	if a, err = artifact.OpenFS(held{files}); err != nil || &a.Encoder[0] != &table[0] {
		t.Errorf("in place: %v", err)
	}
	files[artifact.EncoderFile].Data = []byte("other")
	for name, fsys := range map[string]fs.FS{"read": files, "in place": held{files}} {
		if _, err := artifact.OpenFS(fsys); !errors.Is(err, artifact.ErrDigest) {
			t.Errorf("%s: another table: %v", name, err)
		}
	}
	delete(files, artifact.EncoderFile)
	if _, err := artifact.OpenFS(files); !errors.Is(err, artifact.ErrMissing) {
		t.Errorf("a listed table that is not there: %v", err)
	}
	// By reference: the manifest does not list it.
	files = build(t, tensors(), func(m *artifact.Manifest) { m.Encoder.Kind = artifact.StaticEncoder }, nil)
	if a, err := artifact.OpenFS(files); err != nil || a.Encoder != nil {
		t.Errorf("by reference: %v", err)
	}
	if _, err := artifact.OpenFS(held{fstest.MapFS{artifact.ManifestFile: {Data: make([]byte, 2<<20)}}}); !errors.Is(err, artifact.ErrTooLarge) {
		t.Errorf("in place, too large: %v", err)
	}
}

// The manifest's digests are right here: only the content is wrong.
func TestOpenRefusesTensors(t *testing.T) {
	find := func(list []safetensors.Tensor, name string) *safetensors.Tensor {
		return &list[slices.IndexFunc(list, func(x safetensors.Tensor) bool { return x.Name == name })]
	}
	tests := []struct {
		name string
		edit func([]safetensors.Tensor) []safetensors.Tensor
		want error
	}{
		{"missing", func(l []safetensors.Tensor) []safetensors.Tensor { return l[1:] }, artifact.ErrTensorMissing},
		{"extra", func(l []safetensors.Tensor) []safetensors.Tensor {
			return append(l, safetensors.Tensor{Name: "obs.out.b", Shape: []int{tiny.D}, Data: make([]float32, tiny.D)})
		}, artifact.ErrTensorExtra},
		{"transposed", func(l []safetensors.Tensor) []safetensors.Tensor {
			slices.Reverse(find(l, "init.w").Shape)
			return l
		}, artifact.ErrTensorShape},
		{"NaN", func(l []safetensors.Tensor) []safetensors.Tensor {
			d := find(l, "gru.ur").Data
			d[0] -= d[0]
			d[0] /= d[0]
			return l
		}, artifact.ErrTensorValue},
		{"a tree that goes round", func(l []safetensors.Tensor) []safetensors.Tensor {
			find(l, "head.haz.trees").Data[4*3+2] = -1
			return l
		}, artifact.ErrTensorValue},
		{"scale 0", func(l []safetensors.Tensor) []safetensors.Tensor { find(l, "feat.scale").Data[1] = 0; return l }, artifact.ErrTensorValue},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := artifact.OpenFS(build(t, tt.edit(tensors()), nil, nil)); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
	t.Run("not a weights file", func(t *testing.T) {
		junk := []byte("not safetensors at all")
		files := build(t, tensors(), func(m *artifact.Manifest) { m.Files[artifact.ModelFile] = artifact.Sum(junk) }, nil)
		files[artifact.ModelFile].Data = junk
		if _, err := artifact.OpenFS(files); !errors.Is(err, artifact.ErrWeights) {
			t.Errorf("error %v, want %v", err, artifact.ErrWeights)
		}
	})
}

func TestOpenLinks(t *testing.T) {
	files := build(t, tensors(), nil, nil)
	place := func() (dir, outside string) {
		dir, outside = t.TempDir(), filepath.Join(t.TempDir(), artifact.FeaturesFile)
		if err := os.CopyFS(dir, files); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, artifact.FeaturesFile), outside); err != nil {
			t.Fatal(err)
		}
		return dir, outside
	}
	link := func(dir, target string) {
		if err := os.Symlink(target, filepath.Join(dir, artifact.FeaturesFile)); err != nil {
			t.Fatal(err)
		}
	}
	dir, outside := place()
	link(dir, outside)
	if _, err := artifact.Open(dir); !errors.Is(err, artifact.ErrPath) {
		t.Errorf("link out of the folder: %v", err)
	}
	dir, _ = place()
	link(dir, "nowhere")
	if _, err := artifact.Open(dir); !errors.Is(err, artifact.ErrPath) {
		t.Errorf("dangling link: %v", err)
	}
	// Mounted volumes are made of links within the folder.
	dir, outside = place()
	if err := os.Rename(outside, filepath.Join(dir, "data-1")); err != nil {
		t.Fatal(err)
	}
	link(dir, "data-1")
	if _, err := artifact.Open(dir); err != nil {
		t.Errorf("link within the folder: %v", err)
	}
	if _, err := artifact.Open(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

func TestOpenRefusesTar(t *testing.T) {
	entry := func(h tar.Header, data string) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		h.Size, h.Mode = int64(len(data)), 0o644
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	once := entry(tar.Header{Name: "manifest.json"}, "{}")
	tests := []struct {
		name string
		b    []byte
		want error
	}{
		{"empty", nil, artifact.ErrTar},
		{"compressed", append([]byte{0x1f, 0x8b, 8}, make([]byte, 1024)...), artifact.ErrTar},
		{"parent", entry(tar.Header{Name: "../manifest.json"}, "{}"), artifact.ErrPath},
		{"rooted", entry(tar.Header{Name: "/manifest.json"}, "{}"), artifact.ErrPath},
		{"link", entry(tar.Header{Name: "manifest.json", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, ""), artifact.ErrPath},
		{"twice", append(slices.Clone(once[:1024]), once...), artifact.ErrTar},
		{"cut off", once[:513], artifact.ErrTar},
		{"damaged header", append([]byte("M"), once[1:]...), artifact.ErrTar},
		{"nothing of ours", entry(tar.Header{Name: "notes.txt"}, "hello"), artifact.ErrMissing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "a.tar")
			if err := os.WriteFile(name, tt.b, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := artifact.Open(name); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

// The rows of docs/reference/model.md, multiplied out for sizes that tell every
// letter apart.
func TestTensors(t *testing.T) {
	d := artifact.Dims{D: 11, F: 13, P: 5, H: 7, G: 2, C: 3, Q: 17, U: 19, T: 2, N: 3}
	want := map[string][]int{
		"feat.mean": {13}, "adapt.o.w": {5, 11}, "adapt.e.ln.g": {5}, "obs.none": {5}, "init.w": {7, 5},
		"post.l1.w": {7, 12}, "post.out.w": {6, 7}, "gru.ln.b": {24}, "gru.wn": {7, 24}, "gru.ur": {7, 7}, "gru.bm": {7},
		"prior.l1.w": {7, 7}, "prior.out.b": {6}, "obs.l1.w": {7, 13}, "obs.out.w": {11, 7},
		"head.haz.l1.w": {17, 36}, "head.pre.out.w": {1, 17}, "head.haz.out.b": {1}, "head.pre.skip.w": {1, 13},
		"head.haz.feat.l1.w": {19, 13}, "head.pre.feat.out.w": {1, 19}, "head.pre.trees": {2, 3, 4},
	}
	groups := map[artifact.Group]int{}
	names := []string{}
	for _, s := range artifact.Tensors(d) {
		names = append(names, s.Name)
		groups[s.Group]++
		if shape, ok := want[s.Name]; ok {
			if !slices.Equal(s.Shape, shape) {
				t.Errorf("%s is %v, want %v", s.Name, s.Shape, shape)
			}
			delete(want, s.Name)
		}
		if s.Export == (strings.HasPrefix(s.Name, "obs.l1") || strings.HasPrefix(s.Name, "obs.out")) {
			t.Errorf("%s: export %v", s.Name, s.Export)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if !slices.IsSorted(names) || len(slices.Compact(names)) != len(names) {
		t.Error("names are not sorted or stand twice")
	}
	if diff := cmp.Diff(map[artifact.Group]int{"constant": 4, "adapter": 12, "world": 21, "core": 12, "head": 24}, groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func TestNewThresholds(t *testing.T) {
	got := artifact.NewThresholds(calib.Thresholds{Hold: calib.Threshold{Value: 0.25}, Block: calib.Threshold{Value: calib.Off}})
	if got.Hold == nil || *got.Hold != 0.25 || got.Block != nil {
		t.Errorf("%+v", got)
	}
	if hold, block := got.Levels(); hold != 0.25 || block != calib.Off {
		t.Errorf("levels %v, %v", hold, block)
	}
}

func FuzzParseManifest(f *testing.F) {
	files := build(f, tensors(), nil, nil)
	f.Add(files[artifact.ManifestFile].Data)
	f.Add([]byte(`{"format":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, digest, err := artifact.ParseManifest(b)
		if err != nil {
			return
		}
		again, err := m.Marshal()
		if err != nil || !bytes.Equal(again, b) || digest != artifact.Sum(b) {
			t.Fatalf("accepted a form that is not canonical: %v", err)
		}
	})
}

func FuzzParseCalibration(f *testing.F) {
	files := build(f, tensors(), nil, nil)
	model := artifact.Sum(files[artifact.ManifestFile].Data)
	f.Add(files[artifact.CalibrationFile].Data)
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := artifact.ParseCalibration(b, model)
		if err != nil {
			return
		}
		if again, err := c.Marshal(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("accepted a form that is not canonical: %v", err)
		}
	})
}
