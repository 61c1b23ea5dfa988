package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/checkpoints"
	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/audit"
	"github.com/dreamguard/dreamguard/data/clean"
	"github.com/dreamguard/dreamguard/data/store"
	"github.com/dreamguard/dreamguard/embed/cache"
	"github.com/dreamguard/dreamguard/embed/hash"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// makeRuns writes n simulated runs and returns the file.
func makeRuns(t *testing.T, n string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	if r := run(t, "simulate", "-q", "--runs", n, "--out", path); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	return path
}

func TestInspectTrajectories(t *testing.T) {
	path := makeRuns(t, "40")
	ts, err := store.ReadAll(path)
	if err != nil {
		t.Fatal(err)
	}
	ts[0].Task = "perspicacious discernment " + ts[0].Task // a trigger that a leak rule knows
	other := filepath.Join(filepath.Dir(path), "some.parquet")
	if err := store.WriteAll(other, ts[:7]); err != nil {
		t.Fatal(err)
	}

	r := run(t, "inspect", "-q", path, other, "--json")
	var info trajectoriesInfo
	if err := json.Unmarshal([]byte(r.stdout), &info); err != nil || r.code != exitDone {
		t.Fatalf("exit %d, stderr %q, %v", r.code, r.stderr, err)
	}
	if len(info.Files) != 2 || info.Files[0].Summary.Total.Runs != 40 || info.Files[1].Summary.Total.Runs != 7 {
		t.Errorf("files: %+v", info.Files)
	}
	if info.Files[0].Leaks[clean.TriggerPhrase].Runs != 0 || info.Files[1].Leaks[clean.TriggerPhrase].Runs != 1 {
		t.Errorf("leaks: %v and %v", info.Files[0].Leaks, info.Files[1].Leaks)
	}
	if o := info.Duplicates.Of(other, path); o.Shared != 7 {
		t.Errorf("%d of 7 runs were found in both files: %+v", o.Shared, info.Duplicates)
	}

	r = run(t, "inspect", "-q", filepath.Dir(path)) // the same two, by their folder
	for _, want := range []string{"simulator", "unsafe", "leak " + clean.TriggerPhrase + " in 1 runs (", "duplicates"} {
		if r.code != exitDone || !strings.Contains(r.stdout, want) {
			t.Errorf("exit %d, stdout %q, want %q in it", r.code, r.stdout, want)
		}
	}
}

// Phrases of one label only are worth a look only beside the other label.
func TestInspectShortcuts(t *testing.T) {
	both := makeRuns(t, "100")
	ts, err := store.ReadAll(both)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range ts {
		if x.Label == data.Safe {
			x.Task = "Perspicaciously: " + x.Task
		}
	}
	if err := store.WriteAll(both, ts); err != nil {
		t.Fatal(err)
	}
	safe := filepath.Join(t.TempDir(), "safe.jsonl")
	if err := store.WriteAll(safe, slices.DeleteFunc(ts, func(x *data.Trajectory) bool { return x.Label != data.Safe })); err != nil {
		t.Fatal(err)
	}
	const heading = "phrases in runs of one label only (unsafe runs are read up to the first hazard)"
	for path, want := range map[string]bool{both: true, safe: false} {
		r := run(t, "inspect", "-q", path)
		if r.code != exitDone || strings.Contains(r.stdout, heading) != want {
			t.Errorf("exit %d, stdout %q, want the phrases: %v", r.code, r.stdout, want)
		}
	}
	if r := run(t, "inspect", "-q", safe, "--json"); !strings.Contains(strings.Join(strings.Fields(r.stdout), ""), `"shortcuts":[]`) {
		t.Errorf("%+v", r)
	}
}

func TestInspectShow(t *testing.T) {
	path := makeRuns(t, "5")
	ts, err := store.ReadAll(path)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := audit.Render(&want, ts[3]); err != nil {
		t.Fatal(err)
	}
	for _, which := range []string{"3", ts[3].ID} {
		if r := run(t, "inspect", path, "--show", which); r.code != exitDone || r.stdout != want.String() || r.stderr != "" {
			t.Errorf("--show %s: exit %d, stderr %q, stdout %q", which, r.code, r.stderr, r.stdout)
		}
	}
	if r := run(t, "inspect", path, "--show", "3", "--json"); !strings.Contains(r.stdout, ts[3].ID) || !json.Valid([]byte(r.stdout)) {
		t.Errorf("--show --json: %q", r.stdout)
	}
	for _, which := range []string{"5", "-1", "nobody"} {
		if r := run(t, "inspect", path, "--show", which); r.code != exitUsage || !strings.Contains(r.stderr, "0 to 4") {
			t.Errorf("--show %s: exit %d, stderr %q", which, r.code, r.stderr)
		}
	}
	if r := run(t, "inspect", path, path, "--show", "1"); r.code != exitUsage {
		t.Errorf("--show with two files: exit %d", r.code)
	}
}

func TestInspectCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "embed")
	enc := hash.New(16)
	c, err := cache.Open(dir, enc.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Fill(t.Context(), enc, cache.Seq(slices.Values([]string{"a", "b", "c"})), cache.Options{}); err != nil {
		t.Fatal(err)
	}
	var info cache.Info
	r := run(t, "inspect", dir, "--json")
	if err := json.Unmarshal([]byte(r.stdout), &info); err != nil || info.Texts != 3 || info.Encoder != enc.ID() {
		t.Errorf("%v, %+v", err, info)
	}
	if r := run(t, "inspect", dir); r.code != exitDone || !strings.Contains(r.stdout, enc.ID().String()) {
		t.Errorf("%+v", r)
	}

	// A damaged one is shown, and fails.
	segments, err := filepath.Glob(filepath.Join(dir, "seg-*"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	if err := os.Truncate(segments[0], 20); err != nil {
		t.Fatal(err)
	}
	if r := run(t, "inspect", dir); r.code != exitFailure || !strings.Contains(r.stdout, "problem") || !strings.Contains(r.stderr, "1 of 1 segments cannot be used ("+filepath.Base(segments[0])) {
		t.Errorf("a damaged cache: %+v", r)
	}
	if r := run(t, "inspect", dir, "--json"); r.code != exitFailure || !json.Valid([]byte(r.stdout)) {
		t.Errorf("a damaged cache, as JSON: %+v", r)
	}
}

func TestInspectCheckpoint(t *testing.T) {
	dir := t.TempDir()
	for step := range uint64(2) {
		err := checkpoints.Save(dir, &checkpoints.Checkpoint{
			Step: step + 1, Config: strings.Repeat("a", 64), Data: strings.Repeat("b", 64), State: []byte(`{"epoch":7}`),
			Tensors: []safetensors.Tensor{{Name: "w", Shape: []int{2, 3}, Data: make([]float32, 6)}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var info checkpointInfo
	r := run(t, "inspect", dir, "--json")
	if err := json.Unmarshal([]byte(r.stdout), &info); err != nil || info.Step != 2 || info.Values != 6 || len(info.Tensors) != 1 {
		t.Errorf("%v, %+v, stderr %q", err, info, r.stderr)
	}
	if r := run(t, "inspect", info.Path); r.code != exitDone || !strings.Contains(r.stdout, `{"epoch":7}`) || !strings.Contains(r.stdout, "w [2 3]") {
		t.Errorf("%+v", r)
	}
	if r := run(t, "inspect", dir, "--show", "1"); r.code != exitUsage {
		t.Errorf("--show of a checkpoint: exit %d", r.code)
	}
}

func TestInspectWeights(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, artifact.ModelFile)
	write := func(x float32) {
		t.Helper()
		var b bytes.Buffer
		if err := safetensors.Write(&b, []safetensors.Tensor{{Name: "head.w", Shape: []int{2}, Data: []float32{1, x}}}, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(2)
	for _, p := range []string{path, dir} {
		var info weightsInfo
		r := run(t, "inspect", p, "--json")
		if err := json.Unmarshal([]byte(r.stdout), &info); err != nil || info.Path != path || info.Values != 2 {
			t.Errorf("%v, %+v, stderr %q", err, info, r.stderr)
		}
	}
	if r := run(t, "inspect", dir); r.code != exitDone || !strings.Contains(r.stdout, "head.w [2]") {
		t.Errorf("%+v", r)
	}
	// The folder of a training: its metrics are no trajectories.
	train := t.TempDir()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"weights.safetensors": b, "metrics.jsonl": []byte(`{"stage":1,"step":1,"terms":{"loss":2}}` + "\n")} {
		if err := os.WriteFile(filepath.Join(train, name), content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if r := run(t, "inspect", train); r.code != exitDone || !strings.Contains(r.stdout, "head.w [2]") {
		t.Errorf("the folder of a training: %+v", r)
	}
	write(float32(math.NaN()))
	if r := run(t, "inspect", path); r.code != exitFailure || !strings.Contains(r.stderr, "head.w") {
		t.Errorf("a NaN: %+v", r)
	}
}

// writeArtifact writes a small artifact that is not calibrated.
func writeArtifact(t *testing.T, dir string) {
	t.Helper()
	dims := artifact.Dims{D: 4, F: 3, P: 2, H: 3, G: 2, C: 2, Q: 2}
	var list []safetensors.Tensor
	for _, s := range artifact.Tensors(dims) {
		if !s.Export {
			continue
		}
		n := 1
		for _, d := range s.Shape {
			n *= d
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = 1
		}
		list = append(list, safetensors.Tensor{Name: s.Name, Shape: s.Shape, Data: values})
	}
	var model bytes.Buffer
	if err := safetensors.Write(&model, list, nil); err != nil {
		t.Fatal(err)
	}
	m := artifact.Manifest{
		Format: artifact.Format, Dims: dims, UniformMix: 0.01, Latent: artifact.Probabilities,
		Files:    map[string]string{artifact.ModelFile: artifact.Sum(model.Bytes()), artifact.FeaturesFile: artifact.Sum([]byte("{}"))},
		Encoder:  hash.New(dims.D).ID(),
		Features: artifact.FeatureSet{Version: 1, Digest: artifact.Sum(nil)},
		Seed:     7, Data: map[string]artifact.Fingerprint{"train": {Digest: artifact.Sum(nil), N: 10}}, Tool: "a test",
	}
	manifest, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{artifact.ManifestFile: manifest, artifact.ModelFile: model.Bytes(), artifact.FeaturesFile: []byte("{}")} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInspectArtifact(t *testing.T) {
	dir := t.TempDir()
	writeArtifact(t, dir)
	var info artifactInfo
	r := run(t, "inspect", dir, "--json")
	if err := json.Unmarshal([]byte(r.stdout), &info); err != nil || info.Manifest.Seed != 7 || info.Calibration != nil || info.Values == 0 {
		t.Errorf("%v, %+v, stderr %q", err, info, r.stderr)
	}
	if r := run(t, "inspect", dir); r.code != exitDone || !strings.Contains(r.stdout, info.Digest) || !strings.Contains(r.stdout, "run dreamguard calibrate") {
		t.Errorf("%+v", r)
	}
	if err := os.Truncate(filepath.Join(dir, artifact.ModelFile), 100); err != nil {
		t.Fatal(err)
	}
	if r := run(t, "inspect", dir); r.code != exitFailure || !strings.Contains(r.stderr, artifact.ModelFile) {
		t.Errorf("a torn artifact: %+v", r)
	}
}

func TestInspectRun(t *testing.T) {
	dir := t.TempDir()
	cfg, err := configs.Load("quickstart")
	if err != nil {
		t.Fatal(err)
	}
	b, err := cfg.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	stages := `{"stages":{"data":{"inputs":"x","outputs":{},"seconds":1.25,"peak_mib":70,"finished":"2026-01-02T03:04:05Z","counts":{"train":90,"validation":10}}}}`
	for name, content := range map[string]string{"config.yaml": string(b), "stages.json": stages} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, "inspect", dir)
	for _, want := range []string{"quickstart, protocol simulator", "1.2 s, 70 MiB at most, 2026-01-02 03:04:05Z, 90 train, 10 validation", "not done"} {
		if r.code != exitDone || !strings.Contains(r.stdout, want) {
			t.Errorf("exit %d, stderr %q, stdout %q, want %q in it", r.code, r.stderr, r.stdout, want)
		}
	}
	var info runInfo
	r = run(t, "inspect", dir, "--json")
	if err := json.Unmarshal([]byte(r.stdout), &info); err != nil || info.Config != "quickstart" || len(info.Stages) != 1 {
		t.Errorf("%v, %+v", err, info)
	}
}

func TestInspectErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	torn := filepath.Join(dir, "torn.jsonl")
	for path, content := range map[string]string{text: "hello", torn: "{\"id\": 3"} {
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	art := t.TempDir()
	writeArtifact(t, art)
	for _, c := range []struct {
		paths []string
		code  exitCode
		want  string
	}{
		{nil, exitUsage, "see dreamguard inspect --help"},
		{[]string{filepath.Join(dir, "none")}, exitFailure, "no such file"},
		{[]string{text}, exitUsage, "not a file of this program"},
		{[]string{t.TempDir()}, exitUsage, "not a folder of this program"},
		{[]string{torn}, exitFailure, "torn.jsonl: line 1"},
		{[]string{torn, art}, exitUsage, torn + " is a file of trajectories, " + art + " is an artifact: inspect them one at a time"},
		{[]string{art, "--show", "1"}, exitUsage, "--show is for trajectories: " + art + " is an artifact"},
	} {
		r := run(t, append([]string{"inspect", "-q"}, c.paths...)...)
		if r.code != c.code || !strings.Contains(r.stderr, c.want) {
			t.Errorf("inspect %v: exit %d, stderr %q; want exit %d and %q", c.paths, r.code, r.stderr, c.code, c.want)
		}
	}
}
