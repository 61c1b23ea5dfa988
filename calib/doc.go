// Package calib turns the scores of a guard into thresholds with a stated
// guarantee. It is pure numeric Go: no files, no model. The unit of
// exchangeability is one trajectory; its score is the maximum over its judged
// tool calls (DESIGN section 7).
package calib
