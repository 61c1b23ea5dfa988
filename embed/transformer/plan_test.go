package transformer

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestGrid(t *testing.T) {
	for _, tt := range []struct {
		longest int
		want    []int
	}{
		{8, []int{8}},
		{9, []int{8, 9}},
		{256, []int{8, 16, 32, 48, 64, 96, 128, 192, 256}},
		{300, []int{8, 16, 32, 48, 64, 96, 128, 192, 256, 300}},
	} {
		if diff := cmp.Diff(tt.want, newGrid(tt.longest, 32, 512).lengths); diff != "" {
			t.Errorf("%d (-want +got):\n%s", tt.longest, diff)
		}
	}
	if got := newGrid(1<<20, 32, 512).lengths; len(got) != maxBuckets || got[len(got)-1] != 1<<20 {
		t.Errorf("a million tokens: %v", got)
	}
	s := newGrid(256, 32, 512)
	for length, want := range map[int][]int{8: {32, 8, 1}, 48: {8, 2, 1}, 128: {4, 1}, 256: {2, 1}} {
		if diff := cmp.Diff(want, s.batches(length)); diff != "" {
			t.Errorf("batches of %d tokens (-want +got):\n%s", length, diff)
		}
	}
	if got := newGrid(8192, 1, 512).batches(8); len(got) != 1 {
		t.Errorf("batches of one sequence: %v", got)
	}
}

// Every sequence runs once, in a step whose shape has room for it and is one of
// those that have an executable; padding at most doubles its padded length.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		longest := rapid.IntRange(8, 2000).Draw(t, "longest")
		s := newGrid(longest, rapid.IntRange(1, maxBatch).Draw(t, "rows"), rapid.SampledFrom([]int{cpuTokens, gpuTokens}).Draw(t, "tokens"))
		lengths := rapid.SliceOfN(rapid.IntRange(1, longest), 0, 200).Draw(t, "lengths")
		seen := make([]int, len(lengths))
		for _, st := range s.plan(lengths) {
			if len(st.items) == 0 || len(st.items) > st.rows {
				t.Fatalf("%d sequences in a batch of %d", len(st.items), st.rows)
			}
			if !slices.Contains(s.lengths, st.length) || !slices.Contains(s.batches(st.length), st.rows) ||
				st.rows > s.rows || st.rows > 1 && st.rows*st.length > s.tokens {
				t.Fatalf("step of %d by %d", st.rows, st.length)
			}
			for _, i := range st.items {
				seen[i]++
				if lengths[i] > st.length || 2*s.padded(lengths[i]) < st.length {
					t.Fatalf("%d tokens in a step of %d", lengths[i], st.length)
				}
			}
		}
		for i, n := range seen {
			if n != 1 {
				t.Fatalf("sequence %d runs %d times", i, n)
			}
		}
	})
}

func TestPlanOfFew(t *testing.T) {
	s := newGrid(256, 32, cpuTokens)
	rowsOf := func(lengths []int) (rows []int) {
		for _, st := range s.plan(lengths) {
			rows = append(rows, st.rows)
		}
		return rows
	}
	for _, tt := range []struct {
		n, length int
		want      []int
	}{
		{8, 64, []int{8}},
		{2, 64, []int{2}},
		{3, 64, []int{1, 1, 1}}, // cheaper than two pairs, and than eight
		{4, 64, []int{2, 2}},
		{7, 64, []int{8}},
		{1, 256, []int{1}},
		{8, 256, []int{2, 2, 2, 2}},
	} {
		if diff := cmp.Diff(tt.want, rowsOf(slices.Repeat([]int{tt.length}, tt.n))); diff != "" {
			t.Errorf("%d by %d (-want +got):\n%s", tt.n, tt.length, diff)
		}
	}
}

func TestWindows(t *testing.T) {
	for _, tt := range []struct {
		n, size, overlap int
		want             []window
	}{
		{0, 4, 1, []window{{0, 0}}},
		{4, 4, 1, []window{{0, 4}}},
		{5, 4, 1, []window{{0, 4}, {3, 5}}},
		{8, 4, 0, []window{{0, 4}, {4, 8}}},
		{10, 4, 1, []window{{0, 4}, {3, 7}, {6, 10}}},
	} {
		if diff := cmp.Diff(tt.want, windows(tt.n, tt.size, tt.overlap), cmp.AllowUnexported(window{})); diff != "" {
			t.Errorf("%d tokens in %d, overlap %d (-want +got):\n%s", tt.n, tt.size, tt.overlap, diff)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3000).Draw(t, "n")
		size := rapid.IntRange(2, 300).Draw(t, "size")
		overlap := rapid.IntRange(0, size/2).Draw(t, "overlap")
		end := 0
		for i, w := range windows(n, size, overlap) {
			if w.to-w.from > size || w.to <= end || i > 0 && end-w.from != overlap {
				t.Fatalf("window %d is [%d, %d) after %d", i, w.from, w.to, end)
			}
			end = w.to
		}
		if end != n {
			t.Fatalf("the windows end at %d of %d", end, n)
		}
	})
}
