package pipeline

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/configs"
)

// tiny is a configuration that runs the whole pipeline in a second or two.
func tiny(t testing.TB) configs.Config {
	t.Helper()
	cfg, err := configs.Load("debug")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		"name=tiny", "data.protocol=simulator", "data.max_runs=0", "data.simulator_runs=400", "encoder.dims=32",
		"model.hidden=16", "model.adapter=16", "model.head_hidden=16",
		"train.stage1.steps=20", "train.stage2.steps=30", "train.checkpoint_every=10", "train.validate_every=10",
		"eval.bootstrap=20", "eval.locked_smoke=false",
	} {
		if err := cfg.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}

var fixed = Options{Version: "test", Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}

func runAll(t *testing.T, dir string, cfg configs.Config, opts Options) *Run {
	t.Helper()
	r, err := Open(dir, cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.All(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// contents returns every file of a run folder that must be the same in an equal
// run: all but stages.json, which holds times, and the training checkpoints,
// which an interrupted run may have at other steps.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if rel == "stages.json" || filepath.Base(rel) == ".lock" || strings.HasPrefix(rel, "embed") && filepath.Ext(rel) != ".json" || strings.HasPrefix(rel, filepath.Join("train", "checkpoint")) {
			return nil
		}
		b, err := os.ReadFile(path)
		out[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func equalContents(t *testing.T, a, b map[string]string) {
	t.Helper()
	if len(a) != len(b) {
		t.Errorf("%d files and %d files", len(a), len(b))
	}
	for name := range a {
		if a[name] != b[name] {
			t.Errorf("%s differs", name)
		}
	}
}

func TestSameSeedSameBytesAndUpToDate(t *testing.T) {
	cfg := tiny(t)
	dir := t.TempDir()
	a := runAll(t, filepath.Join(dir, "a"), cfg, fixed)
	runAll(t, filepath.Join(dir, "b"), cfg, fixed)
	equalContents(t, contents(t, filepath.Join(dir, "a")), contents(t, filepath.Join(dir, "b")))

	// A second call does nothing.
	before := map[string]*StageRecord{}
	for _, s := range Stages {
		before[s] = a.Record(s)
	}
	again := runAll(t, filepath.Join(dir, "a"), cfg, fixed)
	for _, s := range Stages {
		if again.Record(s).Finished != before[s].Finished || again.Record(s).Inputs != before[s].Inputs {
			t.Errorf("stage %s was run again although nothing changed", s)
		}
	}
	// A damaged output is made again.
	if err := os.WriteFile(a.path("artifact", "calibration.json"), []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	runAll(t, filepath.Join(dir, "a"), cfg, fixed)
	if err := os.Remove(keptPath(a.ArtifactDir(), 1)); err != nil { // somebody may have wanted it
		t.Error(err)
	}
	equalContents(t, contents(t, filepath.Join(dir, "a")), contents(t, filepath.Join(dir, "b")))

	report, err := again.Report()
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Sets) != 1 || report.Sets[0].Name != "simulator" || !report.Sets[0].AUROC.OK() || len(report.Baselines) != 7 {
		t.Errorf("report: %d sets, %d baselines", len(report.Sets), len(report.Baselines))
	}
}

// TestKilled kills whole pipelines at random moments and starts them again.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("PIPELINE_TEST_DIR"); dir != "" { // the process to be killed
		runAll(t, dir, tiny(t), fixed)
		return
	}
	if testing.Short() {
		t.Skip("-short: starts many processes")
	}
	root := t.TempDir()
	want := filepath.Join(root, "whole")
	start := time.Now()
	runAll(t, want, tiny(t), fixed)
	whole := time.Since(start)

	dir := filepath.Join(root, "killed")
	kills := 0
	for try := 0; ; try++ {
		if try == 60 {
			t.Fatal("the run made no progress between 60 kills")
		}
		ctx, cancel := context.WithTimeout(t.Context(), whole*time.Duration(1+try*3%5)/10+time.Duration(try)*whole/40)
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "PIPELINE_TEST_DIR="+dir)
		out, err := cmd.CombinedOutput()
		killed := ctx.Err() != nil
		cancel()
		if err == nil {
			break
		}
		if !killed {
			t.Fatalf("%v\n%s", err, out)
		}
		kills++
	}
	t.Logf("killed %d times", kills)
	if kills == 0 {
		t.Error("no process was killed: the test shows nothing")
	}
	equalContents(t, contents(t, dir), contents(t, want))
}

