package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/eval"
)

// TestNoLevelKeepsThePromise: where more safe runs are held whatever their score
// than the promise allows, there is no calibration.
func TestNoLevelKeepsThePromise(t *testing.T) {
	fusion := calib.Fusion{TempHazard: 1, TempPrefix: 1, WeightHazard: 1, WeightEMA: 1, WeightWindow: 1, Beta: 0.8, Window: 4}
	traces := make([]eval.Trace, 100)
	for i := range traces {
		traces[i] = eval.Trace{
			ID: fmt.Sprint(i), Group: fmt.Sprint(i), Label: data.Safe,
			Judged: []bool{true}, Held: []bool{i < 20},
			LogitHazard: []float64{float64(i) / 50}, LogitPrefix: []float64{float64(i) / 50},
		}
	}
	_, err := calibration(strings.Repeat("0", 64), fusion, traces, 0.1, 0.05, false)
	var none *calib.NoLevelError
	if !errors.As(err, &none) || none.Bound != calib.BoundFalseAlarm || none.Runs != 100 || none.AtTop != 20 || none.Alpha != 0.1 {
		t.Fatalf("20 of 100 runs held whatever their score, 10 %% promised: %v", err)
	}
	if !strings.Contains(err.Error(), "calibrate.alpha") {
		t.Errorf("%v: want what to do", err)
	}
	if _, err := calibration(strings.Repeat("0", 64), fusion, traces, 0.3, 0.05, false); err != nil {
		t.Errorf("30 %% promised: %v", err)
	}
}
