package train

import (
	"math"
	"testing"
)

func TestAverageDecay(t *testing.T) {
	for _, c := range []struct {
		step int
		want float64
	}{{1, 2.0 / 11}, {9, 10.0 / 19}, {1_000_000, 0.99}} {
		if got := averageDecay(0.99, c.step); math.Abs(float64(got)-c.want) > 1e-6 {
			t.Errorf("step %d: %v, want %v", c.step, got, c.want)
		}
	}
}

func TestFollow(t *testing.T) {
	a, err := newWeights(testConfig().Model, testDims(), 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newWeights(testConfig().Model, testDims(), 2)
	if err != nil {
		t.Fatal(err)
	}
	before := a.clone()
	at := a.index("init.w")
	a.follow(b, []int{at}, 0.75)
	for i := range a.values {
		for k := range a.values[i] {
			want := before.values[i][k]
			if i == at {
				want = 0.75*want + 0.25*b.values[i][k]
			}
			if a.values[i][k] != want {
				t.Fatalf("%s[%d] = %v, want %v", a.params[i].Name, k, a.values[i][k], want)
			}
		}
	}
}