func TestCancelled(t *testing.T) {
	r, err := Open(t.TempDir(), tiny(t), fixed)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.All(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("All = %v, want context.Canceled", err)
	}
}

func TestChangedSettingsRunWhatDependsOnThem(t *testing.T) {
	dir := t.TempDir()
	cfg := tiny(t)
	first := runAll(t, dir, cfg, fixed)
	weights := first.Record("train").Outputs[weightsFile]
	cfg.Calib.Alpha = 0.2
	second := runAll(t, dir, cfg, fixed)
	for _, s := range Stages {
		changed := first.Record(s).Inputs != second.Record(s).Inputs
		if want := s == "calibrate" || s == "eval"; changed != want {
			t.Errorf("alpha changed: stage %s made again: %v, want %v", s, changed, want)
		}
	}
	cfg.Train.LR *= 2
	third, err := Open(dir, cfg, fixed)
	if err != nil {
		t.Fatal(err)
	}
	// What is out of date is not built upon.
	if err := third.Calibrate(t.Context()); err == nil || !strings.Contains(err.Error(), "out of date") {
		t.Errorf("calibrate with old weights: %v", err)
	}
	if err := third.All(t.Context()); err != nil {
		t.Fatal(err)
	}
	if third.Record("train").Outputs[weightsFile] == weights {
		t.Error("another learning rate left the same weights")
	}
	// A lost segment of the cache is made again.
	segments, err := filepath.Glob(filepath.Join(dir, "embed", "*.arrow"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	if err := os.Remove(segments[0]); err != nil {
		t.Fatal(err)
	}
	if err := third.Train(t.Context()); err == nil || !strings.Contains(err.Error(), "dreamguard embed") {
		t.Errorf("train without a segment: %v", err)
	}
	if err := third.All(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	r, err := Open(t.TempDir(), tiny(t), fixed)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := r.lock()
	if err != nil {
		t.Fatal(err)
	}
	second, err := Reopen(r.Dir, fixed)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Data(t.Context()); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second process: %v", err)
	}
	unlock()
	if err := second.Data(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	cfg := tiny(t)
	if _, err := Open(dir, cfg, fixed); err != nil {
		t.Fatal(err)
	}
	other := cfg
	other.Name = "other"
	if _, err := Open(dir, other, fixed); !errors.Is(err, ErrOtherConfig) {
		t.Errorf("another configuration: %v", err)
	}
	if _, err := Reopen(t.TempDir(), fixed); !errors.Is(err, ErrNoRun) {
		t.Errorf("no run: %v", err)
	}
	r, err := Reopen(dir, fixed)
	if err != nil {
		t.Fatal(err)
	}
	for name, stage := range map[string]func(context.Context) error{"embed": r.Embed, "train": r.Train, "export": r.Export, "calibrate": r.Calibrate, "eval": r.Evaluate} {
		if err := stage(t.Context()); err == nil || !strings.Contains(err.Error(), "dreamguard") {
			t.Errorf("%s before its time: %v: want the command to run first", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "stages.json"), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Reopen(dir, fixed); err == nil || !strings.Contains(err.Error(), "stages.json") {
		t.Errorf("damaged ledger: %v", err)
	}

	few := tiny(t)
	few.Data.SimulatorRuns, few.Calib.Alpha, few.Calib.AlphaBlock = 60, 0.01, 0.005
	r, err = Open(t.TempDir(), few, fixed)
	if err != nil {
		t.Fatal(err)
	}
	var tooFew *calib.TooFewError
	if err := r.All(t.Context()); !errors.As(err, &tooFew) || tooFew.Need < 99 {
		t.Errorf("too few safe runs: %v", err)
	}

	p1 := tiny(t)
	p1.Data.Protocol = "p1"
	unclaimed := filepath.Join(t.TempDir(), "run")
	if _, err := Open(unclaimed, p1, fixed); !errors.Is(err, ErrNoData) {
		t.Errorf("no data folder: %v", err)
	}
	if _, err := os.Stat(unclaimed); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused run claimed its folder: %v", err)
	}
	withData := fixed
	for dir, want := range map[string]error{filepath.Join(unclaimed, "x"): ErrNoData, "pipeline_test.go": ErrNoData, t.TempDir(): fs.ErrNotExist} {
		withData.DataDir = dir
		if _, err := Open(unclaimed, p1, withData); !errors.Is(err, want) {
			t.Errorf("data in %s: %v, want %v", dir, err, want)
		}
	}
	if _, err := os.Stat(unclaimed); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused run claimed its folder: %v", err)
	}
	for name, open := range map[string]func() error{
		"Open":   func() error { _, err := Open("pipeline_test.go", tiny(t), fixed); return err },
		"Reopen": func() error { _, err := Reopen("pipeline_test.go", fixed); return err },
	} {
		if err := open(); !errors.Is(err, ErrNoRun) {
			t.Errorf("%s of a file: %v", name, err)
		}
	}
}

func TestTracesAndJudge(t *testing.T) {
	r := runAll(t, t.TempDir(), tiny(t), fixed)
	file := r.path("data", "test-simulator.jsonl.gz")
	out := t.TempDir()
	report, err := EvaluateTraces(t.Context(), TraceOptions{Artifact: r.ArtifactDir(), Files: []string{file}, Out: out})
	if err != nil {
		t.Fatal(err)
	}
	own, err := r.Report()
	if err != nil {
		t.Fatal(err)
	}
	if report.Sets[0].AUROC != own.Sets[0].AUROC || report.Sets[0].FPR != own.Sets[0].FPR {
		t.Errorf("the same runs measure differently: AUROC %v and %v, FPR %v and %v", report.Sets[0].AUROC, own.Sets[0].AUROC, report.Sets[0].FPR, own.Sets[0].FPR)
	}
	ts, err := r.Set("test-simulator")
	if err != nil {
		t.Fatal(err)
	}
	j, err := Judge(t.Context(), JudgeOptions{Artifact: r.ArtifactDir(), File: file, ID: ts[0].ID, Step: -1})
	if err != nil {
		t.Fatal(err)
	}
	if want := lastCall(ts[0]); j.Step != want || len(j.Verdicts) != want+1 {
		t.Errorf("step %d and %d verdicts: want the last tool call, step %d", j.Step, len(j.Verdicts), want)
	}
	for name, o := range map[string]JudgeOptions{
		"several runs": {Artifact: r.ArtifactDir(), File: file},
		"no such run":  {Artifact: r.ArtifactDir(), File: file, ID: "nobody"},
		"no such step": {Artifact: r.ArtifactDir(), File: file, ID: ts[0].ID, Step: 999},
		"no artifact":  {Artifact: t.TempDir(), File: file, ID: ts[0].ID},
	} {
		if _, err := Judge(t.Context(), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLooksAreRecorded(t *testing.T) {
	r := runAll(t, t.TempDir(), tiny(t), fixed)
	looks := filepath.Join(t.TempDir(), "looks.jsonl")
	for range 2 {
		if err := r.EvaluateFinal(t.Context(), looks); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(looks)
	if err != nil {
		t.Fatal(err)
	}
	// The second report was up to date: nobody looked again.
	if n := bytes.Count(b, []byte("\n")); n != 1 || !bytes.Contains(b, []byte(`"config":"tiny"`)) {
		t.Errorf("%d lines: %s", n, b)
	}
	// A look that cannot be recorded is not taken.
	if err := os.Remove(r.path("final", "report.json")); err != nil {
		t.Fatal(err)
	}
	if err := r.EvaluateFinal(t.Context(), filepath.Join(looks, "no", "folder")); err == nil {
		t.Error("an unrecorded look was taken")
	}
}
