package split

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/dreamguard/dreamguard/data"
)

// capped returns at most n of ts (n = 0: all), which are sorted by id, in the
// same order. Each data set and label keeps its share, and at least one run
// where n allows. See drawGroups for what is drawn.
func capped(ts []*data.Trajectory, n int, seed uint64) []*data.Trajectory {
	if n == 0 || len(ts) <= n {
		return ts
	}
	type stratum struct {
		dataset string
		label   data.Label
	}
	strata := map[stratum][]*data.Trajectory{}
	for _, t := range ts {
		s := stratum{t.Dataset, t.Label}
		strata[s] = append(strata[s], t)
	}
	keys := make([]stratum, 0, len(strata))
	for s := range strata {
		keys = append(keys, s)
	}
	slices.SortFunc(keys, func(a, b stratum) int {
		return cmp.Or(cmp.Compare(a.dataset, b.dataset), cmp.Compare(a.label, b.label))
	})
	sizes := make([]int, len(keys))
	for i, s := range keys {
		sizes[i] = len(strata[s])
	}
	keep := make(map[*data.Trajectory]bool, n)
	for i, quota := range quotas(sizes, n) {
		for _, t := range drawGroups(strata[keys[i]], quota, seed) {
			keep[t] = true
		}
	}
	out := make([]*data.Trajectory, 0, n)
	for _, t := range ts {
		if keep[t] {
			out = append(out, t)
		}
	}
	return out
}

// quotas divides n, less than the sum of sizes, among parts of these sizes, all
// positive, in proportion by largest remainder; then a part left with none gets
// one from the largest quota, while that has two.
func quotas(sizes []int, n int) []int {
	total := 0
	for _, s := range sizes {
		total += s
	}
	out := make([]int, len(sizes))
	order := make([]int, len(sizes))
	left := n
	for i, s := range sizes {
		order[i] = i
		out[i] = s * n / total
		left -= out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b]*n%total, sizes[a]*n%total) })
	for _, i := range order[:left] { // left is less than the number of parts
		out[i]++
	}
	for i := range out {
		if out[i] > 0 {
			continue
		}
		k := 0
		for j := range out {
			if out[j] > out[k] {
				k = j
			}
		}
		if out[k] > 1 {
			out[k]--
			out[i]++
		}
	}
	return out
}

// minGroups is how many groups a draw comes from, where there are as many.
const minGroups = 10

// drawGroups draws n runs, group by group in seeded order, whole groups where
// they are no larger than a tenth of n, else a seeded part of each.
func drawGroups(ts []*data.Trajectory, n int, seed uint64) []*data.Trajectory {
	groups := map[string][]*data.Trajectory{}
	for _, t := range ts {
		groups[t.Group] = append(groups[t.Group], t)
	}
	names := shuffled(slices.Collect(maps.Keys(groups)), seed, func(s string) string { return s })
	for _, name := range names {
		groups[name] = shuffled(groups[name], seed, func(t *data.Trajectory) string { return t.ID })
	}
	most := (n + minGroups - 1) / minGroups
	var out []*data.Trajectory
	for len(out) < n { // ends: every round takes what is left, and n <= len(ts)
		for _, name := range names {
			g := groups[name]
			k := min(most, len(g), n-len(out))
			out = append(out, g[:k]...)
			groups[name] = g[k:]
		}
	}
	return out
}

// shuffled sorts v by a seeded hash of its keys: unlike a shuffle, the place of
// one element does not depend on what else is there.
func shuffled[T any](v []T, seed uint64, key func(T) string) []T {
	type ranked struct {
		rank [sha256.Size]byte
		v    T
	}
	all := make([]ranked, len(v))
	for i, x := range v {
		b := binary.BigEndian.AppendUint64(nil, seed)
		all[i] = ranked{sha256.Sum256(append(b, key(x)...)), x}
	}
	slices.SortFunc(all, func(a, b ranked) int { return bytes.Compare(a.rank[:], b.rank[:]) })
	out := make([]T, len(v))
	for i := range all {
		out[i] = all[i].v
	}
	return out
}
