package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/hash"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/verdict"
)

func TestDecisions(t *testing.T) {
	m := testModel(t)
	hold, block := m.hold, m.block
	seen := map[Decision]int{}
	for seed := range uint64(12) {
		run := randomRun(seed, 15)
		for i, v := range play(t, m.Start(testTask), run) {
			want, reasons := Pass, []Reason(nil)
			switch {
			case run[i].call.IsMessage():
			case v.Hazard >= block:
				want, reasons = Block, []Reason{verdict.ReasonHazard}
			case v.Risk >= hold:
				want, reasons = Hold, []Reason{verdict.ReasonRisk}
			}
			if v.Decision != want || !slices.Equal(v.Reasons, reasons) || !v.Scored || v.Step != i {
				t.Fatalf("seed %d step %d: %+v, want %v %v", seed, i, v, want, reasons)
			}
			if v.ModelDigest != m.Digest() || v.CalibrationDigest != m.CalibrationDigest() || v.CalibrationDigest == "" {
				t.Fatalf("digests %q, %q", v.ModelDigest, v.CalibrationDigest)
			}
			seen[want]++
		}
	}
	if seen[Pass] == 0 || seen[Hold] == 0 || seen[Block] == 0 {
		t.Errorf("not every decision was met: %v", seen)
	}
}

