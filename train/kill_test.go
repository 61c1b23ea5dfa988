package train

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/checkpoints"
	"github.com/dreamguard/dreamguard/configs"
)

// killDir, if set, makes the test binary train into that folder and say so after
// every step, instead of running tests: the process that TestKilled kills.
const killDir = "DREAMGUARD_TEST_KILL_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(killDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := killable(dir, func(Event) { fmt.Println("step") }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("done")
}

func killConfig() configs.Config {
	cfg := testConfig()
	cfg.Train.Stage1.Steps, cfg.Train.Stage2.Steps = 24, 40
	cfg.Train.CheckpointEvery, cfg.Train.ValidateEvery = 4, 6
	return cfg
}

func killable(dir string, progress func(Event)) error {
	dims := testDims()
	_, err := Fit(context.Background(), killConfig(), dims, testExamples(14, dims, nil, 3, 2, 7, 4), testExamples(10, dims, nil, 5, 3),
		Options{Dir: dir, Progress: progress})
	return err
}

// A training that is killed at random moments, with no chance to clean up, ends
// with the bytes of one that was left alone.
func TestKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	whole := t.TempDir()
	if err := killable(whole, nil); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(20, 26))
	kills := 0
	for done := false; !done; {
		if kills > 200 {
			t.Fatal("200 kills and the training does not end")
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), killDir+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// After some steps, and then at any moment within the next few: in a step,
		// a checkpoint, a validation, a write.
		steps, wait := rng.IntN(14), time.Duration(rng.Int64N(int64(6*time.Millisecond)))
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); {
			if lines.Text() == "done" {
				done = true
			} else if n++; n > steps && !done {
				time.Sleep(wait)
				cmd.Process.Kill() // may find the process gone
				break
			}
		}
		for lines.Scan() { // what was in the pipe
			done = done || lines.Text() == "done"
		}
		err = cmd.Wait()
		var exit *exec.ExitError
		switch {
		case done:
		case errors.As(err, &exit) && exit.ExitCode() == -1: // by a signal
			kills++
		default:
			t.Fatalf("the training failed: %v", err)
		}
	}
	t.Logf("%d kills", kills)
	if kills < 3 {
		t.Errorf("the training was killed %d times only: the test shows nothing", kills)
	}
	if diff := cmp.Diff(fitFiles(t, whole), fitFiles(t, dir)); diff != "" {
		t.Errorf("killed run differs:\n%s", diff)
	}
}

func TestOtherConfigOrDataIsRefused(t *testing.T) {
	cfg, dims := testConfig(), testDims()
	xs := testExamples(6, dims, nil, 3)
	dir := t.TempDir()
	ctx := context.Background()
	if _, err := Fit(ctx, cfg, dims, xs, nil, Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	other := cfg
	other.Train.LR *= 2
	if _, err := Fit(ctx, other, dims, xs, nil, Options{Dir: dir}); !errors.Is(err, checkpoints.ErrMismatch) {
		t.Errorf("another learning rate: %v", err)
	}
	changed := testExamples(6, dims, nil, 3)
	changed[2].Features[1] += 1e-6
	if _, err := Fit(ctx, cfg, dims, changed, nil, Options{Dir: dir}); !errors.Is(err, checkpoints.ErrMismatch) {
		t.Errorf("another feature value: %v", err)
	}
	other = cfg
	other.Train.CheckpointEvery = 1
	other.Name = "renamed"
	if _, err := Fit(ctx, other, dims, xs, nil, Options{Dir: dir}); err != nil {
		t.Errorf("how often a checkpoint is written, or a name, makes another run: %v", err)
	}
}

// A disk that lost the newest checkpoint costs steps, not the result.
func TestDamagedCheckpointCostsStepsOnly(t *testing.T) {
	cfg, dims := testConfig(), testDims()
	xs, val := testExamples(14, dims, nil, 3, 2, 7, 4), testExamples(10, dims, nil, 5, 3)
	whole, dir := t.TempDir(), t.TempDir()
	if _, err := Fit(context.Background(), cfg, dims, xs, val, Options{Dir: whole}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, err := Fit(ctx, cfg, dims, xs, val, Options{Dir: dir, Progress: func(e Event) {
		if e.Stage == 2 && e.Step == 5 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "checkpoint", "step-*"))
	if err != nil || len(names) != checkpoints.Keep {
		t.Fatal(names, err)
	}
	if err := os.Truncate(names[len(names)-1], 100); err != nil { // sorted by step
		t.Fatal(err)
	}
	var log bytes.Buffer
	if _, err := Fit(context.Background(), cfg, dims, xs, val, Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), names[len(names)-1]) {
		t.Errorf("the log does not name the damaged file:\n%s", log.String())
	}
	if diff := cmp.Diff(fitFiles(t, whole), fitFiles(t, dir)); diff != "" {
		t.Errorf("the run differs:\n%s", diff)
	}
}
