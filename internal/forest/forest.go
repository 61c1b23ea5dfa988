// Package forest evaluates boosted trees, in training and at run time alike.
//
// A forest lies in one tensor [T, N, 4] of float32: tree, node, and of a node the
// feature that it splits by, the threshold, the index of its left child and its
// value. The right child follows the left one; children come after their parent; a
// node whose left child is 0 is a leaf. Only the values of leaves count.
//
//	f, err := forest.New(tensor, trees, nodes, features)
//	logit := f.Value(x)
package forest

import (
	"errors"
	"fmt"
	"math"
)

// Columns is the number of values of a node in a tensor.
const Columns = 4

// Bounds of a forest.
const (
	MaxTrees = 2000
	MaxNodes = 511 // of a tree: 256 leaves
)

// Node is a split, or a leaf where Left is 0: the root is nobody's child.
type Node struct {
	Feature   int32
	Left      int32   // the right child is the next node
	Threshold float32 // at most that: to the left
	Value     float32 // of a leaf
}

// Tree is a tree, root first.
type Tree []Node

// Value is the value of the leaf that x falls into. x must have a value for every
// feature of the tree.
func (t Tree) Value(x []float32) float32 {
	n := int32(0)
	for t[n].Left != 0 {
		n = t.next(n, x)
	}
	return t[n].Value
}

// Forest is a sum of trees. The zero value has none, and is 0 everywhere.
type Forest struct{ trees []Tree }

// ErrForest is wrapped by the errors of [New].
var ErrForest = errors.New("not a forest")

// New reads a tensor of the given numbers of trees and of nodes in each, over so
// many features. It refuses what would lead out of a tree, or around in it.
func New(tensor []float32, trees, nodes, features int) (*Forest, error) {
	if trees < 0 || trees > MaxTrees || trees > 0 && (nodes < 1 || nodes > MaxNodes) || features < 1 {
		return nil, fmt.Errorf("%w: %d trees of %d nodes over %d features: want at most %d of 1 to %d, over 1 or more", ErrForest, trees, nodes, features, MaxTrees, MaxNodes)
	}
	if len(tensor) != trees*nodes*Columns {
		return nil, fmt.Errorf("%w: %d values: want %d x %d x %d", ErrForest, len(tensor), trees, nodes, Columns)
	}
	f := &Forest{trees: make([]Tree, trees)}
	all := make([]Node, trees*nodes) // side by side: a verdict visits every tree
	for t := range f.trees {
		f.trees[t] = all[t*nodes : (t+1)*nodes : (t+1)*nodes]
		for i := range f.trees[t] {
			v := tensor[(t*nodes+i)*Columns:][:Columns]
			n, err := node(v, i, nodes, features)
			if err != nil {
				return nil, fmt.Errorf("%w: tree %d, node %d: %w", ErrForest, t, i, err)
			}
			f.trees[t][i] = n
		}
	}
	return f, nil
}

// node reads node i of a tree.
func node(v []float32, i, nodes, features int) (Node, error) {
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return Node{}, fmt.Errorf("value %v is not finite", x)
		}
	}
	feature, left := v[0], v[2]
	if feature < 0 || feature >= float32(features) || feature != float32(int32(feature)) {
		return Node{}, fmt.Errorf("feature %v: want a whole number from 0 to %d", feature, features-1)
	}
	if left != 0 && (left <= float32(i) || left > float32(nodes-2) || left != float32(int32(left))) {
		return Node{}, fmt.Errorf("left child %v: want 0, or a whole number from %d to %d", left, i+1, nodes-2)
	}
	return Node{Feature: int32(feature), Threshold: v[1], Left: int32(left), Value: v[3]}, nil
}

// Pack writes trees, each value times scale, as a tensor of the given size, which
// [New] reads. Trees and nodes that are missing are leaves of value 0.
func Pack(list []Tree, scale float32, trees, nodes int) []float32 {
	out := make([]float32, trees*nodes*Columns)
	for t, tree := range list {
		for i, n := range tree {
			copy(out[(t*nodes+i)*Columns:], []float32{float32(n.Feature), n.Threshold, float32(n.Left), scale * n.Value})
		}
	}
	return out
}

// Value sums the trees at x.
func (f *Forest) Value(x []float32) float32 {
	var sum float32
	for _, t := range f.trees {
		sum += t.Value(x)
	}
	return sum
}

// Effects adds to by, for every feature, what it does to the value at x: the
// difference to the value with 0 in its place. x is as it was in the end.
func (f *Forest) Effects(by, x []float32) {
	var way [MaxNodes]int32 // nodes from the root to the leaf
	for _, t := range f.trees {
		n, depth := int32(0), 0
		for t[n].Left != 0 {
			way[depth] = n
			depth++
			n = t.next(n, x)
		}
		value := t[n].Value
		for i, at := range way[:depth] {
			j := t[at].Feature
			if x[j] == 0 || t.splitBy(way[:i], j) {
				continue
			}
			kept := x[j]
			x[j] = 0
			for t[at].Left != 0 {
				at = t.next(at, x)
			}
			x[j] = kept
			by[j] += value - t[at].Value
		}
	}
}

// next is the child of a split that x goes to.
func (t Tree) next(n int32, x []float32) int32 {
	if x[t[n].Feature] <= t[n].Threshold {
		return t[n].Left
	}
	return t[n].Left + 1
}

// splitBy reports whether any of the nodes splits by a feature.
func (t Tree) splitBy(nodes []int32, feature int32) bool {
	for _, n := range nodes {
		if t[n].Feature == feature {
			return true
		}
	}
	return false
}
