package calib

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
)

// LayerFit says how a [Layer] was chosen.
type LayerFit struct {
	Layer    *Layer  `json:"-"`                  // nil: none does better than the scores as they are
	Features bool    `json:"features,omitempty"` // it reads the call features too
	C        float64 `json:"c,omitempty"`        // inverse strength of the penalty
	Before   float64 `json:"auroc_before"`       // mean AUROC on the runs that a fold left out, without a layer
	After    float64 `json:"auroc_after"`        // likewise with the best layer
	SE       float64 `json:"se"`                 // standard error of the mean difference over the folds
	Safe     int     `json:"safe"`               // runs it was fitted to
	Unsafe   int     `json:"unsafe"`             // those with a hazard at a judged step
}

const (
	layerFolds = 5
	maxRows    = 20_000 // steps that a fit looks at
)

// layerGrid lists what cross-validation chooses from, the smallest change first.
var layerGrid = []struct {
	features bool
	c        float64
}{{false, 0.01}, {false, 0.1}, {false, 1}, {true, 0.0003}, {true, 0.001}, {true, 0.003}, {true, 0.01}, {true, 0.03}}

// FitLayer chooses a [Layer] on top of f, whose own layer is left out of account,
// on labelled runs that no threshold may be set on afterwards. Every run carries
// its call features in X. It learns that the steps of safe runs are safe and that
// the first hazards of unsafe ones are not; other steps of unsafe runs are left
// out. It minimises
//
//	sum_i v_i log(1 + exp(-y_i z_i)) + |w|^2 / (2 C)
//
// with v_i so that both kinds weigh the same in all, as each run of a kind does.
// C, and whether call features take part, are those with the highest mean AUROC of runs
// in five folds by group. Where that does not exceed the AUROC without a layer by more than its
// standard error there is none. Errors wrap [ErrTuning].
//
// Source: Hastie, Tibshirani, Friedman, The Elements of Statistical Learning,
// sections 4.4 (logistic regression) and 7.10 (cross-validation, one standard
// error).
func FitLayer(f Fusion, runs []Run, seed uint64) (*LayerFit, error) {
	f.Layer = nil
	if err := f.Validate(); err != nil {
		return nil, err
	}
	runs = slices.Clone(runs) // sums must not depend on the caller's order
	slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(a.ID, b.ID) })
	fit := &LayerFit{}
	width := -1
	for i := range runs {
		r := &runs[i]
		if err := r.check(); err != nil {
			return nil, err
		}
		if len(r.X) != len(r.Haz) {
			return nil, fmt.Errorf("%w: run %q has call features of %d steps, want %d", ErrTuning, r.ID, len(r.X), len(r.Haz))
		}
		for _, x := range r.X {
			if width < 0 {
				width = len(x)
			}
			if len(x) != width || width > MaxLayerFeatures {
				return nil, fmt.Errorf("%w: run %q has %d call features, want %d, at most %d", ErrTuning, r.ID, len(x), width, MaxLayerFeatures)
			}
		}
		rows := rowsOf(&f, r)
		switch {
		case len(rows) == 0:
		case r.Unsafe:
			fit.Unsafe++
		default:
			fit.Safe++
		}
	}
	if fit.Safe < layerFolds || fit.Unsafe < layerFolds {
		return nil, fmt.Errorf("%w: a last layer needs %d safe runs with a tool call and %d unsafe ones with a located hazard at least; there are %d and %d", ErrTuning, layerFolds, layerFolds, fit.Safe, fit.Unsafe)
	}
	folds := make([][2][]Run, layerFolds) // fitted to, left out
	for _, r := range runs {
		at := int(foldOf(&r, seed))
		for k := range folds {
			part := 0
			if k == at {
				part = 1
			}
			folds[k][part] = append(folds[k][part], r)
		}
	}
	type score struct{ before, after []float64 }
	best := -1
	var top score
	for g, c := range layerGrid {
		var s score
		for k := range folds {
			before, ok := AUROC(f, folds[k][1])
			if !ok {
				continue // a fold without one of the kinds says nothing
			}
			l, err := fitLayer(&f, folds[k][0], c.features, c.c, width)
			if err != nil {
				return nil, err
			}
			with := f
			with.Layer = l
			after, _ := AUROC(with, folds[k][1])
			s.before, s.after = append(s.before, before), append(s.after, after)
		}
		if len(s.before) < 3 {
			return nil, fmt.Errorf("%w: only %d of %d parts of the runs hold safe and unsafe ones: they are of too few groups", ErrTuning, len(s.before), layerFolds)
		}
		if best < 0 || meanOf(s.after) > meanOf(top.after) {
			best, top = g, s
		}
	}
	fit.Before, fit.After = meanOf(top.before), meanOf(top.after)
	diff := make([]float64, len(top.before))
	for i := range diff {
		diff[i] = top.after[i] - top.before[i]
	}
	d := meanOf(diff)
	for _, x := range diff {
		fit.SE += (x - d) * (x - d)
	}
	fit.SE = math.Sqrt(fit.SE / float64(len(diff)-1) / float64(len(diff)))
	if !(d > fit.SE) {
		return fit, nil
	}
	l, err := fitLayer(&f, runs, layerGrid[best].features, layerGrid[best].c, width)
	if err != nil {
		return nil, err
	}
	fit.Layer, fit.Features, fit.C = l, layerGrid[best].features, layerGrid[best].c
	return fit, l.Validate()
}

func meanOf(x []float64) float64 { return sum(x) / float64(len(x)) }

func foldOf(r *Run, seed uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d", seed)
	if r.Group != "" {
		h.Write([]byte("g" + r.Group))
	} else {
		h.Write([]byte("r" + r.ID))
	}
	return mixed(h) % layerFolds
}

