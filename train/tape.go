package train

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// tape makes gradients of an unrolled loop cheap. Plain reverse mode would build
// one [out, in] matrix per weight and time step and add them up, and would pad
// every time slice of a stacked input back to full size; the tape cuts the graph
// at the loop's border, collects the small gradients that arrive there, and
// finishes with one matrix product or one concatenation over all steps.
//
// It works in two passes. The first differentiates the loss with respect to the
// parameters used outside the loop and to every cut. The second differentiates
// sum(border * stopGradient(gradient at the border)), which is the chain rule
// across the cut.
//
// A nil tape cuts nothing: plain reverse mode, or a graph without gradients.
type tape struct {
	cuts []*cut
}

// cut is a border: a node outside the loop, the nodes inside whose gradients are
// collected, and how these combine into the gradient of the outside node.
type cut struct {
	outside *Node
	leaves  []*Node
	join    func(grads []*Node) *Node
}

// linear is a weight [out, in] that is applied once per step inside the loop.
type linear struct {
	w, wt *Node   // [out, in] and [in, out]
	cut   *cut    // nil if no gradient is wanted
	xs    []*Node // inputs so far
}

// linear prepares w for use inside the loop. trained says whether the parameters
// behind w learn.
func (t *tape) linear(w *Node, trained bool) *linear {
	l := &linear{w: w}
	if t != nil {
		l.w = StopGradient(w)
	}
	l.wt = Transpose(l.w, 0, 1)
	if t != nil && trained {
		l.cut = &cut{outside: w}
		l.cut.join = func(grads []*Node) *Node { return outer(rows(grads), rows(l.xs)) }
		t.cuts = append(t.cuts, l.cut)
	}
	return l
}

// apply returns x wᵀ for x of shape [batch, in]. On a few rows the Go backend is
// many times faster with a right-hand side that need not be transposed, so the
// product uses wᵀ and its gradient w.
func (l *linear) apply(x *Node) *Node {
	var dy *Node
	in := IdentityWithCustomGradient(x, func(_, _ *Node) *Node {
		return DotGeneral(dy, []int{1}, nil, l.w, []int{0}, nil)
	})
	y := DotGeneral(in, []int{1}, nil, l.wt, []int{0}, nil)
	y = IdentityWithCustomGradient(y, func(_, v *Node) *Node { dy = v; return v })
	if l.cut != nil {
		l.cut.leaves = append(l.cut.leaves, y)
		l.xs = append(l.xs, x)
	}
	return y
}

// split returns the n blocks of rows of x: one per time step.
func (t *tape) split(x *Node, n int) []*Node {
	size := x.Shape().Dim(0) / n
	var c *cut
	if t != nil {
		c = &cut{outside: x, join: rows}
		t.cuts = append(t.cuts, c)
	}
	blocks := make([]*Node, n)
	for i := range blocks {
		blocks[i] = SliceAxis(x, 0, AxisRange(i*size, (i+1)*size))
		if c != nil {
			// The identity is what the loop sees: a node that stops gradients
			// itself would not be given any.
			blocks[i] = Identity(StopGradient(blocks[i]))
			c.leaves = append(c.leaves, blocks[i])
		}
	}
	return blocks
}

// gradients returns d loss / d p for every p of params.
func (t *tape) gradients(loss *Node, params []*Node) []*Node {
	if t == nil {
		return Gradient(loss, params...)
	}
	wanted := append([]*Node(nil), params...)
	for _, c := range t.cuts {
		wanted = append(wanted, c.leaves...)
	}
	first := Gradient(loss, wanted...)
	grads, leaves := first[:len(params):len(params)], first[len(params):]
	if len(t.cuts) == 0 {
		return grads
	}
	var border *Node
	for _, c := range t.cuts {
		n := len(c.leaves)
		g := StopGradient(c.join(leaves[:n]))
		leaves = leaves[n:]
		s := ReduceAllSum(Mul(c.outside, g))
		if border == nil {
			border = s
		} else {
			border = Add(border, s)
		}
	}
	for i, g := range Gradient(border, params...) {
		switch {
		case isZeros(g):
		case isZeros(grads[i]):
			grads[i] = g
		default:
			grads[i] = Add(grads[i], g)
		}
	}
	return grads
}

// isZeros recognises what Gradient returns for a parameter that it does not
// reach: a broadcast constant. Adding those would cost a pass over the model.
func isZeros(n *Node) bool {
	return n.Type() == NodeTypeBroadcastInDim && n.Inputs()[0].Type() == NodeTypeConstant
}

// rows stacks blocks of rows.
func rows(blocks []*Node) *Node {
	if len(blocks) == 1 {
		return blocks[0]
	}
	return Concatenate(blocks, 0)
}

// The functions below give some operations a gradient of their own. Reverse mode
// visits nodes from the last to the first, so what it brings to the output can be
// kept there and used at the input, where the gradient that it would have
// computed is dropped and, being unused, never runs.

// dot returns x wᵀ: x [n, in], w [out, in].
func dot(x, w *Node) *Node {
	var dy *Node
	in := IdentityWithCustomGradient(w, func(_, _ *Node) *Node { return outer(dy, x) })
	y := DotGeneral(x, []int{1}, nil, in, []int{1}, nil)
	return IdentityWithCustomGradient(y, func(_, v *Node) *Node { dy = v; return v })
}

// outer returns aᵀ b, [p, q] for a [n, p] and b [n, q]: the gradient of a weight.
// Left to itself the backend transposes both.
func outer(a, b *Node) *Node {
	return DotGeneral(Transpose(a, 0, 1), []int{1}, nil, b, []int{0}, nil)
}

// splitColumns cuts w [n, sum of widths] into blocks of columns. The gradient puts
// the blocks together again, where that of a slice would pad each to full width.
func splitColumns(w *Node, widths ...int) []*Node {
	blocks, grads := make([]*Node, len(widths)), make([]*Node, len(widths))
	in := IdentityWithCustomGradient(w, func(_, _ *Node) *Node {
		parts := make([]*Node, len(widths))
		for i, g := range grads {
			if parts[i] = g; g == nil {
				parts[i] = ZerosLike(blocks[i])
			}
			grads[i] = nil // the tape differentiates twice
		}
		return Concatenate(parts, 1)
	})
	from := 0
	for i, width := range widths {
		b := SliceAxis(in, 1, AxisRange(from, from+width))
		blocks[i] = IdentityWithCustomGradient(b, func(_, v *Node) *Node { grads[i] = v; return v })
		from += width
	}
	return blocks
}
