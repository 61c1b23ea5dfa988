package pipeline

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dreamguard/dreamguard/guard/artifact"
)

// TestCalibrateKeepsWhatItDidNotMake: the product of a recalibration survives a
// rerun of the stages, in the history; a rerun's own product adds nothing to it.
func TestCalibrateKeepsWhatItDidNotMake(t *testing.T) {
	dir := t.TempDir()
	r := runAll(t, dir, tiny(t), fixed)
	path := r.path("artifact", artifact.CalibrationFile)
	own, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entries := func(want ...string) []HistoryEntry {
		t.Helper()
		log, err := CalibrationLog(r.ArtifactDir())
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range log {
			if i >= len(want) || string(e.raw) != want[i] || e.Problem != "" || e.Current != (i == len(log)-1) {
				t.Errorf("entry %d of %d: %+v", i, len(log), e)
			}
		}
		if len(log) != len(want) {
			t.Fatalf("%d calibrations, want %d", len(log), len(want))
		}
		return log
	}
	again := func(do func() error) {
		t.Helper()
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}

	// A plain rerun, which another alpha and back brings about.
	for _, alpha := range []float64{0.2, r.Config.Calib.Alpha} {
		r.Config.Calib.Alpha = alpha
		again(func() error { return r.Calibrate(t.Context()) })
	}
	entries(string(own))

	// A recalibration, then a rerun.
	c := *entries(string(own))[0].Calibration
	c.Certificate.Created = "2026-05-06"
	mine, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	install := func() { again(func() error { return installCalibration(r.ArtifactDir(), &c) }) }
	install()
	entries(string(own), string(mine))
	again(func() error { return r.Calibrate(t.Context()) })
	entries(string(own), string(mine), string(own))

	// A new export carries the history over, with what was in force.
	if _, err := RevertCalibration(r.ArtifactDir(), 2); err != nil {
		t.Fatal(err)
	}
	before := entries(string(own), string(mine), string(own), string(mine))
	if err := os.Remove(r.path("artifact", artifact.ModelFile)); err != nil {
		t.Fatal(err)
	}
	again(func() error { return r.Export(t.Context()) })
	if _, err := os.Stat(path); err == nil {
		t.Error("the calibration is still in force after an export")
	}
	again(func() error { return r.Calibrate(t.Context()) })
	if log := entries(string(own), string(mine), string(own), string(mine), string(own)); log[1].Digest != before[1].Digest {
		t.Errorf("%s, want %s", log[1].Digest, before[1].Digest)
	}

	// A kill before the stage was recorded does not keep its own product.
	rec := r.ledger.Stages["calibrate"]
	delete(r.ledger.Stages, "calibrate")
	again(r.ledger.save)
	again(func() error { return r.Calibrate(t.Context()) })
	if r.Record("calibrate") == rec {
		t.Fatal("the stage was not run again")
	}
	entries(string(own), string(mine), string(own), string(mine), string(own))

	// What is no calibration at all is kept too: somebody may have wanted it.
	if err := os.WriteFile(path, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	again(func() error { return r.Calibrate(t.Context()) })
	if b, err := os.ReadFile(keptPath(r.ArtifactDir(), 5)); err != nil || string(b) != "{}" {
		t.Errorf("kept %q, %v", b, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*export*")); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}
