package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/pipeline"
)

// testArtifact copies the small artifact of package guard.
func testArtifact(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "artifact")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "guard", "testdata", "v1"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func simulated(t *testing.T, more ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	if r := run(t, append([]string{"simulate", "-q", "--runs", "120", "--seed", "5", "--out", path}, more...)...); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	return path
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRecalibrate(t *testing.T) {
	dir, traces := testArtifact(t), simulated(t, "--unsafe-share", "-1")
	file := filepath.Join(dir, artifact.CalibrationFile)
	first := read(t, file)
	line := []string{"recalibrate", "-q", "--artifact", dir, "--traces", traces, "--assume-safe", "--false-alarm", "5%"}

	r := run(t, append(line, "--dry-run")...)
	if r.code != exitDone || !strings.Contains(r.stdout, "A safe run like the 120 calibration runs is held or blocked with probability at most 5 %") ||
		!strings.Contains(r.stdout, "Read these first") || !strings.Contains(r.stdout, "nothing was written") || !bytes.Equal(read(t, file), first) {
		t.Fatalf("dry run: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := run(t, append(line, "--out", "")...); r.code != exitUsage || !bytes.Equal(read(t, file), first) {
		t.Fatalf("--out without a name: exit %d, %s; the artifact must stay", r.code, r.stderr)
	}
	out := filepath.Join(t.TempDir(), "c.json")
	if r := run(t, append(line, "--out", out, "--json")...); r.code != exitDone || !bytes.Equal(read(t, file), first) {
		t.Fatalf("--out: exit %d, %s", r.code, r.stderr)
	}
	r = run(t, append(line, "--write", "--json", "--confidence", "95%")...)
	var rec pipeline.Recalibration
	if err := json.Unmarshal([]byte(r.stdout), &rec); err != nil || r.code != exitDone {
		t.Fatalf("--write: exit %d, %v, %s", r.code, err, r.stderr)
	}
	m, err := guard.Open(dir)
	if err != nil || m.CalibrationDigest() != rec.After || m.Digest() != rec.Model || rec.Before == rec.After {
		t.Fatalf("in force: %v; %+v", err, rec)
	}
	if c := m.Calibration(); c.Certificate.Confidence != 0.95 || c.Plans == nil || c.Reference.N() != 120 || len(rec.Guarantees) != 1 {
		t.Errorf("calibration: %+v", c)
	}
	second := read(t, file)

	// The other file is good for eval, and for no other model.
	if r := run(t, "eval", "-q", "--artifact", dir, "--calibration", out, "--traces", traces, "--out", t.TempDir()); r.code != exitDone || !strings.Contains(r.stdout, "like the 120 calibration runs") {
		t.Errorf("eval: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}

	// Log and revert.
	type row struct {
		Number  int
		Current bool
		Digest  string
	}
	log := func() (rows []row) {
		r := run(t, "calibration", "log", "--artifact", dir, "--json")
		if err := json.Unmarshal([]byte(r.stdout), &rows); err != nil || r.code != exitDone {
			t.Fatalf("log: exit %d, %v, %s", r.code, err, r.stderr)
		}
		return rows
	}
	if rows := log(); len(rows) != 2 || rows[0].Current || !rows[1].Current || rows[1].Digest != rec.After {
		t.Errorf("log: %+v", rows)
	}
	if r := run(t, "calibration", "revert", "--artifact", dir); r.code != exitDone || !bytes.Equal(read(t, file), first) {
		t.Errorf("revert: %+v", r)
	}
	if rows := log(); len(rows) != 3 || rows[2].Digest == rec.After {
		t.Errorf("log after revert: %+v", rows)
	}
	if r := run(t, "calibration", "revert", "--artifact", dir); r.code != exitDone || !bytes.Equal(read(t, file), second) {
		t.Errorf("revert twice: %+v", r)
	}
	if r := run(t, "calibration", "revert", "--artifact", dir, "--to", "1"); r.code != exitDone || !bytes.Equal(read(t, file), first) {
		t.Errorf("revert --to: %+v", r)
	}
	for _, line := range []string{"--to 99", "--to 0"} {
		if r := run(t, append([]string{"calibration", "revert", "--artifact", dir}, strings.Fields(line)...)...); r.code == exitDone {
			t.Errorf("revert %s: %+v", line, r)
		}
	}
}

func TestRecalibrateRefuses(t *testing.T) {
	dir, traces := testArtifact(t), simulated(t)
	labels := filepath.Join(t.TempDir(), "labels.csv")
	if err := os.WriteFile(labels, []byte("id,label\nnobody,safe\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]struct {
		code exitCode
		text string
	}{
		"--false-alarm 0%":                                        {exitUsage, "between 0 % and 100 %"},
		"--false-alarm 100%":                                      {exitUsage, "between 0 % and 100 %"},
		"--false-alarm 5":                                         {exitUsage, "between 0 % and 100 %"},
		"--false-alarm 5% --hold-budget 0/100":                    {exitUsage, "between 0 % and 100 %"},
		"--false-alarm 5% --hold-budget 100/100":                  {exitUsage, "between 0 % and 100 %"},
		"--false-alarm NaN":                                       {exitUsage, "want a share"},
		"--false-alarm 5% --block 5%":                             {exitUsage, "less than the false alarms"},
		"":                                                        {exitUsage, "nothing is asked for"},
		"--false-alarm 5% --write --dry-run":                      {exitUsage, "exclude each other"},
		"--false-alarm 0.1% --dry-run":                            {exitRefused, "at least 999 are needed"},
		"--false-alarm 2% --confidence 99%":                       {exitRefused, "at least 228 are needed"},
		"--false-alarm 2% --miss 2%":                              {exitRefused, "no levels keep"},
		"--false-alarm 10% --refit weights":                       {exitRefused, "a refit needs"},
		"--false-alarm 10% --refit layer":                         {exitRefused, "a refit needs"},
		"--false-alarm 10% --refit more":                          {exitUsage, "want weights or layer"},
		"--false-alarm 10% --labels " + labels:                    {exitFailure, `"nobody"`},
		"--false-alarm 10% --mix suite":                           {exitUsage, "want FIELD=VALUE:SHARE"},
		"--false-alarm 10% --mix suite=code":                      {exitUsage, "has no share"},
		"--false-alarm 10% --mix suite=code:-1":                   {exitUsage, "want a number"},
		"--false-alarm 10% --mix suite=code:1,code:2":             {exitUsage, "two shares"},
		"--false-alarm 10% --mix suite=code:1 --confidence 95%":   {exitUsage, "on average"},
		"--false-alarm 10% --mix suite=elsewhere:1 --assume-safe": {exitFailure, "collect some"},
		"--false-alarm 10% --mix suite=code:0 --assume-safe":      {exitFailure, "no kind has a live share"},
		"--false-alarm 10% --by tenant --dry-run":                 {exitFailure, `has a field "tenant"`},
	} {
		r := run(t, append([]string{"recalibrate", "-q", "--artifact", dir, "--traces", traces}, strings.Fields(line)...)...)
		if r.code != want.code || !strings.Contains(r.stderr, want.text) {
			t.Errorf("recalibrate %s: exit %d, %s; want %d and %q", line, r.code, r.stderr, want.code, want.text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, artifact.HistoryFolder)); err == nil {
		t.Error("a refusal left a history")
	}
	// Runs that the model was trained on.
	fresh := filepath.Join(t.TempDir(), "run")
	args := "run -q --config debug --set name=tiny --set data.protocol=simulator --set data.max_runs=0 --set data.simulator_runs=400 --set encoder.dims=32 --set model.hidden=16 --set model.adapter=16 --set model.head_hidden=16 --set train.stage1.steps=2 --set train.stage2.steps=2 --set train.checkpoint_every=2 --set train.validate_every=2 --set eval.bootstrap=0 --set eval.locked_smoke=false --out"
	if r := run(t, append(strings.Fields(args), fresh)...); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	for name, want := range map[string]exitCode{"train": exitRefused, "validation": exitRefused, "conformal": exitDone} {
		r := run(t, "recalibrate", "-q", "--artifact", filepath.Join(fresh, "artifact"), "--traces", filepath.Join(fresh, "data", name+".jsonl.gz"), "--false-alarm", "30%", "--dry-run")
		if r.code != want || want == exitRefused && !strings.Contains(r.stderr, "trained on") {
			t.Errorf("%s: exit %d, %s", name, r.code, r.stderr)
		}
	}
}

// Traffic with other shares of kinds gets other levels, on as many runs as the
// weights leave.
func TestRecalibrateMix(t *testing.T) {
	dir, traces := testArtifact(t), simulated(t, "--unsafe-share", "-1", "--runs", "600")
	line := []string{"recalibrate", "-q", "--artifact", dir, "--traces", traces, "--assume-safe", "--false-alarm", "10%", "--dry-run"}
	const weighted = "were weighted to resemble other traffic"
	if r := run(t, line...); r.code != exitDone || strings.Contains(r.stdout, weighted) {
		t.Fatalf("without a mix: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := run(t, append(line, "--mix", "suite=code:70%,sysadmin:30%")...); r.code != exitDone || !strings.Contains(r.stdout, weighted) ||
		!strings.Contains(r.stdout, "served to choose on") {
		t.Fatalf("with a mix: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	// Of what is rare here and common there, there are too few.
	if r := run(t, append(line, "--mix", "suite=code:1", "--false-alarm", "0.5%")...); r.code != exitRefused || !strings.Contains(r.stderr, "effective safe runs") {
		t.Fatalf("one kind: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// The frontier is drawn where levels are found, and where none can be.
func TestRecalibrateFrontier(t *testing.T) {
	dir, traces := testArtifact(t), simulated(t)
	for line, want := range map[string]exitCode{"--false-alarm 10%": exitDone, "--false-alarm 10% --block 4% --assume-safe": exitDone, "--false-alarm 2% --miss 2%": exitRefused} {
		file := filepath.Join(t.TempDir(), "frontier.svg")
		r := run(t, append([]string{"recalibrate", "-q", "--artifact", dir, "--traces", traces, "--dry-run", "--frontier", file}, strings.Fields(line)...)...)
		b, err := os.ReadFile(file)
		if r.code != want || err != nil || !bytes.HasPrefix(b, []byte("<svg")) || bytes.Contains(b, []byte("these levels")) != (want == exitDone) {
			t.Errorf("%s: exit %d, %v, %.80q, %s", line, r.code, err, b, r.stderr)
		}
	}
	safe := simulated(t, "--unsafe-share", "-1")
	if r := run(t, "recalibrate", "-q", "--artifact", dir, "--traces", safe, "--dry-run", "--false-alarm", "10%", "--frontier", filepath.Join(t.TempDir(), "f.svg")); r.code != exitFailure || !strings.Contains(r.stderr, "needs safe and unsafe runs") {
		t.Errorf("safe runs only: exit %d, %s", r.code, r.stderr)
	}
}

func TestShare(t *testing.T) {
	for text, want := range map[string]float64{"5%": 0.05, "5 %": 0.05, "0.05": 0.05, ".05": 0.05, "5/100": 0.05, "5 / 100": 0.05, "0.1%": 0.001, "29%": 0.29, "99.9%": 0.999, "1/3": 1.0 / 3} {
		var s share
		if err := s.Set(text); err != nil || float64(s) != want {
			t.Errorf("%q is %v, %v; want %v", text, float64(s), err, want)
		}
	}
	for _, text := range []string{"", "%", "0", "0%", "1", "100%", "5", "-5%", "+5%", "1e-2", "NaN", "Inf", "5/0", "5/", "/5", "5%%", "5,0%", "0x1%", "99999999999999999999%"} {
		var s share
		if err := s.Set(text); err == nil {
			t.Errorf("%q is %v", text, float64(s))
		}
	}
	s := share(0.05)
	if s.String() != "5%" {
		t.Errorf("5 %% is shown as %q", s.String())
	}
}
