package calib

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// ErrMonitor is returned for a stored monitor that cannot be one.
var ErrMonitor = errors.New("calib: invalid monitor")

// Cause says why a certificate was withdrawn.
type Cause string

// The causes. The zero value is a certificate that stands.
const (
	Stands   Cause = ""
	Drifted  Cause = "drift"      // live scores are not exchangeable with the calibration scores
	TooOften Cause = "alert_rate" // safe runs are alerted more often than promised
)

// Monitor tells whether a certificate still stands. It is fed with every live
// run, and with what turns out about runs later on:
//
//	m, err := calib.NewMonitor(calib.Watch{Hold: plan.Hold.Value, Level: 0.05, Seed: 1}, reference)
//	for run := range live {
//		m.Observe(run.Risk)          // largest S over its judged calls
//		if run.KnownSafe {
//			m.Label(run.Alerted)
//		}
//		if cause := m.Withdrawn(); cause != calib.Stands { ... }
//	}
//
// Drift is tested by a conformal [Martingale] on the online smoothed p-values of
// the scores, each capped at the hold level: a change of any kind in the scores
// withdraws, a harmless one too. What is promised is that runs which are
// exchangeable with the calibration runs and with each other ever withdraw it
// with probability at most Delta. Live traffic with attacks is no such traffic
// if only safe runs were calibrated on: feed it runs of the kind that the
// reference has.
//
// The alert rate of safe runs is followed by [Rate]. An upper bound starts at 1
// and says when the promise is known to be kept; a certificate is withdrawn once
// the lower bound passes the level, which a rate that keeps it ever does with
// probability at most Delta.
//
// Withdrawn is for good: nothing loosens itself.
//
// The state, calibration scores included, is its JSON form: a monitor that is
// read back goes on as if never stopped.
type Monitor struct {
	watch  Watch
	drift  *Martingale
	hist   *Histogram
	rate   Rate
	source *rand.PCG
	cause  Cause
	runs   int
	at     int // runs seen when it was withdrawn
}

// Watch says what a monitor holds a certificate to.
type Watch struct {
	Hold  float64 `json:"hold"`            // hold level in force: scores are capped there
	Level float64 `json:"level"`           // promised rate of alerts on safe runs
	Delta float64 `json:"delta,omitempty"` // chance of a false withdrawal, for each of the two tests; 0 means 0.01
	Seed  uint64  `json:"seed"`            // of the uniform numbers that break ties
}

func (w *Watch) check() error {
	switch {
	case !(w.Hold >= GridStep):
		return fmt.Errorf("%w: hold is %v, want a grid point above 0", ErrMonitor, w.Hold)
	case !(w.Level > 0 && w.Level < 1):
		return fmt.Errorf("%w: level is %v, want more than 0 and less than 1", ErrMonitor, w.Level)
	case !(w.Delta > 0 && w.Delta < 1):
		return fmt.Errorf("%w: delta is %v, want more than 0 and less than 1", ErrMonitor, w.Delta)
	}
	w.Hold = min(w.Hold, 1) // off: no cap, and no infinity in JSON
	return nil
}

