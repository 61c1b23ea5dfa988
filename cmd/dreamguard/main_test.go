package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/dreamguard/dreamguard/verdict"
	"github.com/spf13/cobra"
)

// result of one command line.
type result struct {
	code           exitCode
	stdout, stderr string
}

func run(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs}
	code := a.main(args)
	return result{code, out.String(), errs.String()}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want exitCode
	}{
		{nil, exitDone},
		{errors.New("x"), exitFailure},
		{fs.ErrNotExist, exitFailure},
		{errInterrupted, exitFailure},
		{usagef("x"), exitUsage},
		{fmt.Errorf("--set: %w", &configs.Error{Reason: "x"}), exitUsage},
		{errors.Join(&configs.Error{Reason: "x"}, &configs.Error{Reason: "y"}), exitUsage},
		{fmt.Errorf("calibrate: %w", &calib.TooFewError{N: 3, Need: 19}), exitRefused},
		{fmt.Errorf("recalibrate: %w", &calib.NoLevelError{}), exitRefused},
		{fmt.Errorf("recalibrate: %w", &calib.InfeasibleError{}), exitRefused},
		{fmt.Errorf("recalibrate: %w", calib.ErrTrained), exitRefused},
		{errWithdrawn, exitRefused},
		{fmt.Errorf("data: set train is empty: %w", pipeline.ErrTooFewRuns), exitRefused},
		{fmt.Errorf("runs/x: %w", pipeline.ErrNoRun), exitUsage},
		{fmt.Errorf("data: %w", pipeline.ErrNoData), exitUsage},
		{fmt.Errorf("a: %w", pipeline.ErrEncoderSource), exitUsage},
		{decided(verdict.Pass), exitDone},
		{decided(verdict.Hold), exitHold},
		{fmt.Errorf("x: %w", decided(verdict.Block)), exitBlock},
	} {
		if got := codeOf(c.err); got != c.want {
			t.Errorf("codeOf(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	for line, want := range map[string]string{
		"verson":               `unknown verb "verson": did you mean version?`,
		"verson --jsn":         `unknown verb "verson": did you mean version?`,
		"frobnicate":           `unknown verb "frobnicate": the verbs are `,
		"version --jsn":        "dreamguard: version: unknown flag: --jsn: did you mean --json?",
		"version --zzzzzzzz":   "see dreamguard version --help",
		"version extra":        "see dreamguard version --help",
		"version --quiet=many": "see dreamguard version --help",
		"judge --artifact a --format opnai x.json":                   `judge: --format: unknown format "opnai": want one of`,
		"replay --artifact a --format opnai x.json":                  "replay: --format: unknown format",
		"recalibrate --artifact a --false-alarm 5% --format opnai x": "recalibrate: --format: unknown format",
		"eval --artifact a --format opnai --traces x --out y":        "eval: --format: unknown format",
		"eval --artifact a --protocol p9 --data x --out y":           `eval: --protocol "p9": want p1 or p2`,
		"run --config protocol-p1 --data nowhere --out nowhere/run":  "data: nowhere is no folder: protocol p1 needs real trajectories",
		"run --config protocol-p1 --out nowhere/run":                 "name their folder with --data DIR",
	} {
		wantUsage(t, line, want)
	}
}

// wantUsage checks that a command line is refused as a wrong use, with want in the
// message and no output.
func wantUsage(t *testing.T, line, want string) {
	t.Helper()
	r := run(t, strings.Fields(line)...)
	if r.code != exitUsage || !strings.Contains(r.stderr, want) || r.stdout != "" {
		t.Errorf("dreamguard %s: exit %d, stderr %q, stdout %q; want exit 2 and %q", line, r.code, r.stderr, r.stdout, want)
	}
}

// Every verb explains itself and shows an example.
func TestHelp(t *testing.T) {
	a := &app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	for _, c := range a.root().Commands() {
		if c.Example == "" || c.Short == "" {
			t.Errorf("%s has no example or no description", c.Name())
		}
		r := run(t, c.Name(), "--help")
		if r.code != exitDone || !strings.Contains(r.stdout, "Examples:") {
			t.Errorf("%s --help: exit %d, stdout %q", c.Name(), r.code, r.stdout)
		}
	}
	if r := run(t); r.code != exitDone || !strings.Contains(r.stdout, "Exit codes:") {
		t.Errorf("without arguments: exit %d, stdout %q", r.code, r.stdout)
	}
}

func TestVersion(t *testing.T) {
	if r := run(t, "version"); r.code != exitDone || !strings.HasPrefix(r.stdout, "dreamguard ") {
		t.Errorf("version: %+v", r)
	}
	r := run(t, "version", "--json")
	var b buildInfo
	if err := json.Unmarshal([]byte(r.stdout), &b); err != nil || b.Go == "" || b.Platform == "" {
		t.Errorf("version --json: %v in %q", err, r.stdout)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := run(t, "completion", shell); r.code != exitDone || !strings.Contains(r.stdout, "dreamguard") {
			t.Errorf("completion %s: exit %d, %d bytes", shell, r.code, len(r.stdout))
		}
	}
	if r := run(t, "__complete", "vers"); r.code != exitDone || !strings.HasPrefix(r.stdout, "version") {
		t.Errorf("completing a verb: %+v", r)
	}
}

// panicky is a writer that panics, standing for a bug anywhere.
type panicky struct{}

func (panicky) Write([]byte) (int, error) { panic("writer is broken") }

func TestPanicIsReported(t *testing.T) {
	for _, debug := range []string{"", "1"} {
		t.Setenv("DREAMGUARD_DEBUG", debug)
		var errs bytes.Buffer
		a := &app{stdout: panicky{}, stderr: &errs}
		code := a.main([]string{"version"})
		text := errs.String()
		if code != exitFailure || !strings.Contains(text, "writer is broken") || strings.Contains(text, "goroutine") != (debug == "1") {
			t.Errorf("DREAMGUARD_DEBUG=%q: exit %d, stderr %q", debug, code, text)
		}
	}
}

func TestConfigFlags(t *testing.T) {
	load := func(line string) (configs.Config, error) {
		cmd := &cobra.Command{}
		get := configFlags(cmd, "quickstart")
		if err := cmd.ParseFlags(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		return get()
	}
	c, err := load("--config debug --set train.lr=0.5 --set data.weights.simulator=2")
	if err != nil || c.Name != "debug" || c.Train.LR != 0.5 || c.Data.Weights["simulator"] != 2 {
		t.Errorf("got %+v, error %v", c, err)
	}
	if c, err := load(""); err != nil || c.Name != "quickstart" {
		t.Errorf("default is %q, error %v", c.Name, err)
	}
	for line, want := range map[string]string{
		"--config quickstrat":   "did you mean quickstart?",
		"--set train.lrr=1":     "--set: train.lrr: unknown key: did you mean train.lr?",
		"--set train.batch=0":   "train.batch: want a whole number from 1",
		"--config /nowhere/x.y": "no preset and no file",
	} {
		_, err := load(line)
		if err == nil || !strings.Contains(err.Error(), want) || codeOf(err) != exitUsage {
			t.Errorf("%s: %v, want %q and exit 2", line, err, want)
		}
	}
}

func TestInterrupt(t *testing.T) {
	p, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var errs syncBuffer
	a := &app{stdout: &bytes.Buffer{}, stderr: &errs}
	code := a.run(func(ctx context.Context) error {
		if err := p.Signal(os.Interrupt); err != nil {
			return err
		}
		<-ctx.Done()
		return fmt.Errorf("train: %w", ctx.Err())
	})
	if code != exitFailure || !strings.Contains(errs.String(), "run the same command again") {
		t.Errorf("exit %d, stderr %q", code, errs.String())
	}
}
