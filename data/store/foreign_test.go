package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/snappy"

	"github.com/dreamguard/dreamguard/data"
)

// Other writers make every column nullable, and order them as they like.
func TestNullableColumns(t *testing.T) {
	type step struct {
		Tool   *string `parquet:"tool,optional"`
		Type   *string `parquet:"type,optional"`
		Args   *string `parquet:"args,optional"`
		Text   *string `parquet:"text,optional"`
		Result *string `parquet:"result,optional"`
		Error  *string `parquet:"error,optional"`
	}
	type tool struct {
		Name        *string `parquet:"name,optional"`
		Description *string `parquet:"description,optional"`
	}
	type foreign struct {
		Steps           []step  `parquet:"steps,optional,list"`
		Tools           []tool  `parquet:"tools,optional,list"`
		ID              *string `parquet:"id,optional"`
		Dataset         *string `parquet:"dataset,optional"`
		Group           *string `parquet:"group,optional"`
		AgentModel      *string `parquet:"agent_model,optional"`
		Task            *string `parquet:"task,optional"`
		Context         *string `parquet:"context,optional"`
		Label           *int32  `parquet:"label,optional"`
		FirstHazard     *int32  `parquet:"first_hazard,optional"`
		HazardLabel     *string `parquet:"hazard_label,optional"`
		AttackPresent   *bool   `parquet:"attack_present,optional"`
		InjectionSeen   *int32  `parquet:"injection_seen,optional"`
		AttackSucceeded *bool   `parquet:"attack_succeeded,optional"`
		TaskSucceeded   *bool   `parquet:"task_succeeded,optional"`
		Suite           *string `parquet:"suite,optional"`
		UserTask        *string `parquet:"user_task,optional"`
		InjectionTask   *string `parquet:"injection_task,optional"`
		Attack          *string `parquet:"attack,optional"`
		AttackTool      *string `parquet:"attack_tool,optional"`
		Extra           *string `parquet:"extra,optional"`
	}
	p := func(s string) *string { return &s }
	one := int32(1)
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[foreign](&buf, parquet.Compression(&snappy.Codec{}))
	if _, err := w.Write([]foreign{
		{ID: p("a"), Task: p("t"), Label: &one, Steps: []step{{Type: p("message"), Text: p("x")}, {Type: p("tool_call"), Tool: p("send")}}},
		{ID: p("b"), Steps: []step{{Type: p("message")}}, Extra: p(`{"k":1}`)},
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "foreign.parquet")
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadAll(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []*data.Trajectory{
		{ID: "a", Task: "t", Label: data.Unsafe, Steps: []data.Step{{Type: data.Message, Text: "x"}, {Type: data.ToolCall, Tool: "send"}}},
		{ID: "b", Steps: []data.Step{{Type: data.Message}}, Extra: got[1].Extra},
	}
	if d := cmp.Diff(want, got); d != "" || string(got[1].Extra["k"]) != "1" {
		t.Errorf("%s, extra %s", d, got[1].Extra)
	}
}

// A file of another schema is refused by the name of a column.
func TestOtherSchema(t *testing.T) {
	write := func(rows func(*bytes.Buffer) error) error {
		var buf bytes.Buffer
		if err := rows(&buf); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "x.parquet")
		if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadAll(path)
		return err
	}
	type missing struct {
		ID string `parquet:"id"`
	}
	type more struct {
		row
		Mine string `parquet:"mine"`
	}
	type other struct {
		ID int64 `parquet:"id"`
		rest
	}
	for name, tt := range map[string]struct {
		err error
		msg string
	}{
		"missing": {write(func(b *bytes.Buffer) error { return parquet.Write(b, []missing{{"a"}}) }), "column dataset is missing"},
		"unknown": {write(func(b *bytes.Buffer) error { return parquet.Write(b, []more{{}}) }), "column mine is unknown"},
		"type":    {write(func(b *bytes.Buffer) error { return parquet.Write(b, []other{{}}) }), "column id has type INT(64,true), want STRING"},
	} {
		if tt.err == nil || !bytes.Contains([]byte(tt.err.Error()), []byte(tt.msg)) {
			t.Errorf("%s: got %v, want %q", name, tt.err, tt.msg)
		}
	}
}

// rest is row without its id.
type rest struct {
	Dataset         string    `parquet:"dataset"`
	Group           string    `parquet:"group"`
	AgentModel      string    `parquet:"agent_model"`
	Task            string    `parquet:"task"`
	Context         string    `parquet:"context"`
	Tools           []toolRow `parquet:"tools,list"`
	Steps           []stepRow `parquet:"steps,list"`
	Label           *int32    `parquet:"label"`
	FirstHazard     *int32    `parquet:"first_hazard"`
	HazardLabel     string    `parquet:"hazard_label"`
	AttackPresent   *bool     `parquet:"attack_present"`
	InjectionSeen   *int32    `parquet:"injection_seen"`
	AttackSucceeded *bool     `parquet:"attack_succeeded"`
	TaskSucceeded   *bool     `parquet:"task_succeeded"`
	Suite           string    `parquet:"suite"`
	UserTask        string    `parquet:"user_task"`
	InjectionTask   string    `parquet:"injection_task"`
	Attack          string    `parquet:"attack"`
	AttackTool      string    `parquet:"attack_tool"`
	Extra           string    `parquet:"extra"`
}
