// Package calib turns the scores of a guard into thresholds with a stated
// guarantee. It is pure numeric Go: no files, no model. The unit of
// exchangeability is one trajectory; its score is the maximum over its judged
// tool calls (DESIGN section 7).
//
// The main type is [Thresholds]: the two levels a guard compares with, and the
// promise that comes with them. The calibration data is cut in two disjoint
// parts, and rows never change sides:
//
//	// tuning part: head temperatures and fusion weights
//	fusion, err := calib.Tuning{Beta: 0.8, Window: 4}.Fit(tuningRuns)
//
//	// conformal part, safe runs only: thresholds
//	var haz, risk []float64
//	for _, r := range conformalRuns {
//		if h, s, scored := calib.RunScore(fusion, r); scored {
//			haz, risk = append(haz, h), append(risk, s)
//		}
//	}
//	t, err := calib.Union(haz, risk, 0.05, 0.01, false)
//	var few *calib.TooFewError
//	if errors.As(err, &few) {
//		// few.Need safe runs are needed for this alpha
//	}
//	fmt.Println(t.Hold.Value, t.Marginal())
package calib
