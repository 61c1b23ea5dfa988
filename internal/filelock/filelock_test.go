package filelock

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".lock")
	unlock, err := Lock(path, TryExclusive)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this file system has no locks")
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path, TryExclusive); !errors.Is(err, ErrHeld) {
		t.Errorf("a held lock: %v, want ErrHeld", err)
	}
	unlock()
	for range 2 { // shared locks go together
		unlock, err := Lock(path, Shared)
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
	}
	if _, err := Lock(path, TryExclusive); !errors.Is(err, ErrHeld) {
		t.Errorf("beside shared locks: %v, want ErrHeld", err)
	}
}
