package distill

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Version numbers the method. It changes with every change of code that gives
// another table for the same input and options.
const Version = 1

// ErrInput is returned for input or options that Fit cannot work with. The
// message names the field.
var ErrInput = errors.New("distill: bad input")

// Input is what a table is fitted to. Matrices are row-major.
type Input struct {
	Tokens  []float32 // [vocabulary, width] the teacher's output for each token, finite
	Counts  []int64   // [vocabulary] occurrences in the corpus
	Texts   [][]int32 // token ids of the texts to fit, each below the size of the vocabulary; none = W is the identity
	Teacher []float32 // [texts, teacher dims] the teacher's vectors of these texts
}

// Options are the settings of Fit.
type Options struct {
	Dims      int     // vector length of the table
	SIF       float64 // a of the token weight a/(a+p), above 0; larger values tell frequent and rare words less apart
	Ridge     float64 // penalty of the map, above 0; the mean squared length of a text's features is 1
	Tokens    float64 // penalty of the corrections of single tokens, in the same unit; 0 = no corrections
	Tolerance float64 // the solver stops at this residual relative to the right-hand side
}

// Defaults are the settings that the shipped table was made with, chosen on
// validation groups.
func Defaults(dims int) Options {
	return Options{Dims: dims, SIF: 0.1, Ridge: 0.1, Tokens: 1, Tolerance: 1e-3}
}

// Result is a fitted table and how the fit went.
type Result struct {
	Rows       []int8    // [vocabulary, dims] row-major
	Scale      []float32 // [vocabulary]
	Iterations int       // of the solver
	Residual   float64   // relative, where it stopped
	Kept       float64   // share of the rows' squared length that the projection keeps, 0 to 1
	Corrected  int       // tokens with a correction: those that stand in a text
}

// maxIterations is far beyond what any sound input needs; where it is reached,
// Result.Residual says how far the solver came.
const maxIterations = 500

// Fit fits a table. The result depends on the input and the options alone, not
// on the number of processors. Its errors are [ErrInput] and that of ctx.
func Fit(ctx context.Context, in Input, o Options) (*Result, error) {
	width, dims, err := in.check(o)
	if err != nil {
		return nil, err
	}
	vocabulary := len(in.Counts)
	weights := Weights(in.Counts, o.SIF)
	e := widen(in.Tokens, vocabulary, width)
	for t, w := range weights {
		row := e.RawRowView(t)
		for i := range row {
			row[i] *= w
		}
	}
	res := &Result{}
	table := e
	if len(in.Texts) > 0 {
		if table, err = fit(ctx, in.Texts, e, widen(in.Teacher, len(in.Texts), dims), weights, o, res); err != nil {
			return nil, err
		}
	}
	small, kept, err := Reduce(table, o.Dims)
	if err != nil {
		return nil, err
	}
	res.Kept = kept
	res.Rows, res.Scale = Quantise(small)
	return res, nil
}

// fit returns the rows u_t in the teacher's space. e holds w_t e_t, y the teacher's
// vectors of the texts.
func fit(ctx context.Context, texts [][]int32, e, y *mat.Dense, weights []float64, o Options, res *Result) (*mat.Dense, error) {
	c := pool(texts, len(weights))
	x := c.mul(e)
	lengths := make([]float64, len(texts))
	for i := range lengths {
		row := x.RawRowView(i)
		lengths[i] = norm(row)
		if lengths[i] == 0 {
			continue // a text without tokens says nothing
		}
		for k := range row {
			row[k] /= lengths[i]
		}
	}
	table := new(mat.Dense)
	if o.Tokens == 0 {
		w, err := Ridge(x, y, o.Ridge)
		if err != nil {
			return nil, err
		}
		table.Mul(e, w)
		return table, nil
	}
	c.scale(lengths, weights)
	p := problem{x: x, c: c, y: y, ridge: o.Ridge, tokens: o.Tokens}
	w, d, err := p.solve(ctx, o.Tolerance, res)
	if err != nil {
		return nil, err
	}
	table.Mul(e, w)
	for k, t := range c.columns {
		row, fix := table.RawRowView(int(t)), d.RawRowView(k)
		for i := range row {
			row[i] += weights[t] * fix[i]
		}
	}
	res.Corrected = len(c.columns)
	return table, nil
}

