package calib

import (
	"slices"
	"strconv"
	"strings"
)

// Tree says which threshold a run takes (Mondrian conformal prediction): the
// paths that have one of their own, by the fields of [Request.By], coarse ones
// first. A run takes that of the longest own path that its path starts with, and
// the default one if there is none. The zero value has the default only.
type Tree struct {
	Own [][]string `json:"own"`
}

// key makes one string of a path; values may hold any bytes.
func key(path []string) string {
	var b strings.Builder
	for _, v := range path {
		b.WriteString(strconv.Itoa(len(v)))
		b.WriteByte(':')
		b.WriteString(v)
	}
	return b.String()
}

// Node returns the own path that a run with this path belongs to; empty for the
// default.
func (t Tree) Node(path []string) []string {
	best := []string(nil)
	for _, own := range t.Own {
		if len(own) > len(best) && hasPrefix(path, own) {
			best = own
		}
	}
	return best
}

func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

// needs are the units of each kind that a node must have for thresholds of its
// own.
type needs struct {
	safe, unsafe, all int
}

// met counts units in the runs of a node; factor scales the counts.
func (n needs) met(runs []Scored, unit Unit, factor float64) bool {
	enough := func(runs []Scored, need int) bool {
		have, _ := units(runs, unit)
		return factor*float64(have) >= float64(need)
	}
	return enough(of(runs, Safe), n.safe) && enough(of(runs, Unsafe), n.unsafe) && enough(runs, n.all)
}

// growTree gives every path a node of its own that can be expected to have
// enough runs in a conformal part of factor times the size. It sees the tuning
// part only, so that the groups do not depend on the scores they are calibrated
// with.
func growTree(tuning []Scored, need needs, unit Unit, factor float64) Tree {
	at := byPrefix(tuning)
	var t Tree
	for _, p := range at.paths {
		if need.met(at.runs[key(p)], unit, factor) {
			t.Own = append(t.Own, p)
		}
	}
	return t
}

// prune drops the nodes that have too few conformal runs. That depends on the
// paths of the runs alone, never on their scores, and so costs nothing.
func (t Tree) prune(conformal []Scored, need needs, unit Unit) Tree {
	at := byPrefix(conformal)
	var out Tree
	for _, p := range t.Own {
		if need.met(at.runs[key(p)], unit, 1) {
			out.Own = append(out.Own, p)
		}
	}
	return out
}

// node is a set of thresholds with the runs they are set on.
type node struct {
	path   []string
	runs   []Scored
	pooled bool // runs of nodes below are among them, although they take other thresholds
}

// nodes returns the default and the own nodes with the runs that take their
// thresholds. Where these are too few, it takes all runs below the node. A node
// of the tree whose runs all take thresholds further down is left out.
func (t Tree) nodes(runs []Scored, need needs, unit Unit) []node {
	own := map[string]bool{}
	for _, p := range t.Own {
		own[key(p)] = true
	}
	taken := map[string][]Scored{}
	for _, r := range runs {
		n := len(r.Path)
		for n > 0 && !own[key(r.Path[:n])] {
			n--
		}
		k := key(r.Path[:n])
		taken[k] = append(taken[k], r)
	}
	at := byPrefix(runs)
	at.runs[""] = runs
	var out []node
	for _, p := range append([][]string{nil}, t.Own...) {
		k := key(p)
		nd := node{path: p, runs: taken[k]}
		if len(p) > 0 && len(nd.runs) == 0 {
			continue
		}
		if len(nd.runs) < len(at.runs[k]) && !need.met(nd.runs, unit, 1) {
			nd.runs, nd.pooled = at.runs[k], true
		}
		out = append(out, nd)
	}
	return out
}

// prefixes are the runs of every path and of every beginning of it.
type prefixes struct {
	paths [][]string // sorted, the empty one left out
	runs  map[string][]Scored
}

func byPrefix(runs []Scored) prefixes {
	p := prefixes{runs: map[string][]Scored{}}
	for _, r := range runs {
		for n := 1; n <= len(r.Path); n++ {
			k := key(r.Path[:n])
			if p.runs[k] == nil {
				p.paths = append(p.paths, slices.Clone(r.Path[:n]))
			}
			p.runs[k] = append(p.runs[k], r)
		}
	}
	slices.SortFunc(p.paths, slices.Compare)
	return p
}
