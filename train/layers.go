package train

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// lnEpsilon is the epsilon of every layer normalisation.
const lnEpsilon = 1e-5

// standardise returns (x - mean) / sqrt(variance + epsilon) over the last axis of
// x [n, d]. The gradient is written out: for v arriving at x - mean it is
// v - mean(v) - y mean(v y), a third of the operations of plain reverse mode.
func standardise(x *Node) *Node {
	d := float64(x.Shape().Dim(-1))
	mean := MulScalar(ReduceAndKeep(StopGradient(x), ReduceSum, -1), 1/d)
	var y *Node // set below, before any gradient is taken
	in := IdentityWithCustomGradient(x, func(_, v *Node) *Node {
		dot := MulScalar(ReduceAndKeep(Mul(v, y), ReduceSum, -1), 1/d)
		shift := MulScalar(ReduceAndKeep(v, ReduceSum, -1), 1/d)
		return Sub(Sub(v, shift), Mul(y, dot))
	})
	centred := Sub(in, StopGradient(mean))
	variance := MulScalar(ReduceAndKeep(Square(StopGradient(centred)), ReduceSum, -1), 1/d)
	y = Mul(centred, StopGradient(Reciprocal(Sqrt(AddScalar(variance, lnEpsilon)))))
	return y
}

// silu is x sigmoid(x).
func silu(x *Node) *Node { return Mul(x, Sigmoid(x)) }

// row turns a vector [d] into [1, d], which broadcasts over rows.
func row(v *Node) *Node { return InsertAxes(v, 0) }

// softmax is the softmax over the last axis.
func softmax(x *Node) *Node {
	e := Exp(Sub(x, StopGradient(ReduceAndKeep(x, ReduceMax, -1))))
	return Div(e, ReduceAndKeep(e, ReduceSum, -1))
}

// mixed turns logits [n, G*C] into probabilities [n, G, C]:
// (1 - m) softmax(logits) + m / C per factor. The uniform share keeps every
// probability, and so every logarithm, bounded.
func mixed(logits *Node, s sizes, m float64) *Node {
	p := softmax(Reshape(logits, logits.Shape().Dim(0), s.G, s.C))
	return AddScalar(MulScalar(p, 1-m), m/float64(s.C))
}

// sampled draws one class per factor of p [n, G, C] with the uniform numbers
// u [n, G] by inverting the distribution function, and returns the one-hot
// choice [n, G*C] with the straight-through gradient: that of p itself. The
// numbers come from the host, so that a run does not depend on a backend's
// generator.
func sampled(p, u *Node) *Node {
	n, g, c := p.Shape().Dim(0), p.Shape().Dim(1), p.Shape().Dim(2)
	flat := Reshape(StopGradient(p), n*g, c)
	// below[j] is 1 where the distribution function at class j exceeds u: 0 ... 0
	// 1 ... 1, whose first difference is the one-hot choice. Both are products
	// with constant triangular matrices, exact for zeros and ones.
	product := func(x *Node, m [][]float32) *Node {
		return DotGeneral(x, []int{1}, nil, Const(p.Graph(), m), []int{0}, nil)
	}
	cdf := product(flat, triangle(c))
	below := ConvertDType(GreaterThan(cdf, Reshape(u, n*g, 1)), p.DType())
	onehot := Reshape(product(below, difference(c)), n, g, c)
	z := Add(p, StopGradient(Sub(onehot, p)))
	return Reshape(z, n, g*c)
}

// triangle is the matrix of a running sum: x triangle has sum(x[:j+1]) at j.
func triangle(n int) [][]float32 {
	m := make([][]float32, n)
	for i := range m {
		m[i] = make([]float32, n)
		for j := i; j < n; j++ {
			m[i][j] = 1
		}
	}
	return m
}

// difference is the inverse of triangle: x difference has x[j] - x[j-1] at j.
func difference(n int) [][]float32 {
	m := make([][]float32, n)
	for i := range m {
		m[i] = make([]float32, n)
		m[i][i] = 1
		if i+1 < n {
			m[i][i+1] = -1
		}
	}
	return m
}

// mode returns the one-hot of the most probable class of every factor of
// p [n, G, C], the first one on a tie, as [n, G*C].
func mode(p *Node) *Node {
	n, g, c := p.Shape().Dim(0), p.Shape().Dim(1), p.Shape().Dim(2)
	return Reshape(OneHot(ArgMax(p, -1), c, p.DType()), n, g*c)
}
