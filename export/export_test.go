package export_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/embed/hash"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/export"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// input returns a small model, with the tensors that only training uses.
func input(seed uint64) export.Input {
	d := artifact.Dims{D: 8, F: features.Count(), P: 3, H: 4, G: 2, C: 2, Q: 3}
	var weights []safetensors.Tensor
	for k, s := range artifact.Tensors(d) {
		n := 1
		for _, size := range s.Shape {
			n *= size
		}
		data := make([]float32, n)
		for i := range data {
			data[i] = float32((i*5+k)%9+1) / 32
		}
		weights = append(weights, safetensors.Tensor{Name: s.Name, Shape: s.Shape, Data: data})
	}
	var words features.VocabularyBuilder
	words.Add("the invoice is due")
	return export.Input{
		Weights: weights, Dims: d, UniformMix: 0.01, Latent: artifact.Probabilities,
		Encoder: hash.New(d.D).ID(), Vocabulary: words.Build(1), Seed: seed,
		Data:   map[string]artifact.Fingerprint{"train": {Digest: artifact.Sum(nil), N: 3}},
		Config: map[string]any{"name": "test", "lr": 0.0002, "text": "a < b & c"}, Tool: "test",
	}
}

func calibration(model string) artifact.Calibration {
	hold := 0.5
	return artifact.Calibration{
		ModelDigest: model,
		Fusion:      calib.Fusion{TempHazard: 1, TempPrefix: 1, WeightHazard: 1, WeightEMA: 1, WeightWindow: 1, Beta: 0.8, Window: 4},
		Thresholds:  artifact.Thresholds{Hold: &hold},
		Certificate: artifact.Certificate{Alpha: 0.05, N: 100, Groups: 20, KHold: 96},
	}
}

func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return files
}

func TestWrite(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "runs", "artifact")
	digest, err := export.Write(dir, input(1))
	if err != nil {
		t.Fatal(err)
	}
	a, err := artifact.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if a.Digest != digest || a.Calibration != nil || a.Manifest.Seed != 1 {
		t.Errorf("digest %s, want %s; manifest %+v", a.Digest, digest, a.Manifest)
	}
	for name := range a.Tensors {
		if strings.HasPrefix(name, "obs.l1") || strings.HasPrefix(name, "obs.out") {
			t.Errorf("%s serves training only and was exported", name)
		}
	}
	if _, err := guard.Open(dir); !errors.Is(err, guard.ErrNotCalibrated) {
		t.Errorf("guard.Open: %v", err)
	}

	// The same input, the order of its tensors aside: the same bytes.
	in := input(1)
	in.Weights[0], in.Weights[5] = in.Weights[5], in.Weights[0]
	again := filepath.Join(parent, "again")
	if _, err := export.Write(again, in); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(folder(t, dir), folder(t, again)); diff != "" {
		t.Errorf("the same input, other bytes:\n%s", diff)
	}
	if err := export.WriteCalibration(dir, calibration(digest)); err != nil {
		t.Fatal(err)
	}
	if m, err := guard.Open(dir); err != nil || m.Digest() != digest || m.CalibrationDigest() == "" {
		t.Errorf("calibrated: %v", err)
	}

	// Another model takes the folder over; the old calibration goes.
	other, err := export.Write(dir, input(2))
	if err != nil {
		t.Fatal(err)
	}
	if a, err = artifact.Open(dir); err != nil || a.Digest != other || other == digest || a.Calibration != nil {
		t.Errorf("replaced: %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind beside the artifact: %v (%v)", entries, err)
	}
	if err := export.WriteCalibration(dir, calibration(digest)); !errors.Is(err, artifact.ErrCalibrationModel) {
		t.Errorf("calibration of the old model: %v", err)
	}
	bad := calibration(other)
	bad.Fusion.Window = 0
	if err := export.WriteCalibration(dir, bad); !errors.Is(err, artifact.ErrCalibration) {
		t.Errorf("calibration without a window: %v", err)
	}
	if err := export.WriteCalibration(parent, calibration(other)); !errors.Is(err, artifact.ErrMissing) {
		t.Errorf("no artifact there: %v", err)
	}
}

