package httpapi

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dreamguard/dreamguard/guard/decisionlog"
	"github.com/dreamguard/dreamguard/serve"
)

// request is one request of a known sender.
type request struct {
	http.ResponseWriter
	*http.Request
	who Principal
}

// endpoint answers a request: with a status and a value that becomes JSON, or with
// an error.
type endpoint func(*request) (int, any, error)

// routes is the table of what there is.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, e endpoint, roles ...Role) { mux.Handle(pattern, s.endpoint(pattern, e, roles)) }
	handle("POST /v1/sessions", s.startSession, Agent)
	handle("GET /v1/sessions", s.listSessions, Agent, Approver)
	handle("GET /v1/sessions/{id}", s.readSession, Agent, Approver)
	handle("DELETE /v1/sessions/{id}", s.endSession, Agent)
	handle("POST /v1/sessions/{id}/judge", s.judgeCall, Agent)
	handle("POST /v1/sessions/{id}/commit", s.commitCall, Agent)
	handle("POST /v1/sessions/{id}/skip", s.skipCall, Agent)
	handle("POST /v1/batch", s.batch, Agent)
	handle("GET /v1/holds", s.listHolds, Agent, Approver)
	handle("GET /v1/holds/{id}", s.readHold, Agent, Approver)
	handle("POST /v1/holds/{id}/approve", s.answerHold(HoldApproved), Approver)
	handle("POST /v1/holds/{id}/deny", s.answerHold(HoldDenied), Approver)
	handle("POST /v1/reload", s.reload, Admin)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := s.ready(r.Context()); err != nil {
			writeJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "not ready"})
			return
		}
		writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
	})
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(OpenAPI())
	})
	mux.Handle("GET /metrics", s.endpoint("GET /metrics", func(r *request) (int, any, error) {
		s.metrics.handler.ServeHTTP(r.ResponseWriter, r.Request)
		return 0, nil, nil
	}, []Role{Metrics, Approver}))
	servePage(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.refuse(w, fail(http.StatusNotFound, "no_page", "there is nothing here: /openapi.json says what there is"), false)
	})
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.refuse(w, fail(http.StatusForbidden, "origin", "the request comes from a page of another site"), true)
	}))
	return s.protect(origins.Handler(mux))
}

// protect is what stands before every request: headers of the answer, names of the
// host, limits of what is under way, and panics.
func (s *Server) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")
		if s.c.TLS != nil {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				s.c.Logger.Error("internal error", "panic", fmt.Sprint(p))
				s.refuse(w, fail(http.StatusInternalServerError, "internal", "the guard failed: its log says why"), true)
			}
		}()
		if !s.knowsHost(r.Host) {
			// A page of another name that leads here (DNS rebinding).
			s.refuse(w, fail(http.StatusMisdirectedRequest, "host", "the request names a host that is not this one: allow it with --host"), true)
			return
		}
		if s.inFlight.Add(1) > maxInFlight {
			s.inFlight.Add(-1)
			s.refuse(w, fail(http.StatusServiceUnavailable, "busy", "too many requests are under way: try again"), true)
			return
		}
		defer s.inFlight.Add(-1)
		next.ServeHTTP(w, r)
	})
}

