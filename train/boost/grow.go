package boost

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dreamguard/dreamguard/internal/forest"
)

// booster is the state of a fit. Bins are kept by column.
type booster struct {
	o         Options
	cut       [][]float32 // per feature: value <= cut[k] is in bin k or lower
	bin       [][]uint8   // per feature and row
	offset    []int       // of a feature's bins in a histogram; one more at the end
	grad, hes []float64   // per row
	order     []int32     // rows, those of a leaf side by side
	spare     []int32
	sums      []bucket // of the rows of a leaf, side by side
	free      [][]bucket
}

// bucket sums the rows of one bin: first and second derivative of the loss, and
// how many they are.
type bucket struct {
	g, h float64
	n    int
}

func (s *bucket) add(o bucket)         { s.g += o.g; s.h += o.h; s.n += o.n }
func (s bucket) minus(o bucket) bucket { return bucket{s.g - o.g, s.h - o.h, s.n - o.n} }

// leaf is a leaf that may still be split.
type leaf struct {
	node, depth int
	from, to    int // in order
	sum         bucket
	hist        []bucket
	split       split
}

type split struct {
	gain         float64 // 0: none
	feature, bin int
	left         bucket
}

// Grow fits trees on fit and keeps those up to the lowest loss on held, all of them
// where held has no rows. losses are those on held: before the first tree, and after
// each. Nothing is drawn at random: same input, same forest, on any number of cores.
//
// Errors wrap [ErrOptions], [ErrRows] (a target must be missed and met with some weight)
// or ctx.Err().
func Grow(ctx context.Context, fit, held Rows, o Options) (f *Forest, losses []float64, err error) {
	if o, err = o.filled(); err != nil {
		return nil, nil, err
	}
	if err := fit.check(-1); err != nil {
		return nil, nil, err
	}
	if err := held.check(fit.width()); err != nil {
		return nil, nil, fmt.Errorf("validation: %w", err)
	}
	var pos, total float64
	for i, w := range fit.Weight {
		total += w
		pos += w * fit.Y[i]
	}
	if pos == 0 || pos == total {
		return nil, nil, fmt.Errorf("%w: total weight is %v of targets met and %v of targets missed: both are needed", ErrRows, pos, total-pos)
	}
	if math.IsInf(total, 1) {
		return nil, nil, fmt.Errorf("%w: the weights are too large to be added", ErrRows)
	}
	out := &Forest{Start: math.Log(pos / (total - pos))}
	grower := newBooster(fit, o)
	z, zHeld := slices.Repeat([]float64{out.Start}, len(fit.Y)), slices.Repeat([]float64{out.Start}, len(held.Y))
	losses = append(losses, held.loss(zHeld))
	best := 0
	for range o.Trees {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		tree := grower.tree(fit, z)
		if len(tree) == 1 { // the next would be no different
			break
		}
		out.Trees = append(out.Trees, tree)
		if len(held.Y) == 0 {
			continue
		}
		for i, x := range held.X {
			zHeld[i] += float64(tree.Value(x))
		}
		losses = append(losses, held.loss(zHeld))
		if n := len(out.Trees); losses[n] < losses[best] {
			best = n
		} else if n-best >= o.Patience {
			break
		}
	}
	if len(held.Y) > 0 {
		out.Trees = out.Trees[:best]
	}
	return out, losses, nil
}

func newBooster(fit Rows, o Options) *booster {
	n, width := len(fit.Y), fit.width()
	b := &booster{
		o: o, cut: make([][]float32, width), bin: make([][]uint8, width), offset: make([]int, width+1),
		grad: make([]float64, n), hes: make([]float64, n), order: make([]int32, n), spare: make([]int32, n), sums: make([]bucket, n),
	}
	eachFeature(width, func(j int) {
		column := make([]float32, n)
		for i, x := range fit.X {
			column[i] = x[j]
		}
		b.cut[j], b.bin[j] = cuts(column, o.Bins), make([]uint8, n)
		for i, x := range column {
			k, _ := slices.BinarySearch(b.cut[j], x)
			b.bin[j][i] = uint8(k)
		}
	})
	for j := range b.cut {
		b.offset[j+1] = b.offset[j] + len(b.cut[j]) + 1
	}
	return b
}

// eachFeature calls f for 0 to n-1 on all cores. What f does for one number must
// not depend on the others, so that the result does not depend on the cores.
func eachFeature(n int, f func(j int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for j := int(next.Add(1)) - 1; j < n; j = int(next.Add(1)) - 1 {
				f(j)
			}
		})
	}
	wg.Wait()
}

// cuts returns the upper ends of all bins but the last: between any two distinct
// values, or at quantiles where there are more than bins.
func cuts(column []float32, bins int) []float32 {
	sorted := slices.Sorted(slices.Values(column))
	distinct := slices.Compact(slices.Clone(sorted))
	var out []float32
	if len(distinct) <= bins {
		for i := 1; i < len(distinct); i++ {
			c := between(distinct[i-1], distinct[i])
			if c >= distinct[i] { // neighbours in float32
				c = distinct[i-1]
			}
			out = append(out, c)
		}
		return out
	}
	// The averaged inverse of the distribution function (Hyndman and Fan 1996, type 2).
	for k := 1; k < bins; k++ {
		at, rest := k*len(sorted)/bins, k*len(sorted)%bins
		c := sorted[at]
		if rest == 0 {
			c = between(sorted[at-1], sorted[at])
		}
		out = append(out, c)
	}
	return slices.Compact(out)
}

