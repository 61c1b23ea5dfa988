package calib_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
)

func stored(t testing.TB) []byte {
	t.Helper()
	runs := safeRuns(200)
	for i := range runs {
		runs[i].Path = []string{[]string{"a", "b"}[i%2]}
	}
	tuning := slices.Clone(runs)
	for i := range tuning {
		tuning[i].Fingerprint = ""
	}
	c, err := calib.Request{FalseAlarm: 0.05, By: []string{"suite"}}.Solve(tuning, runs)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil || len(c.Plans) != 3 {
		t.Fatalf("%v, %d plans", err, len(c.Plans))
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestValidate(t *testing.T) {
	good := string(stored(t))
	for _, c := range [][2]string{
		{`"plans":[`, `"plans":[],"were":[`},
		{`"path":["a"]`, `"path":["z"]`}, {`"path":["a"]`, `"path":["b"]`},
		{`"own":[["a"],["b"]]`, `"own":[["a"],["a"]]`}, {`"own":[["a"],["b"]]`, `"own":[["a"],[]]`}, {`"own":[["a"],["b"]]`, `"own":[["a"]]`},
		{`"value":0.`, `"value":7.`}, {`"value":0.`, `"value":-0.`}, {`"value":0.`, `"value":0.00000001`}, {`"bound":"false_alarm"`, `"bound":"luck"`},
		{`"level":0.05`, `"level":0`}, {`"level":0.05`, `"level":1`}, {`"runs":200`, `"runs":-1`}, {`"alerted":`, `"alerted":999`}, {`"k":`, `"k":-`},
	} {
		broken := strings.Replace(good, c[0], c[1], 1)
		if broken == good {
			t.Fatalf("%s does not occur in %s", c[0], good)
		}
		var got calib.Calibration
		if err := json.Unmarshal([]byte(broken), &got); err != nil {
			t.Fatalf("%s: %v", c[1], err)
		}
		if err := got.Validate(); !errors.Is(err, calib.ErrCalibration) {
			t.Errorf("%s -> %s: error %v, want ErrCalibration", c[0], c[1], err)
		}
	}
	if new(calib.Calibration).For(nil) != nil {
		t.Error("a plan out of nothing")
	}
}

// FuzzCalibration: no stored calibration makes a reader panic.
func FuzzCalibration(f *testing.F) {
	f.Add(stored(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c calib.Calibration
		if json.Unmarshal(b, &c) != nil {
			return
		}
		valid := c.Validate() == nil
		p := c.For([]string{"a", "x"})
		if valid && p == nil {
			t.Fatal("no plan")
		}
		for _, p := range c.Plans {
			p.Thresholds()
			for _, g := range p.Guarantees {
				_ = g.String()
			}
		}
	})
}
