package data

import (
	"errors"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/verdict"
)

func ptr[T any](v T) *T { return &v }

func valid() *Trajectory {
	return &Trajectory{
		ID: "a", Task: "t", Context: "c", Label: Unsafe, FirstHazard: ptr(1), HazardLabel: HazardRule,
		Tools: []Tool{{Name: "send", Description: "sends"}},
		Steps: []Step{
			{Type: Message, Text: "who?", Result: UserPrefix + "me"},
			{Type: ToolCall, Tool: "send", Args: "{}", Text: "sending", Result: UserPrefix + "obey", Error: "late"},
		},
	}
}

func TestValidate(t *testing.T) {
	if err := valid().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, field string
		spoil       func(*Trajectory)
	}{
		{"no id", "id", func(t *Trajectory) { t.ID = "" }},
		{"no steps", "steps", func(t *Trajectory) { t.Steps = nil }},
		{"no tool", "steps[1].tool", func(t *Trajectory) { t.Steps[1].Tool = "" }},
		{"message with args", "steps[0].args", func(t *Trajectory) { t.Steps[0].Args = "x" }},
		{"step type", "steps[0].type", func(t *Trajectory) { t.Steps[0].Type = "thought" }},
		{"hazard of a safe run", "first_hazard", func(t *Trajectory) { t.Label = Safe }},
		{"hazard behind the end", "first_hazard", func(t *Trajectory) { t.FirstHazard = ptr(2) }},
		{"hazard before the start", "first_hazard", func(t *Trajectory) { t.FirstHazard = ptr(-1) }},
		{"seen behind the end", "injection_seen", func(t *Trajectory) { t.InjectionSeen = ptr(2) }},
		{"seen before the start", "injection_seen", func(t *Trajectory) { t.InjectionSeen = ptr(-2) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := valid()
			tt.spoil(tr)
			var fe *FieldError
			if err := tr.Validate(); !errors.As(err, &fe) || fe.Field != tt.field {
				t.Errorf("got %v, want an error about %s", err, tt.field)
			}
		})
	}
}

func TestCallHidesResult(t *testing.T) {
	tr := valid()
	want := verdict.Call{Tool: "send", Arguments: "{}", Text: "sending"}
	if got := tr.Call(1); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	tr.Steps[1].Result, tr.Steps[1].Error = "noise", "noise"
	if got := tr.Call(1); got != want {
		t.Errorf("the call changed with its result: %+v", got)
	}
}

// Some frameworks send messages through a tool ("finish"): still messages.
func TestMessageChannel(t *testing.T) {
	tr := valid()
	tr.Steps[0].Tool = "finish"
	if err := tr.Validate(); err != nil {
		t.Error(err)
	}
	if got := tr.Call(0); !got.IsMessage() || got.Text != "who?" {
		t.Errorf("got %+v, want a message", got)
	}
}

// Only a reply to a message is the user's: tool output may begin with anything.
func TestResultAuthority(t *testing.T) {
	tr := valid()
	if got, want := tr.Result(0), (verdict.Result{Output: "me", User: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := tr.Result(1), (verdict.Result{Output: UserPrefix + "obey", Error: "late"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestStartTask(t *testing.T) {
	got := valid().StartTask()
	if got.Instruction != "t" || got.Context != "c" || len(got.Tools) != 1 || got.Tools[0].Description != "sends" {
		t.Errorf("got %+v", got)
	}
}

func TestLabel(t *testing.T) {
	for l, want := range map[Label]string{Unknown: "unknown null", Safe: "safe 0", Unsafe: "unsafe 1"} {
		b, err := l.MarshalJSON()
		if got := l.String() + " " + string(b); got != want || err != nil {
			t.Errorf("%d: got %q, %v, want %q", l, got, err, want)
		}
		var back Label
		if err := back.UnmarshalJSON(b); err != nil || back != l {
			t.Errorf("%s came back as %v, %v", b, back, err)
		}
	}
	var l Label
	if err := l.UnmarshalJSON([]byte(strings.Repeat("9", 100))); !errors.Is(err, ErrLabel) || len(err.Error()) > 120 {
		t.Errorf("got %v", err)
	}
}

func TestLocated(t *testing.T) {
	tr := valid()
	if !tr.Located() || !tr.HazardExact() {
		t.Error("an unsafe run with a rule label is located exactly")
	}
	tr.HazardLabel = "text-overlap"
	if !tr.Located() || tr.HazardExact() {
		t.Error("a text label is weak")
	}
	tr.FirstHazard = nil
	if tr.Located() {
		t.Error("no hazard, not located")
	}
}
