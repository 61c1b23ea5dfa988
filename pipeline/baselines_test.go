package pipeline

import "testing"

// TestRiskStates: a feature that was renamed would silently be left out.
func TestRiskStates(t *testing.T) {
	states := 1
	for _, b := range riskStates() {
		states *= len(b.Cuts) + 1
	}
	if states != 48 {
		t.Errorf("%d states, want 48", states)
	}
}
