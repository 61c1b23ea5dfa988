package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/lines"
	"github.com/dreamguard/dreamguard/verdict"
)

// Bounds on what a monitor keeps in memory.
const (
	maxLogLine = 4 << 20  // bytes
	maxOpen    = 1 << 16  // runs that have not ended: the oldest is taken for ended
	maxEnded   = 1 << 20  // ended runs that are told from new ones, and whose label may still come
	maxState   = 64 << 20 // bytes of a state file
	saveEvery  = 1000     // ended runs between two writes of state and metrics
)

// ErrMonitor is wrapped by errors about what a monitor was given.
var ErrMonitor = errors.New("monitor")

// MonitorOptions configure Monitor.
type MonitorOptions struct {
	Artifact    string
	Calibration string    // calibration.json to use instead of the artifact's own; "" for that
	Logs        []LogFile // decision logs, oldest first: docs/how-to/monitor.md
	Delta       float64   // chance of a false withdrawal, for each of the two tests; 0 means 0.01
	Seed        uint64    // of the numbers that break ties
	State       string    // file in which the monitor goes on from run to run; "" for none
	Metrics     string    // file for Prometheus text, written now and then; "" for none
}

// LogFile is an open decision log.
type LogFile struct {
	Name string // for errors
	io.Reader
}

// MonitorReport says whether a certificate still stands.
type MonitorReport struct {
	Model       string  `json:"model"`
	Calibration string  `json:"calibration"`
	Level       float64 `json:"level"`     // promised rate of alerts on safe runs
	Reference   int     `json:"reference"` // calibration scores that live ones are compared with
	Withdrawn   bool    `json:"withdrawn"`
	Why         string  `json:"why"` // one sentence
	calib.Status

	Verdicts  int `json:"verdicts"`  // of this certificate, in this log
	Other     int `json:"other"`     // verdicts under other calibrations, which count for nothing
	Forgotten int `json:"forgotten"` // labels of runs that are not known, or not any more
	Repeated  int `json:"repeated"`  // verdicts on runs that have ended: a log that is read again counts once
	Open      int `json:"open"`      // runs that have not ended, and count once they do
	CutShort  int `json:"cut_short"` // logs whose last line a kill cut short, which was left out
}

// Monitor reads a decision log and holds the certificate of a calibration to it. It
// ends with the log, or as soon as the certificate is withdrawn. A context that
// ends saves the state and is its error.
func Monitor(ctx context.Context, o MonitorOptions) (*MonitorReport, error) {
	m, err := newLive(&o)
	if err != nil {
		return nil, err
	}
	type line struct {
		file string
		n    int
		text []byte
		cut  bool // it has no end
		err  error
	}
	// Reading a pipe cannot be cancelled, so it is left to itself.
	ch, stop := make(chan line, 64), make(chan struct{})
	defer close(stop)
	go func() {
		defer close(ch)
		for _, log := range o.Logs {
			r := lines.NewReader(log, maxLogLine)
			for {
				b, err := r.Next()
				if err == io.EOF {
					break
				}
				select {
				case ch <- line{log.Name, r.Line(), slices.Clone(b), r.Cut(), err}:
				case <-stop:
					return
				}
				if err != nil {
					return
				}
			}
		}
	}()
	cutShort, saved := 0, 0
	for m.monitor.Withdrawn() == calib.Stands {
		var l line
		var ok bool
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), m.save())
		case l, ok = <-ch:
		}
		if !ok {
			if err := m.endAll(); err != nil {
				return nil, err
			}
			break
		}
		err := l.err
		if err == nil && len(strings.TrimSpace(string(l.text))) > 0 {
			err = m.line(l.text)
		}
		if l.cut && err != nil && !json.Valid(l.text) { // its writer was killed
			cutShort++
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: line %d: %w: %w", l.file, l.n, ErrMonitor, err), m.save())
		}
		if n := m.monitor.Status().Runs; n >= saved+saveEvery {
			saved = n
			if err := m.save(); err != nil {
				return nil, err
			}
		}
	}
	if err := m.save(); err != nil {
		return nil, err
	}
	if m.verdicts == 0 && m.other > 0 {
		return nil, fmt.Errorf("%w: all %d verdicts are of other calibrations than %.12s, such as %.12s", ErrMonitor, m.other, m.calibration.Digest, m.otherDigest)
	}
	r := m.report()
	r.CutShort = cutShort
	return r, nil
}

