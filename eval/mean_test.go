package eval_test

import (
	"math"
	"testing"

	"github.com/dreamguard/dreamguard/eval"
)

func TestMean(t *testing.T) {
	a := eval.SetResult{N: 10, Unsafe: 4, AUROC: 0.9, SR: 0.5, FPR: 0.1, MAS: eval.Num(math.NaN()), Counts: eval.Counts{Groups: 3}}
	b := eval.SetResult{N: 30, Unsafe: 5, AUROC: 0.7, SR: 1, FPR: 0, MAS: 2, Counts: eval.Counts{Groups: 4}}
	got := eval.Mean("m", []eval.SetResult{a, eval.NotRun("x", "why"), b})
	if got.Name != "m" || got.N != 40 || got.Unsafe != 9 || got.Counts.Groups != 7 || math.Abs(float64(got.AUROC)-0.8) > 1e-12 || got.SR != 0.75 || got.MAS != 2 {
		t.Errorf("%+v", got)
	}
	if got.CI.Kind != "rows" || got.CI.AUROC != (eval.Interval{0.7, 0.9}) || got.CI.MAS[0].OK() {
		t.Errorf("%+v", got.CI)
	}
	if none := eval.Mean("m", []eval.SetResult{eval.NotRun("x", "why")}); none.NotRun == "" || none.AUROC.OK() {
		t.Errorf("%+v", none)
	}
}
