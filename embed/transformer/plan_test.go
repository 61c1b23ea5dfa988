package transformer

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestBucketLengths(t *testing.T) {
	for _, tt := range []struct {
		longest int
		few     bool
		want    []int
	}{
		{8, false, []int{8}},
		{9, true, []int{8, 9}},
		{256, false, []int{8, 16, 32, 48, 64, 96, 128, 192, 256}},
		{256, true, []int{8, 16, 32, 64, 128, 256}},
		{300, true, []int{8, 16, 32, 64, 128, 256, 300}},
	} {
		if diff := cmp.Diff(tt.want, bucketLengths(tt.longest, tt.few)); diff != "" {
			t.Errorf("%d, %v (-want +got):\n%s", tt.longest, tt.few, diff)
		}
	}
	if got := bucketLengths(1<<20, false); len(got) != maxBuckets || got[len(got)-1] != 1<<20 {
		t.Errorf("a million tokens: %v", got)
	}
}

// Every sequence runs once, in a step whose shape has room for it and is one of
// the few that have an executable; padding never more than doubles a sequence
// within its bucket.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		longest := rapid.IntRange(8, 2000).Draw(t, "longest")
		most := rapid.IntRange(1, maxBatch).Draw(t, "batch")
		few := rapid.Bool().Draw(t, "few")
		lengths := rapid.SliceOfN(rapid.IntRange(1, longest), 0, 200).Draw(t, "lengths")
		buckets := bucketLengths(longest, few)
		steps := plan(lengths, buckets, most)
		seen := make([]int, len(lengths))
		for _, s := range steps {
			if len(s.items) == 0 || len(s.items) > s.rows {
				t.Fatalf("%d sequences in a batch of %d", len(s.items), s.rows)
			}
			if !slices.Contains(buckets, s.length) || s.rows != 1 && s.rows != rows(s.length, most) {
				t.Fatalf("no executable for %d by %d", s.rows, s.length)
			}
			if s.rows > most || s.rows > 1 && s.rows*s.length > stepTokens {
				t.Fatalf("batch of %d by %d", s.rows, s.length)
			}
			for _, i := range s.items {
				seen[i]++
				at, _ := slices.BinarySearch(buckets, lengths[i])
				if lengths[i] > s.length || 2*buckets[at] < s.length {
					t.Fatalf("%d tokens in a step of %d", lengths[i], s.length)
				}
			}
		}
		for i, n := range seen {
			if n != 1 {
				t.Fatalf("sequence %d runs %d times", i, n)
			}
		}
	})
	// 32 short ones make a batch, the rest of 3 does not.
	lengths := append(slices.Repeat([]int{30}, 35), 250)
	got := plan(lengths, bucketLengths(256, true), 32)
	if len(got) != 1+1+3 || got[0].rows != 1 || got[1].rows != 32 || got[2].rows != 1 {
		t.Errorf("plan %v", got)
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
