package artifact

import (
	"errors"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
)

func TestRunDigest(t *testing.T) {
	run := func() *data.Trajectory {
		return &data.Trajectory{ID: "a", Task: "pay", Steps: []data.Step{{Type: data.ToolCall, Tool: "send", Args: `{"to": 1}`, Result: "ok"}}}
	}
	base := RunDigest(run())
	if len(base) != 2*FingerprintSize {
		t.Fatalf("digest %q", base)
	}
	same := run()
	same.ID, same.Label, same.Group = "b", data.Unsafe, "g"
	if RunDigest(same) != base {
		t.Error("an id or a label changes the digest")
	}
	for name, change := range map[string]func(*data.Trajectory){
		"task":    func(t *data.Trajectory) { t.Task += "!" },
		"context": func(t *data.Trajectory) { t.Context = "x" },
		"args":    func(t *data.Trajectory) { t.Steps[0].Args = `{"to": 2}` },
		"result":  func(t *data.Trajectory) { t.Steps[0].Result = "" },
		"moved":   func(t *data.Trajectory) { t.Steps[0].Tool, t.Steps[0].Args = "sen", `d{"to": 1}` },
		"step":    func(t *data.Trajectory) { t.Steps = append(t.Steps, data.Step{}) },
	} {
		other := run()
		change(other)
		if RunDigest(other) == base {
			t.Errorf("%s: the digest stays", name)
		}
	}
	b := PackFingerprints([]string{base, base, "no digest", RunDigest(&data.Trajectory{})})
	a := Artifact{Trained: b}
	on := a.TrainedOn()
	if _, ok := on[base]; !ok || len(on) != 2 || len(b) != 2*FingerprintSize {
		t.Errorf("%d bytes list %v", len(b), on)
	}
	if (&Artifact{}).TrainedOn() != nil {
		t.Error("an artifact without the file lists runs")
	}
}

func TestCalibrationPlans(t *testing.T) {
	plan := func(hold float64, path ...string) calib.Plan {
		return calib.Plan{Path: path, Hold: calib.Threshold{Value: hold, K: 1, N: 2, Alpha: 0.1}, Block: calib.Threshold{Value: calib.Off}}
	}
	good := func() *Calibration {
		hold := 0.5
		h, err := calib.NewHistogram([]float64{0.1, 0.2}, hold)
		if err != nil {
			t.Fatal(err)
		}
		return &Calibration{
			ModelDigest: Sum(nil), Thresholds: Thresholds{Hold: &hold}, By: []string{"suite"}, Reference: h,
			Fusion: calib.Fusion{TempHazard: 1, TempPrefix: 1, WeightHazard: 1, Beta: 0.5, Window: 1},
			Plans:  &calib.Calibration{Plans: []calib.Plan{plan(0.5), plan(0.25, "x")}, Tree: calib.Tree{Own: [][]string{{"x"}}}},
		}
	}
	c := good()
	b, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseCalibration(b, Sum(nil))
	if err != nil || back.Reference.N() != 2 {
		t.Fatal(err)
	}
	if hold, _ := back.Levels([]string{"x"}); hold != 0.25 {
		t.Errorf("levels of the group: %v", hold)
	}
	if hold, _ := back.Levels([]string{"y"}); hold != 0.5 {
		t.Errorf("levels of another group: %v", hold)
	}
	for name, change := range map[string]func(*Calibration){
		"other default":     func(c *Calibration) { c.Plans.Plans[0].Hold.Value = 0.25 },
		"no plans":          func(c *Calibration) { c.Plans = nil },
		"path without name": func(c *Calibration) { c.By = nil },
		"empty name":        func(c *Calibration) { c.By[0] = "" },
		"off the grid":      func(c *Calibration) { c.Plans.Plans[1].Hold.Value = 0.3 },
		"confidence":        func(c *Calibration) { c.Certificate.Confidence = 1 },
	} {
		c := good()
		change(c)
		if _, err := c.Marshal(); !errors.Is(err, ErrCalibration) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