func between(a, b float32) float32 { return float32((float64(a) + float64(b)) / 2) }

// tree grows one tree on the gradients at logits z and adds its values to z.
func (b *booster) tree(fit Rows, z []float64) forest.Tree {
	for i, w := range fit.Weight {
		p := sigmoid(z[i])
		b.grad[i] = w * (p - fit.Y[i])
		b.hes[i] = w * p * (1 - p)
		b.order[i] = int32(i)
	}
	nodes := make(forest.Tree, 1, 2*b.o.Leaves-1)
	root := &leaf{to: len(b.order), hist: b.histogram(0, len(b.order))}
	for i := range b.order {
		root.sum.add(bucket{b.grad[i], b.hes[i], 1})
	}
	b.best(root)
	leaves := []*leaf{root}
	for len(leaves) < b.o.Leaves {
		at := 0
		for i, l := range leaves {
			if l.split.gain > leaves[at].split.gain {
				at = i
			}
		}
		l := leaves[at]
		if l.split.gain <= 0 {
			break
		}
		middle := b.part(l)
		left := &leaf{node: len(nodes), depth: l.depth + 1, from: l.from, to: middle, sum: l.split.left}
		right := &leaf{node: len(nodes) + 1, depth: l.depth + 1, from: middle, to: l.to, sum: l.sum.minus(l.split.left)}
		n := &nodes[l.node]
		n.Feature, n.Threshold, n.Left = int32(l.split.feature), b.cut[l.split.feature][l.split.bin], int32(left.node)
		nodes = append(nodes, forest.Node{}, forest.Node{})
		b.histograms(l, left, right)
		b.best(left)
		b.best(right)
		leaves[at] = left
		leaves = append(leaves, right)
	}
	for _, l := range leaves {
		v := b.value(l)
		nodes[l.node].Value = v
		for _, i := range b.order[l.from:l.to] {
			z[i] += float64(v)
		}
		if l.hist != nil {
			b.free = append(b.free, l.hist)
		}
	}
	return nodes
}

// value is what a leaf adds to the logit.
func (b *booster) value(l *leaf) float32 {
	return float32(-b.o.Rate * l.sum.g / (l.sum.h + b.o.L2 + tinyHessian))
}

// tinyHessian keeps a quotient finite, as in scikit-learn.
const tinyHessian = 1e-15

// splittable reports whether a leaf may be split at all.
func (b *booster) splittable(l *leaf) bool {
	return l.depth < b.o.Depth && l.to-l.from >= 2*b.o.MinLeaf
}

// histograms fills those of two leaves out of their parent's: the smaller is
// summed, the larger is what remains. None is made for leaves that stay.
func (b *booster) histograms(parent, left, right *leaf) {
	small, large := left, right
	if small.to-small.from > large.to-large.from {
		small, large = large, small
	}
	if !b.splittable(large) { // nor is the smaller
		b.free = append(b.free, parent.hist)
		return
	}
	small.hist, large.hist = b.histogram(small.from, small.to), parent.hist
	for i := range large.hist {
		large.hist[i] = large.hist[i].minus(small.hist[i])
	}
}

// histogram sums the rows order[from:to] by bin of each feature.
func (b *booster) histogram(from, to int) []bucket {
	var hist []bucket
	if last := len(b.free) - 1; last >= 0 {
		hist, b.free = b.free[last], b.free[:last]
		clear(hist)
	} else {
		hist = make([]bucket, b.offset[len(b.bin)])
	}
	rows := b.order[from:to]
	sums := b.sums[:len(rows)]
	for k, i := range rows {
		sums[k] = bucket{b.grad[i], b.hes[i], 1}
	}
	eachFeature(len(b.bin), func(j int) {
		h := hist[b.offset[j]:b.offset[j+1]]
		if len(h) == 1 { // constant: never split
			return
		}
		bins := b.bin[j]
		for k, i := range rows {
			h[bins[i]].add(sums[k])
		}
	})
	return hist
}

// minHessian is the least second derivative of a leaf, as in scikit-learn.
const minHessian = 1e-3

// best finds the split of l that lowers the loss most.
func (b *booster) best(l *leaf) {
	if !b.splittable(l) {
		return
	}
	score := func(s bucket) float64 { return s.g * s.g / (s.h + b.o.L2 + tinyHessian) }
	whole := score(l.sum)
	for j := range b.bin {
		h := l.hist[b.offset[j]:b.offset[j+1]]
		var left bucket
		for k := range len(h) - 1 {
			if h[k].n == 0 { // divides the rows as the cut before it, and holds what rounding left
				continue
			}
			left.add(h[k])
			right := l.sum.minus(left)
			if left.n < b.o.MinLeaf || left.h < minHessian {
				continue
			}
			if right.n < b.o.MinLeaf || right.h < minHessian {
				break
			}
			// Rounding alone is no gain.
			if gain := score(left) + score(right) - whole; gain > l.split.gain && gain > 1e-12 {
				l.split = split{gain, j, k, left}
			}
		}
	}
}

// part moves the rows of l that go left before the others, keeping their order,
// and returns where the others start.
func (b *booster) part(l *leaf) int {
	bins := b.bin[l.split.feature]
	middle, rest := l.from, b.spare[:0]
	for _, i := range b.order[l.from:l.to] {
		if int(bins[i]) <= l.split.bin {
			b.order[middle] = i
			middle++
		} else {
			rest = append(rest, i)
		}
	}
	copy(b.order[middle:l.to], rest)
	return middle
}