// knowsHost reports whether a request may name the host: an address, which nobody
// can lead elsewhere, localhost, or a name that was allowed.
func (s *Server) knowsHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return true
	}
	return slices.ContainsFunc(s.c.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// endpoint is what stands before a request of the API.
func (s *Server) endpoint(pattern string, e endpoint, roles []Role) http.Handler {
	judges := strings.HasSuffix(pattern, "/judge") || strings.HasSuffix(pattern, "/batch")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		who, err := s.authenticate(r)
		if err == nil && !s.allowed(who, roles, pattern) {
			err = fail(http.StatusForbidden, "role", "a token of role %s cannot do this", who.Role)
		}
		client := who.Name
		if s.tokens.Load() == nil {
			client = addressOf(r.RemoteAddr)
		}
		if err == nil && !s.clients.allow(client, 1, s.now()) {
			w.Header().Set("Retry-After", "1")
			err = fail(http.StatusTooManyRequests, "rate", "more than %g requests per second: wait and try again", s.c.Rate)
		}
		admitted := err == nil
		if err == nil && r.Method == http.MethodPost {
			err = s.admit(r)
			if err == nil {
				size := r.ContentLength
				if size < 0 || size > s.c.MaxBody {
					size = s.c.MaxBody
				}
				defer s.bodies.Add(-size)
				if s.bodies.Add(size) > maxBodies {
					err = fail(http.StatusServiceUnavailable, "busy", "too many requests are under way: try again")
				}
			}
		}
		status := 0
		if err == nil {
			var answer any
			if status, answer, err = e(&request{w, r.WithContext(traced(r)), who}); err == nil && status != 0 {
				writeJSON(w, status, answer)
			}
		}
		if err != nil {
			f := failureOf(err)
			status = f.status
			if status >= 500 {
				s.c.Logger.Error("request failed", "route", pattern, "client", client, "code", f.code, "error", err.Error())
			}
			if judges && admitted && s.c.Record != nil {
				run := r.PathValue("id")
				if !validID(run) {
					run = ""
				}
				_ = s.c.Record(serve.Crash(run, s.c.Settings, s.c.Settings.Failed(), f))
			}
			s.metrics.failed(f.code)
			s.refuse(w, f, judges)
		}
		s.metrics.request(pattern, status, time.Since(begin))
		s.c.Logger.Debug("request", "route", pattern, "status", status, "client", client, "ms", float64(time.Since(begin).Microseconds())/1000)
	})
}

// authenticate says who sends a request.
func (s *Server) authenticate(r *http.Request) (Principal, error) {
	tokens := s.tokens.Load()
	if tokens == nil {
		return local, nil
	}
	kind, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(kind, "Bearer") {
		if who, ok := tokens.find(strings.TrimSpace(secret)); ok {
			return who, nil
		}
	}
	if !s.failures.allow(addressOf(r.RemoteAddr), 1, s.now()) {
		return Principal{}, fail(http.StatusTooManyRequests, "rate", "too many requests without a valid token: wait and try again")
	}
	return Principal{}, fail(http.StatusUnauthorized, "token", "the token is missing or not valid: send Authorization: Bearer TOKEN")
}

func (s *Server) allowed(who Principal, roles []Role, pattern string) bool {
	if s.tokens.Load() == nil && pattern == "GET /metrics" {
		return true
	}
	return who.Role == Admin || slices.Contains(roles, who.Role)
}

// admit refuses what a page of another site could send without being asked.
func (s *Server) admit(r *http.Request) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return fail(http.StatusUnsupportedMediaType, "content_type", "the request is not of type application/json")
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	if v == nil {
		w.WriteHeader(status)
		return
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own types
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(b, '\n'))
}

// refuse answers with a failure, and says to who asks for a verdict what to do.
func (s *Server) refuse(w http.ResponseWriter, f *failure, judges bool) {
	writeJSON(w, f.status, s.errorAnswer(f, judges))
}

func (s *Server) errorAnswer(f *failure, judges bool) *errorAnswer {
	a := &errorAnswer{Error: errorBody{f.code, f.text}}
	if judges {
		action := s.c.Settings.Failed()
		a.Action, a.Cause = &action, "crash"
	}
	return a
}

func (s *Server) startSession(r *request) (int, any, error) {
	var req startRequest
	if err := decode(r.ResponseWriter, r.Request, s.c.MaxBody, &req); err != nil {
		return 0, nil, err
	}
	switch {
	case req.ID == "":
		req.ID = rand.Text()
	case !validID(req.ID):
		return 0, nil, fail(http.StatusBadRequest, "bad_request", "id has letters, digits, - _ and ., at most %d, and begins with a letter or digit", maxID)
	}
	if len(req.Label) > maxLabel || len(req.Group) > maxGroup || slices.ContainsFunc(req.Group, func(g string) bool { return len(g) > maxLabel }) {
		return 0, nil, fail(http.StatusBadRequest, "bad_request", "label and each part of group have at most %d bytes, group at most %d parts", maxLabel, maxGroup)
	}
	x, err := newSession(req.ID, req, r.who.Name, s.models.current(), s.now())
	if err != nil {
		return 0, nil, err
	}
	a := x.answer(s.c.Settings, s.now().Add(s.c.Store.TTL()))
	if err := s.log(x.ID, decisionlog.Record{Event: decisionlog.Start}); err != nil {
		return 0, nil, err
	}
	if err := s.c.Store.Create(r.Context(), x); err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, a, nil
}

