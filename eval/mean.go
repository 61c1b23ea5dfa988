package eval

// Mean returns the row whose figures are the means over rows, for example over
// folds. N and Unsafe are sums. A figure that a row lacks is left out of its
// mean. There are no intervals: the rows share data.
func Mean(name string, rows []SetResult) SetResult {
	out := NotRun(name, "")
	mean := func(get func(*SetResult) *Num) {
		var sum float64
		n := 0
		for i := range rows {
			if v := *get(&rows[i]); v.OK() {
				sum += float64(v)
				n++
			}
		}
		if n > 0 {
			*get(&out) = Num(sum / float64(n))
		}
	}
	for i := range rows {
		out.N += rows[i].N
		out.Unsafe += rows[i].Unsafe
	}
	for _, get := range []func(*SetResult) *Num{
		func(r *SetResult) *Num { return &r.AUROC },
		func(r *SetResult) *Num { return &r.F1 },
		func(r *SetResult) *Num { return &r.SR },
		func(r *SetResult) *Num { return &r.SRFull },
		func(r *SetResult) *Num { return &r.FPR },
		func(r *SetResult) *Num { return &r.PHIR },
		func(r *SetResult) *Num { return &r.PHIROrAt },
		func(r *SetResult) *Num { return &r.PHIRAtFPR.At10 },
		func(r *SetResult) *Num { return &r.PHIRReachableAtFPR.At10 },
		func(r *SetResult) *Num { return &r.MAS },
		func(r *SetResult) *Num { return &r.EarlyBeforeSeen },
		func(r *SetResult) *Num { return &r.RecallAtFPR.At01 },
		func(r *SetResult) *Num { return &r.RecallAtFPR.At05 },
		func(r *SetResult) *Num { return &r.RecallAtFPR.At10 },
	} {
		mean(get)
	}
	return out
}
