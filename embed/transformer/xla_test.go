//go:build xla && cgo

package transformer

import (
	"os"
	"testing"

	"github.com/dreamguard/dreamguard/internal/backend"
)

// The other tests take whatever backends there are. Where a plugin is named, XLA's
// CPU backend has to be among them, or nothing would notice that it is not tested.
func TestXLATakesPart(t *testing.T) {
	if os.Getenv("PJRT_PLUGIN_LIBRARY_PATH") == "" {
		t.Skip("PJRT_PLUGIN_LIBRARY_PATH names no plugin: see scripts/xla-cpu.sh")
	}
	if s := backend.Check(backend.XLACPU); !s.Available {
		t.Fatalf("%s is not available: %s", s.Name, s.Reason)
	}
}
