// Package audit looks for what makes an evaluation lie: the same run in two
// sets, and words that give the label away. It also counts and renders
// trajectories for a reader. [Duplicates] compares sets, [Shortcuts] finds words
// of one label only, [Leaks] counts what the leak rules find, [Summarize] and
// [Render] show data.
//
//	r := audit.Duplicates(map[string][]*data.Trajectory{"train": train, "test-asb": test})
//	for _, o := range r.Overlaps {
//		fmt.Println(o.Set, "has", o.Exact, "runs that stand in", o.Other, "too")
//	}
//	fmt.Println(audit.Summarize(train).Total.Unsafe)
//	err := audit.Render(os.Stdout, train[0])
//
// Everything is deterministic. Memory grows with the number of trajectories,
// about two kilobytes each, and not with the length of their texts.
package audit
