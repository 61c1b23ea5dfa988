package distill

import (
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/dreamguard/dreamguard/embed/static"
)

// counts is a sparse matrix with one row per text and one column per token that
// stands in a text, and its transpose.
type counts struct {
	columns []int32 // column -> token, ascending
	rows    lists   // [texts, columns]
	byToken lists   // [columns, texts]
}

// lists holds a sparse matrix by rows.
type lists struct {
	start []int // row i is at start[i]:start[i+1] of the others
	index []int32
	value []float64
}

// pool returns the matrix of what the occurrences of a token in a text count for.
func pool(texts [][]int32, vocabulary int) *counts {
	column := make([]int32, vocabulary)
	c := &counts{}
	for _, ids := range texts {
		for _, id := range ids {
			column[id] = 1
		}
	}
	for t, used := range column {
		if used > 0 {
			column[t] = int32(len(c.columns))
			c.columns = append(c.columns, int32(t))
		}
	}
	c.rows.start = append(c.rows.start, 0)
	var sorted []int32
	for _, ids := range texts {
		sorted = append(sorted[:0], ids...)
		slices.Sort(sorted)
		for i := 0; i < len(sorted); {
			j := i
			for j < len(sorted) && sorted[j] == sorted[i] {
				j++
			}
			c.rows.index = append(c.rows.index, column[sorted[i]])
			c.rows.value = append(c.rows.value, static.Damp(j-i))
			i = j
		}
		c.rows.start = append(c.rows.start, len(c.rows.index))
	}
	return c
}

// mul returns the product with the rows of table, [vocabulary, p], that belong
// to the columns.
func (c *counts) mul(table *mat.Dense) *mat.Dense {
	_, p := table.Dims()
	used := mat.NewDense(max(len(c.columns), 1), p, nil)
	for k, t := range c.columns {
		copy(used.RawRowView(k), table.RawRowView(int(t)))
	}
	out := mat.NewDense(len(c.rows.start)-1, p, nil)
	c.rows.addMul(out, used)
	return out
}

// scale multiplies column t by weights[t], divides row i by lengths[i] (a row of
// length 0 becomes zeros), and makes the transpose.
func (c *counts) scale(lengths, weights []float64) {
	for i, length := range lengths {
		for at := c.rows.start[i]; at < c.rows.start[i+1]; at++ {
			if length == 0 {
				c.rows.value[at] = 0
				continue
			}
			c.rows.value[at] *= weights[c.columns[c.rows.index[at]]] / length
		}
	}
	c.byToken = c.rows.transpose(len(c.columns))
}

func (l *lists) transpose(columns int) lists {
	t := lists{start: make([]int, columns+1), index: make([]int32, len(l.index)), value: make([]float64, len(l.value))}
	for _, k := range l.index {
		t.start[k+1]++
	}
	for k := range columns {
		t.start[k+1] += t.start[k]
	}
	next := slices.Clone(t.start)
	for i := range len(l.start) - 1 {
		for at := l.start[i]; at < l.start[i+1]; at++ {
			k := l.index[at]
			t.index[next[k]], t.value[next[k]] = int32(i), l.value[at]
			next[k]++
		}
	}
	return t
}

// addMul adds the product of l and b to dst. Every row of dst is summed by one
// goroutine in one order, so that the number of processors leaves no trace.
func (l *lists) addMul(dst, b *mat.Dense) {
	n := len(l.start) - 1
	parallel(n, func(i int) {
		y := vector(dst.RawRowView(i))
		for at := l.start[i]; at < l.start[i+1]; at++ {
			blas64.Axpy(l.value[at], vector(b.RawRowView(int(l.index[at]))), y)
		}
	})
}

// parallel calls do for 0 to n-1 in chunks on all processors.
func parallel(n int, do func(i int)) {
	const chunk = 64
	var wg sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for from := range next {
				for i := from; i < min(from+chunk, n); i++ {
					do(i)
				}
			}
		})
	}
	for from := 0; from < n; from += chunk {
		next <- from
	}
	close(next)
	wg.Wait()
}

func vector(v []float64) blas64.Vector { return blas64.Vector{N: len(v), Inc: 1, Data: v} }

func dot(a, b []float64) float64 { return blas64.Dot(vector(a), vector(b)) }
