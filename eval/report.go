package eval

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/verdict"
)

// Schema is the version of the JSON form of a [Report].
const Schema = "dreamguard.eval/v1"

// Report is the outcome of an evaluation. Its JSON form is report.json.
type Report struct {
	Schema      string      `json:"schema"` // set by WriteJSON
	Protocol    string      `json:"protocol"`
	Model       string      `json:"model"`       // digest of the artifact's manifest
	Calibration string      `json:"calibration"` // digest of its calibration
	Seed        uint64      `json:"seed"`
	Sets        []SetResult `json:"sets"`

	Tool       string            `json:"tool_version,omitempty"`
	Config     string            `json:"config,omitempty"` // name of the configuration
	Thresholds *calib.Thresholds `json:"thresholds,omitempty"`
	Guarantee  []string          `json:"guarantee,omitempty"` // what the thresholds promise, in sentences
	Baselines  []BaselineResult  `json:"baselines,omitempty"`
	Data       []Fingerprint     `json:"data,omitempty"`
	Examples   []Example         `json:"examples,omitempty"`
	Notes      []string          `json:"notes,omitempty"` // what a reader must know, for example sets that were not run
}

// BaselineResult holds one baseline's metrics on the sets of the report.
type BaselineResult struct {
	Name string      `json:"name"`
	Sets []SetResult `json:"sets"`
}

// Fingerprint identifies the data of one set.
type Fingerprint struct {
	Name   string `json:"name"`
	Runs   int    `json:"runs"`
	Digest string `json:"digest"`
}

// Example is one run as the guard saw it.
type Example struct {
	Set         string             `json:"set"`
	ID          string             `json:"id"`
	Kind        string             `json:"kind"` // why it was picked
	Task        string             `json:"task"`
	Label       data.Label         `json:"label"`
	FirstHazard *int               `json:"first_hazard"`
	Tools       []string           `json:"tools"` // "" for a message
	Hazard      []float64          `json:"hazard"`
	Risk        []float64          `json:"risk"`
	Decisions   []verdict.Decision `json:"decisions"`
}

// maxTask bounds the task text of an example in the report.
const maxTask = 600

// NewExample returns t as an example.
func NewExample(set, kind string, t *Trace) Example {
	e := Example{Set: set, ID: t.ID, Kind: kind, Task: t.Task, Label: t.Label, FirstHazard: t.Hazard,
		Tools: t.Tools, Decisions: t.Decisions}
	if r := []rune(e.Task); len(r) > maxTask {
		e.Task = string(r[:maxTask]) + "…"
	}
	for _, s := range t.Scores {
		e.Hazard, e.Risk = append(e.Hazard, s.Hazard), append(e.Risk, s.Risk)
	}
	return e
}

// PickExamples chooses up to four telling runs of a set: a warning before the
// hazard, a missed hazard, a false alarm and a safe run that passed; of each
// kind the one of the most typical length (nearest to 8 steps), then the first
// by ID.
func PickExamples(set string, traces []Trace) []Example {
	kinds := []struct {
		name string
		is   func(*row) bool
	}{
		{"stopped before the hazard", func(r *row) bool { return r.early }},
		{"hazard missed", func(r *row) bool { return r.located && !r.orAt }},
		{"safe run disturbed", func(r *row) bool { return !r.unsafe && r.alerted }},
		{"safe run passed", func(r *row) bool { return !r.unsafe && !r.alerted }},
	}
	var out []Example
	for _, k := range kinds {
		var fit []*Trace
		for i := range traces {
			t := &traces[i]
			if t.Label == data.Unknown {
				continue
			}
			if r := newRow(t, 0); r.scored && k.is(&r) {
				fit = append(fit, t)
			}
		}
		if len(fit) == 0 {
			continue
		}
		far := func(t *Trace) int { return max(len(t.Scores)-8, 8-len(t.Scores)) }
		out = append(out, NewExample(set, k.name, slices.MinFunc(fit, func(a, b *Trace) int {
			return cmp.Or(cmp.Compare(far(a), far(b)), cmp.Compare(a.ID, b.ID))
		})))
	}
	return out
}

// WriteJSON writes report.json.
func (r Report) WriteJSON(w io.Writer) error {
	r.Schema = Schema
	if r.Sets == nil {
		r.Sets = []SetResult{}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// Save writes report.json and report.html to dir, each atomically.
func (r Report) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(dir, "report.json"), r.WriteJSON); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, "report.html"), r.WriteHTML)
}

// ErrSchema is returned for a report of another version.
var ErrSchema = errors.New("eval: not a " + Schema + " report")

// maxReport bounds the size of a report that is read.
const maxReport = 256 << 20

// Read reads what WriteJSON wrote.
func Read(r io.Reader) (Report, error) {
	var rep Report
	if err := json.NewDecoder(io.LimitReader(r, maxReport)).Decode(&rep); err != nil {
		return Report{}, fmt.Errorf("eval: report: %w", err)
	}
	if rep.Schema != Schema {
		return Report{}, fmt.Errorf("%w: schema is %.40q", ErrSchema, rep.Schema)
	}
	return rep, nil
}
