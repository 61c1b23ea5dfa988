package transformer

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/dreamguard/dreamguard/internal/backend"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// Everything in testdata was made with the reference implementation by
// testdata/golden.py; versions are in the metadata of the golden files.

// backends lists the backends that this build and this machine have.
func backends(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, s := range backend.Available() {
		if s.Available {
			names = append(names, s.Name)
		} else {
			t.Logf("without %s: %s", s.Name, s.Reason)
		}
	}
	return names
}

// golden reads a file of tensors.
func golden(t *testing.T, path string) map[string]safetensors.Raw {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", path))
	if err != nil {
		t.Fatal(err)
	}
	raws, _, err := safetensors.ReadRaw(b)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]safetensors.Raw{}
	for _, r := range raws {
		byName[r.Name] = r
	}
	return byName
}

func floats(t *testing.T, r safetensors.Raw) []float32 {
	t.Helper()
	x, err := r.Floats()
	if err != nil {
		t.Fatalf("tensor %q: %v", r.Name, err)
	}
	return x.Data
}

func ints(t *testing.T, r safetensors.Raw) []int32 {
	t.Helper()
	if r.DType != "I32" {
		t.Fatalf("tensor %q is %s", r.Name, r.DType)
	}
	out := make([]int32, len(r.Bytes)/4)
	for i := range out {
		out[i] = int32(uint32(r.Bytes[4*i]) | uint32(r.Bytes[4*i+1])<<8 | uint32(r.Bytes[4*i+2])<<16 | uint32(r.Bytes[4*i+3])<<24)
	}
	return out
}

// texts are the first n of testdata/texts.json and the last two, which are long.
func texts(t testing.TB, n int) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/texts.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	if n < len(all) {
		all = append(all[:n:n], all[len(all)-2:]...)
	}
	return all
}

// distance is the largest difference of two values.
func distance(t *testing.T, got, want []float32) float64 {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	var worst float64
	for i := range got {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		worst = max(worst, d)
	}
	return worst
}

func mustOpen(t testing.TB, dir string, opts Options) *Encoder {
	t.Helper()
	e, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func encode(t testing.TB, e *Encoder, texts []string) []float32 {
	t.Helper()
	dst := make([]float32, len(texts)*e.ID().Dims)
	if err := e.Encode(context.Background(), texts, dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

// Hidden states of every layer, in a batch whose sequences have 13, 9, 1 and 30
// tokens.
func TestHiddenStates(t *testing.T) {
	for _, model := range []struct {
		dir    string
		layers int
	}{{"bert-tiny", 3}, {"qwen3-tiny", 4}} {
		want := golden(t, model.dir+"/golden.safetensors")
		lengths := ints(t, want["lengths"])
		flat := ints(t, want["ids"])
		width := len(flat) / len(lengths)
		var ids [][]int32
		for i, n := range lengths {
			ids = append(ids, flat[i*width:i*width+int(n)])
		}
		for _, be := range backends(t) {
			for layer := 1; layer <= model.layers; layer++ {
				t.Run(fmt.Sprintf("%s/%s/%d", model.dir, be, layer), func(t *testing.T) {
					e := mustOpen(t, "testdata/"+model.dir, Options{Backend: be, Layer: layer})
					got, err := e.TokenVectors(t.Context(), ids)
					if err != nil {
						t.Fatal(err)
					}
					states := floats(t, want[fmt.Sprintf("hidden.%d", layer)])
					dims := e.ID().Dims
					for i, n := range lengths {
						d := distance(t, got[i], states[i*width*dims:(i*width+int(n))*dims])
						if d > 1e-5 {
							t.Errorf("sequence %d of %d tokens differs by %.2g", i, n, d)
						}
					}
				})
			}
		}
	}
}

// Texts through tokenizer, windows, pooling and normalisation.
func TestEncodeGolden(t *testing.T) {
	tests := []struct {
		dir, tensor string
		opts        Options
	}{
		{"bert-tiny", "mean", Options{MaxTokens: 32, Overlap: 8}}, // mean is BERT's default
		{"bert-tiny", "cls", Options{Pooling: CLS, Layer: 2, MaxTokens: 64, Overlap: -1}},
		{"qwen3-tiny", "last", Options{MaxTokens: 48, Overlap: 12}}, // last is Qwen3's default
		{"qwen3-tiny", "mean", Options{Pooling: Mean, Layer: 3, MaxTokens: 128, Overlap: -1}},
	}
	for _, tt := range tests {
		want := floats(t, golden(t, tt.dir+"/golden.safetensors")[tt.tensor])
		for _, be := range backends(t) {
			t.Run(tt.dir+"/"+tt.tensor+"/"+be, func(t *testing.T) {
				tt.opts.Backend = be
				e := mustOpen(t, "testdata/"+tt.dir, tt.opts)
				if d := distance(t, encode(t, e, texts(t, 40)), want); d > 1e-5 {
					t.Errorf("vectors differ by %.2g", d)
				}
			})
		}
	}
}

// minilm returns the folder of all-MiniLM-L6-v2, or skips the test.
func minilm(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("DREAMGUARD_MINILM")
	if dir == "" {
		t.Skip("DREAMGUARD_MINILM does not name a folder with all-MiniLM-L6-v2; scripts/minilm.sh downloads one")
	}
	return dir
}

func TestMiniLM(t *testing.T) {
	dir := minilm(t)
	want := floats(t, golden(t, "minilm.safetensors")["vectors"])
	for _, be := range backends(t) {
		t.Run(be, func(t *testing.T) {
			e := mustOpen(t, dir, Options{Backend: be})
			if o := e.Options(); o.MaxTokens != 256 || o.Pooling != Mean || o.Overlap != 32 || o.Layer != 6 {
				t.Errorf("options of the folder: %+v", o)
			}
			all := texts(t, 1000)
			if testing.Short() {
				all = all[:40]
			}
			got := encode(t, e, all)
			d := distance(t, got, want[:len(got)])
			t.Logf("%d texts, largest difference %.2g", len(all), d)
			if d > 1e-5 {
				t.Errorf("vectors differ by %.2g", d)
			}
		})
	}
}
