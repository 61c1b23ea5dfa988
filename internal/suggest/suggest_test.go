package suggest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"steps", "steps", 0}, {"step", "steps", 1},
		{"setps", "steps", 1}, {"Hidden", "hidden", 0}, {"kitten", "sitting", 3},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestDistanceIsSymmetricAndBounded(t *testing.T) {
	word := rapid.StringMatching(`[a-d]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := Distance(a, b)
		if back := Distance(b, a); back != d {
			t.Fatalf("Distance is %d one way and %d the other", d, back)
		}
		if (d == 0) != (a == b) {
			t.Fatalf("Distance(%q, %q) = %d", a, b, d)
		}
		if d > max(len(a), len(b)) || d < max(len(a), len(b))-min(len(a), len(b)) {
			t.Fatalf("Distance(%q, %q) = %d is out of bounds", a, b, d)
		}
	})
}

func TestNearest(t *testing.T) {
	keys := []string{"steps", "predict", "prior", "dynamics"}
	for word, want := range map[string]string{
		"setps": "steps", "step": "steps", "priro": "prior", "dynamic": "dynamics", "zzzzz": "", "ab": "",
	} {
		if got, ok := Nearest(word, keys); got != want || ok != (want != "") {
			t.Errorf("Nearest(%q) = %q, %v, want %q", word, got, ok, want)
		}
	}
}