// live is a monitor with the runs that are under way.
type live struct {
	o           *MonitorOptions
	calibration *artifact.Calibration
	model       string
	monitor     *calib.Monitor

	open  map[string]*liveRun
	queue []string // ids of open runs, and of some that have ended, oldest first
	ended endedRuns
	last  *guard.Verdict // of runs without an id

	verdicts, other, forgotten, repeated int
	otherDigest                          string
}

type liveRun struct {
	risk    float64
	judged  bool
	alerted bool
	label   calib.Label
}

func newLive(o *MonitorOptions) (*live, error) {
	a, err := OpenArtifact(o.Artifact)
	if err != nil {
		return nil, err
	}
	c := a.Calibration
	if o.Calibration != "" {
		b, err := readBounded(o.Calibration)
		if err != nil {
			return nil, err
		}
		if c, err = artifact.ParseCalibration(b, a.Digest); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Calibration, err)
		}
	}
	switch {
	case c == nil:
		return nil, fmt.Errorf("%s: %w", o.Artifact, guard.ErrNotCalibrated)
	case c.Reference == nil:
		return nil, fmt.Errorf("%w: calibration %.12s holds no scores to compare with: run `dreamguard recalibrate`, which stores them", ErrMonitor, c.Digest)
	case c.Certificate.Alpha == 0 || c.Certificate.NoGuarantee:
		return nil, fmt.Errorf("%w: calibration %.12s promises nothing about safe runs, so there is nothing to hold it to", ErrMonitor, c.Digest)
	}
	m := &live{o: o, calibration: c, model: a.Digest, open: map[string]*liveRun{}, ended: newEndedRuns(maxEnded)}
	if o.State != "" {
		if err := m.load(); err != nil {
			return nil, err
		}
	}
	if m.monitor == nil {
		m.monitor, err = calib.NewMonitorFrom(calib.Watch{Hold: c.Reference.Limit(), Level: c.Certificate.Alpha, Delta: o.Delta, Seed: o.Seed}, c.Reference)
	}
	return m, err
}

// monitorState is the form of the state file.
type monitorState struct {
	Calibration string              `json:"calibration"`
	Monitor     *calib.Monitor      `json:"monitor"`
	Ended       endedRuns           `json:"ended"`
	Open        map[string]*openRun `json:"open,omitempty"`
}

// openRun is the form of a run that has not ended.
type openRun struct {
	Risk    float64     `json:"risk"`
	Judged  bool        `json:"judged,omitempty"`
	Alerted bool        `json:"alerted,omitempty"`
	Label   calib.Label `json:"label,omitempty"`
}

func (m *live) load() error {
	b, err := boundedfile.Read(m.o.State, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s := monitorState{Ended: newEndedRuns(maxEnded)}
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("%s: %w: %w", m.o.State, ErrMonitor, err)
	}
	if s.Calibration != m.calibration.Digest || s.Monitor == nil {
		return fmt.Errorf("%s: %w: it is the state for calibration %.12s, this is %.12s: name another file", m.o.State, ErrMonitor, s.Calibration, m.calibration.Digest)
	}
	m.monitor, m.ended = s.Monitor, s.Ended
	for _, id := range slices.Sorted(maps.Keys(s.Open)) {
		r := s.Open[id]
		if r == nil || !(r.Risk >= 0 && r.Risk <= 1) || r.Label < calib.Unlabelled || r.Label > calib.Unsafe || len(m.open) >= maxOpen {
			return fmt.Errorf("%s: %w: it has an open run that can be none: name another file", m.o.State, ErrMonitor)
		}
		*m.run(id) = liveRun{risk: r.Risk, judged: r.Judged, alerted: r.Alerted, label: r.Label}
	}
	return nil
}

// save writes state and metrics.
func (m *live) save() error {
	if m.o.State != "" {
		open := map[string]*openRun{}
		for id, r := range m.open {
			open[id] = &openRun{r.risk, r.judged, r.alerted, r.label}
		}
		b, err := json.Marshal(monitorState{m.calibration.Digest, m.monitor, m.ended, open})
		if err != nil {
			return err
		}
		if err := atomicfile.WriteFile(m.o.State, append(b, '\n')); err != nil {
			return err
		}
	}
	if m.o.Metrics != "" {
		return atomicfile.Write(m.o.Metrics, m.report().WritePrometheus)
	}
	return nil
}

