package pipeline

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
)

// Files of a sweep, in its folder.
const (
	SweepFile = "sweep.jsonl" // a [SweepTrial] a line
	BestFile  = "best.yaml"   // the configuration of the best trial so far
	sweepPlan = "sweep.json"  // what the trials are drawn from
)

const (
	maxTrials   = 10_000
	maxSweepLog = 64 << 20 // bytes of sweep.jsonl
)

// Range is what a key of the configuration may be in a sweep: one of Values, or a
// number from Low to High.
type Range struct {
	Key    string   `json:"key"`
	Values []string `json:"values,omitempty"` // in YAML, as for --set
	Low    float64  `json:"low,omitempty"`
	High   float64  `json:"high,omitempty"`
	Log    bool     `json:"log,omitempty"`   // drawn evenly on a logarithmic scale
	Whole  bool     `json:"whole,omitempty"` // a whole number
}

// ErrSweep is wrapped by what is wrong with the options of a sweep.
var ErrSweep = errors.New("sweep")

// ParseRange reads KEY=A,B,C, or KEY=LOW..HIGH, or KEY=LOW..HIGH,log. Both ends
// without a point make a range of whole numbers. Lists of lists take brackets:
// train.buckets=[4, 16],[8, 16].
func ParseRange(s string) (Range, error) {
	key, rest, ok := strings.Cut(s, "=")
	r := Range{Key: strings.TrimSpace(key)}
	bad := func(format string, a ...any) (Range, error) {
		return Range{}, fmt.Errorf("%w: %q: %s", ErrSweep, s, fmt.Sprintf(format, a...))
	}
	if !ok || r.Key == "" || strings.TrimSpace(rest) == "" {
		return bad("want KEY=A,B,C or KEY=LOW..HIGH")
	}
	low, high, isRange := strings.Cut(rest, "..")
	if !isRange {
		r.Values = splitValues(rest)
		seen := map[string]bool{}
		for _, v := range r.Values {
			if v == "" || seen[v] {
				return bad("a value is empty or stands twice")
			}
			seen[v] = true
		}
		return r, nil
	}
	if end, ok := strings.CutSuffix(high, ",log"); ok {
		high, r.Log = end, true
	}
	low, high = strings.TrimSpace(low), strings.TrimSpace(high)
	var err, err2 error
	r.Low, err = strconv.ParseFloat(low, 64)
	r.High, err2 = strconv.ParseFloat(high, 64)
	_, whole := strconv.ParseInt(low, 10, 64)
	_, whole2 := strconv.ParseInt(high, 10, 64)
	r.Whole = whole == nil && whole2 == nil
	switch {
	case err != nil || err2 != nil || math.IsInf(r.Low, 0) || math.IsInf(r.High, 0):
		return bad("the ends are no numbers")
	case !(r.Low < r.High):
		return bad("the lower end is not below the upper one")
	case r.Log && r.Low <= 0:
		return bad("a logarithmic scale needs ends above 0")
	}
	return r, nil
}

// splitValues splits at commas outside of brackets.
func splitValues(s string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range s {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				out, from = append(out, strings.TrimSpace(s[from:i])), i+1
			}
		}
	}
	return append(out, strings.TrimSpace(s[from:]))
}

// draw returns a value.
func (r *Range) draw(rng *rand.Rand) string {
	if r.Values != nil {
		return r.Values[rng.IntN(len(r.Values))]
	}
	if r.Whole && !r.Log {
		return strconv.FormatInt(int64(r.Low)+rng.Int64N(int64(r.High)-int64(r.Low)+1), 10)
	}
	low, high := r.Low, r.High
	if r.Log {
		low, high = math.Log(low), math.Log(high)
	}
	x := low + rng.Float64()*(high-low)
	if r.Log {
		x = math.Exp(x)
	}
	if r.Whole {
		return strconv.FormatInt(int64(math.Round(min(max(x, r.Low), r.High))), 10)
	}
	return strconv.FormatFloat(min(max(x, r.Low), r.High), 'g', 4, 64)
}

