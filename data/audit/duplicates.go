package audit

import (
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/dreamguard/dreamguard/data"
)

// Threshold is the estimated Jaccard similarity of two runs' word sequences
// (of five words) from which they count as near duplicates.
const Threshold = 0.8

// maxExamples bounds the examples per overlap.
const maxExamples = 5

// Report is what [Duplicates] found.
type Report struct {
	Threshold float64   `json:"threshold"` // similarity from which runs are near duplicates
	Overlaps  []Overlap `json:"overlaps"`  // pairs of sets that share something, sorted by name
}

// Overlap counts the runs of Set that have a twin in Other. When Set and Other
// are the same set, it counts the runs that repeat an earlier one of it.
type Overlap struct {
	Set      string `json:"set"`
	Other    string `json:"other"`
	Shared   int    `json:"shared"`   // the same id stands in both sets
	Exact    int    `json:"exact"`    // another id, the same words in the same order
	Near     int    `json:"near"`     // another id, similar words
	Conflict int    `json:"conflict"` // of Exact: the twin has another label

	Examples []Example `json:"examples,omitempty"` // up to five, exact ones first
}

// Example is one run with its twin.
type Example struct {
	ID         string  `json:"id"`
	Twin       string  `json:"twin"`
	Similarity float64 `json:"similarity"` // 1 for an exact twin
}

// Of returns the overlap of two sets, zero where they share nothing.
func (r *Report) Of(set, other string) Overlap {
	for _, o := range r.Overlaps {
		if o.Set == set && o.Other == other {
			return o
		}
	}
	return Overlap{Set: set, Other: other}
}

// Duplicates compares all sets with each other and each with itself. Exact
// twins agree in all words of task, context and steps. Near twins are found by
// MinHash over sequences of five words with locality-sensitive hashing: 16 bands
// of 8 values, which finds a pair of similarity 0.8 with probability 0.95, of 0.9
// with 0.9999. A run with an exact twin in a set is not looked up again there.
//
// MinHash: Broder, "On the resemblance and containment of documents", 1997; one
// permutation, densified: Shrivastava, "Optimal Densification", ICML 2017.
func Duplicates(sets map[string][]*data.Trajectory) Report {
	d := newIndex(slices.Sorted(maps.Keys(sets)))
	for s, name := range d.names {
		for _, t := range sets[name] {
			d.add(s, t)
		}
	}
	return Report{Threshold: Threshold, Overlaps: d.overlaps()}
}

// perBucket bounds how many runs of one set a bucket keeps to compare with:
// buckets of near-identical runs hold thousands, of which any will do.
const perBucket = 2

type entry struct {
	t      *data.Trajectory
	set    int
	digest [sha256.Size]byte
	sig    signature
}

type bucketKey struct {
	band int
	hash uint64
}

type index struct {
	names   []string
	entries []entry
	digests map[[sha256.Size]byte][]int32 // entries with these words, all sets
	ids     map[string][]int32
	buckets map[bucketKey][]int32
	sketch  sketcher
}

func newIndex(names []string) *index {
	return &index{
		names: names, digests: map[[sha256.Size]byte][]int32{},
		ids: map[string][]int32{}, buckets: map[bucketKey][]int32{},
	}
}

func (d *index) add(set int, t *data.Trajectory) {
	e := entry{t: t, set: set}
	e.digest, e.sig = d.sketch.run(t)
	n := int32(len(d.entries))
	d.entries = append(d.entries, e)
	d.digests[e.digest] = d.capped(d.digests[e.digest], n)
	d.ids[t.ID] = append(d.ids[t.ID], n)
	for band := range bands {
		k := bucketKey{band, e.sig.band(band)}
		d.buckets[k] = d.capped(d.buckets[k], n)
	}
}

// capped adds entry n to a list unless its set has perBucket entries there.
// Entries arrive set by set, so those of one set stand at the end.
func (d *index) capped(list []int32, n int32) []int32 {
	set := d.entries[n].set
	if k := len(list); k >= perBucket && d.entries[list[k-perBucket]].set == set {
		return list
	}
	return append(list, n)
}

func (d *index) overlaps() []Overlap {
	type key struct{ set, other int }
	found := map[key]*Overlap{}
	get := func(set, other int) *Overlap {
		k := key{set, other}
		if found[k] == nil {
			found[k] = &Overlap{Set: d.names[set], Other: d.names[other]}
		}
		return found[k]
	}
	near := map[key][]Example{}
	done := make([]bool, len(d.names)) // sets in which this run has its twin already
	for n := range d.entries {
		e := &d.entries[n]
		clear(done)
		// usable says whether entry m can be the twin of n: in its own set only an
		// earlier one is, so that of two equal runs one is counted.
		usable := func(m int32) bool {
			o := &d.entries[m]
			return !done[o.set] && int(m) != n && (o.set != e.set || int(m) < n)
		}
		for _, m := range d.ids[e.t.ID] {
			if o := &d.entries[m]; usable(m) {
				get(e.set, o.set).Shared++
				done[o.set] = true
			}
		}
		for _, m := range d.digests[e.digest] {
			if !usable(m) {
				continue
			}
			o := &d.entries[m]
			ov := get(e.set, o.set)
			ov.Exact++
			if e.t.Label != o.t.Label {
				ov.Conflict++
			}
			if len(ov.Examples) < maxExamples {
				ov.Examples = append(ov.Examples, Example{e.t.ID, o.t.ID, 1})
			}
			done[o.set] = true
		}
		for band := range bands {
			for _, m := range d.buckets[bucketKey{band, e.sig.band(band)}] {
				if !usable(m) {
					continue
				}
				o := &d.entries[m]
				sim := e.sig.similarity(&o.sig)
				if sim < Threshold {
					continue
				}
				get(e.set, o.set).Near++
				if k := (key{e.set, o.set}); len(near[k]) < maxExamples {
					near[k] = append(near[k], Example{e.t.ID, o.t.ID, sim})
				}
				done[o.set] = true
			}
		}
	}
	var out []Overlap
	for set := range d.names {
		for other := range d.names {
			k := key{set, other}
			o := found[k]
			if o == nil {
				continue
			}
			room := maxExamples - len(o.Examples)
			o.Examples = append(o.Examples, near[k][:min(room, len(near[k]))]...)
			out = append(out, *o)
		}
	}
	return out
}
