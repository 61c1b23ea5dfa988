package pipeline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/plot"
	"github.com/dreamguard/dreamguard/internal/progress"
)

const (
	tuningShare  = 0.3 // of the runs, where something has to be chosen on them
	minRefit     = 30  // labelled runs of each kind that a refit of the fusion needs in its part
	maxSuspects  = 10
	maxStopped   = 25  // stopped runs that are shown
	maxCopies    = 100 // ids of copies that calibration.json lists
	excerptTask  = 120 // characters
	excerptCall  = 160
	maxGroupName = 1 << 10
)

// ErrRecalibrate is wrapped by errors about what recalibration was given.
var ErrRecalibrate = errors.New("recalibrate")

// RecalibrateOptions configure Recalibrate.
type RecalibrateOptions struct {
	Artifact string // folder or tar of the artifact
	Encoder  EncoderSource
	Files    []string // trajectories in any import format
	Format   string   // import format; "" detects it
	Labels   string   // file of labels, see docs/how-to/recalibrate.md; "" for those of the trajectories
	Request  calib.Request
	Refit    Refit // what to choose anew on a part of the labelled runs
	Mix      *Mix  // traffic that differs from the traces in what kinds of runs it has; nil: it does not
	Seed     uint64
	Now      time.Time // date of the certificate; zero means the clock
	Progress *progress.Reporter
}

// Recalibration is a calibration that is ready to be written, and what it would
// change.
type Recalibration struct {
	Artifact string          `json:"artifact"`
	Model    string          `json:"model"`           // model digest: it stays
	Before   string          `json:"before"`          // digest of the calibration in force, empty if there is none
	After    string          `json:"after"`           // digest of the new one
	Refitted Refit           `json:"refit,omitempty"` // what else is new
	Layer    *calib.LayerFit `json:"layer,omitempty"` // how the last layer was chosen

	Runs       int `json:"runs"`
	Unscored   int `json:"unscored"` // runs without a tool call: they have no score
	Safe       int `json:"safe"`     // scored runs by label
	Unsafe     int `json:"unsafe"`
	Unlabelled int `json:"unlabelled"`
	Tuning     int `json:"tuning"` // scored runs that something was chosen on; the thresholds rest on the others

	Suspects []SuspectRun `json:"suspects,omitempty"` // highest first: to be read before the runs are taken for safe
	Outliers int          `json:"outliers,omitempty"` // of all runs taken for safe, those that stand out

	Levels     []LevelChange    `json:"levels"`     // the default first, then the groups
	Guarantees []string         `json:"guarantees"` // one sentence for each bound
	Notes      []string         `json:"notes,omitempty"`
	Groups     []calib.GroupRow `json:"groups,omitempty"`
	Copies     []string         `json:"copies,omitempty"`

	Stopped  StoppedCounts `json:"stopped"`
	Shown    []StoppedRun  `json:"stopped_runs,omitempty"`  // runs that would be stopped, those that are not stopped now first
	Released []StoppedRun  `json:"released_runs,omitempty"` // runs that are stopped now and would not be

	Calibration *artifact.Calibration `json:"-"`

	Frontier  []calib.Tradeoff `json:"-"` // of the runs that the thresholds rest on, if they are safe and unsafe ones
	chosen    *plot.Operating
	conformal ByLabel // what Frontier counts

	unreachable int // unsafe runs without a tool call up to the hazard
}

// candidate is a scored run reduced to what is needed later.
type candidate struct {
	run         calib.Run
	tools       []string
	calls       []string // excerpts of the arguments
	task        string
	label       calib.Label
	path        []string // by the fields of the request
	oldPath     []string // by the fields of the calibration in force
	fingerprint string
	mix         string       // value of the field of the mix
	before      calib.Scored // under the fusion in force
	after       calib.Scored // under the new one
}

