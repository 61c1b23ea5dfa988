package distill

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// reference is testdata/reference.json, computed by testdata/reference.py.
type reference struct {
	Table     [][]float64 `json:"table"`
	RidgeOnly [][]float64 `json:"ridge_only"`
	Kept      float64     `json:"kept"`
	Spearman  float64     `json:"spearman"`
	Pearson   float64     `json:"pearson"`
}

func readReference(t *testing.T) (r reference) {
	t.Helper()
	b, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

const testVocabulary, testWidth, testDims, testTexts = 40, 7, 6, 60

// input repeats the generator of testdata/reference.py.
func input() Input {
	state := uint32(12345)
	step := func() uint32 {
		state = state*1664525 + 1013904223
		return state >> 8
	}
	number := func() float32 { return float32(float64(step())/(1<<23) - 1) }
	var in Input
	for range testVocabulary * testWidth {
		in.Tokens = append(in.Tokens, number())
	}
	for i := range testTexts {
		n := uint32(0)
		if i != 17 {
			n = 1 + step()%12
		}
		ids := make([]int32, n)
		for k := range ids {
			ids[k] = int32(step() % (testVocabulary - 5))
		}
		in.Texts = append(in.Texts, ids)
	}
	for range testVocabulary {
		in.Counts = append(in.Counts, int64(step()%1000))
	}
	for range testTexts * testDims {
		in.Teacher = append(in.Teacher, number())
	}
	return in
}

var testOptions = Options{Dims: 4, SIF: 0.05, Ridge: 0.3, Tokens: 0.7, Tolerance: 1e-9}

// near reports whether the inner products of the rows are those of want: what a
// rotation, which the projection is, leaves as they are.
func near(t *testing.T, res *Result, dims int, want [][]float64, tolerance float64) {
	t.Helper()
	row := func(i int) []float64 {
		out := make([]float64, dims)
		for k := range out {
			out[k] = float64(res.Scale[i]) * float64(res.Rows[i*dims+k])
		}
		return out
	}
	for i := range want {
		for j := range want {
			if got, w := dot(row(i), row(j)), dot(want[i], want[j]); math.Abs(got-w) > tolerance {
				t.Fatalf("rows %d and %d: inner product %v, want %v", i, j, got, w)
			}
		}
	}
}

func TestFit(t *testing.T) {
	want := readReference(t)
	o := testOptions
	o.Dims = testDims // nothing is lost but by rounding to int8
	res, err := Fit(context.Background(), input(), o)
	if err != nil {
		t.Fatal(err)
	}
	var longest float64
	for _, row := range want.Table {
		longest = math.Max(longest, norm(row))
	}
	near(t, res, o.Dims, want.Table, 0.02*longest*longest)
	if res.Residual > o.Tolerance || res.Iterations == 0 || res.Corrected == 0 || res.Corrected > testVocabulary-5 {
		t.Errorf("%d iterations, residual %v, %d tokens corrected", res.Iterations, res.Residual, res.Corrected)
	}
	if math.Abs(res.Kept-1) > 1e-12 {
		t.Errorf("kept %v without a projection", res.Kept)
	}

	o.Tokens = 0
	if res, err = Fit(context.Background(), input(), o); err != nil {
		t.Fatal(err)
	}
	near(t, res, o.Dims, want.RidgeOnly, 0.02*longest*longest)
	if res.Corrected != 0 {
		t.Errorf("%d tokens corrected, want none", res.Corrected)
	}

	// Without texts the rows are the weighted vectors of the tokens.
	in := input()
	in.Texts, in.Teacher = nil, nil
	width, weights := len(in.Tokens)/testVocabulary, Weights(in.Counts, o.SIF)
	plain := make([][]float64, testVocabulary)
	for i := range plain {
		for _, v := range in.Tokens[i*width : (i+1)*width] {
			plain[i] = append(plain[i], weights[i]*float64(v))
		}
		longest = math.Max(longest, norm(plain[i]))
	}
	o.Dims = width
	if res, err = Fit(context.Background(), in, o); err != nil || res.Iterations != 0 {
		t.Fatal(err, res)
	}
	near(t, res, o.Dims, plain, 0.02*longest*longest)

	if res, err = Fit(context.Background(), input(), testOptions); err != nil {
		t.Fatal(err)
	}
	if math.Abs(res.Kept-want.Kept) > 1e-6 {
		t.Errorf("kept %v, want %v", res.Kept, want.Kept)
	}
}

// The solver itself, to the accuracy of float64.
func TestSolve(t *testing.T) {
	want := readReference(t)
	in := input()
	weights := Weights(in.Counts, testOptions.SIF)
	e := widen(in.Tokens, testVocabulary, testWidth)
	for i, w := range weights {
		for k := range testWidth {
			e.Set(i, k, w*e.At(i, k))
		}
	}
	c := pool(in.Texts, testVocabulary)
	x := c.mul(e)
	lengths := make([]float64, testTexts)
	for i := range lengths {
		if lengths[i] = norm(x.RawRowView(i)); lengths[i] > 0 {
			for k := range testWidth {
				x.Set(i, k, x.At(i, k)/lengths[i])
			}
		}
	}
	c.scale(lengths, weights)
	p := problem{x: x, y: widen(in.Teacher, testTexts, testDims), c: c, ridge: testOptions.Ridge, tokens: testOptions.Tokens}
	w, d, err := p.solve(context.Background(), 1e-13, &Result{})
	if err != nil {
		t.Fatal(err)
	}
	var table mat.Dense
	table.Mul(e, w)
	for k, token := range c.columns {
		for i := range testDims {
			table.Set(int(token), i, table.At(int(token), i)+weights[token]*d.At(k, i))
		}
	}
	for i, row := range want.Table {
		for k, v := range row {
			if math.Abs(table.At(i, k)-v) > 1e-10 {
				t.Fatalf("row %d, column %d: %v, want %v", i, k, table.At(i, k), v)
			}
		}
	}
}

// The same table on one processor and on several, and in every run.
func TestFitIsDeterministic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one, err := Fit(context.Background(), input(), testOptions)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GOMAXPROCS(4)
	for range 3 {
		again, err := Fit(context.Background(), input(), testOptions)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(one, again); diff != "" {
			t.Fatalf("(-one +several processors):\n%s", diff)
		}
	}
}

