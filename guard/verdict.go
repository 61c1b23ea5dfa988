package guard

import (
	"encoding/json"
	"fmt"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/verdict"
)

// The vocabulary shared with layers, see package verdict.
type (
	Decision    = verdict.Decision
	Reason      = verdict.Reason
	Task        = verdict.Task
	Tool        = verdict.Tool
	Call        = verdict.Call
	Result      = verdict.Result
	Layer       = verdict.Layer
	SessionView = verdict.SessionView
)

// The decisions.
const (
	Pass  = verdict.Pass
	Hold  = verdict.Hold
	Block = verdict.Block
)

// Schema names the JSON form of a Verdict: docs/reference/verdict.schema.json.
const Schema = "dreamguard.verdict/v1"

// Thresholds are the levels that a verdict was taken by: grid points, or
// [calib.Off].
type Thresholds struct {
	Hold  float64 // HOLD where Scores.Risk >= Hold
	Block float64 // BLOCK where Scores.Hazard >= Block
}

// Logits are the raw outputs of the two heads. Calibration works on them.
type Logits struct {
	Hazard float64 `json:"hazard"`
	Prefix float64 `json:"prefix"`
}

// LayerVerdict is what one layer said.
type LayerVerdict struct {
	Name     string
	Decision Decision
	Reasons  []Reason
}

// Verdict is the answer to one proposed call. Equal sessions give equal verdicts
// for equal calls, bit for bit; for that reason it holds no time.
type Verdict struct {
	Decision Decision
	Reasons  []Reason // why it is not Pass; in the order in which they were found
	// Scored is false where the model was not asked or did not answer in time:
	// the scores and logits are then 0 and mean nothing.
	Scored bool
	calib.Scores
	Logits            Logits
	Thresholds        Thresholds
	Step              int // committed steps before this call
	ModelDigest       string
	CalibrationDigest string         // empty if the model is not calibrated
	Layers            []LayerVerdict // one per layer, in order
	Repair            []Call         // a plan of the layer that decided; each call is judged again
	Evidence          []Contribution // from Explain: what the scores rest on, largest first
	Suggestions       []Suggestion   // from Explain: what may be done instead; nothing of it is done here
}

// raise makes the verdict at least as strict as d and notes the reason.
func (v *Verdict) raise(d Decision, reasons ...Reason) {
	v.Decision = max(v.Decision, d)
	for _, r := range reasons {
		known := false
		for _, have := range v.Reasons {
			known = known || have == r
		}
		if !known {
			v.Reasons = append(v.Reasons, r)
		}
	}
}

type verdictJSON struct {
	Schema      string         `json:"schema"`
	Decision    Decision       `json:"decision"`
	Reasons     []Reason       `json:"reasons"`
	Step        int            `json:"step"`
	Scored      bool           `json:"scored"`
	Scores      calib.Scores   `json:"scores"`
	Logits      Logits         `json:"logits"`
	Thresholds  thresholdsJSON `json:"thresholds"`
	Model       string         `json:"model"`
	Calibration string         `json:"calibration"`
	Layers      []layerJSON    `json:"layers"`
	Repair      []callJSON     `json:"repair"`
	Evidence    []evidenceJSON `json:"evidence,omitempty"`
	Suggestions []Suggestion   `json:"suggestions,omitempty"`
}

// evidenceJSON leaves out what only a feature has.
type evidenceJSON struct {
	Kind    EvidenceKind `json:"kind"`
	Name    string       `json:"name"`
	Value   *float64     `json:"value,omitempty"`
	Typical *float64     `json:"typical,omitempty"`
	Hazard  float64      `json:"hazard"`
	Prefix  float64      `json:"prefix"`
	Risk    float64      `json:"risk"`
	Text    string       `json:"text"`
}

type thresholdsJSON struct {
	Hold  *float64 `json:"hold"`
	Block *float64 `json:"block"`
}

type layerJSON struct {
	Name     string   `json:"name"`
	Decision Decision `json:"decision"`
	Reasons  []Reason `json:"reasons"`
}

type callJSON struct {
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
	Text      string `json:"text,omitempty"`
}

// MarshalJSON writes the form [Schema]. A threshold that is off is null.
func (v Verdict) MarshalJSON() ([]byte, error) {
	level := func(x float64) *float64 {
		if x == calib.Off {
			return nil
		}
		return &x
	}
	j := verdictJSON{
		Schema:      Schema,
		Decision:    v.Decision,
		Reasons:     append([]Reason{}, v.Reasons...),
		Step:        v.Step,
		Scored:      v.Scored,
		Scores:      v.Scores,
		Logits:      v.Logits,
		Thresholds:  thresholdsJSON{level(v.Thresholds.Hold), level(v.Thresholds.Block)},
		Model:       v.ModelDigest,
		Calibration: v.CalibrationDigest,
		Layers:      make([]layerJSON, len(v.Layers)),
		Repair:      make([]callJSON, len(v.Repair)),
		Suggestions: v.Suggestions,
	}
	for _, c := range v.Evidence {
		e := evidenceJSON{c.Kind, c.Name, nil, nil, c.Hazard, c.Prefix, c.Risk, c.Text}
		if c.Kind == OfFeature {
			e.Value, e.Typical = &c.Value, &c.Typical
		}
		j.Evidence = append(j.Evidence, e)
	}
	for i, l := range v.Layers {
		j.Layers[i] = layerJSON{l.Name, l.Decision, append([]Reason{}, l.Reasons...)}
	}
	for i, c := range v.Repair {
		j.Repair[i] = callJSON(c)
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Verdict) UnmarshalJSON(b []byte) error {
	var j verdictJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	if j.Schema != Schema {
		return fmt.Errorf("guard: schema is %.40q: want %s", j.Schema, Schema)
	}
	level := func(x *float64) float64 {
		if x == nil {
			return calib.Off
		}
		return *x
	}
	*v = Verdict{
		Decision:          j.Decision,
		Reasons:           j.Reasons,
		Step:              j.Step,
		Scored:            j.Scored,
		Scores:            j.Scores,
		Logits:            j.Logits,
		Thresholds:        Thresholds{level(j.Thresholds.Hold), level(j.Thresholds.Block)},
		ModelDigest:       j.Model,
		CalibrationDigest: j.Calibration,
	}
	for _, l := range j.Layers {
		v.Layers = append(v.Layers, LayerVerdict(l))
	}
	for _, c := range j.Repair {
		v.Repair = append(v.Repair, Call(c))
	}
	for _, e := range j.Evidence {
		c := Contribution{Kind: e.Kind, Name: e.Name, Hazard: e.Hazard, Prefix: e.Prefix, Risk: e.Risk, Text: e.Text}
		if e.Value != nil && e.Typical != nil {
			c.Value, c.Typical = *e.Value, *e.Typical
		}
		v.Evidence = append(v.Evidence, c)
	}
	v.Suggestions = j.Suggestions
	return nil
}
