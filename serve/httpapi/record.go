package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dreamguard/dreamguard/guard"
)

// sessionVersion names the form of a stored session.
const sessionVersion = "dreamguard-http-session/v1"

// maxStored bounds a stored session in bytes.
const maxStored = guard.MaxState + 8<<20

// stored is what is kept of a session beside the state of its guard.
type stored struct {
	Version    string
	ID         string
	Label      string
	Owner      string
	Group      []string
	Created    time.Time
	Next       int
	Judgements []Judgement
	Scores     []Score
	MaxRisk    float64
	Judged     bool
	Last       guard.Decision
}

// marshal writes a session: a line of JSON, then the state of its guard.
func (s *Session) marshal() ([]byte, error) {
	var b bytes.Buffer
	err := json.NewEncoder(&b).Encode(stored{
		Version: sessionVersion, ID: s.ID, Label: s.Label, Owner: s.Owner, Group: s.Group, Created: s.Created, Next: s.Next,
		Judgements: s.Judgements, Scores: s.Scores, MaxRisk: s.MaxRisk, Judged: s.Judged, Last: s.Last,
	})
	if err != nil {
		return nil, err
	}
	state, err := s.run.MarshalBinary()
	if err != nil {
		return nil, err
	}
	b.Write(state)
	if b.Len() > maxStored {
		return nil, fmt.Errorf("a session of %d bytes, at most %d", b.Len(), maxStored)
	}
	return b.Bytes(), nil
}

// unmarshal reads what marshal writes; resume makes the guard's session of its
// state. It is safe on hostile input.
func unmarshal(b []byte, resume func(*Session, []byte) error) (*Session, error) {
	first, state, ok := bytes.Cut(b, []byte("\n"))
	if !ok || len(b) > maxStored {
		return nil, errors.New("not a session")
	}
	var r stored
	dec := json.NewDecoder(bytes.NewReader(first))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return nil, err
	}
	if r.Version != sessionVersion || !validID(r.ID) || len(r.Judgements) > maxOpen+maxSettled || len(r.Scores) > maxScores || len(r.Group) > maxGroup || r.Next < 0 {
		return nil, errors.New("not a session of this version")
	}
	s := &Session{
		ID: r.ID, Label: r.Label, Owner: r.Owner, Group: r.Group, Created: r.Created, Next: r.Next,
		Judgements: r.Judgements, Scores: r.Scores, MaxRisk: r.MaxRisk, Judged: r.Judged, Last: r.Last,
	}
	if err := resume(s, state); err != nil {
		return nil, err
	}
	return s, nil
}
