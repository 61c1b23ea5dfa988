package eval

import (
	"math"
	"testing"
)

func TestMean(t *testing.T) {
	a, b := NotRun("a", ""), NotRun("b", "")
	a.N, a.Unsafe, a.AUROC, a.FPR = 10, 4, 0.8, 0.1
	b.N, b.Unsafe, b.AUROC = 30, 6, 0.9
	m := Mean("both", []SetResult{a, b})
	if m.Name != "both" || m.N != 40 || m.Unsafe != 10 || m.NotRun != "" {
		t.Errorf("%+v", m)
	}
	if math.Abs(float64(m.AUROC)-0.85) > 1e-12 || m.FPR != 0.1 {
		t.Errorf("AUROC %v, FPR %v, want 0.85 and 0.1: a missing figure does not count", m.AUROC, m.FPR)
	}
	if m.SR.OK() {
		t.Errorf("SR %v: no row has it", m.SR)
	}
}
