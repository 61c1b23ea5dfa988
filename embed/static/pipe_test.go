//go:build unix

package static_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dreamguard/dreamguard/embed/static"
)

// A pipe that nobody writes to is refused rather than waited for.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, static.FileName), 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := static.Open(os.DirFS(dir)); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Errorf("error %v, want that it is not a regular file", err)
	}
}
