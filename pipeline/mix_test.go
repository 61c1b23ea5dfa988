package pipeline

import (
	"fmt"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
)

// Thresholds rest on safe runs, each once, so the shares must be those of the same
// runs: unlabelled ones and copies have others.
func TestMixCountsWhatThresholdsRestOn(t *testing.T) {
	var runs []candidate
	var tuning []calib.Scored
	add := func(id, kind string, label calib.Label) {
		runs = append(runs, candidate{fingerprint: id, mix: kind})
		tuning = append(tuning, calib.Scored{ID: id, Fingerprint: id, Label: label})
	}
	for i := range 4 {
		add(fmt.Sprint("a", i), "a", calib.Safe)
		add(fmt.Sprint("b", i), "b", calib.Safe)
	}
	for range 5 {
		add("b0", "b", calib.Safe) // copies
	}
	for i := range 8 {
		add(fmt.Sprint("u", i), "a", calib.Unlabelled)
	}
	m := Mix{Field: "suite", Shares: map[string]float64{"a": 1, "b": 1}}
	for _, c := range []struct {
		assumeSafe bool
		a, b       float64
	}{{false, 1, 1}, {true, 2. / 3, 2}} {
		s, err := m.shift(runs, tuning, c.assumeSafe)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := s.Weight(&tuning[0]), s.Weight(&tuning[1]); a != c.a || b != c.b {
			t.Errorf("assume safe %v: weights %v and %v, want %v and %v", c.assumeSafe, a, b, c.a, c.b)
		}
	}
}
