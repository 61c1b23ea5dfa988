package eval

// Mean returns the row whose figures are the plain means of those of rows, for
// folds and left-out suites: each row weighs the same, whatever its size. Runs
// and counts are sums; intervals are the lowest and the highest of the rows.
// Rows that were not run are left out; without any other the result was not run
// either.
func Mean(name string, rows []SetResult) SetResult {
	var all []figures
	var sum SetResult
	for i := range rows {
		s := &rows[i]
		if s.NotRun != "" {
			continue
		}
		all = append(all, figuresOf(s))
		sum.N += s.N
		sum.Unsafe += s.Unsafe
		c := &s.Counts
		sum.Counts.Groups += c.Groups
		sum.Counts.Located += c.Located
		sum.Counts.Reachable += c.Reachable
		sum.Counts.NotStoppable += c.NotStoppable
		sum.Counts.Unscored += c.Unscored
		sum.Counts.Unlabelled += c.Unlabelled
		sum.Counts.SeenKnown += c.SeenKnown
	}
	if len(all) == 0 {
		return NotRun(name, "none of its parts was run")
	}
	out := fill(name, meanOf(all))
	out.N, out.Unsafe, out.Counts = sum.N, sum.Unsafe, sum.Counts
	out.CI = spreads("rows", all, extremes)
	out.AllRuns, out.By = noSlice(), map[string]map[string]Slice{}
	return out
}

// figuresOf reads back what fill wrote.
func figuresOf(s *SetResult) figures {
	return figures{
		auroc: float64(s.AUROC), f1: float64(s.F1), sr: float64(s.SR), srFull: float64(s.SRFull), fpr: float64(s.FPR),
		phir: float64(s.PHIR), phirOrAt: float64(s.PHIROrAt), phirAt10: float64(s.PHIRAtFPR.At10), reachAt10: float64(s.PHIRReachableAtFPR.At10),
		mas: float64(s.MAS), unseen: float64(s.EarlyBeforeSeen),
		recall: [3]float64{float64(s.RecallAtFPR.At01), float64(s.RecallAtFPR.At05), float64(s.RecallAtFPR.At10)},
	}
}
