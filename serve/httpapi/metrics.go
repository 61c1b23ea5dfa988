package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what Prometheus reads. No label has a value that a client chooses.
type metrics struct {
	handler   http.Handler
	decisions *prometheus.CounterVec
	reasons   *prometheus.CounterVec
	verdicts  prometheus.Histogram
	requests  *prometheus.HistogramVec
	failures  *prometheus.CounterVec
	answers   *prometheus.CounterVec
	ends      *prometheus.CounterVec
}

func newMetrics(s *Server) *metrics {
	r := prometheus.NewRegistry()
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dreamguard_" + name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	gauge := func(name, help string, f func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dreamguard_" + name, Help: help}, f))
	}
	m := &metrics{
		handler:   promhttp.HandlerFor(r, promhttp.HandlerOpts{}),
		decisions: counter("decisions_total", "Verdicts by decision and by what was enforced.", "decision", "action"),
		reasons:   counter("reasons_total", "Reasons of verdicts; one verdict may have several.", "decision", "reason"),
		failures:  counter("failures_total", "Requests that failed, by code.", "code"),
		answers:   counter("holds_answered_total", "Held calls by what became of them.", "state"),
		ends:      counter("sessions_ended_total", "Sessions that have ended, by whether a tool call of theirs reached the hold level.", "alerted"),
		verdicts: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dreamguard_verdict_seconds", Help: "Time of a verdict with the session's lock and the log.",
			Buckets: []float64{.00025, .0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1}}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "dreamguard_request_seconds", Help: "Time of a request.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .025, .05, .1, .5, 1, 10, 60}}, []string{"route", "status"}),
	}
	r.MustRegister(m.verdicts, m.requests)
	gauge("sessions", "Sessions that are open.", func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		n, err := s.c.Store.List(ctx, 0, func(*Session) {})
		if err != nil {
			return -1
		}
		return float64(n)
	})
	gauge("holds_pending", "Calls that wait for a person.", func() float64 {
		return float64(len(s.holds.list(func(h *Hold) bool { return h.State == HoldPending })))
	})
	gauge("calibration_age_seconds", "Age of the calibration in use; -1 if it does not say.", func() float64 { return s.calibrationAge() })
	r.MustRegister(infoCollector{s})
	return m
}

// infoCollector tells which artifact is in use now.
type infoCollector struct{ s *Server }

var infoDesc = prometheus.NewDesc("dreamguard_info", "What is in use.", []string{"model", "calibration", "mode", "on_error", "on_hold"}, nil)

func (c infoCollector) Describe(ch chan<- *prometheus.Desc) { ch <- infoDesc }
func (c infoCollector) Collect(ch chan<- prometheus.Metric) {
	m, set := c.s.Model(), c.s.c.Settings
	ch <- prometheus.MustNewConstMetric(infoDesc, prometheus.GaugeValue, 1, m.Digest(), m.CalibrationDigest(), string(set.Mode), string(set.OnError), string(set.OnHold))
}

func (m *metrics) verdict(a *judgeAnswer, took time.Duration) {
	d := a.Verdict.Decision.String()
	m.decisions.WithLabelValues(d, a.Action.String()).Inc()
	for _, r := range a.Verdict.Reasons {
		m.reasons.WithLabelValues(d, string(r)).Inc()
	}
	m.verdicts.Observe(took.Seconds())
}

func (m *metrics) request(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Observe(took.Seconds())
}

func (m *metrics) failed(code string)       { m.failures.WithLabelValues(code).Inc() }
func (m *metrics) answered(state HoldState) { m.answers.WithLabelValues(string(state)).Inc() }
func (m *metrics) ended(x *Session) {
	if x.Judged {
		m.ends.WithLabelValues(strconv.FormatBool(x.MaxRisk >= x.model.InGroup(x.Group...).Thresholds().Hold)).Inc()
	}
}

// calibrationAge is how old the calibration in use is, in seconds.
func (s *Server) calibrationAge() float64 {
	c := s.Model().Calibration()
	if c == nil {
		return -1
	}
	created, err := time.Parse(time.RFC3339, c.Certificate.Created)
	if err != nil {
		return -1
	}
	return s.now().Sub(created).Seconds()
}
