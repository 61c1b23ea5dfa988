package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
)

// AblateSchema is the version of ablate.json.
const AblateSchema = "dreamguard.ablate/v1"

// AblateReport is ablate.json: what the figures of a model lose with each part.
type AblateReport struct {
	Schema string         `json:"schema"`
	Tool   string         `json:"tool_version,omitempty"`
	Config configs.Config `json:"config"` // of the full model, with the first seed
	Sets   []string       `json:"sets"`   // test sets with figures, in the order of the reports
	Rows   []AblateRow    `json:"rows"`   // the full model first
	Notes  []string       `json:"notes"`
}

// AblateRow is one model with all its seeds.
type AblateRow struct {
	Ablation
	Hidden  int                     `json:"hidden"`     // model.hidden, which same_size raises
	Learned int                     `json:"parameters"` // values that learn and can move a logit
	Runs    []AblateRun             `json:"runs"`       // by seed
	Figures map[string]AblateFigure `json:"figures"`    // by name: see AblateFigures
}

// AblateRun is one model with one seed.
type AblateRun struct {
	Seed   uint64               `json:"seed"`
	Folder string               `json:"folder"`           // in that of ablate.json
	Failed string               `json:"failed,omitempty"` // why there are no figures
	Sets   map[string]AblateSet `json:"sets,omitempty"`
}

// AblateSet holds the figures of one test set, defined in docs/reference/report.md.
type AblateSet struct {
	AUROC  eval.Num `json:"auroc"`
	Recall eval.Num `json:"recall_at_fpr_0.05"`
	PHIR   eval.Num `json:"phir_at_fpr_0.10"`
}

// AblateFigures names the figures, in the order of the tables.
var AblateFigures = []string{"auroc", "recall_at_fpr_0.05", "phir_at_fpr_0.10"}

func (s *AblateSet) figure(name string) eval.Num {
	switch name {
	case "auroc":
		return s.AUROC
	case "recall_at_fpr_0.05":
		return s.Recall
	}
	return s.PHIR
}

// AblateFigure sums up one figure of a model.
type AblateFigure struct {
	Sets map[string]Spread `json:"sets"`
	// Difference is the mean of this model's figure less the full model's, over the
	// pairs of a seed and a set that both have; Test is over the same pairs. Both
	// are of other models than the full one.
	Difference eval.Num            `json:"difference"`
	Test       eval.SignedRankTest `json:"test"`
}

// Spread is a mean over seeds with the sample standard deviation.
type Spread struct {
	Mean eval.Num `json:"mean"`
	SD   eval.Num `json:"sd"`
	N    int      `json:"n"`
}

func newAblateReport(cfg configs.Config, tool string) AblateReport {
	return AblateReport{
		Schema: AblateSchema, Tool: tool, Config: cfg.Portable(), Sets: []string{}, Rows: []AblateRow{},
		Notes: []string{
			"Test sets that are not locked. Models of one seed share data and vectors.",
			"difference: mean of the model's figure less the full model's, over pairs of the same seed and set. p: two-sided Wilcoxon signed-rank test over these pairs, not adjusted for the number of models. Sets of one seed share a model, and seeds share real data: pairs are not independent, and p is too small by as much.",
		},
	}
}

// ablateFile is the name of the report in its folder, maxAblate its bound in bytes.
const (
	ablateFile = "ablate.json"
	maxAblate  = 64 << 20
)

