package study

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// Reference values of SciPy: testdata/stats.py made them.
func TestAgainstSciPy(t *testing.T) {
	text, err := os.ReadFile("testdata/stats.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Wilson [][4]float64
		Fisher [][5]float64
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Wilson) < 700 || len(want.Fisher) < 1800 {
		t.Fatalf("%d and %d reference values", len(want.Wilson), len(want.Fisher))
	}
	for _, w := range want.Wilson {
		got := Wilson(int(w[0]), int(w[1]))
		if math.Abs(got.Low-w[2]) > 1e-9 || math.Abs(got.High-w[3]) > 1e-9 {
			t.Errorf("Wilson(%v, %v) = %v, want %v to %v", w[0], w[1], got, w[2], w[3])
		}
	}
	for _, w := range want.Fisher {
		if got := Fisher(int(w[0]), int(w[1]), int(w[2]), int(w[3])); math.Abs(got-w[4]) > 1e-9 {
			t.Errorf("Fisher(%v) = %v, want %v", w[:4], got, w[4])
		}
	}
}

func TestWilsonOfNothing(t *testing.T) {
	if got := Wilson(0, 0); got != (Interval{0, 1}) {
		t.Errorf("%v", got)
	}
}