// SweepOptions say what [Sweep] tries.
type SweepOptions struct {
	Out    string // folder of the trials
	Config configs.Config
	Over   []Range
	Trials int              // how many to draw at random; 0 takes every combination of values
	Seed   uint64           // of the draws. That of the models is the configuration's
	Resume bool             // go on with the folder
	Done   func(SweepTrial) // called after each trial; may be nil
	Options
}

// SweepTrial is one model of a sweep.
type SweepTrial struct {
	Trial    int      `json:"trial"`            // from 1
	Settings []string `json:"settings"`         // key=value
	Folder   string   `json:"folder"`           // in that of the sweep
	Failed   string   `json:"failed,omitempty"` // why there are no figures

	// Figures on the validation runs of the training, which are of groups of their
	// own; docs/reference/report.md defines them. Trials are compared by the recall,
	// then by the AUROC.
	Recall  eval.Num `json:"recall_at_fpr_0.05"`
	AUROC   eval.Num `json:"auroc"`
	Runs    int      `json:"runs"`
	Unsafe  int      `json:"unsafe"`
	Seconds float64  `json:"seconds"` // of the stages of this trial
}

// better reports whether t is ahead of u. Without figures it never is.
func (t *SweepTrial) better(u *SweepTrial) bool {
	if t.Failed != "" || !t.Recall.OK() {
		return false
	}
	if u == nil || u.Failed != "" || !u.Recall.OK() {
		return true
	}
	return cmp.Or(cmp.Compare(t.Recall, u.Recall), cmp.Compare(t.AUROC, u.AUROC)) > 0
}