// sees reports whether somebody may read a session or held call of owner.
func sees(who Principal, owner string) bool {
	return who.Name == owner || who.Role == Approver || who.Role == Admin
}

func (s *Server) listSessions(r *request) (int, any, error) {
	list := sessionList{Sessions: []sessionAnswer{}}
	total, err := s.c.Store.List(r.Context(), 200, func(x *Session) {
		if sees(r.who, x.Owner) {
			list.Sessions = append(list.Sessions, x.answer(s.c.Settings, s.now().Add(s.c.Store.TTL())))
		}
	})
	if list.Total = len(list.Sessions); r.who.Role != Agent {
		list.Total = total
	}
	return http.StatusOK, list, err
}

func (s *Server) readSession(r *request) (int, any, error) {
	id := r.PathValue("id")
	if !validID(id) {
		return 0, nil, ErrNoSession
	}
	var a sessionAnswer
	err := s.c.Store.Update(r.Context(), id, func(x *Session) error {
		if !sees(r.who, x.Owner) {
			return ErrNoSession
		}
		s.settleHolds(x)
		a = x.answer(s.c.Settings, s.now().Add(s.c.Store.TTL()))
		return nil
	})
	return http.StatusOK, a, err
}

func (s *Server) endSession(r *request) (int, any, error) {
	id := r.PathValue("id")
	if err := s.update(r.Context(), r.who, id, func(*Session) error { return nil }); err != nil && !errors.Is(err, errModelGone) {
		return 0, nil, err
	}
	x, err := s.c.Store.Remove(r.Context(), id)
	if err == nil {
		err = s.ended(x, "")
	}
	return http.StatusNoContent, nil, err
}

func (s *Server) judgeCall(r *request) (int, any, error) {
	var req judgeRequest
	if err := decode(r.ResponseWriter, r.Request, s.c.MaxBody, &req); err != nil {
		return 0, nil, err
	}
	if req.WaitMS > 0 {
		s.patience(r)
	}
	a, err := s.judge(r.Context(), r.who, r.PathValue("id"), req)
	return http.StatusOK, a, err
}

// patience gives an answer that waits for a person the time to be written. The end
// of the time for reading would be taken for the client's end, and stop the wait.
func (s *Server) patience(r *request) {
	c, until := http.NewResponseController(r.ResponseWriter), time.Now().Add(s.c.HoldFor+writeTimeout)
	_ = c.SetReadDeadline(until) // a writer of tests has no deadlines
	_ = c.SetWriteDeadline(until)
}

func (s *Server) commitCall(r *request) (int, any, error) {
	var req commitRequest
	if err := decode(r.ResponseWriter, r.Request, s.c.MaxBody, &req); err != nil {
		return 0, nil, err
	}
	result, err := req.Result.result()
	if err != nil {
		return 0, nil, err
	}
	a, err := s.settle(r.Context(), r.who, r.PathValue("id"), req, &result)
	return http.StatusOK, a, err
}

func (s *Server) skipCall(r *request) (int, any, error) {
	var req commitRequest
	if err := decode(r.ResponseWriter, r.Request, s.c.MaxBody, &req); err != nil {
		return 0, nil, err
	}
	if req.Result != nil {
		return 0, nil, fail(http.StatusBadRequest, "bad_request", "a call that was not executed has no result")
	}
	a, err := s.settle(r.Context(), r.who, r.PathValue("id"), req, nil)
	return http.StatusOK, a, err
}

// batch answers requests one after the other.
func (s *Server) batch(r *request) (int, any, error) {
	var req batchRequest
	if err := decode(r.ResponseWriter, r.Request, s.c.MaxBody, &req); err != nil {
		return 0, nil, err
	}
	n := len(req.Requests)
	if n == 0 || n > maxBatch {
		return 0, nil, fail(http.StatusBadRequest, "bad_request", "a batch has 1 to %d requests, this one %s", maxBatch, strconv.Itoa(n))
	}
	client := r.who.Name
	if s.tokens.Load() == nil {
		client = addressOf(r.RemoteAddr)
	}
	if n > 1 && !s.clients.allow(client, n-1, s.now()) { // one was taken before
		return 0, nil, fail(http.StatusTooManyRequests, "rate", "more than %g requests per second: wait and try again", s.c.Rate)
	}
	out := batchAnswer{Answers: make([]batchResult, n)}
	for i, item := range req.Requests {
		out.Answers[i] = s.batchItem(r, item)
	}
	return http.StatusOK, out, nil
}

