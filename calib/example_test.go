package calib_test

import (
	"errors"
	"fmt"

	"github.com/dreamguard/dreamguard/calib"
)

// Both levels from the maxima of 200 safe runs.
func ExampleUnion() {
	haz, risk := make([]float64, 200), make([]float64, 200)
	for i := range risk {
		haz[i] = float64(i) / 400
		risk[i] = float64(i) / 250
	}
	t, err := calib.Union(haz, risk, 0.05, 0.01, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("k:", t.Block.K, t.Hold.K, "alerted:", t.Alerted, "of", t.N)
	fmt.Println(t.Marginal())
	fmt.Println(t.Confident(0.95))
	// Output:
	// k: 199 193 alerted: 7 of 200
	// A safe run like the 200 calibration runs is held or blocked with probability at most 5 % (averaged over the draw of the calibration runs).
	// With 95 % confidence at most 9.832 % of safe runs are held or blocked (exact Clopper-Pearson, 200 runs).
}

// Too little data is an answer of its own: how much is needed.
func ExampleTooFewError() {
	_, err := calib.Quantile([]float64{0.1, 0.4, 0.2}, 0.05)
	var few *calib.TooFewError
	fmt.Println(errors.As(err, &few), few.Need)
	// Output: true 19
}
