package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/train"
)

// TestAblationsApply: each is valid on top of every preset, and changes something.
func TestAblationsApply(t *testing.T) {
	for _, preset := range configs.Presets() {
		base, err := configs.Load(preset)
		if err != nil {
			t.Fatal(err)
		}
		base.Eval.LockedSmoke = false
		a := &ablater{base: base}
		seen := map[string]bool{}
		for _, ab := range Ablations() {
			if ab.Name == "no-trees" && base.Train.Trees.Count == 0 {
				continue
			}
			cfg, err := a.config(ab, base.Seed)
			if err != nil {
				t.Errorf("%s, %s: %v", preset, ab.Name, err)
				continue
			}
			cfg.Name = base.Name
			b, err := cfg.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if seen[string(b)] {
				t.Errorf("%s, %s: the settings are those of another model", preset, ab.Name)
			}
			seen[string(b)] = true
		}
	}
}

func ablateOptions(t *testing.T, dir string, only ...string) AblateOptions {
	return AblateOptions{Out: dir, Config: tiny(t), Only: only, Seeds: 1, Options: fixed}
}

func TestAblate(t *testing.T) {
	dir := t.TempDir()
	o := ablateOptions(t, dir, "no-recurrence", "no-aggregation", "no-features")
	report, err := Ablate(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, row := range report.Rows {
		names = append(names, row.Name)
		if len(row.Runs) != 1 || row.Runs[0].Failed != "" || !row.Runs[0].Sets["simulator"].AUROC.OK() {
			t.Errorf("%s: %+v", row.Name, row.Runs)
		}
	}
	if d := cmp.Diff([]string{"full", "no-aggregation", "no-features", "no-recurrence"}, names); d != "" {
		t.Fatal(d)
	}
	read, err := ReadAblateReport(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(report, read, cmp.Comparer(func(a, b eval.Num) bool { return a == b || !a.OK() && !b.OK() })); d != "" {
		t.Errorf("ablate.json is not what was returned:\n%s", d)
	}

	// What does not depend on the missing part is shared.
	open := func(name string) *Run {
		r, err := Reopen(filepath.Join(dir, "seed-20260701", name), fixed)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	full := open("full")
	for name, shared := range map[string]int{"no-aggregation": 4, "no-features": 2, "no-recurrence": 2} {
		r := open(name)
		for i, stage := range Stages {
			if same := r.Record(stage).Finished == full.Record(stage).Finished && r.Record(stage).Seconds == full.Record(stage).Seconds; same != (i < shared) {
				t.Errorf("%s: stage %s is shared: %v", name, stage, same)
			}
		}
		if err := r.needs("eval"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w, err := train.LoadWeights(open("no-features").path(weightsFile)); err != nil || w.Value("feat.scale")[0] != 1e30 {
		t.Errorf("no-features was trained with them: %v", err)
	}
	wide, narrow := report.Rows[3], report.Rows[0]
	if wide.Learned < narrow.Learned || wide.Learned > narrow.Learned*11/10 || wide.Hidden <= narrow.Hidden {
		t.Errorf("without recurrence %d values learn at a width of %d, in the full model %d at %d", wide.Learned, wide.Hidden, narrow.Learned, narrow.Hidden)
	}

	// A second call needs --resume, does nothing, and may add.
	if _, err := Ablate(t.Context(), o); !errors.Is(err, ErrAblateThere) {
		t.Errorf("without --resume: %v", err)
	}
	o.Resume, o.Only = true, []string{"no-texts"}
	before := full.Record("eval").Finished
	report, err = Ablate(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != 5 || open("full").Record("eval").Finished != before {
		t.Errorf("%d rows after one more; the full model is as it was: %v", len(report.Rows), open("full").Record("eval").Finished == before)
	}
	o.Config.Train.LR *= 2
	if _, err := Ablate(t.Context(), o); !errors.Is(err, ErrAblateOther) {
		t.Errorf("other settings: %v", err)
	}
}

// cancelAt is a log that ends a context at the n-th message of a text.
type cancelAt struct {
	slog.Handler
	text   string
	n      int
	cancel func()
}

func (c *cancelAt) Enabled(context.Context, slog.Level) bool { return true }
func (c *cancelAt) Handle(_ context.Context, r slog.Record) error {
	if r.Message == c.text {
		if c.n--; c.n == 0 {
			c.cancel()
		}
	}
	return nil
}

// TestAblateInterrupted stops before the second model and goes on: the report is that
// of an undisturbed call.
func TestAblateInterrupted(t *testing.T) {
	whole, dir := t.TempDir(), t.TempDir()
	if _, err := Ablate(t.Context(), ablateOptions(t, whole, "no-texts")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := ablateOptions(t, dir, "no-texts")
	o.Log = slog.New(&cancelAt{Handler: slog.DiscardHandler, text: "ablation", n: 2, cancel: cancel})
	if _, err := Ablate(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	if r, err := ReadAblateReport(dir); err != nil || len(r.Rows) != 1 {
		t.Fatalf("after the interruption: %d rows, %v", len(r.Rows), err)
	}
	o = ablateOptions(t, dir, "no-texts")
	o.Resume = true
	if _, err := Ablate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	a, err := os.ReadFile(filepath.Join(whole, ablateFile))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, ablateFile))
	if err != nil {
		t.Fatal(err)
	}
	if string(a) != string(b) {
		t.Error("the report differs from that of an undisturbed call")
	}
}

func TestAblateRefuses(t *testing.T) {
	o := ablateOptions(t, t.TempDir(), "no-feature")
	if _, err := Ablate(t.Context(), o); !errors.Is(err, ErrAblateOption) || !strings.Contains(err.Error(), "did you mean no-features?") {
		t.Errorf("an unknown name: %v", err)
	}
	o = ablateOptions(t, t.TempDir())
	o.Seeds = 0
	if _, err := Ablate(t.Context(), o); !errors.Is(err, ErrAblateOption) {
		t.Errorf("no seeds: %v", err)
	}
	o = ablateOptions(t, t.TempDir())
	o.Config.Train.Without = "texts"
	if _, err := Ablate(t.Context(), o); !errors.Is(err, ErrAblateOption) {
		t.Errorf("a full model without something: %v", err)
	}
	o = ablateOptions(t, filepath.Join(t.TempDir(), "new"))
	o.Config.Data.Protocol = "p1"
	if _, err := Ablate(t.Context(), o); !errors.Is(err, ErrNoData) {
		t.Errorf("no data: %v", err)
	}
	if _, err := os.Stat(o.Out); err == nil {
		t.Error("the folder was made before the data was looked for")
	}
	for name, content := range map[string]string{"no JSON": "{", "another schema": `{"schema":"dreamguard.eval/v1"}`} {
		o = ablateOptions(t, t.TempDir())
		o.Resume = true
		if err := os.WriteFile(filepath.Join(o.Out, ablateFile), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Ablate(t.Context(), o); err == nil || !strings.Contains(err.Error(), ablateFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAblateSums checks the arithmetic on made-up figures.
func TestAblateSums(t *testing.T) {
	set := func(x eval.Num) AblateSet { return AblateSet{AUROC: x, Recall: x / 2, PHIR: eval.Num(math.NaN())} }
	r := AblateReport{}
	all := Ablations()
	cfg := configs.Config{}
	for seed, figures := range map[uint64][4]eval.Num{1: {0.9, 0.8, 0.7, 0.7}, 2: {0.8, 0.9, 0.75, 0.7}} {
		r.add(all[3], cfg, 1, AblateRun{Seed: seed, Sets: map[string]AblateSet{"agentdyn": set(figures[2]), "simulator": set(figures[3])}})
		r.add(all[0], cfg, 2, AblateRun{Seed: seed, Sets: map[string]AblateSet{"agentdyn": set(figures[0]), "simulator": set(figures[1])}})
	}
	r.add(all[3], cfg, 1, AblateRun{Seed: 3, Sets: map[string]AblateSet{"agentdyn": set(0.1)}}) // the full model has no such seed
	r.add(all[2], cfg, 1, AblateRun{Seed: 1, Failed: "no level"})
	if d := cmp.Diff([]string{"agentdyn", "simulator"}, r.Sets); d != "" {
		t.Error(d)
	}
	if r.Rows[0].Name != "full" || r.Rows[1].Name != all[2].Name || r.Rows[2].Name != all[3].Name {
		t.Fatalf("the order of the rows: %s, %s, %s", r.Rows[0].Name, r.Rows[1].Name, r.Rows[2].Name)
	}
	if got := []uint64{r.Rows[2].Runs[0].Seed, r.Rows[2].Runs[1].Seed, r.Rows[2].Runs[2].Seed}; !slices.IsSorted(got) {
		t.Errorf("seeds: %v", got)
	}
	near := func(name string, got eval.Num, want float64) {
		if math.Abs(float64(got)-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	f := r.Rows[0].Figures["auroc"]
	near("mean", f.Sets["agentdyn"].Mean, 0.85)
	near("deviation", f.Sets["agentdyn"].SD, math.Sqrt(0.005))
	if f.Difference.OK() || f.Test.N != 0 {
		t.Error("the full model is compared with itself")
	}
	f = r.Rows[2].Figures["auroc"]
	near("mean of three", f.Sets["agentdyn"].Mean, (0.7+0.75+0.1)/3)
	near("difference", f.Difference, (-0.2-0.05-0.1-0.2)/4)
	if f.Test.N != 4 || f.Test.P != 0.125 {
		t.Errorf("four pairs in one direction: %+v, want p = 2/16", f.Test)
	}
	if f := r.Rows[2].Figures["phir_at_fpr_0.10"]; len(f.Sets) != 0 || f.Difference.OK() {
		t.Errorf("figures that do not exist: %+v", f)
	}
	if f := r.Rows[1].Figures["auroc"]; len(f.Sets) != 0 || f.Test.P.OK() {
		t.Errorf("a model without figures: %+v", f)
	}
}

func TestRefused(t *testing.T) {
	if !refused(&calib.NoLevelError{}) || !refused(train.ErrNotFinite) || refused(&calib.TooFewError{}) || refused(os.ErrNotExist) || refused(context.Canceled) {
		t.Error("what is the verdict on a model and what is a failure")
	}
}

// FuzzParseAblateReport goes on with whatever a report says, as --resume does: what is
// written then can be read again.
func FuzzParseAblateReport(f *testing.F) {
	for _, text := range []string{
		`{"schema":"dreamguard.ablate/v1","rows":[{"name":"full","runs":[{"seed":1,"sets":{"simulator":{"auroc":0.9,"recall_at_fpr_0.05":null,"phir_at_fpr_0.10":0}}}]},{"name":"no-texts","runs":[{"seed":1,"sets":{"simulator":{"auroc":0.5}}},{"seed":1,"failed":"x"}]}]}`,
		`{"schema":"dreamguard.ablate/v1","sets":null,"rows":[{"name":"full"},{"name":"full","figures":{"auroc":{"sets":null}}},{"name":"\u001b"}]}`,
		`{"schema":"dreamguard.ablate/v2"}`, `[]`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseAblateReport(b)
		if err != nil {
			return
		}
		run := AblateRun{Seed: 1, Sets: map[string]AblateSet{"simulator": {AUROC: 0.7}}}
		r.add(Ablations()[0], configs.Config{}, 1, run)
		out, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseAblateReport(out)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(again.Sets, r.Sets) || len(again.Rows) != len(r.Rows) {
			t.Errorf("%v and %d rows, then %v and %d", r.Sets, len(r.Rows), again.Sets, len(again.Rows))
		}
	})
}
