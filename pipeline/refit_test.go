package pipeline

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/simulate"
	"github.com/dreamguard/dreamguard/data/store"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
)

// A layer that was written to calibration.json gives at run time, bit for bit, the
// scores that its thresholds were set on.
func TestLayerParity(t *testing.T) {
	dir := filepath.Join("..", "guard", "testdata", "v1")
	a, err := artifact.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	runs := slices.Collect(simulate.Generate(simulate.Options{Seed: 3, Runs: 40}))
	m, err := guard.Open(dir, guard.ScoresOnly())
	if err != nil {
		t.Fatal(err)
	}
	traces, err := eval.Score(t.Context(), m, runs, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	features, err := callFeatures(t.Context(), m, runs)
	if err != nil {
		t.Fatal(err)
	}
	c := *a.Calibration
	rng := rand.New(rand.NewPCG(1, 1))
	c.Fusion.Layer = &calib.Layer{Bias: -0.2, Heads: [3]float64{0.3, -0.1, 0.2}}
	for range a.Manifest.Dims.F {
		c.Fusion.Layer.Features = append(c.Fusion.Layer.Features, 0.1*rng.NormFloat64())
	}
	b, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := guard.Open(dir, guard.ScoresOnly(), guard.WithCalibration(b))
	if err != nil {
		t.Fatal(err)
	}
	live, err := eval.Score(t.Context(), again, runs, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for i := range traces {
		run := traces[i].Run()
		run.X = features[i]
		haz, risk, scored := calib.RunScore(c.Fusion, run)
		h, r, s := live[i].Maxima()
		if haz != h || risk != r || scored != s {
			t.Errorf("%s: set on %v and %v, at run time %v and %v", run.ID, haz, risk, h, r)
		}
		if _, before, _ := traces[i].Maxima(); before != r {
			changed++
		}
	}
	if changed == 0 {
		t.Error("the layer changes nothing")
	}

	// A session goes on under the same layer only.
	s := again.Start(runs[0].StartTask())
	s.Judge(t.Context(), runs[0].Call(0))
	state, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Resume(state); !errors.Is(err, guard.ErrStateModel) {
		t.Errorf("resumed without the layer: %v", err)
	}

	c.Fusion.Layer.Features = c.Fusion.Layer.Features[1:]
	if b, err = c.Marshal(); err != nil {
		t.Fatal(err)
	}
	if _, err := guard.Open(dir, guard.WithCalibration(b)); !errors.Is(err, artifact.ErrCalibration) || !strings.Contains(err.Error(), "call features") {
		t.Errorf("a layer for another number of features: %v", err)
	}
}

// With a refit the thresholds rest on the runs that nothing was fitted to, and the
// result is the same every time.
func TestRefitLayer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	runs := slices.Collect(simulate.Generate(simulate.Options{Seed: 5, Runs: 500}))
	for i, r := range runs { // many small groups
		r.Group = r.Group + string(rune('a'+i%26))
	}
	if err := store.WriteAll(path, runs); err != nil {
		t.Fatal(err)
	}
	o := RecalibrateOptions{Artifact: filepath.Join("..", "guard", "testdata", "v1"), Files: []string{path}, Refit: RefitLayer, Seed: 1, Now: fixed.Now, Request: calib.Request{FalseAlarm: 0.1}}
	rec, err := Recalibrate(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	safe := 0
	for _, r := range runs {
		s := calib.Scored{ID: r.ID, Group: r.Group}
		if r.Label == data.Safe && slices.ContainsFunc(r.Steps, func(s data.Step) bool { return s.Type == data.ToolCall }) && !tunes(s, o.Seed) {
			safe++
		}
	}
	if rec.Layer == nil || rec.Calibration.Certificate.N != safe || rec.Layer.Safe+safe != rec.Safe || (rec.Refitted == RefitLayer) != (rec.Calibration.Fusion.Layer != nil) {
		t.Errorf("thresholds on %d safe runs, want the %d that the layer did not see; %+v", rec.Calibration.Certificate.N, safe, rec.Layer)
	}
	again, err := Recalibrate(t.Context(), o)
	if err != nil || again.After != rec.After || !reflect.DeepEqual(again.Layer, rec.Layer) {
		t.Errorf("the same again: %.12s and %.12s, %v", rec.After, again.After, err)
	}
}
