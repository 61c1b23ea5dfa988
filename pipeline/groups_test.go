package pipeline

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/simulate"
	"github.com/dreamguard/dreamguard/data/store"
	"github.com/dreamguard/dreamguard/eval"
)

// smallArtifact is that of package guard.
var smallArtifact = filepath.Join("..", "guard", "testdata", "v1")

// TestJudgeUsesLevelsOfGroups: judge, replay and eval decide by the levels of the
// run's group, not by the default ones.
func TestJudgeUsesLevelsOfGroups(t *testing.T) {
	runs := slices.Collect(simulate.Generate(simulate.Options{Runs: 600, Seed: 5}))
	dir := t.TempDir()
	file := filepath.Join(dir, "runs.jsonl")
	if err := store.WriteAll(file, runs); err != nil {
		t.Fatal(err)
	}
	rec, err := Recalibrate(t.Context(), RecalibrateOptions{
		Artifact: smallArtifact, Files: []string{file}, Seed: 1,
		Request: calib.Request{FalseAlarm: 0.2, By: []string{"suite"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	calibration := filepath.Join(dir, "calibration.json")
	if err := rec.WriteFile(calibration); err != nil {
		t.Fatal(err)
	}
	m, _, done, err := openArtifact(t.Context(), smallArtifact, calibration, EncoderSource{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer done()

	checked := map[string]bool{}
	for _, run := range runs {
		hold, _ := m.Calibration().Levels([]string{run.Suite})
		if checked[run.Suite] || hold == m.Thresholds().Hold {
			continue
		}
		checked[run.Suite] = true
		j, err := Judge(t.Context(), JudgeOptions{Artifact: smallArtifact, Calibration: calibration, File: file, ID: run.ID, Step: len(run.Steps) - 1})
		if err != nil {
			t.Fatal(err)
		}
		replayed := judgeRun(t.Context(), m, run)
		if replayed.err != nil {
			t.Fatal(replayed.err)
		}
		traces, err := eval.Score(t.Context(), m, []*data.Trajectory{run}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range j.Verdicts {
			if v.Thresholds.Hold != hold || replayed.verdicts[i].Thresholds.Hold != hold {
				t.Fatalf("suite %s step %d: judge holds from %v, replay from %v, want %v", run.Suite, i, v.Thresholds.Hold, replayed.verdicts[i].Thresholds.Hold, hold)
			}
			if run.Steps[i].Type == data.ToolCall && (traces[0].Decisions[i] != v.Decision || replayed.verdicts[i].Decision != v.Decision) {
				t.Errorf("suite %s step %d: judge %v, replay %v, eval %v", run.Suite, i, v.Decision, replayed.verdicts[i].Decision, traces[0].Decisions[i])
			}
		}
	}
	if len(checked) == 0 {
		t.Fatal("no suite has a level of its own: the test shows nothing")
	}
}