func TestFitRefuses(t *testing.T) {
	nan := float32(math.NaN())
	tests := []struct {
		name string
		edit func(*Input, *Options)
	}{
		{"no vocabulary", func(in *Input, _ *Options) { in.Counts = nil }},
		{"token vectors", func(in *Input, _ *Options) { in.Tokens = in.Tokens[1:] }},
		{"vectors of no texts", func(in *Input, _ *Options) { in.Texts = nil }},
		{"teacher vectors", func(in *Input, _ *Options) { in.Teacher = in.Teacher[1:] }},
		{"token out of range", func(in *Input, _ *Options) { in.Texts[0] = []int32{testVocabulary} }},
		{"negative token", func(in *Input, _ *Options) { in.Texts[0] = []int32{-1} }},
		{"negative count", func(in *Input, _ *Options) { in.Counts[3] = -1 }},
		{"NaN token vector", func(in *Input, _ *Options) { in.Tokens[3] = nan }},
		{"infinite teacher", func(in *Input, _ *Options) { in.Teacher[3] = float32(math.Inf(-1)) }},
		{"dims", func(_ *Input, o *Options) { o.Dims = testDims + 1 }},
		{"no dims", func(_ *Input, o *Options) { o.Dims = 0 }},
		{"sif", func(_ *Input, o *Options) { o.SIF = 0 }},
		{"ridge", func(_ *Input, o *Options) { o.Ridge = math.NaN() }},
		{"tokens", func(_ *Input, o *Options) { o.Tokens = -1 }},
		{"tolerance", func(_ *Input, o *Options) { o.Tolerance = 0 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in, o := input(), testOptions
			tt.edit(&in, &o)
			if _, err := Fit(context.Background(), in, o); !errors.Is(err, ErrInput) {
				t.Errorf("error %v, want %v", err, ErrInput)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Fit(ctx, input(), testOptions); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// Texts without a single token: nothing to fit, and no failure.
	in := input()
	for i := range in.Texts {
		in.Texts[i] = nil
	}
	res, err := Fit(context.Background(), in, testOptions)
	if err != nil || res.Corrected != 0 || slices.Max(res.Scale) != 0 {
		t.Errorf("no tokens: %+v, %v", res, err)
	}
}

func TestWeights(t *testing.T) {
	got := Weights([]int64{0, 1, 3}, 0.25)
	if want := []float64{1, 0.5, 0.25}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Weights([]int64{0, 0}, 0.25); !slices.Equal(got, []float64{1, 1}) {
		t.Errorf("without counts: %v", got)
	}
}

func TestQuantise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n, p = 3, 5
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), n*p, n*p).Draw(t, "values")
		small := rapid.Float64Range(1e-30, 1).Draw(t, "factor")
		for i := range p {
			values[i] *= small
		}
		rows, scale := Quantise(mat.NewDense(n, p, values))
		for i := range n {
			for k := range p {
				got := float64(scale[i]) * float64(rows[i*p+k])
				if half := float64(scale[i]) * 0.5001; math.Abs(got-values[i*p+k]) > math.Max(half, 1e-36) {
					t.Fatalf("row %d: %v became %v, step %v", i, values[i*p+k], got, scale[i])
				}
			}
		}
	})
	rows, scale := Quantise(mat.NewDense(2, 2, []float64{0, 0, 1e-60, -1e-60}))
	if slices.Max(scale) != 0 || slices.Max(rows) != 0 || slices.Min(rows) != 0 {
		t.Errorf("nothing: rows %v, scales %v", rows, scale)
	}
}