// check returns the width of a token's and of a text's vector.
func (in *Input) check(o Options) (width, dims int, err error) {
	bad := func(format string, a ...any) (int, int, error) {
		return 0, 0, fmt.Errorf("%w: %s", ErrInput, fmt.Sprintf(format, a...))
	}
	switch {
	case len(in.Counts) == 0:
		return bad("Counts is empty: want one count per token of the vocabulary")
	case len(in.Tokens) == 0 || len(in.Tokens)%len(in.Counts) != 0:
		return bad("Tokens has %d values for %d tokens: want one vector per token", len(in.Tokens), len(in.Counts))
	case len(in.Texts) == 0 && len(in.Teacher) > 0:
		return bad("Teacher has %d values for no texts", len(in.Teacher))
	case len(in.Texts) > 0 && (len(in.Teacher) == 0 || len(in.Teacher)%len(in.Texts) != 0):
		return bad("Teacher has %d values for %d texts: want one vector per text", len(in.Teacher), len(in.Texts))
	}
	width = len(in.Tokens) / len(in.Counts)
	if dims = width; len(in.Texts) > 0 {
		dims = len(in.Teacher) / len(in.Texts)
	}
	switch {
	case o.Dims < 1 || o.Dims > dims:
		return bad("Dims is %d: want 1 to the teacher's %d", o.Dims, dims)
	case !(o.SIF > 0) || math.IsInf(o.SIF, 1):
		return bad("SIF is %v: want more than 0", o.SIF)
	case !(o.Ridge > 0) || math.IsInf(o.Ridge, 1):
		return bad("Ridge is %v: want more than 0", o.Ridge)
	case !(o.Tokens >= 0) || math.IsInf(o.Tokens, 1):
		return bad("Tokens is %v: want 0 or more", o.Tokens)
	case o.Tokens > 0 && !(o.Tolerance > 0 && o.Tolerance < 1):
		return bad("Tolerance is %v: want between 0 and 1", o.Tolerance)
	}
	for t, n := range in.Counts {
		if n < 0 {
			return bad("Counts[%d] is %d: want 0 or more", t, n)
		}
	}
	for i, ids := range in.Texts {
		for _, id := range ids {
			if id < 0 || int(id) >= len(in.Counts) {
				return bad("Texts[%d] has token %d of a vocabulary of %d", i, id, len(in.Counts))
			}
		}
	}
	for _, list := range []struct {
		name   string
		values []float32
	}{{"Tokens", in.Tokens}, {"Teacher", in.Teacher}} {
		for i, v := range list.values {
			if v-v != 0 { // NaN and infinities
				return bad("%s[%d] is %v", list.name, i, v)
			}
		}
	}
	return width, dims, nil
}

// Weights returns a / (a + p) for every token, p its share of all counts.
func Weights(counts []int64, a float64) []float64 {
	var total float64
	for _, n := range counts {
		total += float64(n)
	}
	out := make([]float64, len(counts))
	for t, n := range counts {
		p := 0.0
		if n > 0 {
			p = float64(n) / total
		}
		out[t] = a / (a + p)
	}
	return out
}

// Ridge returns the matrix W that minimises |y - x W|^2 + lambda |W|^2, which is
// (x'x + lambda I)^-1 x'y. x is [n, p], y [n, q], W [p, q].
func Ridge(x, y *mat.Dense, lambda float64) (*mat.Dense, error) {
	chol, err := gram(x, lambda)
	if err != nil {
		return nil, err
	}
	var xy, w mat.Dense
	xy.Mul(x.T(), y)
	if err := chol.SolveTo(&w, &xy); err != nil {
		return nil, fmt.Errorf("%w: ridge: %w: raise the penalty", ErrInput, err)
	}
	return &w, nil
}

// gram factorises x'x + lambda I.
func gram(x *mat.Dense, lambda float64) (*mat.Cholesky, error) {
	_, p := x.Dims()
	var xx mat.Dense
	xx.Mul(x.T(), x)
	sym := mat.NewSymDense(p, nil)
	for i := range p {
		for j := i; j < p; j++ {
			sym.SetSym(i, j, xx.At(i, j))
		}
		sym.SetSym(i, i, xx.At(i, i)+lambda)
	}
	chol := new(mat.Cholesky)
	if !chol.Factorize(sym) {
		return nil, fmt.Errorf("%w: ridge: the normal equations are singular: raise the penalty", ErrInput)
	}
	return chol, nil
}

func widen(v []float32, rows, cols int) *mat.Dense {
	out := mat.NewDense(rows, cols, nil)
	data := out.RawMatrix().Data
	for i, x := range v {
		data[i] = float64(x)
	}
	return out
}

func norm(v []float64) float64 { return math.Sqrt(dot(v, v)) }
