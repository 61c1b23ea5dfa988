package decisionlog

import (
	"fmt"
	"os"
	"sync"
)

// syncer lets those who wait for the disk at the same time share one sync.
type syncer struct {
	mu      sync.Mutex
	done    sync.Cond
	file    *os.File
	written uint64 // lines
	synced  uint64 // of them, for sure
	running bool
	failed  error // after a failed sync nobody knows what is on disk
}

func (s *syncer) init() { s.done.L = &s.mu }

// wrote notes a line that was written to f and returns its number.
func (s *syncer) wrote(f *os.File) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file = f
	s.written++
	return s.written
}

// wait returns once line n is on disk.
func (s *syncer) wait(n uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.failed == nil && s.synced < n {
		if s.running {
			s.done.Wait()
			continue
		}
		s.run()
	}
	if s.synced >= n {
		return nil
	}
	return s.failed
}

// err is the error of a sync that failed.
func (s *syncer) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// run syncs what was written so far. The lock is held, and given up meanwhile.
func (s *syncer) run() {
	s.running = true
	f, upto := s.file, s.written
	s.mu.Unlock()
	err := f.Sync()
	s.mu.Lock()
	s.running = false
	if err != nil {
		s.failed = fmt.Errorf("%w: %w", ErrClosed, err)
	} else {
		s.synced = upto
	}
	s.done.Broadcast()
}

// flush syncs f, which is closed or renamed next, once no other sync runs.
func (s *syncer) flush(f *os.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.running {
		s.done.Wait()
	}
	if s.failed == nil && s.synced < s.written {
		s.file = f
		s.run()
	}
	return s.failed
}
