// Package split divides trajectories into the sets of one protocol: what a
// model trains on, what it is chosen and calibrated on, and what it is tested
// on. [Load] reads the published files of a protocol, [Assign] divides them.
//
//	all, report, err := split.Load(dir, "p1", split.LoadOptions{})
//	evalIDs, err := split.EvalIDs(dir)
//	a, err := split.Assign(split.Options{Protocol: "p1", Fold: 1}, all, evalIDs)
//	train, test := a.Sets[split.Train], a.Sets["test-agentdyn"]
//
// # The sets
//
// Training sees "train". "validation" serves early stopping. "tuning" serves the
// choices of calibration (temperatures, fusion weights) and is the validation
// set plus the tuning shares of tau-bench and of the simulator. "conformal" sets
// the thresholds; it holds safe runs only, and no choice of a model sees it.
// "test-NAME" are the test sets; "dev-NAME" are for development, where the test
// set of that name is locked. Runs with an unknown label stand in train only: a
// world model learns from them, the risk heads do not.
//
// No group (same user task) and no injection goal that is tested is in any other
// set, except that in protocol p1 a tested goal is tested on training tasks too:
// the guard has seen the task, never the attack. See [Assign] for the rules, and
// package configs/splits for the committed lists.
package split
