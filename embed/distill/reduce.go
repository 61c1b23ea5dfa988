package distill

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Reduce projects the rows of table, [n, p], on their dims leading right singular
// vectors, and returns the share of their squared length that is left. The
// vectors are those of the eigenvalues of table'table; the sign of each is
// chosen so that its largest value is positive.
func Reduce(table *mat.Dense, dims int) (*mat.Dense, float64, error) {
	_, p := table.Dims()
	var xx mat.Dense
	xx.Mul(table.T(), table)
	sym := mat.NewSymDense(p, nil)
	for i := range p {
		for j := i; j < p; j++ {
			sym.SetSym(i, j, xx.At(i, j))
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(sym, true) {
		return nil, 0, errors.New("distill: the eigenvalues of the table were not found")
	}
	values := eigen.Values(nil) // ascending
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	basis := mat.NewDense(p, dims, nil)
	var all, kept float64
	for _, v := range values {
		all += math.Max(v, 0)
	}
	for k := range dims {
		from := p - 1 - k
		kept += math.Max(values[from], 0)
		sign, largest := 1.0, 0.0
		for i := range p {
			if v := vectors.At(i, from); math.Abs(v) > largest {
				largest, sign = math.Abs(v), math.Copysign(1, v)
			}
		}
		for i := range p {
			basis.Set(i, k, sign*vectors.At(i, from))
		}
	}
	var out mat.Dense
	out.Mul(table, basis)
	if all == 0 {
		return &out, 0, nil
	}
	return &out, kept / all, nil
}

// Quantise rounds every row to steps of a 127th of its largest value: row i of
// the result, times scale[i], differs from that of table by half a step at most.
// A row of zeros, or one too small for a float32, has scale 0.
func Quantise(table *mat.Dense) (rows []int8, scale []float32) {
	n, p := table.Dims()
	rows, scale = make([]int8, n*p), make([]float32, n)
	for i := range n {
		row := table.RawRowView(i)
		var largest float64
		for _, v := range row {
			largest = math.Max(largest, math.Abs(v))
		}
		s := float32(largest / 127)
		if s < math.SmallestNonzeroFloat32*(1<<23) {
			continue
		}
		scale[i] = s
		for k, v := range row {
			// Rounding of s can carry the largest value beyond the range.
			rows[i*p+k] = int8(math.Max(-127, math.Min(127, math.RoundToEven(v/float64(s)))))
		}
	}
	return rows, scale
}