// Sweep trains models with other values of some keys and measures them on the
// validation runs, never on a test set. Trials are drawn at random, or are all
// combinations. Each is a run folder OUT/trial-NUMBER up to the artifact, without
// thresholds; what does not depend on the keys is shared. After each a line is
// appended to sweep.jsonl, and best.yaml is written anew. If ctx ends, or the process is killed, it
// goes on with Resume. It returns all trials, best first, and those that failed last.
func Sweep(ctx context.Context, o SweepOptions) ([]SweepTrial, error) {
	settings, err := o.trials()
	if err != nil {
		return nil, err
	}
	if _, err := sourceFiles(o.DataDir, o.Config.Data.Protocol); err != nil && !o.Resume { // before the folder is claimed
		return nil, err
	}
	if err := os.MkdirAll(o.Out, 0o777); err != nil {
		return nil, err
	}
	unlock, err := claimFolder(o.Out, "on this sweep")
	if err != nil {
		return nil, err
	}
	if unlock != nil {
		defer unlock()
		if err := atomicfile.Clean(o.Out); err != nil {
			return nil, err
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &sweeper{o: o}
	if err := s.open(); err != nil {
		return nil, err
	}
	for i, list := range settings {
		if err := s.trial(ctx, i+1, list); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(s.done, func(a, b SweepTrial) int {
		switch {
		case a.better(&b):
			return -1
		case b.better(&a):
			return 1
		}
		return 0
	})
	return s.done, nil
}

// trials returns the settings of all trials, and checks each.
func (o *SweepOptions) trials() ([][]string, error) {
	if len(o.Over) == 0 {
		return nil, fmt.Errorf("%w: nothing to try: name a key and its values", ErrSweep)
	}
	if o.Trials < 0 || o.Trials > maxTrials {
		return nil, fmt.Errorf("%w: %d trials: want at most %d", ErrSweep, o.Trials, maxTrials)
	}
	keys := map[string]bool{}
	for _, r := range o.Over {
		if keys[r.Key] {
			return nil, fmt.Errorf("%w: %s is named twice", ErrSweep, r.Key)
		}
		keys[r.Key] = true
		switch section, _, _ := strings.Cut(r.Key, "."); {
		case section == "calibrate" || section == "eval" || section == "name":
			return nil, fmt.Errorf("%w: %s does not change what is trained, and so not what is measured", ErrSweep, r.Key)
		case section == "seed" || section == "data" && !strings.HasPrefix(r.Key, "data.weights."):
			return nil, fmt.Errorf("%w: %s changes the validation runs: figures on other runs cannot be compared", ErrSweep, r.Key)
		}
	}
	var out [][]string
	if o.Trials > 0 {
		rng := rand.New(rand.NewPCG(o.Seed, 0x5eeb))
		for range o.Trials {
			var list []string
			for i := range o.Over {
				list = append(list, o.Over[i].Key+"="+o.Over[i].draw(rng))
			}
			out = append(out, list)
		}
	} else {
		out = [][]string{nil}
		for _, r := range o.Over {
			if r.Values == nil {
				return nil, fmt.Errorf("%w: %s is a range: say how many trials to draw from it, or list values", ErrSweep, r.Key)
			}
			if len(out)*len(r.Values) > maxTrials {
				return nil, fmt.Errorf("%w: more than %d combinations: draw some of them", ErrSweep, maxTrials)
			}
			var next [][]string
			for _, list := range out {
				for _, v := range r.Values {
					next = append(next, append(slices.Clone(list), r.Key+"="+v))
				}
			}
			out = next
		}
	}
	for _, list := range out {
		if _, err := o.with(list); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrSweep, strings.Join(list, " "), err)
		}
	}
	return out, nil
}

// with is the configuration of a trial.
func (o *SweepOptions) with(settings []string) (configs.Config, error) {
	cfg := o.Config
	for _, s := range settings {
		if err := cfg.Set(s); err != nil {
			return configs.Config{}, err
		}
	}
	return cfg, cfg.Validate()
}

// sweeper is a [Sweep] in progress.
type sweeper struct {
	o     SweepOptions
	done  []SweepTrial
	best  *SweepTrial
	first *Run // whose data and vectors the others take over
}

// plan is sweep.json: what must not change under a sweep.
type plan struct {
	Config configs.Config `json:"config"`
	Over   []Range        `json:"over"`
	Trials int            `json:"trials"` // 0: all combinations. More may be drawn later
	Seed   uint64         `json:"seed"`
}

// open reads or starts the folder.
func (s *sweeper) open() error {
	now := plan{s.o.Config, s.o.Over, s.o.Trials, s.o.Seed}
	path := filepath.Join(s.o.Out, sweepPlan)
	b, err := boundedfile.Read(path, 1<<20)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !s.o.Resume:
		return fmt.Errorf("%w: %s holds a sweep already: go on with --resume, or choose another --out", ErrSweep, s.o.Out)
	default:
		var former plan
		if err := json.Unmarshal(b, &former); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if (former.Trials == 0) == (now.Trials == 0) {
			former.Trials = now.Trials // the first trials are the same
		}
		same, err := sameJSON(former, now)
		if err != nil {
			return err
		}
		if !same {
			return fmt.Errorf("%w: %s holds a sweep of other settings: choose another --out", ErrSweep, s.o.Out)
		}
		if err := s.read(); err != nil {
			return err
		}
	}
	if b, err = json.MarshalIndent(now, "", "  "); err != nil {
		return err
	}
	return atomicfile.WriteFile(path, append(b, '\n'))
}

func sameJSON(a, b any) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	y, err := json.Marshal(b)
	return bytes.Equal(x, y), err
}

// read takes over the trials that are done. A line that a kill cut off is none.
func (s *sweeper) read() error {
	path := filepath.Join(s.o.Out, SweepFile)
	b, err := boundedfile.Read(path, maxSweepLog)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, maxSweepLog)
	for n := 1; lines.Scan(); n++ {
		var t SweepTrial
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			return fmt.Errorf("%s: line %d: %w", path, n, err)
		}
		s.add(t)
	}
	return lines.Err()
}

