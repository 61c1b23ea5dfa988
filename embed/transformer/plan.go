package transformer

import (
	"cmp"
	"slices"
)

// maxBuckets bounds the padded lengths, each of which needs executables.
const maxBuckets = 16

// maxExecutables bounds the shapes: each length has up to three batch sizes.
const maxExecutables = 3 * maxBuckets

// stepCost is the fixed cost of a step in tokens, measured with MiniLM on XLA's
// CPU backend: 6 ms beside 0.165 ms per token.
const stepCost = 36

// grid is the sizes of the steps of an encoder.
type grid struct {
	lengths []int // of sequences, ascending; the last is the longest possible
	rows    int   // most sequences in a step
	tokens  int   // about the most tokens in a step of several sequences
}

// newGrid pads sequences of at most longest tokens to powers of two from 8 on
// and, from 32 on, to the numbers half-way between them too: at most a third of
// a longer sequence is padding.
func newGrid(longest, rows, tokens int) grid {
	g := grid{rows: rows, tokens: tokens}
	for n := 8; n < longest; n *= 2 {
		g.lengths = append(g.lengths, n)
		if mid := n + n/2; n >= 32 && mid < longest {
			g.lengths = append(g.lengths, mid)
		}
	}
	g.lengths = append(g.lengths, longest)
	g.lengths = g.lengths[max(0, len(g.lengths)-maxBuckets):]
	return g
}

// padded returns the length to which a sequence is padded.
func (g grid) padded(length int) int {
	at, _ := slices.BinarySearch(g.lengths, length)
	return g.lengths[at]
}

// batches returns the batch sizes of a padded length, descending: a full batch, a
// quarter of one, and 1.
func (g grid) batches(length int) []int {
	full := 1
	for 2*full <= g.rows && 2*full*length <= g.tokens {
		full *= 2
	}
	return slices.Compact([]int{full, max(1, full/4), 1})
}

// step is one run of the graph: the sequences of the given numbers, padded to a
// shape.
type step struct {
	rows, length int
	items        []int
}

// plan sorts sequences, each at most as long as the last padded length, into
// steps. Every sequence is in one step. Neighbours in the order of length share a
// step if padding at most doubles them; what does not fill a batch goes into the
// batches that cost the least. The same lengths give the same plan.
func (g grid) plan(lengths []int) []step {
	order := make([]int, len(lengths))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lengths[b], lengths[a]) })
	var steps []step
	for len(order) > 0 {
		length := g.padded(lengths[order[0]])
		batches := g.batches(length)
		n := 1
		for n < min(batches[0], len(order)) && 2*g.padded(lengths[order[n]]) >= length {
			n++
		}
		rows, best := 0, 0
		for _, size := range batches {
			count := (n + size - 1) / size
			if cost := count * (stepCost + size*length); rows == 0 || cost < best {
				rows, best = size, cost
			}
		}
		for chunk := range slices.Chunk(order[:n], rows) {
			if rows == 1 {
				length = g.padded(lengths[chunk[0]])
			}
			steps = append(steps, step{rows, length, slices.Clone(chunk)})
		}
		order = order[n:]
	}
	return steps
}

// window is a part of a text: the tokens [from, to).
type window struct{ from, to int }

// windows covers n tokens with windows of at most size that share overlap tokens
// with their neighbours, size > overlap. The last one may be shorter.
func windows(n, size, overlap int) []window {
	var ws []window
	for from := 0; ; from += size - overlap {
		if n-from <= size {
			return append(ws, window{from, n})
		}
		ws = append(ws, window{from, from + size})
	}
}