// NewMonitor starts a monitor on the risk scores of the calibration runs. Errors:
// [ErrMonitor], [ErrScore].
func NewMonitor(w Watch, calibration []float64) (*Monitor, error) {
	if w.Delta == 0 {
		w.Delta = 0.01
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	hist, err := NewHistogram(calibration, w.Hold)
	if err != nil {
		return nil, err
	}
	return newMonitor(w, hist), nil
}

// NewMonitorFrom starts a monitor on a stored histogram of those scores, which
// must be capped at Hold, and which it leaves alone. Errors: [ErrMonitor].
func NewMonitorFrom(w Watch, calibration *Histogram) (*Monitor, error) {
	if w.Delta == 0 {
		w.Delta = 0.01
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	if calibration.Limit() != Grid(w.Hold) {
		return nil, fmt.Errorf("%w: scores are capped at %v, hold is %v", ErrMonitor, calibration.Limit(), w.Hold)
	}
	return newMonitor(w, calibration.Clone()), nil
}

func newMonitor(w Watch, h *Histogram) *Monitor {
	return &Monitor{watch: w, drift: NewMartingale(0, 0.5), hist: h, source: rand.NewPCG(w.Seed, 0)}
}

// Watch returns what the monitor holds the certificate to.
func (m *Monitor) Watch() Watch { return m.watch }

// Observe takes the score of a live run and returns its p-value: small for a
// score that is high among those before it. Errors: [ErrScore], and the score is
// not counted.
func (m *Monitor) Observe(risk float64) (p float64, err error) {
	u := float64(m.source.Uint64()>>11) / (1 << 53)
	if p, err = m.hist.Add(risk, u); err != nil {
		return 0, err
	}
	m.runs++
	m.drift.Bet(p)
	if m.drift.Withdrawn(m.watch.Delta) {
		m.withdraw(Drifted)
	}
	return p, nil
}

// Label takes what a run turned out to be: safe, and alerted or not. Unsafe runs
// are left out.
func (m *Monitor) Label(alerted bool) {
	m.rate.Add(alerted)
	if m.rate.LogWealth(m.watch.Level) >= -math.Log(m.watch.Delta) { // Lower(Delta) >= Level
		m.withdraw(TooOften)
	}
}

func (m *Monitor) withdraw(c Cause) {
	if m.cause == Stands {
		m.cause, m.at = c, m.runs
	}
}

// Withdrawn returns the cause of the withdrawal, or [Stands].
func (m *Monitor) Withdrawn() Cause { return m.cause }

// Status is what a monitor has to say.
type Status struct {
	Cause     Cause   `json:"cause,omitempty"`
	At        int     `json:"at,omitempty"` // live runs when it was withdrawn
	Runs      int     `json:"runs"`         // live runs
	LogDrift  float64 `json:"log_drift"`    // natural log of the martingale
	LogLimit  float64 `json:"log_limit"`    // at which it withdraws
	Labelled  int     `json:"labelled"`     // runs known to be safe
	Alerts    int     `json:"alerts"`       // of these, alerted
	RateLower float64 `json:"rate_lower"`   // bounds of their alert rate, valid at all times at once
	RateUpper float64 `json:"rate_upper"`
}

// Status returns where the tests stand.
func (m *Monitor) Status() Status {
	return Status{Cause: m.cause, At: m.at, Runs: m.runs, LogDrift: m.drift.LogValue(), LogLimit: -math.Log(m.watch.Delta),
		Labelled: m.rate.N, Alerts: m.rate.Alerts, RateLower: m.rate.Lower(m.watch.Delta), RateUpper: m.rate.Upper(m.watch.Delta)}
}

type monitorJSON struct {
	Watch  Watch       `json:"watch"`
	Drift  *Martingale `json:"drift"`
	Scores *Histogram  `json:"scores"`
	Rate   Rate        `json:"rate"`
	Random []byte      `json:"random"`
	Cause  Cause       `json:"cause,omitempty"`
	At     int         `json:"at,omitempty"`
	Runs   int         `json:"runs"`
}

// MarshalJSON writes the state.
func (m *Monitor) MarshalJSON() ([]byte, error) {
	state, err := m.source.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return json.Marshal(monitorJSON{m.watch, m.drift, m.hist, m.rate, state, m.cause, m.at, m.runs})
}

// UnmarshalJSON reads what MarshalJSON writes. Errors: [ErrMonitor],
// [ErrHistogram].
func (m *Monitor) UnmarshalJSON(b []byte) error {
	var j monitorJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return fmt.Errorf("%w: %w", ErrMonitor, err)
	}
	source := rand.NewPCG(0, 0)
	if err := source.UnmarshalBinary(j.Random); err != nil {
		return fmt.Errorf("%w: random: %w", ErrMonitor, err)
	}
	if err := j.Watch.check(); err != nil {
		return err
	}
	if j.Drift == nil || j.Scores == nil {
		return fmt.Errorf("%w: drift or scores are missing", ErrMonitor)
	}
	for _, err := range []error{j.Drift.check(), j.Rate.check()} {
		if err != nil {
			return err
		}
	}
	switch {
	case j.Scores.Limit() != Grid(j.Watch.Hold):
		return fmt.Errorf("%w: scores are capped at %v, hold is %v", ErrMonitor, j.Scores.Limit(), j.Watch.Hold)
	case j.Cause != Stands && j.Cause != Drifted && j.Cause != TooOften:
		return fmt.Errorf("%w: cause is %.20q", ErrMonitor, j.Cause)
	case j.Runs < 0 || j.At < 0 || j.At > j.Runs || j.Runs > j.Scores.N():
		return fmt.Errorf("%w: a count is out of range", ErrMonitor)
	}
	*m = Monitor{j.Watch, j.Drift, j.Scores, j.Rate, source, j.Cause, j.Runs, j.At}
	return nil
}
