// Package splits holds the committed lists that say which user tasks and which
// injection goals of the public benchmarks belong to which part of a split, so
// that nobody's change of code can move a test run into training unnoticed.
// [AgentDyn], [TauBench] and [Shares] return them:
//
//	suite := splits.AgentDyn().Suites["shopping"]
//	suite.Tasks.Test    // three user tasks
//	suite.Goals[1]      // the injection goals of fold 1
//
// The lists hold identifiers only, no text of the benchmarks. They were drawn
// once: tasks in the order of the SHA-256 of [Key], goals sorted by number.
package splits

import (
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"sync"
)

//go:embed agentdyn.json tau-bench.json shares.json
var files embed.FS

// Folds is the number of folds of injection goals.
const Folds = 5

// Suites says how AgentDyn is divided, suite by suite.
type Suites struct {
	Suites map[string]Suite `json:"suites"`
}

// Suite is one suite of AgentDyn.
type Suite struct {
	Tasks Tasks           `json:"tasks"` // user tasks: 11, 3, 3 and 3
	Goals [Folds][]string `json:"goals"` // injection tasks by fold
}

// Tasks are the parts of a division by task.
type Tasks struct {
	Train      []string `json:"train"`
	Validation []string `json:"validation,omitempty"`
	Tuning     []string `json:"tuning,omitempty"`
	Conformal  []string `json:"conformal"`
	Test       []string `json:"test"`
}

// Share says how a data set with too many groups to list is divided: by [Uniform].
type Share struct {
	Conformal  float64 `json:"conformal"`  // groups with a number below this
	Validation float64 `json:"validation"` // groups with one below Conformal + Validation; the rest trains
}

// AgentDyn returns the division of AgentDyn by user task and by injection goal.
// Do not modify it.
func AgentDyn() Suites { return agentDyn() }

// TauBench returns the division of tau-bench by group. Do not modify it.
func TauBench() Tasks { return tauBench() }

// Shares returns the divisions by share, by data set. Do not modify it.
func Shares() map[string]Share { return shares() }

var (
	agentDyn = sync.OnceValue(func() Suites { return read[Suites]("agentdyn.json") })
	tauBench = sync.OnceValue(func() Tasks { return read[Tasks]("tau-bench.json") })
	shares   = sync.OnceValue(func() map[string]Share { return read[map[string]Share]("shares.json") })
)

// read panics on a broken file, which only a broken build can have: the files
// are part of the program, and a test reads them all.
func read[T any](name string) T {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	return v
}

// Key is the text whose SHA-256 places a group in the order of its data set.
func Key(dataset, group string) string { return "dreamguard splits 1: " + dataset + ": " + group }

// Uniform maps a group to a number in [0, 1) that depends on nothing else.
func Uniform(dataset, group string) float64 {
	sum := sha256.Sum256([]byte(Key(dataset, group)))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
}

// Part returns the part of a group by s: "conformal", "validation" or "train".
func (s Share) Part(dataset, group string) string {
	switch u := Uniform(dataset, group); {
	case u < s.Conformal:
		return "conformal"
	case u < math.Min(s.Conformal+s.Validation, 1):
		return "validation"
	}
	return "train"
}
