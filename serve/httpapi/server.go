package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
	"github.com/dreamguard/dreamguard/serve"
)

// Config configures a [Server]. Settings and Open are required.
type Config struct {
	Settings serve.Settings
	Open     func() (*guard.Model, error)   // opens the artifact, at the start and for each Reload
	Tokens   func() (*Tokens, error)        // reads the tokens, likewise; nil: none are asked for
	Record   func(decisionlog.Record) error // nil: nothing is logged
	Store    Store                          // NewMemory(0, 0) if nil
	HoldFile string                         // keeps held calls; "": they are gone with the process
	HoldFor  time.Duration                  // how long a held call waits for a person; serve.DefaultHold if 0
	OnExpiry serve.Failure                  // what becomes of it then; deny if ""
	Timeout  time.Duration                  // of one verdict; 1 s if 0. After it the guard holds the call
	MaxBody  int64                          // bytes of a request; DefaultMaxBody if 0
	Rate     float64                        // requests per second of one client; DefaultRate if 0, below 0 for no limit
	Hosts    []string                       // further host names that requests may name
	TLS      *tls.Config                    // nil: plain HTTP
	Traces   trace.TracerProvider           // spans of verdicts and commits; nil for none
	Insecure bool                           // allow other addresses than loopback without tokens or TLS
	Logger   *slog.Logger                   // slog.Default if nil
}

// Defaults.
const (
	DefaultMaxBody = 4 << 20
	DefaultRate    = 1000.0
	DefaultTimeout = time.Second
	maxInFlight    = 512       // requests
	maxBodies      = 256 << 20 // bytes of bodies that are read at once
)

// Server is the service. It is safe for concurrent use.
type Server struct {
	c        Config
	models   models
	tokens   atomic.Pointer[Tokens] // nil if none are asked for
	holds    *queue
	metrics  *metrics
	tracer   trace.Tracer
	clients  *limits // by name of the token, or address
	failures *limits // wrong tokens, by address
	handler  http.Handler
	now      func() time.Time

	inFlight, bodies atomic.Int64
	reloading        sync.Mutex
	draining         chan struct{}
	drain            sync.Once
	janitor          sync.WaitGroup
}

// New opens the artifact and the queue of held calls. Close the server in the end.
func New(c Config) (*Server, error) {
	if err := c.Settings.Validate(); err != nil {
		return nil, err
	}
	if c.Store == nil {
		c.Store = NewMemory(0, 0)
	}
	if c.HoldFor <= 0 {
		c.HoldFor = serve.DefaultHold
	}
	if c.OnExpiry == "" {
		c.OnExpiry = serve.DenyOnError
	}
	if c.OnExpiry != serve.DenyOnError && c.OnExpiry != serve.AllowOnError {
		return nil, fmt.Errorf("%w: on-expiry %q: want deny or allow", serve.ErrSettings, c.OnExpiry)
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxBody <= 0 {
		c.MaxBody = DefaultMaxBody
	}
	if c.Rate == 0 {
		c.Rate = DefaultRate
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	s := &Server{c: c, now: time.Now, tracer: tracer(c.Traces), draining: make(chan struct{})}
	if r, ok := c.Store.(*Redis); ok {
		r.resume = s.models.resume
	}
	s.clients, s.failures = newLimits(c.Rate, 2*c.Rate), newLimits(5, 20)
	if err := s.Reload(); err != nil {
		return nil, err
	}
	var err error
	if s.holds, err = openQueue(c.HoldFile, c.HoldFor, s.released); err != nil {
		return nil, err
	}
	s.metrics = newMetrics(s)
	s.handler = s.routes()
	s.janitor.Go(s.tidy)
	return s, nil
}

// Reload opens the artifact and reads the tokens anew. Both take effect together,
// or after an error neither. New sessions are judged by the new artifact; those
// under way as well where only its calibration is another.
func (s *Server) Reload() error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	m, err := s.c.Open()
	if err != nil {
		return err
	}
	if s.c.Tokens != nil {
		t, err := s.c.Tokens()
		if err != nil {
			return err
		}
		s.tokens.Store(t)
	}
	s.models.replace(m)
	return nil
}

// Model is the model of new sessions.
func (s *Server) Model() *guard.Model { return s.models.current() }

// Handler answers requests. Serve does so with limits of time and connections.
func (s *Server) Handler() http.Handler { return s.handler }

// String is how the server states at its start what it does.
func (s *Server) String() string {
	text := fmt.Sprintf("%s; held calls wait %v, then %s; model %.12s", s.c.Settings, s.c.HoldFor, s.c.OnExpiry, s.Model().Digest())
	t := s.tokens.Load()
	switch {
	case t == nil:
		text += "; no tokens: whoever reaches the address may use it, and nobody can answer a held call"
	case !t.has(Approver):
		text += fmt.Sprintf("; %d tokens, of no approver: nobody can answer a held call", t.Len())
	default:
		text += fmt.Sprintf("; %d tokens", t.Len())
	}
	return text
}

// stop ends all waiting.
func (s *Server) stop() { s.drain.Do(func() { close(s.draining) }) }

// Close ends the server. Sessions in a store of this process are ended in the log.
func (s *Server) Close() error {
	s.stop()
	s.janitor.Wait()
	s.holds.close()
	return nil
}

// released records the answer to a held call.
func (s *Server) released(h Hold) error {
	e := decisionlog.Record{Event: decisionlog.Release, Enforced: guard.Block, Cause: string(h.State)}
	if _, action := s.outcome(&Hold{State: h.State, Answered: new(s.now())}); action == serve.Allow {
		e.Enforced = guard.Pass
	}
	if h.By != "" {
		e.Cause += " by " + h.By
	}
	s.metrics.answered(h.State)
	return s.log(h.Session, e)
}

// tidy ends what has expired.
func (s *Server) tidy() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-s.draining:
			return
		case <-tick.C:
		}
		if err := s.holds.expire(); err != nil {
			s.c.Logger.Error("held calls could not be ended", "error", err)
		}
		if n%30 != 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := s.c.Store.Sweep(ctx, func(x *Session) {
			if err := s.ended(x, "expired"); err != nil {
				s.c.Logger.Error("the end of a session could not be logged", "error", err)
			}
		})
		cancel()
		if err != nil {
			s.c.Logger.Error("sessions that have expired could not be removed", "error", err)
		}
	}
}

// ended records the end of a session.
func (s *Server) ended(x *Session, cause string) error {
	s.holds.withdraw(x.ID, "")
	s.metrics.ended(x)
	return s.log(x.ID, decisionlog.Record{Event: decisionlog.End, Cause: cause})
}

// ready reports why the service cannot judge.
func (s *Server) ready(ctx context.Context) error {
	select {
	case <-s.draining:
		return errors.New("stopping")
	default:
	}
	s.holds.mu.Lock()
	broken := s.holds.broken
	s.holds.mu.Unlock()
	if broken != nil {
		return broken
	}
	return s.c.Store.Check(ctx)
}
