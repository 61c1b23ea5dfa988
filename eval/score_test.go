package eval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/embed/hash"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/safetensors"
	"github.com/dreamguard/dreamguard/verdict"
)

var fusion = calib.Fusion{TempHazard: 4, TempPrefix: 4, WeightHazard: 0.5, WeightEMA: 0.25, WeightWindow: 0.25, Beta: 0.8, Window: 4}

// untrained opens a small model of random weights, with a hold threshold in the
// middle of its scores, which it returns.
func untrained(t *testing.T, opts ...guard.Option) (*guard.Model, float64) {
	t.Helper()
	traces, err := Score(t.Context(), holding(t, 1), someRuns(40), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var risks []float64
	for i := range traces {
		for _, s := range traces[i].Scores {
			risks = append(risks, s.Risk)
		}
	}
	slices.Sort(risks)
	middle := risks[len(risks)/2]
	return holding(t, middle, opts...), middle
}

// holding opens that model with the given hold threshold.
func holding(t *testing.T, hold float64, opts ...guard.Option) *guard.Model {
	t.Helper()
	dims := artifact.Dims{D: 8, F: features.Count(), P: 4, H: 6, G: 2, C: 3, Q: 4}
	rng := rand.New(rand.NewPCG(1, 1))
	var list []safetensors.Tensor
	for _, s := range artifact.Tensors(dims) {
		if !s.Export {
			continue
		}
		n := 1
		for _, d := range s.Shape {
			n *= d
		}
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
			if s.Name == "feat.scale" {
				v[i] = 1
			}
		}
		list = append(list, safetensors.Tensor{Name: s.Name, Shape: s.Shape, Data: v})
	}
	var model bytes.Buffer
	if err := safetensors.Write(&model, list, nil); err != nil {
		t.Fatal(err)
	}
	words := new(features.VocabularyBuilder)
	words.Add("read the note and mail it")
	vocabulary, err := words.Build(1).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	m := &artifact.Manifest{
		Format: artifact.Format, Dims: dims, UniformMix: 0.01, Latent: artifact.Probabilities, Encoder: hash.New(dims.D).ID(),
		Files:    map[string]string{artifact.ModelFile: artifact.Sum(model.Bytes()), artifact.FeaturesFile: artifact.Sum(vocabulary)},
		Features: artifact.FeatureSet{Version: features.Version, Digest: features.Digest()},
	}
	manifest, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	c := &artifact.Calibration{
		ModelDigest: artifact.Sum(manifest), Thresholds: artifact.Thresholds{Hold: &hold},
		Fusion: fusion,
	}
	calibration, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.OpenFS(fstest.MapFS{
		artifact.ManifestFile: {Data: manifest}, artifact.ModelFile: {Data: model.Bytes()},
		artifact.FeaturesFile: {Data: vocabulary}, artifact.CalibrationFile: {Data: calibration},
	}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func someRuns(n int) []*data.Trajectory {
	var runs []*data.Trajectory
	for i := range n {
		t := &data.Trajectory{ID: fmt.Sprint("run", i), Task: fmt.Sprintf("Read note %d and mail it.", i), Label: data.Safe}
		for k := range 1 + i%5 {
			if k%3 == 2 {
				t.Steps = append(t.Steps, data.Step{Type: data.Message, Text: "Done?", Result: data.UserPrefix + "Go on."})
				continue
			}
			t.Steps = append(t.Steps, data.Step{Type: data.ToolCall, Tool: []string{"read_note", "send_mail"}[k%2],
				Args: fmt.Sprintf(`{"n":%d}`, i*k), Result: fmt.Sprintf("note %d: lunch at %d", i, k)})
		}
		runs = append(runs, t)
	}
	return runs
}

func TestScore(t *testing.T) {
	runs := someRuns(40)
	m, middle := untrained(t)
	var told int
	one, err := Score(t.Context(), m, runs, 1, func(n int) { told += n })
	if err != nil {
		t.Fatal(err)
	}
	if told != len(runs) {
		t.Errorf("progress was told of %d runs, want %d", told, len(runs))
	}
	four, err := Score(t.Context(), m, runs, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(one, four); d != "" {
		t.Errorf("the result depends on the number of workers:\n%s", d)
	}
	var held, passed int
	for i, tr := range one {
		if tr.ID != runs[i].ID || len(tr.Scores) != len(runs[i].Steps) {
			t.Fatalf("trace %d is of run %q with %d scores", i, tr.ID, len(tr.Scores))
		}
		var mem calib.Memory
		for k, s := range tr.Scores {
			// The logits in the trace are enough to fuse again.
			if again := fusion.Advance(&mem, tr.LogitHazard[k], tr.LogitPrefix[k]); again != s {
				t.Fatalf("run %d step %d: scores %+v, fused again %+v", i, k, s, again)
			}
			want := Decide(s, calib.Off, middle)
			if !tr.Judged[k] {
				want = verdict.Pass
			}
			if tr.Decisions[k] != want {
				t.Errorf("run %d step %d: %v, want %v", i, k, tr.Decisions[k], want)
			}
			held += int(b2f(want == verdict.Hold))
			passed += int(b2f(want == verdict.Pass))
		}
		h, r, scored := calib.RunScore(fusion, tr.Run())
		h2, r2, scored2 := tr.Maxima()
		if h != h2 || r != r2 || scored != scored2 {
			t.Errorf("run %d: calibration sees %v %v %v, evaluation %v %v %v", i, h, r, scored, h2, r2, scored2)
		}
	}
	if held == 0 || passed == 0 {
		t.Errorf("%d held and %d passed: the test model says nothing", held, passed)
	}

	// Without a calibration there are logits and no decisions.
	raw, err := Score(t.Context(), holding(t, 1, guard.ScoresOnly()), runs, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		if !slices.Equal(raw[i].LogitHazard, one[i].LogitHazard) || len(raw[i].Decisions) > 0 && slices.Max(raw[i].Decisions) != verdict.Pass {
			t.Fatalf("run %d: %+v", i, raw[i])
		}
	}
}

// TestScoreHeld: a call beyond the guard's bounds is held at any thresholds, so
// it counts as one that reaches them all.
func TestScoreHeld(t *testing.T) {
	runs := someRuns(3)
	runs[1].Steps[0].Args = strings.Repeat("x", 2<<20) // far beyond any bound on a call
	for _, m := range []*guard.Model{holding(t, 0.5), holding(t, 0.5, guard.ScoresOnly())} {
		traces, err := Score(t.Context(), m, runs, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		tr := traces[1]
		if !tr.Held[0] || tr.Decisions[0] < verdict.Hold || traces[0].Held != nil {
			t.Errorf("held %v, decisions %v", tr.Held, tr.Decisions)
		}
		off := calib.Thresholds{Block: calib.Threshold{Value: calib.Off}, Hold: calib.Threshold{Value: calib.Off}}
		if again := At(traces, off); again[1].Decisions[0] != verdict.Hold || again[0].Decisions[0] != verdict.Pass {
			t.Errorf("with both levels off: %v and %v", again[1].Decisions, again[0].Decisions)
		}
		_, fromRun, _ := calib.RunScore(fusion, tr.Run())
		if _, fromTrace, _ := tr.Maxima(); fromRun != 1 || fromTrace != 1 {
			t.Errorf("run scores %v and %v, want 1", fromRun, fromTrace)
		}
	}
}

func TestScoreCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var n int
	_, err := Score(ctx, holding(t, 0.5), someRuns(200), 1, func(int) {
		if n++; n == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || n > 4 {
		t.Errorf("error %v after %d runs, want context.Canceled after 3", err, n)
	}
}

// script is a session that answers with fixed verdicts.
type script struct {
	verdicts []guard.Verdict
	commit   error
	n        int
}

func (s *script) Judge(context.Context, verdict.Call) guard.Verdict { return s.verdicts[s.n] }
func (s *script) Commit(verdict.Call, verdict.Result) error         { s.n++; return s.commit }

func TestReplayRefuses(t *testing.T) {
	run := someRuns(1)[0]
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		v      guard.Verdict
		commit error
		want   error
	}{
		"encoder failed":  {v: guard.Verdict{Reasons: []verdict.Reason{verdict.ReasonEncoder}}, want: ErrUnscored},
		"commit refused":  {v: guard.Verdict{Scored: true}, commit: broken, want: broken},
		"held for a risk": {v: guard.Verdict{Scored: true, Decision: verdict.Hold, Reasons: []verdict.Reason{verdict.ReasonRisk}}},
	} {
		_, err := replay(t.Context(), &script{verdicts: []guard.Verdict{c.v}, commit: c.commit}, run)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
}

func TestEachReportsTheCause(t *testing.T) {
	boom := errors.New("boom")
	var started atomic.Int32
	err := each(t.Context(), 100, 4, nil, func(ctx context.Context, i int) error {
		started.Add(1)
		if i == 3 {
			return boom
		}
		<-ctx.Done() // the others only end because run 3 failed
		return ctx.Err()
	})
	if !errors.Is(err, boom) || started.Load() > 8 {
		t.Errorf("error %v after %d runs, want boom", err, started.Load())
	}
}
