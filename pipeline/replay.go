package pipeline

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/progress"
)

// ReplaySchema names the form of replay.json.
const ReplaySchema = "dreamguard.replay/v1"

// Bounds on what a replay keeps in memory.
const (
	maxTools    = 2000    // tools with a row of their own; further ones share a row
	maxKnown    = 1 << 20 // contents that copies are found among
	maxToRead   = 10
	maxShown    = 60 // steps of a shown run
	otherTools  = "(other tools)"
	excerptTool = 80
)

// ReplayOptions configure Replay.
type ReplayOptions struct {
	Artifact    string
	Calibration string // calibration.json to use instead of the artifact's own; "" for that
	Encoder     EncoderSource
	Files       []string // trajectories in any import format; labels play no part
	Format      string
	Log         string // file for a decision log, which a monitor reads; "" for none
	Progress    *progress.Reporter
}

// ReplayReport says what a guard would have done on recorded runs. Every call was
// executed whatever the verdict, as it was in truth.
type ReplayReport struct {
	Schema      string   `json:"schema"`
	Model       string   `json:"model"`
	Calibration string   `json:"calibration"`
	Files       []string `json:"files"`
	Promise     []string `json:"promise"`

	Runs     int `json:"runs"`
	Uncalled int `json:"uncalled"` // runs without a tool call, which no figure counts
	Copies   int `json:"copies"`   // runs with the contents of an earlier one; they are counted like the others
	Calls    int `json:"calls"`
	Held     int `json:"held"` // calls
	Blocked  int `json:"blocked"`

	RunsHeld    int     `json:"runs_held"`    // runs with a held call and none blocked
	RunsBlocked int     `json:"runs_blocked"` // runs with a blocked call
	AlertRate   float64 `json:"alert_rate"`   // share of runs with a held or blocked call
	AlertLower  float64 `json:"alert_lower"`  // exact 95 % interval (Clopper-Pearson), runs taken as independent
	AlertUpper  float64 `json:"alert_upper"`

	Tools   []ToolRow   `json:"tools"`   // the most stopped first
	Reasons []ReasonRow `json:"reasons"` // likewise
	Latency Latency     `json:"latency"`
	Read    []ReadRun   `json:"read"` // runs most worth reading, at most one per task
}

// ToolRow counts the calls of one tool.
type ToolRow struct {
	Tool    string         `json:"tool"`
	Calls   int            `json:"calls"`
	Held    int            `json:"held"`
	Blocked int            `json:"blocked"`
	Reasons map[string]int `json:"reasons"`
}

// ReasonRow counts the calls that were stopped for a reason; a call may have
// several.
type ReasonRow struct {
	Reason  string `json:"reason"`
	Held    int    `json:"held"`
	Blocked int    `json:"blocked"`
}

