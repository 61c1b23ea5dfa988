package guard

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/verdict"
)

// A session that is saved and resumed at any points, before or after Judge,
// gives the verdicts of one that never stopped, and ends in the same bytes.
func TestResumeEqualsNeverStopping(t *testing.T) {
	m := testModel(t, WithMaxRefusals(3), WithLayers(&counting{}))
	rapid.Check(t, func(t *rapid.T) {
		run := randomRun(rapid.Uint64().Draw(t, "seed"), 10)
		skips := rapid.SliceOfN(rapid.Bool(), 10, 10).Draw(t, "skips")
		stops := rapid.SliceOfN(rapid.IntRange(0, 3), 10, 10).Draw(t, "stops")
		save := func(s *Session) (*Session, []byte) {
			b, err := s.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			r, err := m.Resume(b)
			if err != nil {
				t.Fatal(err)
			}
			again, err := r.MarshalBinary()
			if err != nil || !bytes.Equal(b, again) {
				t.Fatalf("a resumed session has other bytes (%v)", err)
			}
			return r, b
		}
		a, b := m.Start(testTask), m.Start(testTask)
		for i, x := range run {
			if stops[i]&1 != 0 {
				b, _ = save(b)
			}
			want, got := a.Judge(context.Background(), x.call), b.Judge(context.Background(), x.call)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("step %d (-never stopped +resumed):\n%s", i, diff)
			}
			if stops[i]&2 != 0 {
				b, _ = save(b)
			}
			for _, s := range []*Session{a, b} {
				err := s.Commit(x.call, x.result)
				if skips[i] && err == nil && i+1 < len(run) {
					s.Judge(context.Background(), run[i+1].call)
					err = s.Skip(run[i+1].call)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		_, one := save(a)
		_, two := save(b)
		if !bytes.Equal(one, two) {
			t.Fatal("the states differ at the end")
		}
		if b.Step() != 10 || !cmp.Equal(b.Task(), testTask) {
			t.Fatalf("step %d, task %+v", b.Step(), b.Task())
		}
	})
}

// counting blocks every third call of a run.
type counting struct{ n uint64 }

func (*counting) Name() string                       { return "counting" }
func (*counting) Start(Task) Layer                   { return &counting{} }
func (c *counting) Commit(SessionView, Call, Result) { c.n++ }
func (c *counting) Judge(_ context.Context, _ SessionView, call Call) (Decision, []Reason, []Call) {
	if c.n%3 == 2 {
		return Block, []Reason{verdict.ReasonPolicy}, []Call{{Tool: "ask"}}
	}
	return Pass, nil, nil
}
func (c *counting) MarshalBinary() ([]byte, error) {
	return binary.LittleEndian.AppendUint64(nil, c.n), nil
}
func (c *counting) UnmarshalBinary(b []byte) error {
	if len(b) != 8 {
		return errors.New("want 8 bytes")
	}
	c.n = binary.LittleEndian.Uint64(b)
	return nil
}

// fixed always says the same.
type fixed struct {
	name   string
	d      Decision
	reason Reason
	repair []Call
}

func (f fixed) Name() string                   { return f.name }
func (fixed) Commit(SessionView, Call, Result) {}
func (f fixed) Judge(context.Context, SessionView, Call) (Decision, []Reason, []Call) {
	return f.d, []Reason{f.reason}, f.repair
}

func TestLayers(t *testing.T) {
	hold := fixed{"hold", Hold, verdict.ReasonUncovered, []Call{{Tool: "a"}}}
	block := fixed{"block", Block, verdict.ReasonPolicy, []Call{{Tool: "b"}}}
	pass := fixed{"pass", Pass, verdict.ReasonPolicy, []Call{{Tool: "c"}}}
	wild := fixed{"wild", 100, verdict.ReasonContained, nil}
	tests := []struct {
		name    string
		layers  []Layer
		want    Decision
		reasons []Reason
		repair  []Call
	}{
		{"none", nil, Pass, nil, nil},
		{"pass", []Layer{pass}, Pass, nil, nil},
		{"strictest last", []Layer{pass, hold, block}, Block, []Reason{verdict.ReasonUncovered, verdict.ReasonPolicy}, block.repair},
		{"strictest first", []Layer{block, hold}, Block, []Reason{verdict.ReasonPolicy, verdict.ReasonUncovered}, block.repair},
		{"outside the list", []Layer{hold, wild}, Block, []Reason{verdict.ReasonUncovered, verdict.ReasonContained}, nil},
	}
	call := Call{Tool: "send", Arguments: "{}"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := testModel(t, ScoresOnly(), WithLayers(tt.layers...)).Start(testTask)
			v := s.Judge(context.Background(), call)
			if v.Decision != tt.want || !cmp.Equal(v.Reasons, tt.reasons) || !cmp.Equal(v.Repair, tt.repair) || len(v.Layers) != len(tt.layers) {
				t.Errorf("%+v", v)
			}
			for i, l := range tt.layers {
				if v.Layers[i].Name != l.Name() {
					t.Errorf("layer %d is %q", i, v.Layers[i].Name)
				}
			}
			if v := s.Judge(context.Background(), Call{Text: "hi"}); v.Decision != Pass {
				t.Errorf("message: %+v", v)
			}
		})
	}
	if _, err := OpenFS(testFiles(t, tiny, nil, artifact.Thresholds{}), WithLayers(hold, hold)); !errors.Is(err, ErrOption) {
		t.Errorf("two layers of one name: %v", err)
	}
}

