package distill

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"
)

// problem is the ridge regression
//
//	min over W, D of |y - x W - c D|^2 + ridge |W|^2 + tau |D|^2
//
// where tau is tokens times the mean squared length of a row of c.
type problem struct {
	x, y          *mat.Dense // [texts, width], [texts, q]
	c             *counts    // scaled
	ridge, tokens float64
}

// unknowns is a pair (W, D), or anything else of its shape.
type unknowns struct{ w, d *mat.Dense }

func (p *problem) zeros() unknowns {
	_, width := p.x.Dims()
	_, q := p.y.Dims()
	return unknowns{mat.NewDense(width, q, nil), mat.NewDense(max(len(p.c.columns), 1), q, nil)}
}

// solve runs the method of conjugate gradients on the normal equations, one
// solution per column of y, all columns at once (Golub and Van Loan, Matrix
// Computations, 4th ed., algorithm 11.5.1). The preconditioner is their block
// of W, factorised, and their diagonal for D: the columns of x are far from
// orthogonal, those of c nearly are.
func (p *problem) solve(ctx context.Context, tolerance float64, res *Result) (w, d *mat.Dense, err error) {
	var squares float64
	for _, v := range p.c.rows.value {
		squares += v * v
	}
	n, q := p.y.Dims()
	tau := p.tokens * squares / float64(n)
	if tau == 0 {
		tau = 1 // no text has a token: D stays zero
	}
	block, err := gram(p.x, p.ridge)
	if err != nil {
		return nil, nil, err
	}
	diagonal := make([]float64, len(p.c.columns))
	for k := range diagonal {
		diagonal[k] = tau
		for _, v := range p.c.byToken.value[p.c.byToken.start[k]:p.c.byToken.start[k+1]] {
			diagonal[k] += v * v
		}
	}

	solution, residual, z := p.zeros(), p.zeros(), p.zeros()
	p.adjoint(residual, p.y)
	start := residual.norm()
	precondition := func() error {
		if err := block.SolveTo(z.w, residual.w); err != nil {
			return err
		}
		for k, s := range diagonal {
			from, to := residual.d.RawRowView(k), z.d.RawRowView(k)
			for i, v := range from {
				to[i] = v / s
			}
		}
		return nil
	}
	if err := precondition(); err != nil {
		return nil, nil, err
	}
	direction, image := p.zeros(), p.zeros()
	direction.w.Copy(z.w)
	direction.d.Copy(z.d)
	rz := residual.columns(z)
	fitted := mat.NewDense(n, q, nil)
	step, back := make([]float64, q), make([]float64, q)
	for res.Iterations = 0; res.Iterations < maxIterations; res.Iterations++ {
		if res.Residual = ratio(residual.norm(), start); res.Residual <= tolerance {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		fitted.Mul(p.x, direction.w)
		p.c.rows.addMul(fitted, direction.d)
		p.adjoint(image, fitted)
		image.add(direction, p.ridge, tau)
		curve := direction.columns(image)
		for i := range step {
			step[i], back[i] = ratio(rz[i], curve[i]), -ratio(rz[i], curve[i])
		}
		solution.addColumns(direction, step)
		residual.addColumns(image, back)
		if err := precondition(); err != nil {
			return nil, nil, err
		}
		next := residual.columns(z)
		for i := range step {
			step[i] = ratio(next[i], rz[i])
		}
		rz = next
		direction.scaleColumns(step)
		direction.add(z, 1, 1)
	}
	return solution.w, solution.d, nil
}

// adjoint sets dst to (x's, c's).
func (p *problem) adjoint(dst unknowns, s *mat.Dense) {
	dst.w.Mul(p.x.T(), s)
	dst.d.Zero()
	p.c.byToken.addMul(dst.d, s)
}

// ratio is a/b, and 0 where both are: a column that is solved stays.
func ratio(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return a / b
}

func (u unknowns) norm() float64 {
	w, d := u.w.RawMatrix().Data, u.d.RawMatrix().Data
	return math.Sqrt(dot(w, w) + dot(d, d))
}

// parts are the rows of w and of d.
func (u unknowns) parts() [2]*mat.Dense { return [2]*mat.Dense{u.w, u.d} }

// columns returns the inner products of the columns of u and v.
func (u unknowns) columns(v unknowns) []float64 {
	_, q := u.w.Dims()
	out := make([]float64, q)
	for i, a := range u.parts() {
		b := v.parts()[i]
		n, _ := a.Dims()
		for r := range n {
			x, y := a.RawRowView(r), b.RawRowView(r)
			for k := range out {
				out[k] += x[k] * y[k]
			}
		}
	}
	return out
}

// addColumns adds column k of v times f[k].
func (u unknowns) addColumns(v unknowns, f []float64) {
	for i, a := range u.parts() {
		b := v.parts()[i]
		n, _ := a.Dims()
		for r := range n {
			x, y := a.RawRowView(r), b.RawRowView(r)
			for k, s := range f {
				x[k] += s * y[k]
			}
		}
	}
}

func (u unknowns) scaleColumns(f []float64) {
	for _, a := range u.parts() {
		n, _ := a.Dims()
		for r := range n {
			x := a.RawRowView(r)
			for k, s := range f {
				x[k] *= s
			}
		}
	}
}

// add adds v, its parts multiplied by fw and fd.
func (u unknowns) add(v unknowns, fw, fd float64) {
	for i, f := range [2]float64{fw, fd} {
		x, y := u.parts()[i].RawMatrix().Data, v.parts()[i].RawMatrix().Data
		for k := range x {
			x[k] += f * y[k]
		}
	}
}