func (s *sweeper) add(t SweepTrial) {
	s.done = append(s.done, t)
	if t.better(s.best) {
		s.best = &t
	}
}

// trial trains and measures one model, unless that is done.
func (s *sweeper) trial(ctx context.Context, number int, settings []string) error {
	t := SweepTrial{Trial: number, Settings: settings, Folder: fmt.Sprintf("trial-%04d", number), Recall: eval.Num(math.NaN()), AUROC: eval.Num(math.NaN())}
	if slices.ContainsFunc(s.done, func(d SweepTrial) bool { return d.Trial == number }) {
		return nil
	}
	cfg, err := s.o.with(settings)
	if err != nil {
		return err
	}
	run, err := Open(filepath.Join(s.o.Out, t.Folder), cfg, s.o.Options)
	if err != nil {
		return err
	}
	if s.first == nil && number > 1 { // of a sweep that goes on
		if first, err := Reopen(filepath.Join(s.o.Out, "trial-0001"), s.o.Options); err == nil {
			s.first = first
		}
	}
	if s.first == nil {
		s.first = run
	} else if err := run.inherit(s.first); err != nil {
		return fmt.Errorf("%s: %w", run.Dir, err)
	}
	s.o.Log.Info("trial", "number", number, "settings", strings.Join(settings, " "), "folder", run.Dir)
	err = run.Until(ctx, "export")
	if err == nil {
		err = t.measure(ctx, run)
	}
	switch {
	case err == nil:
	case ctx.Err() == nil && refused(err):
		s.o.Log.Warn("no figures", "trial", number, "error", err)
		t.Failed = err.Error()
	default:
		return fmt.Errorf("%s: %w", run.Dir, err)
	}
	for _, stage := range Stages {
		if rec := run.Record(stage); rec != nil && (number == 1 || stage == "train" || stage == "export") {
			t.Seconds += rec.Seconds
		}
	}
	s.add(t)
	if err := s.save(); err != nil {
		return err
	}
	if s.o.Done != nil {
		s.o.Done(t)
	}
	return nil
}

// measure scores the validation runs with the run's artifact, each by its highest
// hazard probability: weights of the risk are chosen later, by calibration.
func (t *SweepTrial) measure(ctx context.Context, r *Run) error {
	runs, err := r.Set("validation")
	if err != nil {
		return err
	}
	m, ahead, done, err := r.openModel(ctx, guard.ScoresOnly())
	if err != nil {
		return err
	}
	defer done()
	if err := ahead.fill(ctx, "validation", runs); err != nil {
		return err
	}
	traces, err := eval.Score(ctx, m, runs, 0, nil)
	if err != nil {
		return err
	}
	for i := range traces {
		for k := range traces[i].Scores {
			traces[i].Scores[k].Risk = traces[i].Scores[k].Hazard
		}
	}
	res := eval.Measure("validation", traces, eval.Options{})
	t.Recall, t.AUROC, t.Runs, t.Unsafe = res.RecallAtFPR.At05, res.AUROC, res.N, res.Unsafe
	return nil
}

// save writes the trials and the best configuration.
func (s *sweeper) save() error {
	var b bytes.Buffer
	for i := range s.done {
		line, err := json.Marshal(&s.done[i])
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	}
	if s.best != nil { // before the log, so that a kill in between is made good by the next trial
		cfg, err := s.o.with(s.best.Settings)
		if err != nil {
			return err
		}
		text, err := cfg.Marshal()
		if err != nil {
			return err
		}
		if err := atomicfile.WriteFile(filepath.Join(s.o.Out, BestFile), text); err != nil {
			return err
		}
	}
	return atomicfile.WriteFile(filepath.Join(s.o.Out, SweepFile), b.Bytes())
}
