// Package filelock takes advisory locks on files. The system gives a lock back
// when its process ends, however it ends.
//
//	unlock, err := filelock.Lock(filepath.Join(dir, ".lock"), filelock.TryExclusive)
//	if errors.Is(err, filelock.ErrHeld) { ... } // somebody else works there
//	defer unlock()
package filelock

import "errors"

// Mode says how Lock takes the lock.
type Mode int

// The modes.
const (
	Shared       Mode = iota // wait for the holder of an exclusive lock
	Exclusive                // wait for every holder
	TryExclusive             // fail where somebody holds the lock
)

// ErrHeld is wrapped by Lock's error with TryExclusive where the lock is held.
var ErrHeld = errors.New("the lock is held by another process")
