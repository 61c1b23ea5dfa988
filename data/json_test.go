package data

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestUnmarshalKeepsUnknownFields(t *testing.T) {
	const in = `{"id":"a","group":"g","steps":[{"type":"message","text":"hi"}],"n_steps":1,"label":0,
		"note":"x } , \" {", "deep" : { "a" : [1, {"b": "]"}] }, "n": 12 , "none": null, "e\u0078tra": true}`
	var got Trajectory
	if err := json.Unmarshal([]byte(in), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]json.RawMessage{
		"note":  json.RawMessage(`"x } , \" {"`),
		"deep":  json.RawMessage(`{"a":[1,{"b":"]"}]}`),
		"n":     json.RawMessage(`12`),
		"extra": json.RawMessage(`true`),
	}
	if d := cmp.Diff(want, got.Extra); d != "" {
		t.Error(d)
	}
	if got.Label != Safe || len(got.Steps) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestUnmarshalErrors(t *testing.T) {
	for _, tt := range []struct{ name, in, field, msg string }{
		{"unknown label", `{"label":2}`, "label", "must be 0 (safe), 1 (unsafe) or null (unknown), not 2"},
		{"label word", `{"label":"unsafe"}`, "label", `not "unsafe"`},
		{"label true", `{"label":true}`, "label", `not true`},
		{"wrong type", `{"id":7}`, "id", "is a JSON number: want a string"},
		{"step type", `{"steps":[{"type":"message"},{"type":"message","text":[]}]}`, "steps[1].text", "is a JSON array: want a string"},
		{"step number", `{"steps":[{"type":"message"},7]}`, "steps[1]", "is a JSON number: want an object"},
		{"steps object", `{"steps":{}}`, "steps", "is a JSON object: want an array"},
		{"hazard", `{"first_hazard":1.5}`, "first_hazard", "want a whole number"},
		{"array", `[1]`, "trajectory", "is a JSON array: want an object"},
		{"n_steps", `{"steps":[],"n_steps":3}`, "n_steps", "is 3 but there are 0 steps"},
		{"n_steps word", `{"steps":[],"n_steps":"many"}`, "n_steps", "but there are 0 steps"},
		{"case", `{"Label":1}`, "Label", `write "label"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got Trajectory
			err := got.UnmarshalJSON([]byte(tt.in))
			var fe *FieldError
			if !errors.As(err, &fe) {
				t.Fatalf("error %v is no *FieldError", err)
			}
			if fe.Field != tt.field || !strings.Contains(fe.Msg, tt.msg) {
				t.Errorf("got %v, want field %s and %q", err, tt.field, tt.msg)
			}
			if strings.Contains(tt.name, "label") && !errors.Is(err, ErrLabel) {
				t.Errorf("%v does not wrap ErrLabel", err)
			}
		})
	}
}

func TestMarshalRefusesShadowedField(t *testing.T) {
	tr := Trajectory{ID: "a", Extra: map[string]json.RawMessage{"Task": json.RawMessage(`"x"`)}}
	if _, err := json.Marshal(tr); err == nil || !strings.Contains(err.Error(), "Task") {
		t.Fatalf("got %v, want an error that names Task", err)
	}
}

func TestMarshalIsStable(t *testing.T) {
	tr := Trajectory{
		ID: "a", Dataset: "d", Group: "g", Task: "1 < 2 & 3",
		Steps: []Step{{Type: Message, Text: "<b>"}},
		Extra: map[string]json.RawMessage{"z": json.RawMessage(`1`), "b": json.RawMessage(`"<"`)},
	}
	got, err := json.Marshal(&tr)
	if err != nil {
		t.Fatal(err)
	}
	// json.Marshal escapes HTML again in what MarshalJSON returned.
	direct, err := tr.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"a","dataset":"d","group":"g","task":"1 < 2 & 3","steps":[{"type":"message","text":"<b>"}],"label":null,"first_hazard":null,"b":"<","z":1}`
	if string(direct) != want {
		t.Errorf("got  %s\nwant %s", direct, want)
	}
	if !json.Valid(got) {
		t.Errorf("invalid JSON %s", got)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw(t)
		b, err := want.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var got Trajectory
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		if d := cmp.Diff(want, &got); d != "" {
			t.Fatal(d)
		}
	})
}

func draw(t *rapid.T) *Trajectory {
	text := rapid.String()
	tr := &Trajectory{
		ID: "x" + text.Draw(t, "id"), Dataset: text.Draw(t, "dataset"), Task: text.Draw(t, "task"),
		Label: Label(rapid.IntRange(0, 2).Draw(t, "label")), Suite: text.Draw(t, "suite"),
		Steps: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Step {
			return Step{Type: ToolCall, Tool: text.Draw(t, "tool"), Args: text.Draw(t, "args"), Result: text.Draw(t, "result")}
		}), 1, 4).Draw(t, "steps"),
	}
	if rapid.Bool().Draw(t, "seen") {
		tr.InjectionSeen = new(int)
	}
	if rapid.Bool().Draw(t, "extra") {
		v, err := marshal(map[string]string{"k": text.Draw(t, "value")})
		if err != nil {
			t.Fatal(err)
		}
		tr.Extra = map[string]json.RawMessage{"x_" + text.Draw(t, "key"): v}
	}
	return tr
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"id":"a","steps":[{"type":"message"}],"label":1,"x":[{}]}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"a":1,"a":{"b":[]},"n_steps":0}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var tr Trajectory
		if json.Unmarshal(b, &tr) != nil {
			return
		}
		_ = tr.Validate() // must not panic on any decoded value
		out, err := tr.MarshalJSON()
		if err != nil {
			t.Fatalf("%q decodes but does not encode: %v", b, err)
		}
		var again Trajectory
		if err := json.Unmarshal(out, &again); err != nil {
			t.Fatalf("%q became %q: %v", b, out, err)
		}
		second, err := again.MarshalJSON()
		if err != nil || string(second) != string(out) {
			t.Fatalf("not stable: %q then %q (%v)", out, second, err)
		}
	})
}