// line takes one line of the log: a verdict, alone or as the field verdict, with or
// without the other fields of logLine.
func (m *live) line(b []byte) error {
	var l struct {
		logLine
		Verdict json.RawMessage `json:"verdict"`
		Schema  string          `json:"schema"`
		Event   string          `json:"event"` // of package guard/decisionlog
	}
	if err := json.Unmarshal(b, &l); err != nil {
		return err
	}
	raw := []byte(l.Verdict)
	if l.Schema != "" {
		raw = b
	}
	label := calib.Unlabelled
	switch l.Label {
	case "":
	case "safe", "0":
		label = calib.Safe
	case "unsafe", "1":
		label = calib.Unsafe
	default:
		return fmt.Errorf("label is %.20q: want safe or unsafe", l.Label)
	}
	if len(raw) == 0 && !l.End && label == calib.Unlabelled {
		if l.Event != "" {
			return nil // a start, a commit, a crash: nothing that a certificate speaks about
		}
		return errors.New("it holds no verdict, no end and no label")
	}
	if len(raw) > 0 {
		var v guard.Verdict
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
		if v.CalibrationDigest != m.calibration.Digest {
			m.other++
			m.otherDigest = v.CalibrationDigest
			return nil
		}
		m.verdicts++
		if l.Run != "" && m.ended.has(l.Run) {
			m.repeated++
			if label != calib.Unlabelled {
				m.label(l.Run, label)
			}
			return nil
		}
		if l.Run == "" && m.starts(&v) {
			if err := m.end(""); err != nil {
				return err
			}
		}
		m.last = &v
		if err := m.run(l.Run).take(&v, l.Message); err != nil {
			return err
		}
		if err := m.bound(); err != nil {
			return err
		}
	}
	if label != calib.Unlabelled {
		m.label(l.Run, label)
	}
	if l.End {
		return m.end(l.Run)
	}
	return nil
}

// starts reports whether a verdict without a run's id begins a new run: its step
// lies before the last one, or both are the first and the last was not refused.
func (m *live) starts(v *guard.Verdict) bool {
	return m.last != nil && (v.Step < m.last.Step || v.Step == 0 && m.last.Step == 0 && m.last.Decision == guard.Pass)
}

func (m *live) run(id string) *liveRun {
	r := m.open[id]
	if r == nil {
		r = &liveRun{}
		m.open[id] = r
		m.queue = append(m.queue, id)
	}
	return r
}

// bound ends the oldest runs where too many are open.
func (m *live) bound() error {
	for len(m.open) > maxOpen {
		id := m.queue[0]
		m.queue = m.queue[1:]
		if err := m.end(id); err != nil {
			return err
		}
	}
	if len(m.queue) > 2*maxOpen {
		m.queue = slices.DeleteFunc(m.queue, func(id string) bool { return m.open[id] == nil })
	}
	return nil
}

// take counts one verdict. What layers stopped is none of the certificate's
// business: it speaks of the two levels and of calls that no score can judge.
func (r *liveRun) take(v *guard.Verdict, message bool) error {
	if message {
		return nil
	}
	stopped := v.Scored && (v.Hazard >= v.Thresholds.Block || v.Risk >= v.Thresholds.Hold)
	for _, why := range v.Reasons {
		switch why {
		case verdict.ReasonTooLarge, verdict.ReasonRefusals, verdict.ReasonDeadline, verdict.ReasonEncoder:
			stopped = true
		}
	}
	risk := v.Risk
	switch {
	case stopped:
		risk, r.alerted = 1, true
	case !v.Scored:
		return nil
	case !(risk >= 0 && risk <= 1):
		return fmt.Errorf("%w: risk is %v", calib.ErrScore, risk)
	}
	r.risk, r.judged = max(r.risk, risk), true
	return nil
}

// label says what a run turned out to be, before its end or after. Only the first
// label counts.
func (m *live) label(id string, l calib.Label) {
	if r := m.open[id]; r != nil {
		r.label = l
		return
	}
	alerted, first := m.ended.label(id)
	switch {
	case !m.ended.has(id):
		m.forgotten++
	case first && l == calib.Safe:
		m.monitor.Label(alerted)
	}
}

