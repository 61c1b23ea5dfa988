package store

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/internal/lines"
)

// row is a trajectory as Parquet columns. Extra is one column of JSON: its keys
// differ from source to source, so they cannot be columns of one schema.
type row struct {
	ID              string    `parquet:"id"`
	Dataset         string    `parquet:"dataset,dict"`
	Group           string    `parquet:"group,dict"`
	AgentModel      string    `parquet:"agent_model,dict"`
	Task            string    `parquet:"task"`
	Context         string    `parquet:"context"`
	Tools           []toolRow `parquet:"tools,list"`
	Steps           []stepRow `parquet:"steps,list"`
	Label           *int32    `parquet:"label"`
	FirstHazard     *int32    `parquet:"first_hazard"`
	HazardLabel     string    `parquet:"hazard_label,dict"`
	AttackPresent   *bool     `parquet:"attack_present"`
	InjectionSeen   *int32    `parquet:"injection_seen"`
	AttackSucceeded *bool     `parquet:"attack_succeeded"`
	TaskSucceeded   *bool     `parquet:"task_succeeded"`
	Suite           string    `parquet:"suite,dict"`
	UserTask        string    `parquet:"user_task,dict"`
	InjectionTask   string    `parquet:"injection_task,dict"`
	Attack          string    `parquet:"attack,dict"`
	AttackTool      string    `parquet:"attack_tool,dict"`
	Extra           string    `parquet:"extra"`
}

type toolRow struct {
	Name        string `parquet:"name"`
	Description string `parquet:"description"`
}

type stepRow struct {
	Type   string `parquet:"type,dict"`
	Tool   string `parquet:"tool,dict"`
	Args   string `parquet:"args"`
	Text   string `parquet:"text"`
	Result string `parquet:"result"`
	Error  string `parquet:"error"`
}

// Row groups end at whichever comes first, so that a reader never has to hold
// much more than this.
const (
	groupRows  = 2048
	groupBytes = 16 << 20
)

type parquetReader struct {
	r      *parquet.GenericReader[row]
	schema *parquet.Schema
	buf    [1]parquet.Row
	n      int
}

func (p *parquetReader) unit() string { return "row" }
func (p *parquetReader) at() int      { return p.n }

func (p *parquetReader) Close() (err error) {
	defer catch(&err)
	return p.r.Close()
}

// catch turns a panic of the Parquet library, which it raises on some damaged
// files, into an error.
func catch(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the Parquet file is damaged: %v", r)
	}
}

func openParquet(r io.ReaderAt, size int64) (_ *parquetReader, err error) {
	defer catch(&err)
	f, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("the Parquet file is damaged: %w", err)
	}
	if err := checkColumns(f.Schema()); err != nil {
		return nil, err
	}
	if err := checkPages(f, r, size, maxPage); err != nil {
		return nil, err
	}
	pr := parquet.NewGenericReader[row](f)
	return &parquetReader{r: pr, schema: pr.Schema()}, nil
}

// checkColumns refuses a file of another schema: the library would fill a
// missing column with zeros and leave an unknown one out, without a word.
func checkColumns(got *parquet.Schema) error {
	want := parquet.SchemaOf(row{})
	names := func(s *parquet.Schema) []string {
		var out []string
		for _, path := range s.Columns() {
			out = append(out, strings.Join(path, "."))
		}
		return out
	}
	have, need := names(got), names(want)
	for _, c := range need {
		if !slices.Contains(have, c) {
			return fmt.Errorf("%w: column %s is missing", ErrFormat, c)
		}
	}
	for _, c := range have {
		if !slices.Contains(need, c) {
			return fmt.Errorf("%w: column %s is unknown: fields of your own go, as a JSON object, into the column extra", ErrFormat, c)
		}
		g, _ := got.Lookup(strings.Split(c, ".")...)
		w, _ := want.Lookup(strings.Split(c, ".")...)
		if g.Node.Type().Kind() != w.Node.Type().Kind() {
			return fmt.Errorf("%w: column %s has type %s, want %s", ErrFormat, c, g.Node.Type(), w.Node.Type())
		}
	}
	return nil
}

func (p *parquetReader) next() (_ *data.Trajectory, err error) {
	defer catch(&err)
	p.n++
	for {
		n, err := p.r.ReadRows(p.buf[:])
		if n == 1 {
			break
		}
		if err == io.EOF {
			return nil, io.EOF
		}
		if err != nil {
			return nil, fmt.Errorf("the Parquet file is damaged: %w", err)
		}
	}
	// Before any text is copied: a row can name one text of a dictionary a
	// million times.
	size := 0
	for _, v := range p.buf[0] {
		if k := v.Kind(); k == parquet.ByteArray && !v.IsNull() {
			size += len(v.ByteArray())
		}
	}
	if size > lines.Max {
		return nil, tooLarge(size)
	}
	var r row
	if err := p.schema.Reconstruct(&r, p.buf[0]); err != nil {
		return nil, fmt.Errorf("the Parquet file is damaged: %w", err)
	}
	return r.trajectory()
}

