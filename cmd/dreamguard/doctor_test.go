package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/internal/backend"
	"github.com/dreamguard/dreamguard/internal/doctor"
)

// Doctor and the tests of hook start their own program, which in a test is the test's: it then is
// dreamguard.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "doctor", "hook", "mcp-proxy":
			main()
		case "shell-server":
			shellServer()
		}
	}
	os.Exit(m.Run())
}

func TestDoctor(t *testing.T) {
	empty := t.TempDir()
	r := run(t, "doctor", "--json", "--encoder", empty)
	var report doctor.Report
	// The report is whole all the same: a script that asks about one encoder may read the rest.
	if err := json.Unmarshal([]byte(r.stdout), &report); r.code != exitFailure || err != nil ||
		!strings.Contains(r.stderr, "encoder "+empty+" is not usable: config.json") {
		t.Fatalf("exit %d, %v, stdout %q, stderr %q", r.code, err, r.stdout, r.stderr)
	}
	if len(report.Backends) != len(backend.Names) || len(report.Encoders) != 2 || !report.Encoders[0].Usable || report.Encoders[0].Width != 256 || report.Encoders[1].Usable {
		t.Errorf("got %+v", report)
	}
	for i, b := range report.Backends {
		if b.Name != backend.Names[i] || b.Available != (b.Rate != nil) || b.Available == (b.Reason != "") {
			t.Errorf("got %+v", b)
		}
	}
	if b := report.Backends[0]; b.Rate == nil || !(b.Rate.StepsPerSecond > 0) {
		t.Errorf("go: %+v", b)
	}
}

func TestDoctorOneBackend(t *testing.T) {
	if r := run(t, "doctor", "--backend", "go"); r.code != exitDone || !strings.Contains(r.stdout, "go  ") || strings.Contains(r.stdout, "xla") {
		t.Errorf("go: %+v", r)
	}
	if backend.Check(backend.XLACUDA).Available {
		t.Skip("this machine has every backend")
	}
	r := run(t, "doctor", "--backend", "xla:cuda")
	if r.code != exitFailure || !strings.Contains(r.stdout, "docs/how-to/accelerators.md") || !strings.Contains(r.stderr, "backend xla:cuda is not available") {
		t.Errorf("xla:cuda: %+v", r)
	}
}

func TestBackendFlag(t *testing.T) {
	for line, want := range map[string]string{
		"doctor --backend xla:cqu":              `doctor: --backend "xla:cqu": did you mean xla:cpu?`,
		"run --out x --backend tpu-v5":          `run: --backend "tpu-v5": want one of go, xla:cpu, xla:cuda`,
		"run --out x --backend=":                `run: --backend is empty`,
		"export --run x --backend go":           "unknown flag: --backend",
		"run --out x --set backend=cuda":        "backend: want go, xla:cpu or xla:cuda",
		"run --out x --config debug --backend=": `run: --backend is empty`,
	} {
		wantUsage(t, line, want)
	}
}

// A backend that is not there is an error before anything is made.
func TestBackendNotAvailable(t *testing.T) {
	if backend.Check(backend.XLACUDA).Available {
		t.Skip("this machine has every backend")
	}
	dir := t.TempDir() + "/run"
	r := run(t, "run", "--config", "quickstart", "--out", dir, "--backend", "xla:cuda")
	if r.code != exitFailure || !strings.Contains(r.stderr, "backend xla:cuda is not available: ") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the run folder was made")
	}
}

// The stage verbs take --backend over into the run's configuration.
func TestBackendOfRun(t *testing.T) {
	dir := t.TempDir() + "/run"
	if r := run(t, "run", "--config", "quickstart", "--set", "data.simulator_runs=60", "--out", dir, "--until", "data", "-q"); r.code != exitDone {
		t.Fatalf("%+v", r)
	}
	config := func() string {
		b, err := os.ReadFile(dir + "/config.yaml")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if !strings.Contains(config(), "backend: go\n") {
		t.Fatalf("configuration:\n%s", config())
	}
	want := exitFailure
	if backend.Check(backend.XLACPU).Available {
		want = exitDone
	}
	r := run(t, "embed", "--run", dir, "--backend", "xla:cpu", "-q")
	if r.code != want || strings.Contains(config(), "backend: xla:cpu\n") != (want == exitDone) {
		t.Errorf("embed on xla:cpu: %+v, want exit %d; configuration:\n%s", r, want, config())
	}
	if r := run(t, "embed", "--run", dir, "--backend", "go", "-q"); r.code != exitDone || !strings.Contains(config(), "backend: go\n") {
		t.Errorf("embed on go: %+v; configuration:\n%s", r, config())
	}
}

func TestDoctorHook(t *testing.T) {
	r := run(t, "doctor", "--hook", "--artifact", hookArtifact, "--json")
	var report doctor.HookReport
	if err := json.Unmarshal([]byte(r.stdout), &report); r.code != exitDone || err != nil || !report.OK || len(report.Checks) != 4 {
		t.Fatalf("exit %d, %v, %s%s", r.code, err, r.stdout, r.stderr)
	}
	if d := report.Checks[0].Detail; !strings.Contains(d, "BLOCK: it would change the agent's own limits") {
		t.Errorf("denied with %q", d)
	}
	if r := run(t, "doctor", "--hook", "--artifact", "/nowhere"); r.code != exitFailure || !strings.Contains(r.stderr, "does not deny") || !strings.Contains(r.stdout, "FAILED  an ordinary call is judged") {
		t.Errorf("without an artifact: %+v", r)
	}
	wantUsage(t, "doctor --hook", "--hook and --artifact DIR go together")
	wantUsage(t, "doctor --artifact x", "--hook and --artifact DIR go together")
}
