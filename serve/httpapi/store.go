package httpapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Store keeps sessions. It is safe for concurrent use.
type Store interface {
	// Create adds a session: ErrExists, ErrFull.
	Create(ctx context.Context, s *Session) error
	// Update calls f with the session, which nothing else uses meanwhile. What f
	// changed is kept whatever it returns, and that is Update's error. A store of
	// several processes may call f again, on what another process has made of the
	// session. ErrNoSession.
	Update(ctx context.Context, id string, f func(*Session) error) error
	// Remove takes a session out and returns it.
	Remove(ctx context.Context, id string) (*Session, error)
	// List calls f with up to most sessions, the last used first, and returns how
	// many there are.
	List(ctx context.Context, most int, f func(*Session)) (int, error)
	// Sweep takes out what has expired and calls f with each.
	Sweep(ctx context.Context, f func(*Session)) error
	// Check reports whether the store can be used.
	Check(ctx context.Context) error
	// TTL is how long a session is kept that nobody uses.
	TTL() time.Duration
}

// Memory is a store in this process, which ends with it.
type Memory struct {
	most int
	ttl  time.Duration
	now  func() time.Time

	mu       sync.Mutex
	sessions map[string]*entry
}

type entry struct {
	used time.Time // guarded by Memory.mu

	mu      sync.Mutex
	session *Session
	gone    bool
}

// Defaults of a store.
const (
	DefaultSessions = 10_000
	DefaultTTL      = 24 * time.Hour
)

// NewMemory returns a store of at most so many sessions, each of which is forgotten
// when it was not used for ttl. 0 stands for the defaults.
func NewMemory(most int, ttl time.Duration) *Memory {
	if most <= 0 {
		most = DefaultSessions
	}
	if ttl <= 0 {
		ttl = DefaultTTL
	}
	return &Memory{most: most, ttl: ttl, now: time.Now, sessions: map[string]*entry{}}
}

// TTL implements [Store].
func (m *Memory) TTL() time.Duration { return m.ttl }

// Check implements [Store].
func (m *Memory) Check(context.Context) error { return nil }

// Create implements [Store]. Sessions in use are never pushed out by new ones.
func (m *Memory) Create(_ context.Context, s *Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions[s.ID] != nil {
		return ErrExists
	}
	if len(m.sessions) >= m.most {
		return ErrFull
	}
	m.sessions[s.ID] = &entry{used: m.now(), session: s}
	return nil
}

// Update implements [Store]. A session in which f panics is lost: nobody knows what
// it has become.
func (m *Memory) Update(_ context.Context, id string, f func(*Session) error) (err error) {
	m.mu.Lock()
	e := m.sessions[id]
	// The monotonic clock counts: setting the time expires nothing.
	if e == nil || m.now().Sub(e.used) > m.ttl {
		m.mu.Unlock()
		return ErrNoSession
	}
	e.used = m.now()
	m.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return ErrNoSession
	}
	defer func() {
		if p := recover(); p != nil {
			e.gone = true
			m.mu.Lock()
			delete(m.sessions, id)
			m.mu.Unlock()
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	return f(e.session)
}

// Remove implements [Store].
func (m *Memory) Remove(_ context.Context, id string) (*Session, error) {
	m.mu.Lock()
	e := m.sessions[id]
	delete(m.sessions, id)
	m.mu.Unlock()
	if e == nil {
		return nil, ErrNoSession
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gone = true
	return e.session, nil
}

// List implements [Store].
func (m *Memory) List(_ context.Context, most int, f func(*Session)) (int, error) {
	type used struct {
		*entry
		at time.Time
		id string
	}
	m.mu.Lock()
	list := make([]used, 0, len(m.sessions))
	for id, e := range m.sessions {
		list = append(list, used{e, e.used, id})
	}
	m.mu.Unlock()
	slices.SortFunc(list, func(a, b used) int {
		if c := b.at.Compare(a.at); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
	for _, e := range list[:min(most, len(list))] {
		e.mu.Lock()
		if !e.gone {
			f(e.session)
		}
		e.mu.Unlock()
	}
	return len(list), nil
}

// Sweep implements [Store].
func (m *Memory) Sweep(_ context.Context, f func(*Session)) error {
	var gone []*entry
	m.mu.Lock()
	for id, e := range m.sessions {
		if m.now().Sub(e.used) > m.ttl {
			delete(m.sessions, id)
			gone = append(gone, e)
		}
	}
	m.mu.Unlock()
	for _, e := range gone {
		e.mu.Lock()
		e.gone = true
		f(e.session)
		e.mu.Unlock()
	}
	return nil
}
