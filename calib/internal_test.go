package calib

import (
	"encoding/json"
	"os"
	"testing"
)

// TestPairsAgainstMAPIE: the same pairs are valid by Bonferroni at two risks.
func TestPairsAgainstMAPIE(t *testing.T) {
	var l struct {
		LTT struct {
			Rows, Pairs, Valid [][2]float64
			Labels             []int
			FalseAlarm         float64 `json:"false_alarm"`
			Miss, Confidence   float64
		}
	}
	b, err := os.ReadFile("testdata/libraries.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &l); err != nil {
		t.Fatal(err)
	}
	var runs []Scored
	for i, r := range l.LTT.Rows {
		runs = append(runs, Scored{Hazard: r[0], Risk: r[1], Label: []Label{Safe, Unsafe}[l.LTT.Labels[i]]})
	}
	var pairs []Pair
	for _, p := range l.LTT.Pairs {
		pairs = append(pairs, Pair{Hold: p[0], Block: p[1]})
	}
	valid := map[Pair]bool{}
	for _, p := range l.LTT.Valid {
		valid[Pair{p[0], p[1]}] = true
	}
	if len(valid) == 0 || len(valid) == len(pairs) {
		t.Fatalf("%d of %d pairs are valid: the reference shows nothing", len(valid), len(pairs))
	}
	for _, c := range count(runs, pairs, Risks{FalseAlarm: l.LTT.FalseAlarm, Miss: l.LTT.Miss}) {
		if got := c.P <= (1-l.LTT.Confidence)/float64(len(pairs)); got != valid[c.Pair] {
			t.Errorf("%+v: accepted %v, want %v", c, got, valid[c.Pair])
		}
	}
}
