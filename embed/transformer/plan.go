package transformer

import (
	"cmp"
	"slices"
)

// stepTokens is about how many tokens one step computes: more make no token
// cheaper on a CPU and need more memory.
const stepTokens = 2048

// maxBuckets bounds the lengths of sequences that have an executable. GoMLX keeps
// 32 executables, and a length has two: for one sequence and for a full batch.
const maxBuckets = 16

// bucketLengths returns the lengths to which sequences of at most longest tokens
// are padded, ascending: powers of two from 8 on and, unless few, the numbers
// half-way between them from 32 on. Padding then costs a sixth of the work on
// average, a quarter if few.
func bucketLengths(longest int, few bool) []int {
	var all []int
	for n := 8; n < longest; n *= 2 {
		all = append(all, n)
		if mid := n + n/2; !few && n >= 32 && mid < longest {
			all = append(all, mid)
		}
	}
	all = append(all, longest)
	return all[max(0, len(all)-maxBuckets):]
}

// rows returns how many sequences of a padded length a full batch has: a power of
// two up to most.
func rows(length, most int) int {
	n := 1
	for 2*n <= most && 2*n*length <= stepTokens {
		n *= 2
	}
	return n
}

// step is one run of the graph: the sequences of the given numbers, padded to a
// shape.
type step struct {
	rows, length int
	items        []int
}

// plan sorts sequences of the given lengths, each from 1 to the last bucket, into
// steps. Every sequence is in one step. A step takes neighbours in the order of
// length whose padding is at most half; what does not fill a batch runs one by
// one if that is less work than padding it. The same lengths give the same plan.
func plan(lengths, buckets []int, most int) []step {
	order := make([]int, len(lengths))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lengths[b], lengths[a]) })
	bucket := func(n int) int {
		at, _ := slices.BinarySearch(buckets, n)
		return buckets[at]
	}
	var steps []step
	for len(order) > 0 {
		length := bucket(lengths[order[0]])
		full := rows(length, most)
		n := 1
		for n < min(full, len(order)) && 2*bucket(lengths[order[n]]) >= length {
			n++
		}
		// A batch costs about three quarters of its sequences run one by one.
		if n < full && 4*n < 3*full {
			for _, i := range order[:n] {
				steps = append(steps, step{1, bucket(lengths[i]), []int{i}})
			}
		} else {
			steps = append(steps, step{full, length, slices.Clone(order[:n])})
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
