package calib

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
)

// A monitor on a stored histogram does what one on the scores does, and leaves the
// histogram alone.
func TestNewMonitorFrom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	scores := make([]float64, 200)
	for i := range scores {
		scores[i] = rng.Float64()
	}
	w := Watch{Hold: 0.75, Level: 0.05, Seed: 3}
	a, err := NewMonitor(w, scores)
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewHistogram(scores, w.Hold)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewMonitorFrom(w, h)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		s := rng.Float64()
		if _, err := a.Observe(s); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Observe(s); err != nil {
			t.Fatal(err)
		}
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	if errX != nil || errY != nil || string(x) != string(y) {
		t.Errorf("the monitors differ: %v, %v", errX, errY)
	}
	if h.N() != 200 {
		t.Errorf("the histogram has %d scores", h.N())
	}
	w.Hold = 0.5
	if _, err := NewMonitorFrom(w, h); !errors.Is(err, ErrMonitor) {
		t.Errorf("another cap: %v", err)
	}
	w.Level = 0
	if _, err := NewMonitorFrom(w, h); !errors.Is(err, ErrMonitor) {
		t.Errorf("no level: %v", err)
	}
}
