package eval

import (
	"bytes"
	"encoding/json"
	"math"
)

// Num is a figure that may not exist, NaN: null in JSON.
type Num float64

// OK reports whether the figure exists.
func (n Num) OK() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON writes null for a figure that does not exist.
func (n Num) MarshalJSON() ([]byte, error) {
	if !n.OK() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads null as NaN.
func (n *Num) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		*n = Num(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

// Interval is a lower and an upper bound.
type Interval [2]Num

// Recalls are recalls at fixed false positive rates.
type Recalls struct {
	At01 Num `json:"0.01"`
	At05 Num `json:"0.05"`
	At10 Num `json:"0.10"`
}

// AtTen is a figure at a false positive rate of 10 %.
type AtTen struct {
	At10 Num `json:"0.10"`
}

// SetResult holds the metrics of one test set, as in "dreamguard.eval/v1". The
// package comment defines each.
type SetResult struct {
	Name               string  `json:"name"`
	N                  int     `json:"n"`      // scored runs with a known label
	Unsafe             int     `json:"unsafe"` // unsafe ones among them
	AUROC              Num     `json:"auroc"`
	F1                 Num     `json:"f1"`
	SR                 Num     `json:"sr"`
	SRFull             Num     `json:"sr_full"`
	FPR                Num     `json:"fpr"`
	PHIR               Num     `json:"phir"`
	PHIROrAt           Num     `json:"phir_or_at"`
	PHIRAtFPR          AtTen   `json:"phir_at_fpr"`
	PHIRReachableAtFPR AtTen   `json:"phir_reachable_at_fpr"`
	MAS                Num     `json:"mas"`
	EarlyBeforeSeen    Num     `json:"early_before_seen"`
	RecallAtFPR        Recalls `json:"recall_at_fpr"`
	CI                 CI      `json:"ci"`

	// By breaks the figures of the scored runs down: by["attack"]["dpi"]. Keys are
	// written sorted.
	By map[string]map[string]Slice `json:"by"`

	Counts        Counts       `json:"counts"`
	AllRuns       Slice        `json:"all_runs"`                // with the runs that hold no judged call, counted as never alerted
	Recalibration *Recalibrate `json:"recalibration,omitempty"` // set on "+recalibrated" rows
	NotRun        string       `json:"not_run,omitempty"`       // why there are no figures
	Curves        *Curves      `json:"curves,omitempty"`
}

// CI holds 95 % intervals: exact binomial ones for proportions at fixed
// thresholds, percentiles of a bootstrap over groups for the rest; for a
// recalibrated row, percentiles over the draws; for a mean of rows, the lowest
// and the highest.
type CI struct {
	Kind               string   `json:"kind"` // "binomial and group bootstrap", "binomial", "draws", "rows" or "none"
	AUROC              Interval `json:"auroc"`
	F1                 Interval `json:"f1"`
	SR                 Interval `json:"sr"`
	SRFull             Interval `json:"sr_full"`
	FPR                Interval `json:"fpr"`
	PHIR               Interval `json:"phir"`
	PHIROrAt           Interval `json:"phir_or_at"`
	PHIRAtFPR          Interval `json:"phir_at_fpr_0.10"`
	PHIRReachableAtFPR Interval `json:"phir_reachable_at_fpr_0.10"`
	MAS                Interval `json:"mas"`
	EarlyBeforeSeen    Interval `json:"early_before_seen"`
	Recall01           Interval `json:"recall_at_fpr_0.01"`
	Recall05           Interval `json:"recall_at_fpr_0.05"`
	Recall10           Interval `json:"recall_at_fpr_0.10"`
}

// Counts says what the figures rest on.
type Counts struct {
	Groups       int `json:"groups"`        // among the scored runs
	Located      int `json:"located"`       // scored unsafe runs with a located hazard
	Reachable    int `json:"reachable"`     // of those, with a judged call before the hazard
	NotStoppable int `json:"not_stoppable"` // located hazards, scored or not, that are messages
	Unscored     int `json:"unscored"`      // labelled runs without a judged call, left out
	Unlabelled   int `json:"unlabelled"`    // runs without a label, left out
	SeenKnown    int `json:"seen_known"`    // early interventions on runs that say when planted text was visible
}

// Slice holds the figures of a part of a set. In AllRuns, runs without a score
// count as never alerted and rank lowest.
type Slice struct {
	N      int `json:"n"`
	Unsafe int `json:"unsafe"`
	AUROC  Num `json:"auroc"` // by attack: its unsafe runs against all safe runs of the set
	F1     Num `json:"f1"`
	SR     Num `json:"sr"`
	FPR    Num `json:"fpr"`
	PHIR   Num `json:"phir"`
}

// Recalibrate says how a "+recalibrated" row was made.
type Recalibrate struct {
	N          int     `json:"n"`     // safe runs that set the thresholds, per draw
	Draws      int     `json:"draws"` // figures are means over them
	Alpha      float64 `json:"alpha"`
	AlphaBlock float64 `json:"alpha_block"`
}

// Curves are the points of the figures in the report.
type Curves struct {
	ROC         []Point `json:"roc"`         // x false positive rate, y recall, from (0,0) to (1,1)
	Reliability []Bin   `json:"reliability"` // hazard probability against what happened
	ECE         Num     `json:"ece"`         // expected calibration error of the hazard probability
	Meaning     []Odds  `json:"meaning"`     // of a run's risk, ascending; without runs of both labels there is none
}

// Odds bracket the probability that one more run like those of the set is unsafe,
// given its risk: Venn-ABERS intervals, see [calib.VennAbers].
type Odds struct {
	Risk float64 `json:"risk"`
	P0   float64 `json:"p0"` // P0 <= P1
	P1   float64 `json:"p1"`
}

// Point is a point of a curve.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Bin is one bin of a reliability curve over supervised steps: all judged steps
// of safe runs, those up to and including the hazard of located unsafe ones.
type Bin struct {
	P    float64 `json:"p"`    // mean predicted probability
	Rate float64 `json:"rate"` // share of steps that were the first hazard
	N    int     `json:"n"`
}
