//go:build unix

package boundedfile_test

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dreamguard/dreamguard/internal/boundedfile"
)

// A pipe that nobody writes to is refused rather than waited for.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := boundedfile.Read(path, 4); !errors.Is(err, boundedfile.ErrNotRegular) || !strings.Contains(err.Error(), "a pipe") {
		t.Errorf("%v, want a pipe that is refused", err)
	}
}
