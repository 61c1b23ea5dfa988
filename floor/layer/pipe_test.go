//go:build unix

package layer

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/floor"
	"github.com/dreamguard/dreamguard/verdict"
)

// A pipe in the place of a sealed file would be read until somebody writes to it: an
// agent could stop the guard with it.
func TestPipeInPlaceOfTheFile(t *testing.T) {
	l, dir := newLayer(t)
	file := filepath.Join(dir, "agent.yaml")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Skip("no pipes here:", err)
	}
	done := make(chan floor.Decision, 1)
	go func() {
		done <- l.Decide(verdict.Call{Tool: "write_file", Arguments: `{"path": "agent.yaml", "content": "server: {host: 0.0.0.0}"}`})
	}()
	select {
	case d := <-done:
		if d.Outcome != floor.Refuse {
			t.Errorf("%v (%s), want a refusal", d.Outcome, d.Reason)
		}
	case <-time.After(time.Minute):
		t.Fatal("the pipe is read")
	}
}
