// Package calib turns the scores of a guard into thresholds with a stated
// guarantee, and tells later whether the guarantee still stands. It is pure
// numeric Go: no files, no model, no clock.
//
// The main type is [Request]: what an operator asks of the thresholds. Its
// answer is a [Calibration] with a [Guarantee] for each bound, or a refusal that
// says what is missing.
//
//	// A run is reduced to its scores: the maxima over its judged tool calls.
//	var runs []calib.Scored
//	for _, r := range logged {
//		if s, scored := fusion.Score(r); scored {
//			s.Fingerprint = digest(r) // copies and training runs are found by it
//			runs = append(runs, s)
//		}
//	}
//	// One part tunes (temperatures, weights, groups, what is tested), the other
//	// calibrates; a run is in one of them.
//	tuning, conformal := calib.Split(runs, 0.3, seed)
//
//	c, err := calib.Request{FalseAlarm: 0.05, Block: 0.01, Confidence: 0.95}.Solve(tuning, conformal)
//	var few *calib.TooFewError
//	var no *calib.InfeasibleError
//	switch {
//	case errors.As(err, &few): // few.Need runs are needed
//	case errors.As(err, &no): // no.Frontier shows what can be had instead
//	}
//	for _, g := range c.Plans[0].Guarantees {
//		fmt.Println(g) // one plain sentence
//	}
//	plan := c.For(path) // thresholds of a group: plan.Hold.Value, plan.Block.Value
//
//	// In production:
//	m, err := calib.NewMonitor(calib.Watch{Hold: plan.Hold.Value, Level: 0.05}, risks)
//	m.Observe(risk)   // every run that ended
//	m.Label(alerted)  // a run that turned out to be safe
//	m.Withdrawn()     // why the guarantee no longer stands, if it does not
//
// What a Request is made of can be had alone: [Union], [UnionConfident],
// [Quantile], [QuantileConfident], [MissThreshold], [LearnThenTest],
// [WeightedQuantile], [Frontier]; the bounds [ClopperPearson], [BinomialP],
// [HoeffdingBentkusP]; for the tuning part [Tuning], [FitTemperature],
// [FitIsotonic]; for reports [VennAbers], [Suspects], [PValue].
//
// The unit of exchangeability is one trajectory, or with [ByGroup] one group of
// them. What that means, and when no promise holds, is said in
// docs/explanation/guarantees.md; every quantity of a stored calibration in
// docs/reference/calibration.md.
//
// Reference values in testdata come from SciPy, MAPIE, crepes, scikit-learn and
// venn-abers by the scripts beside them. Simulations show each guarantee on
// drawn data; DREAMGUARD_FULL=1 runs them in full size.
package calib