func (s *Server) batchItem(r *request, item batchItem) (b batchResult) {
	var err error
	c := commitRequest{Judgement: item.Judgement, Call: item.Call, IfStep: item.IfStep}
	b.Status = http.StatusOK
	switch item.Op {
	case "judge":
		b.Judge, err = s.judge(r.Context(), r.who, item.Session, judgeRequest{Call: item.Call, Key: item.Key, IfStep: item.IfStep})
	case "commit":
		result, rerr := item.Result.result()
		if err = rerr; err == nil {
			b.Commit, err = s.settle(r.Context(), r.who, item.Session, c, &result)
		}
	case "skip":
		b.Commit, err = s.settle(r.Context(), r.who, item.Session, c, nil)
	default:
		err = fail(http.StatusBadRequest, "bad_request", "op is %.20q: want judge, commit or skip", item.Op)
	}
	if err != nil {
		f := failureOf(err)
		if item.Op == "judge" && s.c.Record != nil {
			run := ""
			if validID(item.Session) {
				run = item.Session
			}
			_ = s.c.Record(serve.Crash(run, s.c.Settings, s.c.Settings.Failed(), f))
		}
		return batchResult{Status: f.status, Error: s.errorAnswer(f, item.Op == "judge")}
	}
	return b
}

func (s *Server) reload(*request) (int, any, error) {
	if err := s.Reload(); err != nil {
		s.c.Logger.Error("reload failed: all stays as it was", "error", err)
		return 0, nil, fail(http.StatusConflict, "reload", "the artifact or the tokens cannot be read, all stays as it was: the service's log says why")
	}
	m := s.Model()
	s.c.Logger.Info("reloaded", "model", m.Digest(), "calibration", m.CalibrationDigest())
	return http.StatusOK, map[string]string{"model": m.Digest(), "calibration": m.CalibrationDigest()}, nil
}

// Held calls.

type holdAnswerJSON struct {
	Hold
	Action serve.Action `json:"action"` // what the host must do
}

type holdList struct {
	Holds []Hold `json:"holds"`
}

func (s *Server) listHolds(r *request) (int, any, error) {
	state := HoldState(r.URL.Query().Get("state"))
	list := s.holds.list(func(h *Hold) bool { return sees(r.who, h.Owner) && (state == "" || h.State == state) })
	return http.StatusOK, holdList{list}, nil
}

func (s *Server) readHold(r *request) (int, any, error) {
	wait := 0
	if text := r.URL.Query().Get("wait_ms"); text != "" {
		var err error
		if wait, err = strconv.Atoi(text); err != nil || wait < 0 {
			return 0, nil, fail(http.StatusBadRequest, "bad_request", "wait_ms is a number of milliseconds")
		}
		s.patience(r)
	}
	id := r.PathValue("id")
	h, _, _, known := s.holds.get(id)
	if !known || !sees(r.who, h.Owner) {
		return 0, nil, errNoHold
	}
	now, err := s.awaitHold(r.Context(), id, time.Duration(min(wait, int(s.c.HoldFor/time.Millisecond)))*time.Millisecond)
	if err != nil {
		return 0, nil, err
	}
	_, action := s.outcome(now)
	return http.StatusOK, holdAnswerJSON{*now, action}, nil
}

func (s *Server) answerHold(state HoldState) endpoint {
	return func(r *request) (int, any, error) {
		var req answerHold
		if err := decode(r.ResponseWriter, r.Request, 4<<10, &req); err != nil {
			return 0, nil, err
		}
		h, err := s.holds.answer(r.PathValue("id"), req.Hash, r.who.Name, state)
		if err != nil {
			return 0, nil, err
		}
		s.c.Logger.Info("held call answered", "hold", h.ID, "session", h.Session, "state", h.State, "by", h.By)
		_, action := s.outcome(&h)
		return http.StatusOK, holdAnswerJSON{h, action}, nil
	}
}
