package eval

import "math"

// lbfgs minimises a smooth, strictly convex function of dim variables from 0.
// f returns the value at x and fills grad. Strict convexity makes every step's
// curvature positive, so that a backtracking line search suffices. It ends when
// the largest component of the gradient is below 1e-6, when the value no longer
// falls, or after 500 iterations.
//
// Source: Nocedal, Wright, Numerical Optimization, algorithms 7.4 and 3.1.
func lbfgs(dim int, f func(x, grad []float64) float64) (x []float64, value float64) {
	const (
		memory     = 10
		iterations = 500
		armijo     = 1e-4
	)
	type pair struct {
		s, y []float64
		rho  float64
	}
	var pairs []pair
	x = make([]float64, dim)
	grad, next, nextGrad, dir := make([]float64, dim), make([]float64, dim), make([]float64, dim), make([]float64, dim)
	value = f(x, grad)
	stalled := 0
	for range iterations {
		if largest(grad) < 1e-6 {
			break
		}
		// The two-loop recursion: dir = -H grad.
		copy(dir, grad)
		alpha := make([]float64, len(pairs))
		for i := len(pairs) - 1; i >= 0; i-- {
			alpha[i] = pairs[i].rho * inner(pairs[i].s, dir)
			axpy(dir, -alpha[i], pairs[i].y)
		}
		if k := len(pairs); k > 0 {
			last := pairs[k-1]
			scale(dir, 1/(last.rho*inner(last.y, last.y)))
		} else {
			scale(dir, 1/max(math.Sqrt(inner(grad, grad)), 1))
		}
		for i := range pairs {
			axpy(dir, alpha[i]-pairs[i].rho*inner(pairs[i].y, dir), pairs[i].s)
		}
		scale(dir, -1)
		slope := inner(grad, dir)
		if slope >= 0 { // rounding at the optimum
			break
		}
		step, moved := 1.0, false
		var nextValue float64
		for range 40 {
			copy(next, x)
			axpy(next, step, dir)
			nextValue = f(next, nextGrad)
			if nextValue <= value+armijo*step*slope { // false for NaN
				moved = true
				break
			}
			step /= 2
		}
		if !moved {
			break
		}
		s, y := make([]float64, dim), make([]float64, dim)
		for j := range s {
			s[j], y[j] = next[j]-x[j], nextGrad[j]-grad[j]
		}
		if sy := inner(s, y); sy > 0 {
			if len(pairs) == memory {
				pairs = append(pairs[:0:0], pairs[1:]...)
			}
			pairs = append(pairs, pair{s, y, 1 / sy})
		}
		if value-nextValue <= 1e-9*math.Abs(value) {
			stalled++
		} else {
			stalled = 0
		}
		x, next = next, x
		grad, nextGrad = nextGrad, grad
		value = nextValue
		if stalled == 3 {
			break
		}
	}
	return x, value
}

func inner(a, b []float64) float64 {
	var sum float64
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

func axpy(dst []float64, a float64, x []float64) {
	for i, v := range x {
		dst[i] += a * v
	}
}

func scale(x []float64, a float64) {
	for i := range x {
		x[i] *= a
	}
}

func largest(x []float64) float64 {
	var m float64
	for _, v := range x {
		m = max(m, math.Abs(v))
	}
	return m
}