func TestResumeRefuses(t *testing.T) {
	m := testModel(t)
	s := m.Start(testTask)
	play(t, s, randomRun(1, 5))
	s.Judge(context.Background(), Call{Tool: "x"})
	good, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	edit := func(i int, x byte) []byte { b := bytes.Clone(good); b[i] ^= x; return b }
	flags := len(stateMagic) + 64
	tests := []struct {
		name string
		b    []byte
		want error
	}{
		{"empty", nil, ErrState},
		{"another file", []byte("hello"), ErrState},
		{"another version", edit(len(stateMagic)-1, 3), ErrState},
		{"another model", edit(len(stateMagic), 1), ErrStateModel},
		{"another fusion", edit(len(stateMagic)+32, 1), ErrStateModel},
		{"unknown flag", edit(flags, 0x80), ErrState},
		{"cut", good[:len(good)-1], ErrState},
		{"too long", append(bytes.Clone(good), 0), ErrState},
		{"huge", make([]byte, MaxState+1), ErrState},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := m.Resume(tt.b); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
	for n := range good {
		if _, err := m.Resume(good[:n]); err == nil {
			t.Fatalf("the first %d bytes were accepted", n)
		}
	}
	layered := testModel(t, WithLayers(&counting{}))
	if _, err := layered.Resume(good); !errors.Is(err, ErrStateModel) {
		t.Errorf("a layer more: %v", err)
	}
	b, err := layered.Start(testTask).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Resume(b); !errors.Is(err, ErrStateModel) {
		t.Errorf("a layer less: %v", err)
	}
}

func TestStateIsBounded(t *testing.T) {
	tools := make([]Tool, 2000)
	for i := range tools {
		tools[i] = Tool{Name: strings.Repeat("n", 500), Description: strings.Repeat("d", 5000)}
	}
	m := testModel(t)
	s := m.Start(Task{Instruction: strings.Repeat("word ", 1<<17), Context: strings.Repeat("text ", 1<<17), Tools: tools})
	play(t, s, randomRun(1, 3))
	b, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 800<<10 {
		t.Errorf("%d bytes", len(b))
	}
	if _, err := m.Resume(b); err != nil {
		t.Error(err)
	}
}

func FuzzResume(f *testing.F) {
	m := testModel(f)
	s := m.Start(testTask)
	fresh, err := s.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	play(f, s, randomRun(1, 5))
	b, err := s.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	head := len(stateMagic) + 64 // magic and digests, which no mutation would keep
	f.Add(fresh[head:])
	f.Add(b[head:])
	f.Fuzz(func(t *testing.T, tail []byte) {
		s, err := m.Resume(append(bytes.Clone(b[:head]), tail...))
		if err != nil {
			if !errors.Is(err, ErrState) && !errors.Is(err, ErrStateModel) {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		call := Call{Tool: "send_money", Arguments: `{"to":"x"}`}
		s.Judge(context.Background(), call)
		_ = s.Commit(call, Result{Output: "ok"}) // refused if the state says that another call waits
		if _, err := s.MarshalBinary(); err != nil && !errors.Is(err, ErrState) {
			t.Fatal(err)
		}
	})
}