func (r *row) trajectory() (*data.Trajectory, error) {
	t := &data.Trajectory{
		ID: r.ID, Dataset: r.Dataset, Group: r.Group, AgentModel: r.AgentModel, Task: r.Task, Context: r.Context,
		FirstHazard: toInt(r.FirstHazard), HazardLabel: r.HazardLabel,
		AttackPresent: r.AttackPresent, InjectionSeen: toInt(r.InjectionSeen),
		AttackSucceeded: r.AttackSucceeded, TaskSucceeded: r.TaskSucceeded,
		Suite: r.Suite, UserTask: r.UserTask, InjectionTask: r.InjectionTask, Attack: r.Attack, AttackTool: r.AttackTool,
	}
	if r.Label != nil {
		switch *r.Label {
		case 0:
			t.Label = data.Safe
		case 1:
			t.Label = data.Unsafe
		default:
			return nil, &data.FieldError{Field: "label", Err: data.ErrLabel, Msg: fmt.Sprintf("is %d: want 0 (safe), 1 (unsafe) or null (unknown)", *r.Label)}
		}
	}
	for _, x := range r.Tools {
		t.Tools = append(t.Tools, data.Tool(x))
	}
	for _, x := range r.Steps {
		t.Steps = append(t.Steps, data.Step(x))
	}
	if r.Extra != "" {
		if err := json.Unmarshal([]byte(r.Extra), &t.Extra); err != nil {
			return nil, &data.FieldError{Field: "extra", Err: err, Msg: "is not a JSON object: " + err.Error()}
		}
		if len(t.Extra) == 0 {
			t.Extra = nil
		}
	}
	return t, nil
}

func newRow(t *data.Trajectory) (row, error) {
	r := row{
		ID: t.ID, Dataset: t.Dataset, Group: t.Group, AgentModel: t.AgentModel, Task: t.Task, Context: t.Context,
		FirstHazard: toInt32(t.FirstHazard), HazardLabel: t.HazardLabel,
		AttackPresent: t.AttackPresent, InjectionSeen: toInt32(t.InjectionSeen),
		AttackSucceeded: t.AttackSucceeded, TaskSucceeded: t.TaskSucceeded,
		Suite: t.Suite, UserTask: t.UserTask, InjectionTask: t.InjectionTask, Attack: t.Attack, AttackTool: t.AttackTool,
	}
	if t.Label != data.Unknown {
		l := int32(0)
		if t.Label == data.Unsafe {
			l = 1
		}
		r.Label = &l
	}
	for _, x := range t.Tools {
		r.Tools = append(r.Tools, toolRow(x))
	}
	for _, x := range t.Steps {
		r.Steps = append(r.Steps, stepRow(x))
	}
	if len(t.Extra) > 0 {
		// Through the trajectory's own JSON, which refuses an extra field that
		// hides one of ours, and keeps < and > as they are.
		only := data.Trajectory{Extra: t.Extra}
		b, err := only.MarshalJSON()
		if err != nil {
			return row{}, err
		}
		var back data.Trajectory
		if err := json.Unmarshal(b, &back); err != nil {
			return row{}, err
		}
		if r.Extra, err = extraJSON(back.Extra); err != nil {
			return row{}, err
		}
	}
	return r, nil
}

func extraJSON(extra map[string]json.RawMessage) (string, error) {
	if len(extra) == 0 {
		return "", nil
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(extra); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func writeParquet(w io.Writer, seq iter.Seq2[*data.Trajectory, error]) (err error) {
	defer catch(&err)
	pw := parquet.NewGenericWriter[row](w,
		parquet.Compression(&zstd.Codec{}),
		parquet.CreatedBy("dreamguard", "1", ""), // not the build, so that bytes do not change with it
		parquet.MaxRowsPerRowGroup(groupRows),
	)
	bytes := 0
	for t, err := range seq {
		if err != nil {
			return err
		}
		r, err := newRow(t)
		if err != nil {
			return fmt.Errorf("%.200q: %w", t.ID, err)
		}
		if _, err := pw.Write([]row{r}); err != nil {
			return err
		}
		eachText(t, func(_, s string) { bytes += len(s) })
		if bytes >= groupBytes {
			if err := pw.Flush(); err != nil {
				return err
			}
			bytes = 0
		}
	}
	return pw.Close()
}

func toInt(p *int32) *int {
	if p == nil {
		return nil
	}
	v := int(*p)
	return &v
}

func toInt32(p *int) *int32 {
	if p == nil {
		return nil
	}
	v := int32(*p) // an index into steps, checked by Validate
	return &v
}