// ReadAblateReport reads the report in a folder.
func ReadAblateReport(dir string) (AblateReport, error) {
	path := filepath.Join(dir, ablateFile)
	b, err := boundedfile.Read(path, maxAblate)
	if err != nil {
		return AblateReport{}, err
	}
	r, err := parseAblateReport(b)
	if err != nil {
		return AblateReport{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func parseAblateReport(b []byte) (AblateReport, error) {
	var r AblateReport
	if err := json.Unmarshal(b, &r); err != nil {
		return AblateReport{}, err
	}
	if r.Schema != AblateSchema {
		return AblateReport{}, fmt.Errorf("schema is %.40q, want %s", r.Schema, AblateSchema)
	}
	return r, nil
}

func (r *AblateReport) save(dir string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, ablateFile), append(b, '\n'))
}

// read takes the figures of a run from its report: those of its sets that are not
// locked.
func (o *AblateRun) read(r *Run) error {
	report, err := r.Report()
	if err != nil {
		return err
	}
	o.Sets = map[string]AblateSet{}
	for _, s := range report.Sets {
		if s.NotRun != "" || !s.AUROC.OK() || slices.Contains(locked, strings.TrimSuffix(s.Name, eval.RecalibratedSuffix)) {
			continue
		}
		o.Sets[s.Name] = AblateSet{AUROC: s.AUROC, Recall: s.RecallAtFPR.At05, PHIR: s.PHIRAtFPR.At10}
	}
	return nil
}

// add puts the outcome of a run into its row and sums up anew.
func (r *AblateReport) add(ab Ablation, cfg configs.Config, learned int, run AblateRun) {
	at := slices.IndexFunc(r.Rows, func(row AblateRow) bool { return row.Name == ab.Name })
	if at < 0 {
		at = len(r.Rows)
		r.Rows = append(r.Rows, AblateRow{})
	}
	row := &r.Rows[at]
	row.Ablation, row.Hidden, row.Learned = ab, cfg.Model.Hidden, learned
	row.Runs = slices.DeleteFunc(row.Runs, func(x AblateRun) bool { return x.Seed == run.Seed })
	row.Runs = append(row.Runs, run)
	slices.SortFunc(row.Runs, func(a, b AblateRun) int { return cmp.Compare(a.Seed, b.Seed) })
	var order []string
	for _, a := range Ablations() {
		order = append(order, a.Name)
	}
	slices.SortStableFunc(r.Rows, func(a, b AblateRow) int { return slices.Index(order, a.Name) - slices.Index(order, b.Name) })
	r.sum()
}

// sum computes sets and figures from the runs.
func (r *AblateReport) sum() {
	r.Sets = []string{}
	for i := range r.Rows {
		for _, run := range r.Rows[i].Runs {
			for name := range run.Sets {
				if !slices.Contains(r.Sets, name) {
					r.Sets = append(r.Sets, name)
				}
			}
		}
	}
	slices.SortFunc(r.Sets, func(a, b string) int {
		return cmp.Or(cmp.Compare(nameRank(a), nameRank(b)), cmp.Compare(a, b))
	})
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Figures = map[string]AblateFigure{}
		for _, name := range AblateFigures {
			f := AblateFigure{Sets: map[string]Spread{}}
			var differences []float64
			var paired []eval.Num
			for _, set := range r.Sets {
				var values []eval.Num
				for _, run := range row.Runs {
					s, ok := run.Sets[set]
					if !ok {
						continue
					}
					values = append(values, s.figure(name))
					if whole, ok := r.full(run.Seed, set); ok && row.Name != fullModel && s.figure(name).OK() && whole.figure(name).OK() {
						d := s.figure(name) - whole.figure(name)
						differences, paired = append(differences, float64(d)), append(paired, d)
					}
				}
				if mean, sd, n := eval.MeanSD(values); n > 0 {
					f.Sets[set] = Spread{mean, sd, n}
				}
			}
			f.Difference, _, _ = eval.MeanSD(paired)
			f.Test = eval.SignedRank(differences)
			row.Figures[name] = f
		}
	}
}

// full returns the full model's figures of a seed and a set.
func (r *AblateReport) full(seed uint64, set string) (AblateSet, bool) {
	for i := range r.Rows {
		if r.Rows[i].Name != fullModel {
			continue
		}
		for _, run := range r.Rows[i].Runs {
			if run.Seed == seed {
				s, ok := run.Sets[set]
				return s, ok
			}
		}
	}
	return AblateSet{}, false
}

// nameRank orders names of sets as reports do.
func nameRank(name string) int {
	for i, file := range setOrder {
		if setName(file) == name {
			return i
		}
	}
	return len(setOrder)
}