// Judging, again or another call, changes nothing: not the bytes of the state,
// not the verdicts that follow.
func TestJudgeIsPure(t *testing.T) {
	m := testModel(t)
	run, other := randomRun(1, 8), randomRun(2, 8)
	want := play(t, m.Start(testTask), run)
	s := m.Start(testTask)
	for i, x := range run {
		for range 3 {
			s.Judge(context.Background(), other[i].call)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Judge(ctx, x.call)
		first := s.Judge(context.Background(), x.call)
		second := s.Judge(context.Background(), x.call)
		if diff := cmp.Diff(want[i], first) + cmp.Diff(first, second); diff != "" {
			t.Fatalf("step %d: %s", i, diff)
		}
		if err := s.Commit(x.call, x.result); err != nil {
			t.Fatal(err)
		}
	}
}

// Judging any calls before the one in question leaves no trace: not in its verdict
// and not in the bytes of the state.
func TestJudgeLeavesNoTrace(t *testing.T) {
	m := testModel(t)
	rapid.Check(t, func(t *rapid.T) {
		run := randomRun(rapid.Uint64().Draw(t, "seed"), 6)
		others := randomRun(rapid.Uint64().Draw(t, "others"), 6)
		a, b := m.Start(testTask), m.Start(testTask)
		for i, x := range run {
			for range rapid.IntRange(0, 3).Draw(t, "times") {
				b.Judge(context.Background(), others[i].call)
			}
			if diff := cmp.Diff(a.Judge(context.Background(), x.call), b.Judge(context.Background(), x.call)); diff != "" {
				t.Fatalf("step %d: %s", i, diff)
			}
			one, err := a.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			two, err := b.MarshalBinary()
			if err != nil || !bytes.Equal(one, two) {
				t.Fatalf("step %d: the states differ (%v)", i, err)
			}
			for _, s := range []*Session{a, b} {
				if err := s.Commit(x.call, x.result); err != nil {
					t.Fatal(err)
				}
				if s.net.work != nil {
					t.Fatal("a session keeps working memory between the steps")
				}
			}
		}
	})
}

// Whatever comes later, calls and results, a verdict that was given stays the
// same bit for bit: in particular the result of a step plays no part in the
// verdict on it.
func TestNoVerdictSeesTheFuture(t *testing.T) {
	m := testModel(t)
	rapid.Check(t, func(t *rapid.T) {
		run := randomRun(rapid.Uint64().Draw(t, "seed"), 10)
		cut := rapid.IntRange(0, len(run)-1).Draw(t, "cut")
		replay := func(run []step) (out []Verdict) {
			s := m.Start(testTask)
			for _, x := range run {
				out = append(out, s.Judge(context.Background(), x.call))
				if err := s.Commit(x.call, x.result); err != nil {
					t.Fatal(err)
				}
			}
			return out
		}
		want := replay(run)[:cut+1]
		noise := rapid.SliceOfN(rapid.String(), 4, 4)
		for i := cut; i < len(run); i++ {
			n := noise.Draw(t, "noise")
			run[i].result = Result{Output: n[0], Error: n[1]}
			if i > cut {
				run[i].call = Call{Tool: n[2], Arguments: n[3], Text: n[0]}
			}
		}
		if diff := cmp.Diff(want, replay(run)[:cut+1]); diff != "" {
			t.Fatalf("the future shows in a verdict up to step %d:\n%s", cut, diff)
		}
	})
}

func TestCommitNeedsTheJudgedCall(t *testing.T) {
	s := testModel(t).Start(testTask)
	call := Call{Tool: "read_file", Arguments: `{"path":"a"}`}
	if err := s.Commit(call, Result{}); !errors.Is(err, ErrNotJudged) {
		t.Errorf("commit before judge: %v", err)
	}
	if err := s.Skip(call); !errors.Is(err, ErrNotJudged) {
		t.Errorf("skip before judge: %v", err)
	}
	s.Judge(context.Background(), call)
	for _, c := range []Call{
		{Tool: "read_file", Arguments: `{"path":"b"}`},
		{Tool: "read_file", Arguments: `{"path":"a"}`, Text: "x"},
		{Tool: "read_file{", Arguments: `"path":"a"}`}, // the same bytes, cut elsewhere
	} {
		if err := s.Commit(c, Result{}); !errors.Is(err, ErrNotJudged) {
			t.Errorf("commit of %+v: %v", c, err)
		}
	}
	if err := s.Commit(call, Result{Output: "ok"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(call, Result{Output: "ok"}); !errors.Is(err, ErrNotJudged) {
		t.Errorf("second commit: %v", err)
	}
	if s.Step() != 1 {
		t.Errorf("step %d, want 1", s.Step())
	}
}

func TestSkipAndRefusals(t *testing.T) {
	m := testModel(t, WithMaxRefusals(2), ScoresOnly())
	s := m.Start(testTask)
	call, message := Call{Tool: "send_money", Arguments: `{"to":"x"}`}, Call{Text: "done"}
	first := s.Judge(context.Background(), call)
	for i := range 2 {
		v := s.Judge(context.Background(), call)
		if diff := cmp.Diff(first, v); diff != "" {
			t.Fatalf("a skipped call moved the session (%d): %s", i, diff)
		}
		if err := s.Skip(call); err != nil {
			t.Fatal(err)
		}
		s.Judge(context.Background(), message)
		if err := s.Skip(message); err != nil {
			t.Fatal(err)
		}
	}
	if s.Refusals() != 2 {
		t.Errorf("%d refusals, want 2: messages do not count", s.Refusals())
	}
	if v := s.Judge(context.Background(), call); v.Decision != Hold || !slices.Equal(v.Reasons, []Reason{verdict.ReasonRefusals}) || v.Scores != first.Scores {
		t.Errorf("after two refusals: %+v", v)
	}
	if v := s.Judge(context.Background(), message); v.Decision != Pass {
		t.Errorf("a message: %+v", v)
	}
}

func TestDeadline(t *testing.T) {
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	call := Call{Tool: "send_money", Arguments: `{"to":"x"}`}
	for _, d := range []Decision{Pass, Hold, Block} {
		m := testModel(t, OnDeadline(d), ScoresOnly())
		s := m.Start(testTask)
		v := s.Judge(ctx, call)
		if v.Decision != d || v.Scored || (d != Pass) != slices.Contains(v.Reasons, verdict.ReasonDeadline) {
			t.Errorf("%v: %+v", d, v)
		}
		if v := s.Judge(ctx, Call{Text: "hello"}); v.Decision != Pass {
			t.Errorf("message: %+v", v)
		}
		// A person may still release it, and the session goes on as ever.
		s.Judge(ctx, call)
		if err := s.Commit(call, Result{Output: "sent"}); err != nil {
			t.Fatal(err)
		}
		twin := m.Start(testTask)
		twin.Judge(context.Background(), call)
		if err := twin.Commit(call, Result{Output: "sent"}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(twin.Judge(context.Background(), call), s.Judge(context.Background(), call)); diff != "" {
			t.Errorf("after the deadline: %s", diff)
		}
	}
	if m := testModel(t); m.opts.onDeadline != Hold {
		t.Error("the default is not HOLD")
	}
}

// flaky fails on texts that contain bad.
type flaky struct {
	embed.Encoder
	bad *string
}

var errFlaky = errors.New("connection lost")

func (f flaky) Encode(ctx context.Context, texts []string, dst []float32) error {
	if *f.bad != "" && strings.Contains(texts[0], *f.bad) {
		return errFlaky
	}
	return f.Encoder.Encode(ctx, texts, dst)
}

func TestEncoderFailure(t *testing.T) {
	bad := "landlord" // in the task
	m := testModel(t, WithEncoder(flaky{hash.New(tiny.D), &bad}), ScoresOnly())
	s := m.Start(testTask)
	ctx := context.Background()
	read, send := Call{Tool: "read_file", Arguments: `{"path":"bill"}`}, Call{Tool: "send_money", Arguments: `{"to":"x"}`}
	held := func(when string, v Verdict) {
		t.Helper()
		if v.Decision != Hold || v.Scored || !slices.Equal(v.Reasons, []Reason{verdict.ReasonEncoder}) {
			t.Errorf("%s: %+v", when, v)
		}
	}
	held("task", s.Judge(ctx, read))
	bad = "bill"
	held("call", s.Judge(ctx, read))
	if v := s.Judge(ctx, Call{Text: "the bill"}); v.Decision != Pass || v.Scored {
		t.Errorf("message: %+v", v)
	}
	bad = ""
	if v := s.Judge(ctx, read); !v.Scored {
		t.Errorf("after it came back: %+v", v)
	}

	// The call was executed, and its result cannot be read: nothing passes before
	// it is.
	bad = "poison"
	result := Result{Output: "poison"}
	if err := s.Commit(read, result); !errors.Is(err, ErrEncoder) || !errors.Is(err, errFlaky) {
		t.Fatalf("commit: %v", err)
	}
	held("stuck", s.Judge(ctx, send))
	saved, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if s, err = m.Resume(saved); err != nil {
		t.Fatal(err)
	}
	held("stuck, resumed", s.Judge(ctx, send))
	if err := s.Commit(send, Result{}); !errors.Is(err, ErrNotJudged) {
		t.Errorf("another call in between: %v", err)
	}
	bad = ""
	if err := s.Commit(read, result); err != nil {
		t.Fatal(err)
	}
	twin := m.Start(testTask)
	twin.Judge(ctx, read)
	if err := twin.Commit(read, result); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(twin.Judge(ctx, send), s.Judge(ctx, send)); diff != "" {
		t.Errorf("after the failure (-never failed +failed): %s", diff)
	}
}

type broken struct{ embed.Encoder }

func (broken) Encode(_ context.Context, _ []string, dst []float32) error {
	dst[0] -= dst[0]
	dst[0] /= dst[0] // NaN
	return nil
}

func TestEncoderReturnsNaN(t *testing.T) {
	s := testModel(t, WithEncoder(broken{hash.New(tiny.D)})).Start(testTask)
	if v := s.Judge(context.Background(), Call{Tool: "a"}); v.Decision != Hold || !slices.Equal(v.Reasons, []Reason{verdict.ReasonEncoder}) {
		t.Errorf("%+v", v)
	}
}

func TestLargeAndBrokenTexts(t *testing.T) {
	s := testModel(t, ScoresOnly()).Start(Task{Instruction: strings.Repeat("task \xff", 1<<18), Context: "\xfe"})
	judge := func(c Call) Verdict {
		v := s.Judge(context.Background(), c)
		if err := s.Commit(c, Result{Output: strings.Repeat("out\xff ", 1<<19), Error: "\xff"}); err != nil {
			t.Fatal(err)
		}
		if !v.Scored {
			t.Errorf("not scored: %+v", v)
		}
		return v
	}
	for _, c := range []Call{{Tool: "a", Arguments: strings.Repeat("x", MaxCall+1)}, {Tool: strings.Repeat("t", MaxTool+1)}} {
		if v := judge(c); v.Decision != Hold || !slices.Equal(v.Reasons, []Reason{verdict.ReasonTooLarge}) {
			t.Errorf("too large: %v %v", v.Decision, v.Reasons)
		}
	}
	for _, c := range []Call{{Tool: "a", Arguments: strings.Repeat("x", MaxCall)}, {Tool: "\xff\xfe", Arguments: "\x80{", Text: "\xc0"}} {
		if v := judge(c); v.Decision != Pass {
			t.Errorf("within the bounds: %v %v", v.Decision, v.Reasons)
		}
	}
}

func TestConcurrentSessions(t *testing.T) {
	m := testModel(t)
	var wg sync.WaitGroup
	for seed := range uint64(8) {
		run := randomRun(seed, 6)
		want := fmt.Sprint(play(t, m.Start(testTask), run))
		for range 2 {
			wg.Go(func() {
				s := m.Start(testTask)
				var got []Verdict
				for _, x := range run {
					got = append(got, s.Judge(context.Background(), x.call))
					if err := s.Commit(x.call, x.result); err != nil {
						t.Error(err)
					}
				}
				if fmt.Sprint(got) != want {
					t.Errorf("seed %d: verdicts differ", seed)
				}
			})
		}
	}
	wg.Wait()
}

// overfed is a calibration of the model of files, but for one call feature more.
func overfed(t *testing.T, files fstest.MapFS) []byte {
	t.Helper()
	m, digest, err := artifact.ParseManifest(files[artifact.ManifestFile].Data)
	if err != nil {
		t.Fatal(err)
	}
	fusion := DefaultFusion()
	fusion.Layer = &calib.Layer{Features: make([]float64, m.Dims.F+1)}
	c := artifact.Calibration{ModelDigest: digest, Fusion: fusion}
	b, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOpenRefuses(t *testing.T) {
	none := artifact.Thresholds{}
	uncalibrated := testFiles(t, tiny, nil, none)
	delete(uncalibrated, artifact.CalibrationFile)
	otherKind := testFiles(t, tiny, func(m *artifact.Manifest) { m.Encoder.Kind = "remote" }, none)
	tests := []struct {
		name string
		open func() (*Model, error)
		want error
	}{
		{"not calibrated", func() (*Model, error) { return OpenFS(uncalibrated) }, ErrNotCalibrated},
		{"encoder required", func() (*Model, error) { return OpenFS(otherKind) }, ErrEncoderRequired},
		{"another encoder", func() (*Model, error) { return OpenFS(otherKind, WithEncoder(hash.New(tiny.D))) }, ErrEncoder},
		{"another hash", func() (*Model, error) {
			return OpenFS(testFiles(t, tiny, func(m *artifact.Manifest) { m.Encoder.Digest = artifact.Sum(nil) }, none))
		}, ErrEncoder},
		{"feature version", func() (*Model, error) {
			return OpenFS(testFiles(t, tiny, func(m *artifact.Manifest) { m.Features.Version++ }, none))
		}, ErrFeatures},
		{"feature digest", func() (*Model, error) {
			return OpenFS(testFiles(t, tiny, func(m *artifact.Manifest) { m.Features.Digest = artifact.Sum(nil) }, none))
		}, ErrFeatures},
		{"feature count", func() (*Model, error) {
			d := tiny
			d.F++
			return OpenFS(testFiles(t, d, nil, none))
		}, ErrFeatures},
		{"deadline option", func() (*Model, error) { return OpenFS(testFiles(t, tiny, nil, none), OnDeadline(3)) }, ErrOption},
		{"refusals option", func() (*Model, error) { return OpenFS(testFiles(t, tiny, nil, none), WithMaxRefusals(-1)) }, ErrOption},
		{"nil layer", func() (*Model, error) { return OpenFS(testFiles(t, tiny, nil, none), WithLayers(nil)) }, ErrOption},
		{"foreign calibration", func() (*Model, error) {
			other := testFiles(t, tiny, func(m *artifact.Manifest) { m.Seed++ }, none)
			return OpenFS(uncalibrated, WithCalibration(other[artifact.CalibrationFile].Data))
		}, artifact.ErrCalibrationModel},
		{"calibration for more features", func() (*Model, error) {
			return OpenFS(uncalibrated, WithCalibration(overfed(t, uncalibrated)))
		}, ErrCalibration},
		{"calibration for more features, its form", func() (*Model, error) {
			return OpenFS(uncalibrated, WithCalibration(overfed(t, uncalibrated)))
		}, artifact.ErrCalibration},
		{"no calibration", func() (*Model, error) { return OpenFS(uncalibrated, WithCalibration([]byte("{}"))) }, ErrCalibration},
		{"absent", func() (*Model, error) { return Open(t.TempDir()) }, artifact.ErrMissing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := tt.open(); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
	m, err := OpenFS(uncalibrated, ScoresOnly())
	if err != nil || m.CalibrationDigest() != "" || m.Calibration() != nil {
		t.Errorf("ScoresOnly: %v", err)
	}
	own := testFiles(t, tiny, nil, artifact.Thresholds{Hold: at(0.25)})
	if m, err = OpenFS(uncalibrated, WithCalibration(own[artifact.CalibrationFile].Data)); err != nil || m.Thresholds().Hold != 0.25 {
		t.Errorf("WithCalibration: %v", err)
	}
}