// Recalibrate sets thresholds on recorded runs and says what they would change.
// It writes nothing. Refusals are those of [calib.Request.Solve].
func Recalibrate(ctx context.Context, o RecalibrateOptions) (*Recalibration, error) {
	if err := o.Request.Validate(); err != nil {
		return nil, err
	}
	if err := o.Mix.Validate(&o.Request); err != nil {
		return nil, err
	}
	if o.Refit != RefitNone && o.Refit != RefitWeights && o.Refit != RefitLayer {
		return nil, fmt.Errorf("%w: refit is %.20q: want %s or %s", ErrRecalibrate, o.Refit, RefitWeights, RefitLayer)
	}
	a, err := OpenArtifact(o.Artifact)
	if err != nil {
		return nil, err
	}
	o.Request.Trained = a.TrainedOn()
	var labels map[string]runLabel
	if o.Labels != "" {
		if labels, err = readLabels(o.Labels); err != nil {
			return nil, err
		}
	}
	rec := &Recalibration{Artifact: o.Artifact, Model: a.Digest}
	fusion := guard.DefaultFusion()
	if a.Calibration != nil {
		rec.Before, fusion = a.Calibration.Digest, a.Calibration.Fusion
	}
	runs, err := rec.score(ctx, &o, a.Calibration, fusion, labels)
	if err != nil {
		return nil, err
	}
	if err := notTrainedOn(o.Request.Trained, runs); err != nil {
		return nil, err
	}
	if o.Request.AssumeSafe {
		rec.suspect(runs)
	}
	old := fusion
	if o.Refit != RefitNone {
		if fusion, err = rec.refit(runs, fusion, &o); err != nil {
			return nil, err
		}
	}
	for i := range runs {
		c := &runs[i]
		c.after = c.before
		if fusion != old {
			c.after, _ = fusion.Score(c.run)
			c.after.Label, c.after.Fingerprint, c.after.Path = c.label, c.fingerprint, c.path
		}
	}
	if err := rec.solve(&o, a.Calibration, fusion, runs); err != nil {
		return nil, err
	}
	rec.outOfReach(&o, runs)
	rec.compare(a.Calibration, old, fusion, runs)
	return rec, nil
}

