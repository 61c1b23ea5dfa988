package split_test

import (
	"fmt"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/simulate"
	"github.com/dreamguard/dreamguard/data/split"
)

func Example() {
	runs := map[string][]*data.Trajectory{}
	for t := range simulate.Generate(simulate.Options{Seed: 1, Runs: 500}) {
		runs["simulator"] = append(runs["simulator"], t)
	}
	a, err := split.Assign(split.Options{Protocol: split.Simulator}, runs, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, set := range []string{split.Train, split.Validation, split.Conformal, "test-simulator"} {
		c := a.Counts[set]
		fmt.Println(set, c.Runs > 0, c.Safe > 0, c.Unsafe > 0)
	}
	// Output:
	// train true true true
	// validation true true true
	// conformal true true false
	// test-simulator true true true
}