// table returns a static encoder of d dimensions.
func table(t *testing.T, d int) *static.Encoder {
	t.Helper()
	x := &static.Table{
		Manifest: static.Manifest{Name: "test", Dims: d, Tokens: 2},
		Tokens:   []string{"[UNK]", "invoice"},
		Rows:     make([]int8, 2*d),
		Scale:    []float32{1, 1},
	}
	x.Rows[d] = 1
	var file bytes.Buffer
	if err := x.Write(&file); err != nil {
		t.Fatal(err)
	}
	enc, err := static.Parse(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

// A static encoder travels with the model, or is named by its digest.
func TestWriteStaticEncoder(t *testing.T) {
	enc := table(t, input(1).Dims.D)
	dir := filepath.Join(t.TempDir(), "artifact")
	write := func(in export.Input) {
		t.Helper()
		digest, err := export.Write(dir, in)
		if err != nil {
			t.Fatal(err)
		}
		if err := export.WriteCalibration(dir, calibration(digest)); err != nil {
			t.Fatal(err)
		}
	}
	in := input(1)
	in.Encoder, in.Table = enc.ID(), enc.File()
	write(in)
	if folder(t, dir)[artifact.EncoderFile] != string(enc.File()) {
		t.Error("the table is not in the artifact")
	}
	if _, err := guard.Open(dir); err != nil {
		t.Errorf("with its table: %v", err)
	}

	in.Table = nil
	write(in)
	if _, there := folder(t, dir)[artifact.EncoderFile]; there {
		t.Error("the table of the replaced artifact is still there")
	}
	if _, err := guard.Open(dir); !errors.Is(err, guard.ErrEncoderRequired) {
		t.Errorf("without its table: %v", err)
	}
	if _, err := guard.Open(dir, guard.WithEncoder(enc)); err != nil {
		t.Errorf("with the encoder: %v", err)
	}
}

// After a refusal the folder is what it was, and nothing lies beside it.
func TestWriteRefuses(t *testing.T) {
	tests := []struct {
		name string
		edit func(*export.Input)
		want error
	}{
		{"missing", func(in *export.Input) { in.Weights = in.Weights[1:] }, artifact.ErrTensorMissing},
		{"extra", func(in *export.Input) {
			in.Weights = append(in.Weights, safetensors.Tensor{Name: "x", Data: []float32{0}})
		}, artifact.ErrTensorExtra},
		{"twice", func(in *export.Input) { in.Weights = append(in.Weights, in.Weights[0]) }, safetensors.ErrDuplicate},
		{"NaN", func(in *export.Input) { in.Weights[2].Data[0] = float32(math.NaN()) }, artifact.ErrTensorValue},
		{"shape", func(in *export.Input) { in.Dims.H++ }, artifact.ErrTensorShape},
		{"latent", func(in *export.Input) { in.Latent = "" }, artifact.ErrManifest},
		{"encoder", func(in *export.Input) { in.Encoder = hash.New(9).ID() }, artifact.ErrManifest},
		{"table of another encoder", func(in *export.Input) { in.Table = table(t, in.Dims.D).File() }, nil},
		{"not a table", func(in *export.Input) { in.Table = []byte("{}") }, safetensors.ErrTruncated},
		{"features", func(in *export.Input) { in.Dims.F-- }, nil},
		{"vocabulary", func(in *export.Input) { in.Vocabulary = nil }, nil},
		{"config", func(in *export.Input) { in.Config = func() {} }, nil},
	}
	dir := filepath.Join(t.TempDir(), "artifact")
	if _, err := export.Write(dir, input(1)); err != nil {
		t.Fatal(err)
	}
	before := folder(t, dir)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(3)
			tt.edit(&in)
			_, err := export.Write(dir, in)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if diff := cmp.Diff(before, folder(t, dir)); diff != "" {
				t.Errorf("the artifact changed:\n%s", diff)
			}
			if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
				t.Errorf("left behind: %v (%v)", entries, err)
			}
		})
	}
}

func TestWriteSparesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), []byte("years of work"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := export.Write(dir, input(1)); !errors.Is(err, export.ErrOccupied) || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(map[string]string{"thesis.tex": "years of work"}, folder(t, dir)); diff != "" {
		t.Errorf("the folder changed:\n%s", diff)
	}
	// An empty folder is free, and so is one whose export was killed.
	empty := t.TempDir()
	killed := filepath.Join(filepath.Dir(empty), "."+filepath.Base(empty)+".export")
	if err := os.MkdirAll(filepath.Join(killed, "half"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := export.Write(empty, input(1)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(killed); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the kill left is still there: %v", err)
	}
}

// The calibrations before the one that goes with the old model stay.
func TestWriteCarriesHistoryOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "artifact")
	if _, err := export.Write(dir, input(1)); err != nil {
		t.Fatal(err)
	}
	history := filepath.Join(dir, artifact.HistoryFolder)
	if err := os.Mkdir(history, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"0001.json": "first", "0002.json": "second", ".lock": ""} {
		if err := os.WriteFile(filepath.Join(history, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range uint64(2) {
		if _, err := export.Write(dir, input(2+seed)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"0001.json": "first", "0002.json": "second"}, folder(t, history)); diff != "" {
			t.Errorf("history:\n%s", diff)
		}
	}
}

func TestWriteCard(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "artifact")
	if _, err := export.Write(dir, input(1)); err != nil {
		t.Fatal(err)
	}
	a, err := artifact.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if b := folder(t, dir)[artifact.CardFile]; !strings.Contains(b, "neither calibrated nor measured") {
		t.Errorf("first card:\n%s", b)
	}
	report := eval.Report{Config: "quickstart", Protocol: "p1", Model: a.Digest, Guarantee: []string{"A promise."}}
	if err := export.WriteCard(dir, a.Manifest, report); err != nil {
		t.Fatal(err)
	}
	card := folder(t, dir)[artifact.CardFile]
	for _, want := range []string{"quickstart", a.Digest, "A promise.", "| data: train | 3 trajectories"} {
		if !strings.Contains(card, want) {
			t.Errorf("the card does not say %q:\n%s", want, card)
		}
	}
	if again, err := artifact.Open(dir); err != nil || again.Digest != a.Digest {
		t.Errorf("the card changed the artifact: %v", err)
	}
}

func ExampleWrite() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "artifact")
	digest, err := export.Write(dir, input(1)) // weights, sizes, encoder, vocabulary
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := export.WriteCalibration(dir, calibration(digest)); err != nil {
		fmt.Println(err)
		return
	}
	m, err := guard.Open(dir)
	fmt.Println(m.Digest() == digest, m.Thresholds().Hold, err)
	// Output: true 0.5 <nil>
}
