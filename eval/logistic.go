package eval

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// parallelParts is how many parts the rows of a fit are cut into.
const parallelParts = 8

// ErrTraining is returned for data that a baseline cannot learn from.
var ErrTraining = errors.New("eval: cannot train the baseline")

// design is a matrix of n rows and a fixed number of columns, dense or sparse.
type design interface {
	rows() int
	cols() int
	dot(i int, w []float64) float64             // row i times w
	addTo(dst []float64, i int, factor float64) // dst += factor * row i
}

// sparseRows is a design of few non-zero values per row.
type sparseRows struct {
	width int
	index [][]int32
	value [][]float32
}

func (s *sparseRows) rows() int { return len(s.index) }
func (s *sparseRows) cols() int { return s.width }
func (s *sparseRows) dot(i int, w []float64) float64 {
	var sum float64
	for k, j := range s.index[i] {
		sum += w[j] * float64(s.value[i][k])
	}
	return sum
}
func (s *sparseRows) addTo(dst []float64, i int, factor float64) {
	for k, j := range s.index[i] {
		dst[j] += factor * float64(s.value[i][k])
	}
}

// denseRows is a design in one row-major block.
type denseRows struct {
	width int
	value []float32
}

func (d *denseRows) rows() int { return len(d.value) / max(d.width, 1) }
func (d *denseRows) cols() int { return d.width }
func (d *denseRows) row(i int) []float32 {
	return d.value[i*d.width : (i+1)*d.width]
}
func (d *denseRows) dot(i int, w []float64) float64 {
	var sum float64
	for j, x := range d.row(i) {
		sum += w[j] * float64(x)
	}
	return sum
}
func (d *denseRows) addTo(dst []float64, i int, factor float64) {
	for j, x := range d.row(i) {
		dst[j] += factor * float64(x)
	}
}

// logistic is a fitted logistic regression: logit = w x + b.
type logistic struct {
	w []float64
	b float64
}

// fitLogistic minimises
//
//	|w|^2 / 2 + c sum_i weight_i class(y_i) log(1 + exp(-s_i (w x_i + b)))
//
// by L-BFGS, s_i = 1 for target 1 and -1 for target 0. class(y) weighs both
// classes equally: total weight / (2 total weight of the class). The intercept
// is not penalised. It is the objective of scikit-learn's LogisticRegression
// with class_weight="balanced". Same input, same result.
func fitLogistic(x design, y []bool, weight []float64, c float64) (*logistic, error) {
	var pos, neg float64
	for i, t := range y {
		if !(weight[i] >= 0) || math.IsInf(weight[i], 1) {
			return nil, fmt.Errorf("%w: weight of row %d is %v, want 0 or more", ErrTraining, i, weight[i])
		}
		if t {
			pos += weight[i]
		} else {
			neg += weight[i]
		}
	}
	if pos == 0 || neg == 0 {
		return nil, fmt.Errorf("%w: total weight is %v of steps with a hazard and %v of steps without: both are needed", ErrTraining, pos, neg)
	}
	d := x.cols()
	total := pos + neg
	penalty := 1 / (c * total) // the objective is divided by c*total, so that its size does not depend on n
	row := make([]float64, len(y))
	for i, t := range y {
		if t {
			row[i] = weight[i] / (2 * pos)
		} else {
			row[i] = weight[i] / (2 * neg)
		}
	}
	// Rows are summed in a fixed number of parts, side by side: the result does
	// not depend on how many cores there are.
	var parts [parallelParts]struct {
		sum  float64
		grad []float64 // the intercept's last
	}
	for k := range parts {
		parts[k].grad = make([]float64, d+1)
	}
	p, value := lbfgs(d+1, func(p, grad []float64) float64 {
		w, b := p[:d], p[d]
		var wg sync.WaitGroup
		for k := range parts {
			wg.Go(func() {
				part := &parts[k]
				part.sum = 0
				clear(part.grad)
				for i := k * len(y) / parallelParts; i < (k+1)*len(y)/parallelParts; i++ {
					if row[i] == 0 {
						continue
					}
					z := x.dot(i, w) + b
					g := row[i]
					if y[i] {
						part.sum += row[i] * softplus(-z)
						g *= -sigmoid(-z)
					} else {
						part.sum += row[i] * softplus(z)
						g *= sigmoid(z)
					}
					part.grad[d] += g
					x.addTo(part.grad[:d], i, g)
				}
			})
		}
		wg.Wait()
		var sum float64
		for j, v := range w {
			sum += penalty * v * v / 2
			grad[j] = penalty * v
		}
		grad[d] = 0
		for k := range parts {
			sum += parts[k].sum
			axpy(grad, 1, parts[k].grad)
		}
		return sum
	})
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil, fmt.Errorf("%w: the loss is %v", ErrTraining, value)
	}
	return &logistic{w: p[:d], b: p[d]}, nil
}

// softplus is log(1 + exp(x)) without overflow.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}
