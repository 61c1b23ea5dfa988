package eval

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"testing"
)

// TestAgainstScikitLearn compares with testdata/reference.json, made by
// testdata/reference.py with the version it records.
func TestAgainstScikitLearn(t *testing.T) {
	b, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var ref struct {
		X    [][]float32
		Y    []int
		Fits []struct {
			C, B float64
			W    []float64
		}
		Texts []string
		TFIDF []map[string]float64
	}
	if err := json.Unmarshal(b, &ref); err != nil {
		t.Fatal(err)
	}
	x, s := &denseRows{width: len(ref.X[0])}, &sparseRows{width: len(ref.X[0])}
	y, w := make([]bool, len(ref.Y)), make([]float64, len(ref.Y))
	for i, r := range ref.X {
		x.value = append(x.value, r...)
		s.index, s.value = append(s.index, []int32{0, 1, 2, 3}), append(s.value, r)
		y[i], w[i] = ref.Y[i] == 1, 1
	}
	if len(ref.Fits) != 3 {
		t.Fatal("testdata/reference.json is incomplete")
	}
	for _, f := range ref.Fits {
		for name, m := range map[string]design{"dense": x, "sparse": s} {
			got, err := fitLogistic(m, y, w, f.C)
			if err != nil {
				t.Fatal(err)
			}
			for j := range f.W {
				if math.Abs(got.w[j]-f.W[j]) > 1e-4*(1+math.Abs(f.W[j])) {
					t.Errorf("C %v, %s: w[%d] = %v, want %v", f.C, name, j, got.w[j], f.W[j])
				}
			}
			if math.Abs(got.b-f.B) > 1e-4*(1+math.Abs(f.B)) {
				t.Errorf("C %v, %s: b = %v, want %v", f.C, name, got.b, f.B)
			}
		}
	}

	v := newTFIDF(ref.Texts)
	for i, text := range ref.Texts {
		index, value := v.vector(text)
		got := map[int32]float64{}
		for k, j := range index {
			got[j] = float64(value[k])
		}
		if len(got) != len(ref.TFIDF[i]) {
			t.Errorf("%q: %d terms, want %d", text, len(got), len(ref.TFIDF[i]))
		}
		for word, want := range ref.TFIDF[i] {
			if math.Abs(got[v.index[word]]-want) > 1e-6 {
				t.Errorf("%q: weight of %q = %v, want %v", text, word, got[v.index[word]], want)
			}
		}
	}
}

func TestFitLogisticWeights(t *testing.T) {
	// A row of weight 2 is two rows; a row of weight 0 is none.
	x := &denseRows{width: 1, value: []float32{0, 1, 2, 3, 50}}
	y := []bool{false, false, true, true, true}
	a, err := fitLogistic(x, y, []float64{1, 2, 1, 1, 0}, 1)
	if err != nil {
		t.Fatal(err)
	}
	twice := &denseRows{width: 1, value: []float32{0, 1, 1, 2, 3}}
	b, err := fitLogistic(twice, []bool{false, false, false, true, true}, []float64{1, 1, 1, 1, 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(a.w[0]-b.w[0]) > 1e-5 || math.Abs(a.b-b.b) > 1e-5 {
		t.Errorf("weighted %+v, repeated %+v", a, b)
	}
	for name, w := range map[string][]float64{"no positives": {1, 1, 0, 0, 0}, "NaN": {math.NaN(), 1, 1, 1, 1}, "negative": {-1, 1, 1, 1, 1}} {
		if _, err := fitLogistic(x, y, w, 1); !errors.Is(err, ErrTraining) {
			t.Errorf("%s: error %v, want ErrTraining", name, err)
		}
	}
}

// TestLBFGS finds the minimum of a badly scaled convex function.
func TestLBFGS(t *testing.T) {
	scales := []float64{1, 1e2, 1e4}
	x, value := lbfgs(len(scales), func(x, grad []float64) float64 {
		var f float64
		for i, s := range scales {
			d := x[i] - float64(i+1)
			f += s * (d*d/2 + d*d*d*d/4)
			grad[i] = s * (d + d*d*d)
		}
		return f
	})
	for i := range x {
		if math.Abs(x[i]-float64(i+1)) > 1e-6 {
			t.Errorf("x[%d] = %v, want %d", i, x[i], i+1)
		}
	}
	if value > 1e-10 {
		t.Errorf("value %v, want 0", value)
	}
}

func BenchmarkFitDense(b *testing.B) {
	const n, d = 60_000, 90
	rng := rand.New(rand.NewPCG(1, 2))
	x := &denseRows{width: d, value: make([]float32, n*d)}
	for i := range x.value {
		x.value[i] = float32(rng.NormFloat64())
	}
	y, w := make([]bool, n), make([]float64, n)
	for i := range y {
		y[i], w[i] = float64(x.value[i*d])+2*rng.NormFloat64() > 3, 1
	}
	for b.Loop() {
		if _, err := fitLogistic(x, y, w, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFitSparse(b *testing.B) {
	const n, d, nnz = 60_000, 50_000, 40
	rng := rand.New(rand.NewPCG(1, 2))
	x := &sparseRows{width: d}
	y, w := make([]bool, n), make([]float64, n)
	for i := range n {
		index, value := make([]int32, nnz), make([]float32, nnz)
		for k := range index {
			index[k] = int32(float64(d) * math.Pow(rng.Float64(), 4))
			value[k] = 0.16
			y[i] = y[i] || index[k] == 7
		}
		w[i] = 1
		x.index, x.value = append(x.index, index), append(x.value, value)
	}
	for b.Loop() {
		if _, err := fitLogistic(x, y, w, 1); err != nil {
			b.Fatal(err)
		}
	}
}