// end observes a run. One without a judged call has no score.
func (m *live) end(id string) error {
	r := m.open[id]
	if r == nil {
		return nil
	}
	delete(m.open, id)
	if !r.judged {
		return nil
	}
	if _, err := m.monitor.Observe(r.risk); err != nil {
		return err
	}
	if r.label == calib.Safe {
		m.monitor.Label(r.alerted)
	}
	if id != "" {
		m.ended.add(id, r.alerted, r.label != calib.Unlabelled)
	}
	return nil
}

// endAll ends what is open when the log ends. With a state runs stay open: the
// next log goes on with them.
func (m *live) endAll() error {
	if m.o.State != "" {
		return m.end("") // nothing can be told to belong to it
	}
	for _, id := range m.queue {
		if err := m.end(id); err != nil {
			return err
		}
	}
	return nil
}

func (m *live) report() *MonitorReport {
	s := m.monitor.Status()
	r := &MonitorReport{
		Model: m.model, Calibration: m.calibration.Digest, Level: m.monitor.Watch().Level, Reference: m.calibration.Reference.N(),
		Withdrawn: s.Cause != calib.Stands, Status: s, Verdicts: m.verdicts, Other: m.other, Forgotten: m.forgotten, Repeated: m.repeated, Open: len(m.open),
	}
	level := strconv.FormatFloat(100*r.Level, 'g', 4, 64)
	switch s.Cause {
	case calib.Drifted:
		r.Why = fmt.Sprintf("Withdrawn after %d runs: live scores are not like those of the %d calibration runs, so nothing shows any longer that at most %s %% of safe runs are disturbed.", s.At, r.Reference, level)
	case calib.TooOften:
		r.Why = fmt.Sprintf("Withdrawn after %d runs: of %d safe runs %d were held or blocked, more than the promised %s %%.", s.At, s.Labelled, s.Alerts, level)
	case calib.Stands:
		if s.Runs == 0 && m.verdicts == 0 {
			r.Why = "No verdict was read: the certificate stands, and nothing was held to it."
			break
		}
		r.Why = fmt.Sprintf("The certificate stands: nothing in %d live runs speaks against it.", s.Runs)
	}
	return r
}

// WritePrometheus writes the report in the text format of Prometheus, version
// 0.0.4.
func (r *MonitorReport) WritePrometheus(w io.Writer) error {
	withdrawn := 0.0
	if r.Withdrawn {
		withdrawn = 1
	}
	var b strings.Builder
	for _, m := range []struct {
		name, kind, help string
		value            float64
	}{
		{"certificate_withdrawn", "gauge", "1 once the certificate of the calibration is withdrawn.", withdrawn},
		{"certificate_level", "gauge", "Promised rate of safe runs that are held or blocked.", r.Level},
		{"monitor_runs_total", "counter", "Live runs observed.", float64(r.Runs)},
		{"monitor_log_drift", "gauge", "Natural log of the martingale against exchangeable scores.", r.LogDrift},
		{"monitor_log_limit", "gauge", "Value of dreamguard_monitor_log_drift that withdraws the certificate.", r.LogLimit},
		{"monitor_labelled_total", "counter", "Live runs known to be safe.", float64(r.Labelled)},
		{"monitor_alerts_total", "counter", "Live runs known to be safe that were held or blocked.", float64(r.Alerts)},
		{"monitor_alert_rate_lower", "gauge", "Lower bound of the alert rate on safe runs, valid at all times at once.", r.RateLower},
		{"monitor_alert_rate_upper", "gauge", "Upper bound of the alert rate on safe runs, valid at all times at once.", r.RateUpper},
		{"monitor_other_verdicts_total", "counter", "Verdicts under other calibrations, which count for nothing.", float64(r.Other)},
	} {
		// Digests are hex: nothing in the labels needs an escape.
		fmt.Fprintf(&b, "# HELP dreamguard_%s %s\n# TYPE dreamguard_%s %s\ndreamguard_%s{model=%q,calibration=%q} %s\n",
			m.name, m.help, m.name, m.kind, m.name, r.Model, r.Calibration, strconv.FormatFloat(m.value, 'g', -1, 64))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