// score reads and scores the runs.
func (rec *Recalibration) score(ctx context.Context, o *RecalibrateOptions, current *artifact.Calibration, fusion calib.Fusion, labels map[string]runLabel) ([]candidate, error) {
	src := traceSource{Artifact: o.Artifact, Encoder: o.Encoder, Files: o.Files, Format: o.Format, Progress: o.Progress}
	m, ahead, done, err := src.open(ctx, guard.ScoresOnly())
	if err != nil {
		return nil, err
	}
	defer done()
	var runs []candidate
	known := map[string]bool{}
	has := make([]bool, len(o.Request.By))
	src.Features = fusion.Layer != nil || o.Refit == RefitLayer
	err = src.scored(ctx, m, ahead, func(s scoredRun) error {
		t, tr := s.run, s.trace
		rec.Runs++
		known[t.ID] = true
		if l, ok := labels[t.ID]; ok {
			if l.hazard != nil && *l.hazard >= len(t.Steps) {
				return fmt.Errorf("%w: %w: first_hazard is %d, the run has %d steps", ErrRecalibrate, ErrLabels, *l.hazard, len(t.Steps))
			}
			if tr.Label = l.label; l.label != data.Unsafe || l.hazard != nil {
				tr.Hazard = l.hazard
			}
		}
		c := candidate{run: tr.Run(), tools: tr.Tools, task: excerpt(t.Task, excerptTask), fingerprint: s.fingerprint, path: eval.Path(t, o.Request.By)}
		c.run.X = s.features
		if o.Mix != nil {
			c.mix, _ = eval.Field(t, o.Mix.Field)
		}
		for i, v := range c.path {
			if len(v) > maxGroupName {
				return fmt.Errorf("%w: its %s has %d bytes: want at most %d in a field to group by", ErrRecalibrate, o.Request.By[i], len(v), maxGroupName)
			}
			has[i] = has[i] || v != ""
		}
		if current != nil {
			c.oldPath = eval.Path(t, current.By)
		}
		switch tr.Label {
		case data.Safe:
			c.label = calib.Safe
		case data.Unsafe:
			c.label = calib.Unsafe
		}
		var scored bool
		if c.before, scored = fusion.Score(c.run); !scored {
			rec.Unscored++
			if c.label == calib.Unsafe {
				rec.unreachable++
			}
			return nil
		}
		c.before.Label, c.before.Fingerprint, c.before.Path = c.label, c.fingerprint, c.path
		c.calls = make([]string, len(t.Steps))
		for i := range t.Steps {
			c.calls[i] = excerpt(t.Steps[i].Args, excerptCall)
		}
		var n ByLabel
		n.add(c.label)
		rec.Safe, rec.Unsafe, rec.Unlabelled = rec.Safe+n.Safe, rec.Unsafe+n.Unsafe, rec.Unlabelled+n.Unlabelled
		runs = append(runs, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var unknown []string
	for id := range labels {
		if !known[id] {
			unknown = append(unknown, id)
		}
	}
	if n := len(unknown); n > 0 {
		slices.Sort(unknown)
		return nil, fmt.Errorf("%s: %w: %d of %d name runs that the traces do not hold, such as %s: is it the file of other traces?", o.Labels, ErrLabels, n, len(labels), strings.Join(quoted(unknown[:min(n, 5)]), ", "))
	}
	for i, ok := range has {
		if !ok {
			return nil, fmt.Errorf("%w: none of the %d runs has a field %q to group by: want dataset, suite, group, agent_model, user_task, or a field of the traces that holds a text", ErrRecalibrate, rec.Runs, o.Request.By[i])
		}
	}
	return runs, nil
}

// notTrainedOn refuses runs that the model was trained on, before anything is
// chosen on them.
func notTrainedOn(trained map[string]struct{}, runs []candidate) error {
	var ids []string
	for i := range runs {
		if _, ok := trained[runs[i].fingerprint]; ok {
			ids = append(ids, runs[i].run.ID)
		}
	}
	if n := len(ids); n > 0 {
		return fmt.Errorf("%w: %d of %d, %s: their scores are too good; leave them out", calib.ErrTrained, n, len(runs), strings.Join(quoted(ids[:min(n, 5)]), ", "))
	}
	return nil
}

// outOfReach notes the unsafe runs that a bound on misses does not count as it
// seems to.
func (rec *Recalibration) outOfReach(o *RecalibrateOptions, runs []candidate) {
	if o.Request.Miss == 0 {
		return
	}
	unlocated := 0
	for i := range runs {
		if runs[i].label == calib.Unsafe && runs[i].run.Hazard < 0 {
			unlocated++
		}
	}
	if unlocated > 0 {
		rec.Notes = append(rec.Notes, fmt.Sprintf("%d unsafe runs have no located first hazard: for them the bound on misses counts a stop anywhere in the run, also after the hazard.", unlocated))
	}
	if rec.unreachable > 0 {
		rec.Notes = append(rec.Notes, fmt.Sprintf("%d unsafe runs have no tool call up to their hazard: nothing can stop them, and the bound on misses does not count them.", rec.unreachable))
	}
}

func quoted(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = fmt.Sprintf("%.60q", s)
	}
	return out
}

// needsTuning reports whether something is chosen on a part of the runs.
func (o *RecalibrateOptions) needsTuning() bool {
	r := &o.Request
	return o.Refit != RefitNone || o.Mix != nil || len(r.By) > 0 || r.FalseAlarm > 0 && r.Miss > 0 && r.Confidence > 0 && r.Unit == calib.ByRun ||
		r.HoldBudget.PerCall && r.HoldBudget.MaxCalls == 0
}

// solve sets the levels and makes the calibration.
func (rec *Recalibration) solve(o *RecalibrateOptions, current *artifact.Calibration, fusion calib.Fusion, runs []candidate) error {
	var tuning, conformal []calib.Scored
	for i := range runs {
		if s := runs[i].after; o.needsTuning() && tunes(s, o.Seed) {
			tuning = append(tuning, s)
		} else {
			conformal = append(conformal, s)
		}
	}
	rec.Tuning = len(tuning)
	if o.Mix != nil {
		var err error
		if o.Request.Shift, err = o.Mix.shift(runs, tuning, o.Request.AssumeSafe); err != nil {
			return err
		}
	}
	ans, err := o.Request.Solve(tuning, conformal)
	if err != nil {
		var few *calib.TooFewError
		if errors.As(err, &few) {
			var hints []string
			if rec.Unlabelled > 0 && !o.Request.AssumeSafe {
				hints = append(hints, fmt.Sprintf("%d runs are unlabelled: give --labels, or declare them safe with --assume-safe", rec.Unlabelled))
			}
			if rec.Tuning > 0 {
				hints = append(hints, fmt.Sprintf("%d of the %d scored runs were set aside to choose on", rec.Tuning, len(runs)))
			}
			if len(hints) > 0 {
				err = fmt.Errorf("%w; %s", err, strings.Join(hints, "; "))
			}
		}
		return err
	}
	p := &ans.Plans[0]
	if len(ans.Plans) == 1 {
		rec.frontier(conformal, p, o.Request.AssumeSafe)
	}
	groups := map[string]bool{}
	for i := range conformal {
		groups[cmp.Or(conformal[i].Group, conformal[i].ID)] = true
	}
	rank := func(t calib.Threshold) int { // a rank among other runs than the safe ones is in the plan only
		if t.N == p.Safe && t.K > 0 && t.K <= p.Safe {
			return t.K
		}
		return 0
	}
	now := o.Now
	if now.IsZero() {
		now = time.Now()
	}
	rec.Copies = ans.Copies
	ans.Copies = ans.Copies[:min(len(ans.Copies), maxCopies)]
	c := &artifact.Calibration{
		Schema: artifact.CalibrationSchema, ModelDigest: rec.Model, Fusion: fusion, Thresholds: artifact.NewThresholds(p.Thresholds()),
		Certificate: artifact.Certificate{
			Alpha: o.Request.FalseAlarm, AlphaBlock: o.Request.Block, Confidence: o.Request.Confidence, N: p.Safe, Groups: len(groups),
			KHold: rank(p.Hold), KBlock: rank(p.Block), Alerted: p.Alerted, DataFingerprint: fingerprintOf(conformal),
			Created: now.UTC().Format(time.RFC3339),
		},
		By: o.Request.By, Plans: ans,
	}
	if c.Reference, err = reference(conformal, ans, &o.Request); err != nil {
		return err
	}
	if _, err := c.Marshal(); err != nil { // sets the digest
		return err
	}
	rec.After, rec.Calibration = c.Digest, c
	rec.Notes, rec.Groups = append(rec.Notes, ans.Notes...), ans.Groups
	for _, p := range ans.Plans {
		change := LevelChange{For: pathName(o.Request.By, p.Path), After: artifact.NewThresholds(p.Thresholds()), Safe: p.Safe, Alerted: p.Alerted}
		if current != nil {
			change.Before = current.Thresholds
			if slices.Equal(current.By, o.Request.By) {
				hold, block := current.Levels(p.Path)
				change.Before = artifact.NewThresholds(calib.Thresholds{Hold: calib.Threshold{Value: hold}, Block: calib.Threshold{Value: block}})
			}
		}
		rec.Levels = append(rec.Levels, change)
		for _, g := range p.Guarantees {
			rec.Guarantees = append(rec.Guarantees, g.String())
		}
	}
	if current != nil && current.Thresholds.Block != nil && o.Request.Block == 0 {
		rec.Notes = append(rec.Notes, "BLOCK goes off: it is on now, and no --block was asked for.")
	}
	if o.Request.Trained == nil {
		rec.Notes = append(rec.Notes, "The artifact does not list the runs it was trained on: that none of them is among these traces was not checked.")
	}
	return nil
}

func pathName(by, path []string) string {
	parts := make([]string, len(path))
	for i, v := range path {
		parts[i] = by[i] + "=" + v
	}
	return strings.Join(parts, ", ")
}

// fingerprintOf identifies a conformal part, whatever the order of its runs.
func fingerprintOf(runs []calib.Scored) string {
	lines := make([]string, len(runs))
	for i := range runs {
		lines[i] = fmt.Sprintf("%s %v\n", runs[i].Fingerprint, runs[i].Label)
	}
	slices.Sort(lines)
	h := sha256.New()
	for _, l := range lines {
		io.WriteString(h, l) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil))
}

// reference returns the risks that a monitor compares live ones with: those of the
// safe runs, or of all where nothing is promised to safe ones. Copies count once.
func reference(runs []calib.Scored, c *calib.Calibration, r *calib.Request) (*calib.Histogram, error) {
	limit := 1.0
	for _, p := range c.Plans {
		limit = min(limit, p.Hold.Value)
	}
	seen := map[string]bool{}
	var risks []float64
	for i := range runs {
		s := &runs[i]
		safe := s.Label == calib.Safe || s.Label == calib.Unlabelled && r.AssumeSafe
		if seen[s.Fingerprint] || r.FalseAlarm > 0 && !safe {
			continue
		}
		seen[s.Fingerprint] = true
		risks = append(risks, stoppedRisk(s, c.For(s.Path).Block.Value))
	}
	return calib.NewHistogram(risks, limit)
}

// stoppedRisk is the risk of a run as live traffic shows it: one that is stopped
// has no maximum, and counts as the highest.
func stoppedRisk(s *calib.Scored, block float64) float64 {
	if calib.Grid(s.Hazard) >= block {
		return 1
	}
	return s.Risk
}

// Apply puts the calibration in force, and keeps the one it replaces. The
// artifact must be a folder.
func (rec *Recalibration) Apply() error {
	if rec.Artifact == BuiltIn {
		return ErrBuiltIn
	}
	return installCalibration(rec.Artifact, rec.Calibration)
}

// WriteFile writes the calibration to a file of its own, for guard.WithCalibration.
func (rec *Recalibration) WriteFile(path string) error {
	b, err := rec.Calibration.Marshal()
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, b)
}