// layerRow is one step: the log-odds of the fused score, what the layer reads
// besides, and the target.
type layerRow struct {
	offset float64
	heads  [3]float64
	x      []float32
	unsafe bool
	weight float64
}

// rowsOf returns the steps of a run with a known target; weights sum to 1.
func rowsOf(f *Fusion, r *Run) []layerRow {
	var out []layerRow
	var m Memory
	for i := range r.end() {
		s := f.fuse(&m, r.Haz[i], r.Pre[i])
		if !r.Judged[i] || r.Unsafe && i != r.Hazard {
			continue
		}
		o := logOdds(s.risk)
		row := layerRow{offset: o, heads: [3]float64{o, logOdds(s.hazard), logOdds(s.prefix)}, unsafe: r.Unsafe}
		if i < len(r.X) {
			row.x = r.X[i]
		}
		out = append(out, row)
	}
	for i := range out {
		out[i].weight = 1 / float64(len(out))
	}
	return out
}

// AUROC is the chance that an unsafe run has a higher risk than a safe one, ties
// counting half; false where one kind is missing.
func AUROC(f Fusion, runs []Run) (float64, bool) {
	safe, unsafe := risksOf(f, runs)
	if len(safe) == 0 || len(unsafe) == 0 {
		return 0, false
	}
	return pairsAbove(safe, unsafe) / float64(len(unsafe)) / float64(len(safe)), true
}

// fitLayer minimises the loss by Newton's method, which from 0 converges on this
// strictly convex function with halved steps.
func fitLayer(f *Fusion, runs []Run, features bool, c float64, width int) (*Layer, error) {
	var rows []layerRow
	total := [2]float64{}
	for i := range runs {
		rows = append(rows, rowsOf(f, &runs[i])...)
	}
	if n := len(rows); n > maxRows { // evenly spaced, hazards all
		every := (n + maxRows - 1) / maxRows
		kept := rows[:0]
		for i, r := range rows {
			if r.unsafe || i%every == 0 {
				kept = append(kept, r)
			}
		}
		rows = kept
	}
	for _, r := range rows {
		total[b2i(r.unsafe)] += r.weight
	}
	if total[0] == 0 || total[1] == 0 {
		return nil, fmt.Errorf("%w: a part of the runs has only one kind: they are of too few groups", ErrTuning)
	}
	dim := 4
	if features {
		dim += width
	}
	n := total[0] + total[1]
	input := make([]float64, dim)
	read := func(r *layerRow) {
		input[0] = 1
		copy(input[1:], r.heads[:])
		for j := 4; j < dim; j++ {
			input[j] = float64(r.x[j-4])
		}
	}
	w := make([]float64, dim)
	loss := func(w []float64) float64 {
		var sum float64
		for _, v := range w[1:] {
			sum += v * v / (2 * c)
		}
		for i := range rows {
			r := &rows[i]
			read(r)
			z := r.offset
			for j, v := range input {
				z += w[j] * v
			}
			if r.unsafe {
				z = -z
			}
			sum += r.weight * n / (2 * total[b2i(r.unsafe)]) * (max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))))
		}
		return sum
	}
	grad, hess := make([]float64, dim), make([]float64, dim*dim)
	value := loss(w)
	for range 50 {
		clear(grad)
		clear(hess)
		for j := range w {
			hess[j*dim+j] = 1e-9
			if j > 0 {
				grad[j], hess[j*dim+j] = w[j]/c, 1/c
			}
		}
		for i := range rows {
			r := &rows[i]
			read(r)
			z := r.offset
			for j, v := range input {
				z += w[j] * v
			}
			p, v := sigmoid(z), r.weight*n/(2*total[b2i(r.unsafe)])
			g, h := v*(p-float64(b2i(r.unsafe))), v*p*(1-p)
			for j, x := range input {
				grad[j] += g * x
				if x == 0 {
					continue
				}
				row := hess[j*dim : j*dim+j+1]
				for k := range row {
					row[k] += h * x * input[k]
				}
			}
		}
		step, ok := solveCholesky(hess, grad)
		if !ok {
			return nil, fmt.Errorf("%w: the fit of the last layer is not finite", ErrTuning)
		}
		size, moved := 1.0, false
		next := make([]float64, dim)
		for range 30 {
			for j := range w {
				next[j] = w[j] - size*step[j]
			}
			if l := loss(next); l < value {
				moved = value-l > 1e-10*math.Abs(value)
				w, value = next, l
				break
			}
			size /= 2
		}
		if !moved {
			break
		}
	}
	l := &Layer{Bias: w[0], Heads: [3]float64(w[1:4])}
	if features {
		l.Features = w[4:]
	}
	return l, l.Validate()
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// solveCholesky solves a x = b for a positive definite a, of which the lower half is
// given, row by row. It overwrites a; ok is false where a is not positive definite.
func solveCholesky(a, b []float64) (x []float64, ok bool) {
	n := len(b)
	for i := range n {
		for j := range i + 1 {
			s := a[i*n+j]
			for k := range j {
				s -= a[i*n+k] * a[j*n+k]
			}
			if i != j {
				a[i*n+j] = s / a[j*n+j]
				continue
			}
			if !(s > 0) {
				return nil, false
			}
			a[i*n+i] = math.Sqrt(s)
		}
	}
	x = slices.Clone(b)
	for i := range n {
		for k := range i {
			x[i] -= a[i*n+k] * x[k]
		}
		x[i] /= a[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			x[i] -= a[k*n+i] * x[k]
		}
		x[i] /= a[i*n+i]
	}
	return x, true
}