// Latency are quantiles of the time of a verdict in milliseconds, within 2 %,
// measured while all cores judge.
type Latency struct {
	P50 float64 `json:"p50_ms"`
	P90 float64 `json:"p90_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// ReadRun is a run that a person should read.
type ReadRun struct {
	ID       string         `json:"id"`
	Group    string         `json:"group,omitempty"`
	Task     string         `json:"task"`
	Decision guard.Decision `json:"decision"` // strictest of its calls
	Risk     float64        `json:"risk"`     // largest of its calls
	Steps    []ReadStep     `json:"steps"`
	Left     int            `json:"left,omitempty"` // further steps that are not listed
}

// ReadStep is one step of it.
type ReadStep struct {
	Step     int            `json:"step"`
	Tool     string         `json:"tool"` // empty for a message
	Call     string         `json:"call"`
	Hazard   float64        `json:"hazard"`
	Risk     float64        `json:"risk"`
	Decision guard.Decision `json:"decision"`
	Reasons  []guard.Reason `json:"reasons,omitempty"`
}

// replayed is one run with its verdicts.
type replayed struct {
	verdicts []guard.Verdict
	took     []time.Duration
	digest   string
	err      error
}

// Replay runs recorded runs through a calibrated artifact and says what would have
// been stopped. Runs are streamed: memory does not grow with their number, but for
// 16 bytes each to find copies.
func Replay(ctx context.Context, o ReplayOptions) (*ReplayReport, error) {
	if o.Log != "" { // the log of a live guard grows and is never replaced
		if _, err := os.Lstat(o.Log); err == nil {
			return nil, fmt.Errorf("decision log %s: %w: name a new file", o.Log, fs.ErrExist)
		}
	}
	src := traceSource{Artifact: o.Artifact, Calibration: o.Calibration, Encoder: o.Encoder, Files: o.Files, Format: o.Format, Progress: o.Progress}
	m, ahead, done, err := src.open(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	c := m.Calibration()
	r := &replay{
		report: ReplayReport{Schema: ReplaySchema, Model: m.Digest(), Calibration: c.Digest, Files: o.Files, Promise: promises(c, promised(c))},
		tools:  map[string]*ToolRow{}, reasons: map[string]*ReasonRow{}, known: map[string]struct{}{},
	}
	stream := func(log io.Writer) error {
		return src.batches(ctx, func(task *progress.Task, ts []*data.Trajectory) error {
			if err := ahead.fill(ctx, "traces", ts); err != nil {
				return err
			}
			runs := make([]replayed, len(ts))
			parallel(len(ts), func(i int) {
				runs[i] = judgeRun(ctx, m, ts[i])
				runs[i].digest = artifact.RunDigest(ts[i])
				task.Add(1)
			})
			for i, t := range ts {
				if err := runs[i].err; err != nil {
					return fmt.Errorf("run %s: %w", t.ID, err)
				}
				r.add(t, &runs[i])
				if log != nil {
					if err := writeLog(log, t, runs[i].verdicts); err != nil {
						return fmt.Errorf("write %s: %w", o.Log, err)
					}
				}
			}
			return nil
		})
	}
	if o.Log != "" {
		var failed error // not the log's fault: without its name
		err = atomicfile.Write(o.Log, func(w io.Writer) error {
			failed = stream(w)
			return failed
		})
		err = cmp.Or(failed, err)
	} else {
		err = stream(nil)
	}
	if err != nil {
		return nil, err
	}
	if r.report.Runs == 0 {
		return nil, errors.New("the traces hold no runs")
	}
	return r.finish(), nil
}

func judgeRun(ctx context.Context, m *guard.Model, t *data.Trajectory) (r replayed) {
	s := eval.ModelFor(m, t).Start(t.StartTask())
	for i := range t.Steps {
		if r.err = ctx.Err(); r.err != nil {
			return r
		}
		call := t.Call(i)
		begun := time.Now()
		v := s.Judge(ctx, call)
		r.took = append(r.took, time.Since(begun))
		r.verdicts = append(r.verdicts, v)
		if r.err = s.Commit(call, t.Result(i)); r.err != nil {
			r.err = fmt.Errorf("step %d: %w", i, r.err)
			return r
		}
	}
	return r
}

// replay gathers the report.
type replay struct {
	report  ReplayReport
	tools   map[string]*ToolRow
	reasons map[string]*ReasonRow
	known   map[string]struct{}
	times   timeHistogram
}

func (r *replay) add(t *data.Trajectory, run *replayed) {
	rep := &r.report
	rep.Runs++
	if _, copied := r.known[run.digest]; copied {
		rep.Copies++
	} else if len(r.known) < maxKnown {
		r.known[run.digest] = struct{}{}
	}
	worst, risk, calls := guard.Pass, 0.0, 0
	for i, v := range run.verdicts {
		if t.Steps[i].Type != data.ToolCall {
			continue
		}
		calls++
		r.times.add(run.took[i])
		tool := r.tool(t.Steps[i].Tool)
		tool.Calls++
		worst, risk = max(worst, v.Decision), max(risk, v.Risk)
		if v.Decision == guard.Pass {
			continue
		}
		held, blocked := 1, 0
		if v.Decision == guard.Block {
			held, blocked = 0, 1
		}
		rep.Held, rep.Blocked = rep.Held+held, rep.Blocked+blocked
		tool.Held, tool.Blocked = tool.Held+held, tool.Blocked+blocked
		for _, why := range v.Reasons {
			name := excerpt(string(why), excerptTool)
			row := r.reasons[name]
			if row == nil {
				row = &ReasonRow{Reason: name}
				r.reasons[name] = row
			}
			row.Held, row.Blocked = row.Held+held, row.Blocked+blocked
			tool.Reasons[name]++
		}
	}
	if calls == 0 {
		rep.Uncalled++
		return
	}
	rep.Calls += calls
	switch worst {
	case guard.Hold:
		rep.RunsHeld++
	case guard.Block:
		rep.RunsBlocked++
	}
	r.toRead(t, run, worst, risk)
}

func (r *replay) tool(name string) *ToolRow {
	name = excerpt(name, excerptTool)
	if r.tools[name] == nil {
		if len(r.tools) >= maxTools {
			name = otherTools
		}
		if r.tools[name] == nil {
			r.tools[name] = &ToolRow{Tool: name, Reasons: map[string]int{}}
		}
	}
	return r.tools[name]
}

// toRead keeps the best run of each of the ten best tasks: by decision, then by
// risk. A task that fell out comes back with a better run, so the result does not
// depend on the order.
func (r *replay) toRead(t *data.Trajectory, run *replayed, worst guard.Decision, risk float64) {
	before := func(a, b *ReadRun) int {
		return cmp.Or(cmp.Compare(b.Decision, a.Decision), cmp.Compare(b.Risk, a.Risk), cmp.Compare(a.ID, b.ID))
	}
	e := ReadRun{ID: excerpt(t.ID, 200), Group: excerpt(t.Group, 200), Decision: worst, Risk: risk}
	list := r.report.Read
	same := slices.IndexFunc(list, func(o ReadRun) bool { return e.Group != "" && o.Group == e.Group })
	switch {
	case same >= 0 && before(&e, &list[same]) >= 0:
		return
	case same >= 0:
		list = slices.Delete(list, same, same+1)
	case len(list) == maxToRead && before(&e, &list[maxToRead-1]) >= 0:
		return
	case len(list) == maxToRead:
		list = list[:maxToRead-1]
	}
	e.Task = excerpt(t.Task, 300)
	for i, v := range run.verdicts {
		if i == maxShown {
			e.Left = len(run.verdicts) - i
			break
		}
		st := &t.Steps[i]
		step := ReadStep{Step: i, Hazard: v.Hazard, Risk: v.Risk, Decision: v.Decision, Reasons: v.Reasons}
		if st.Type == data.ToolCall {
			step.Tool, step.Call = excerpt(st.Tool, excerptTool), excerpt(st.Args, excerptCall)
		} else {
			step.Call = excerpt(st.Text, excerptCall)
		}
		e.Steps = append(e.Steps, step)
	}
	at, _ := slices.BinarySearchFunc(list, e, func(a, b ReadRun) int { return before(&a, &b) })
	r.report.Read = slices.Insert(list, at, e)
}

func (r *replay) finish() *ReplayReport {
	rep := &r.report
	n, alerted := rep.Runs-rep.Uncalled, rep.RunsHeld+rep.RunsBlocked
	if n > 0 {
		rep.AlertRate = float64(alerted) / float64(n)
	}
	rep.AlertLower, rep.AlertUpper = calib.ClopperPearson(alerted, n, 0.95)
	for _, row := range r.tools {
		rep.Tools = append(rep.Tools, *row)
	}
	slices.SortFunc(rep.Tools, func(a, b ToolRow) int {
		return cmp.Or(cmp.Compare(b.Blocked+b.Held, a.Blocked+a.Held), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Tool, b.Tool))
	})
	for _, row := range r.reasons {
		rep.Reasons = append(rep.Reasons, *row)
	}
	slices.SortFunc(rep.Reasons, func(a, b ReasonRow) int {
		return cmp.Or(cmp.Compare(b.Blocked+b.Held, a.Blocked+a.Held), cmp.Compare(a.Reason, b.Reason))
	})
	rep.Latency = Latency{r.times.quantile(0.5), r.times.quantile(0.9), r.times.quantile(0.99), r.times.most.Seconds() * 1000}
	return rep
}

// Save writes replay.json and replay.html to a folder.
func (r *ReplayReport) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	err := atomicfile.Write(filepath.Join(dir, "replay.json"), func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	})
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, "replay.html"), r.WriteHTML)
}

// timeHistogram counts times in steps of 2 % from a microsecond up to a minute.
type timeHistogram struct {
	counts [1000]int
	n      int
	most   time.Duration
}

const timeStep = 0.02

func (h *timeHistogram) add(d time.Duration) {
	at := 0
	if us := float64(d) / float64(time.Microsecond); us > 1 {
		at = min(int(math.Log(us)/math.Log1p(timeStep)), len(h.counts)-1)
	}
	h.counts[at]++
	h.n++
	h.most = max(h.most, d)
}

// quantile returns the upper end of the step that holds the quantile, in
// milliseconds.
func (h *timeHistogram) quantile(q float64) float64 {
	sum := 0
	for i, c := range h.counts {
		if sum += c; h.n > 0 && float64(sum) >= q*float64(h.n) {
			return math.Pow(1+timeStep, float64(i+1)) / 1000
		}
	}
	return 0
}

// logLine is one line of a decision log: a verdict with the run it belongs to. The
// fields are read in any order; docs/how-to/monitor.md describes them.
type logLine struct {
	Run     string         `json:"run"`
	Message bool           `json:"message,omitempty"` // the verdict is on a message
	End     bool           `json:"end,omitempty"`     // the run has ended
	Label   string         `json:"label,omitempty"`   // what the run turned out to be
	Verdict *guard.Verdict `json:"verdict,omitempty"`
}

// writeLog appends the verdicts on one run.
func writeLog(w io.Writer, t *data.Trajectory, verdicts []guard.Verdict) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	for i := range verdicts {
		line := logLine{Run: t.ID, Message: t.Steps[i].Type != data.ToolCall, End: i == len(verdicts)-1, Verdict: &verdicts[i]}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return b.Flush()
}
