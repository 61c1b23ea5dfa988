package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/serve"
)

// State says what has become of a judged call.
type State string

// The states.
const (
	StateOpen      State = "open"      // it may be executed
	StateHeld      State = "held"      // a person has to answer
	StateDenied    State = "denied"    // it must not be executed
	StateCommitted State = "committed" // its result is recorded
	StateSkipped   State = "skipped"   // it was not executed
)

// Bounds of a session.
const (
	maxOpen    = 64  // judged calls that wait for their result
	maxSettled = 64  // calls that are remembered after it
	maxScores  = 256 // verdicts whose scores are kept for people
)

// Session is one run of an agent. It is not safe for concurrent use: a [Store] sees
// to that.
type Session struct {
	ID      string
	Label   string
	Owner   string // name of the token that started it
	Group   []string
	Created time.Time

	Next       int // number of the last judgement
	Judgements []Judgement
	Scores     []Score
	MaxRisk    float64 // largest score of a judged tool call
	Judged     bool    // there was such a call
	Last       guard.Decision

	run   *guard.Session
	model *guard.Model // of no group
}

// Judgement is one verdict and what became of the call.
type Judgement struct {
	N        int
	Key      string
	Call     [sha256.Size]byte
	Tool     string
	State    State
	Hold     string            // id of the held call
	Until    time.Time         // of a held one: when its answer will be known
	Result   [sha256.Size]byte // of a committed one
	Unlogged bool              // it was committed, and the log does not have it
	Answer   *judgeAnswer      // for repeats; nil once it is old
}

// Score is what people see of a verdict.
type Score struct {
	N            int
	Step         int
	Hazard, Risk float64
	Decision     guard.Decision
}

func newSession(id string, req startRequest, owner string, m *guard.Model, now time.Time) (*Session, error) {
	task, err := req.Task.task()
	if err != nil {
		return nil, err
	}
	return &Session{
		ID: id, Label: req.Label, Owner: owner, Group: req.Group, Created: now,
		model: m, run: m.InGroup(req.Group...).Start(task),
	}, nil
}

// find returns the judgement of number n, nil if it is not remembered.
func (s *Session) find(n int) *Judgement {
	for i := range s.Judgements {
		if s.Judgements[i].N == n {
			return &s.Judgements[i]
		}
	}
	return nil
}

// byKey returns the judgement that a key was used for.
func (s *Session) byKey(key string) *Judgement {
	for i := range s.Judgements {
		if key != "" && s.Judgements[i].Key == key {
			return &s.Judgements[i]
		}
	}
	return nil
}

func (j *Judgement) settled() bool { return j.State != StateOpen && j.State != StateHeld }

// open counts the calls that wait for their result.
func (s *Session) open() int {
	n := 0
	for i := range s.Judgements {
		if !s.Judgements[i].settled() {
			n++
		}
	}
	return n
}

// add notes a verdict and forgets what is old.
func (s *Session) add(j Judgement, v guard.Verdict, message bool) {
	s.Judgements = append(s.Judgements, j)
	settled, kept := 0, s.Judgements[:0]
	for i := range s.Judgements {
		if s.Judgements[i].settled() {
			settled++
		}
	}
	for _, j := range s.Judgements {
		if j.settled() {
			if settled--; settled >= maxSettled {
				continue
			}
			if settled >= 8 {
				j.Answer = nil
			}
		}
		kept = append(kept, j)
	}
	clear(s.Judgements[len(kept):])
	s.Judgements = kept
	s.Scores = append(s.Scores, Score{N: j.N, Step: v.Step, Hazard: v.Hazard, Risk: v.Risk, Decision: v.Decision})
	if len(s.Scores) > maxScores {
		s.Scores = append(s.Scores[:0], s.Scores[len(s.Scores)-maxScores:]...)
	}
	s.Last = v.Decision
	if !message {
		s.Judged, s.MaxRisk = true, max(s.MaxRisk, v.Risk)
	}
}

// settle ends a call in the guard's session, which knows the call judged last only:
// where that is another one, this is judged again, which moves nothing.
func (s *Session) settle(c guard.Call, end func(guard.Call) error) error {
	err := end(c)
	if errors.Is(err, guard.ErrNotJudged) {
		s.run.Judge(context.Background(), c)
		err = end(c)
	}
	return err
}

func (s *Session) commit(c guard.Call, r guard.Result) error {
	return s.settle(c, func(c guard.Call) error { return s.run.Commit(c, r) })
}

func (s *Session) skip(c guard.Call) error { return s.settle(c, s.run.Skip) }

// answer describes the session.
func (s *Session) answer(set serve.Settings, expires time.Time) sessionAnswer {
	m := s.model.InGroup(s.Group...)
	level := func(x float64) *float64 {
		if x == calib.Off {
			return nil
		}
		return &x
	}
	t := m.Thresholds()
	a := sessionAnswer{
		Session: s.ID, Label: s.Label, Owner: s.Owner, Group: s.Group, Instruction: head(s.run.Task().Instruction, shownTask),
		Step: s.run.Step(), Refusals: s.run.Refusals(), Mode: set.Mode, OnError: set.OnError, OnHold: set.OnHold,
		Model: m.Digest(), Calibration: m.CalibrationDigest(), Hold: level(t.Hold), Block: level(t.Block),
		Created: s.Created.UTC(), Expires: expires.UTC(), Open: []openAnswer{}, Scores: []scoreAnswer{}, Last: s.Last,
	}
	for _, j := range s.Judgements {
		if !j.settled() {
			a.Open = append(a.Open, openAnswer{Judgement: j.N, Tool: j.Tool, State: j.State, Hold: j.Hold})
		}
	}
	for _, p := range s.Scores {
		a.Scores = append(a.Scores, scoreAnswer{Judgement: p.N, Step: p.Step, Hazard: p.Hazard, Risk: p.Risk, Decision: p.Decision})
	}
	return a
}

// head is the beginning of a text.
func head(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
