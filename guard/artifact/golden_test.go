package artifact_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

var update = flag.Bool("update", false, "write the golden and the broken artifacts again; released ones must not change")

const testdata = "../testdata"

// The artifact of format 1 was written by this test with -update. It must load
// for as long as format 1 is read, and its digest must not move.
func TestGoldenFormat1(t *testing.T) {
	dir := filepath.Join(testdata, "format-1")
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, build(t, tensors(), nil, nil)); err != nil {
			t.Fatal(err)
		}
	}
	a, err := artifact.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	const model, calibration = "ceff433bca86660aa886f9f885cc1c91ca1ac389cdce454831271ab2d6019e15", "22dffece5b3a440f10502691bee68386381e66c34e55642edf0329d8e5d57b80"
	if a.Digest != model || a.Calibration.Digest != calibration {
		t.Errorf("digests %s and %s", a.Digest, a.Calibration.Digest)
	}
	if got := a.Tensors["gru.bm"].Data; !slices.Equal(got, tensors()[slices.IndexFunc(tensors(), func(x safetensors.Tensor) bool { return x.Name == "gru.bm" })].Data) {
		t.Errorf("gru.bm is %v", got)
	}
}

// brokenArtifacts returns one artifact per rejection. All digests are right
// unless the digest is what is broken.
func brokenArtifacts(t *testing.T) map[string]fstest.MapFS {
	sound := func() fstest.MapFS { return build(t, tensors(), nil, nil) }
	edit := func(name, old, new string) fstest.MapFS {
		files := sound()
		replace(name, old, new)(t, files)
		return files
	}
	without := func(name string) fstest.MapFS {
		files := sound()
		delete(files, name)
		return files
	}
	weights := func(change func([]safetensors.Tensor) []safetensors.Tensor) fstest.MapFS {
		return build(t, change(tensors()), nil, nil)
	}
	model := func(b []byte) fstest.MapFS {
		files := build(t, tensors(), func(m *artifact.Manifest) { m.Files[artifact.ModelFile] = artifact.Sum(b) }, nil)
		files[artifact.ModelFile] = &fstest.MapFile{Data: b}
		return files
	}
	twice := bytes.Replace(sound()[artifact.ModelFile].Data, []byte(`"adapt.a.ln.b"`), []byte(`"adapt.a.ln.g"`), 1)
	foreign := sound()
	foreign[artifact.CalibrationFile] = build(t, tensors(), func(m *artifact.Manifest) { m.Seed++ }, nil)[artifact.CalibrationFile]
	return map[string]fstest.MapFS{
		"format":           edit(artifact.ManifestFile, `"format": 1`, `"format": 99`),
		"manifest":         edit(artifact.ManifestFile, `"seed"`, `"sead"`),
		"path":             edit(artifact.ManifestFile, `"features.json":`, `"../features.json":`),
		"missing":          without(artifact.ModelFile),
		"digest":           edit(artifact.FeaturesFile, "{}", "{ }"),
		"weights":          model([]byte("\xff\xff\xff\xff\xff\xff\xff\xffoversized header")),
		"tensor-duplicate": model(twice),
		"tensor-missing":   weights(func(l []safetensors.Tensor) []safetensors.Tensor { return l[1:] }),
		"tensor-extra": weights(func(l []safetensors.Tensor) []safetensors.Tensor {
			return append(l, safetensors.Tensor{Name: "zzz", Data: []float32{1}})
		}),
		"tensor-shape": weights(func(l []safetensors.Tensor) []safetensors.Tensor { slices.Reverse(l[3].Shape); return l }),
		"tensor-value": weights(func(l []safetensors.Tensor) []safetensors.Tensor {
			d := l[0].Data
			d[0] -= d[0]
			d[0] /= d[0]
			return l
		}),
		"calibration":       edit(artifact.CalibrationFile, `"hold": 0.5`, `"hold": 0.625`),
		"calibration-model": foreign,
	}
}

func TestBroken(t *testing.T) {
	want := map[string]error{
		"format": artifact.ErrFormat, "manifest": artifact.ErrManifest, "path": artifact.ErrPath, "missing": artifact.ErrMissing,
		"digest": artifact.ErrDigest, "weights": safetensors.ErrHeaderSize, "tensor-duplicate": safetensors.ErrDuplicate,
		"tensor-missing": artifact.ErrTensorMissing, "tensor-extra": artifact.ErrTensorExtra, "tensor-shape": artifact.ErrTensorShape,
		"tensor-value": artifact.ErrTensorValue, "calibration": artifact.ErrCalibration, "calibration-model": artifact.ErrCalibrationModel,
	}
	dir := filepath.Join(testdata, "broken")
	if *update {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o777)); err != nil {
			t.Fatal(err)
		}
		for name, files := range brokenArtifacts(t) {
			writeTar(t, filepath.Join(dir, name+".tar"), files, "")
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".tar")
		t.Run(name, func(t *testing.T) {
			_, err := artifact.Open(filepath.Join(dir, e.Name()))
			if want[name] == nil || !errors.Is(err, want[name]) {
				t.Errorf("error %v, want %v", err, want[name])
			}
			delete(want, name)
		})
	}
	if len(want) > 0 {
		t.Errorf("no file for %v", slices.Sorted(maps.Keys(want)))
	}
}

func writeTar(t *testing.T, name string, files fstest.MapFS, prefix string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		data := files[path].Data
		if err := w.WriteHeader(&tar.Header{Name: prefix + path, Mode: 0o644, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}
