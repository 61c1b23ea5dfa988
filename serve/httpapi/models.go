package httpapi

import (
	"errors"
	"sync"

	"github.com/dreamguard/dreamguard/guard"
)

// errModelGone: a session belongs to a model that was replaced too long ago.
var errModelGone = errors.New("the session's model is not loaded any more")

// maxEarlier is how many replaced models are kept for the sessions that began with
// them.
const maxEarlier = 3

// models are the model in use and those that it replaced.
type models struct {
	mu      sync.RWMutex
	now     *guard.Model
	earlier []*guard.Model // newest last
}

func (m *models) current() *guard.Model {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.now
}

// replace makes a model the one of new sessions. Those under way go over to it
// where they can: where only the calibration is another.
func (m *models) replace(with *guard.Model) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now != nil {
		m.earlier = append(m.earlier, m.now)
		m.earlier = m.earlier[max(0, len(m.earlier)-maxEarlier):]
	}
	m.now = with
}

// attach brings a session to the model in use, or leaves it with its own.
func (m *models) attach(s *Session) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if s.model == m.now {
		return nil
	}
	if s.model.Digest() == m.now.Digest() {
		b, err := s.run.MarshalBinary()
		if err != nil {
			return err
		}
		run, err := m.now.InGroup(s.Group...).Resume(b)
		if err == nil {
			s.model, s.run = m.now, run
			return nil
		}
		if !errors.Is(err, guard.ErrStateModel) {
			return err
		}
	}
	for _, e := range m.earlier {
		if e == s.model {
			return nil
		}
	}
	return errModelGone
}

// resume makes the guard's session of its state, with the model that it belongs to.
func (m *models) resume(s *Session, state []byte) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, model := range append([]*guard.Model{m.now}, m.earlier...) {
		run, err := model.InGroup(s.Group...).Resume(state)
		if err == nil {
			s.model, s.run = model, run
			return nil
		}
		if !errors.Is(err, guard.ErrStateModel) {
			return err
		}
	}
	return errModelGone
}
