package pipeline

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
)

// TestCalibrationIsBlamedForItsOwnOnly: an error names the file of the calibration
// where that is at fault, and only there.
func TestCalibrationIsBlamedForItsOwnOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.json")
	open := func(content string, opts ...guard.Option) error {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		_, _, done, err := openArtifact(t.Context(), smallArtifact, file, EncoderSource{}, nil, nil, opts...)
		done()
		return err
	}
	good, err := os.ReadFile(filepath.Join(smallArtifact, artifact.CalibrationFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := open(string(good)); err != nil {
		t.Fatal(err)
	}
	if err := open(string(good), guard.WithMaxRefusals(-1)); !errors.Is(err, guard.ErrOption) || strings.Contains(err.Error(), file) {
		t.Errorf("a bad option: %v: the calibration is not at fault", err)
	}
	if err := open("{}"); !errors.Is(err, guard.ErrCalibration) || !strings.Contains(err.Error(), file) {
		t.Errorf("a bad calibration: %v: want its file named", err)
	}
	if _, _, _, err := openArtifact(t.Context(), t.TempDir(), file, EncoderSource{}, nil, nil); err == nil || strings.Contains(err.Error(), file) {
		t.Errorf("no artifact: %v: the calibration is not at fault", err)
	}
}

// TestNothingIsMadeForABadArtifact: an evaluation that cannot begin leaves no folder.
func TestNothingIsMadeForABadArtifact(t *testing.T) {
	dir := t.TempDir()
	calibration := filepath.Join(dir, "bad.json")
	if err := os.WriteFile(calibration, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "deep", "out")
	for name, o := range map[string]TraceOptions{
		"no artifact":     {Artifact: dir, Out: out},
		"bad calibration": {Artifact: smallArtifact, Calibration: calibration, Out: out},
	} {
		if _, err := EvaluateTraces(t.Context(), o); err == nil {
			t.Errorf("%s: traces: no error", name)
		}
		if _, err := EvaluateProtocol(t.Context(), o, "p1", dir, false, ""); err == nil {
			t.Errorf("%s: protocol: no error", name)
		}
		if _, err := os.Stat(filepath.Dir(out)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s was made all the same", name, filepath.Dir(out))
		}
	}
}
