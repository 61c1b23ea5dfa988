//go:build xla && cgo

package backend

import (
	"path/filepath"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla" // registers "xla"
	"github.com/gomlx/go-xla/pjrt"
)

// openXLA loads the plugin behind "xla:cpu" or "xla:cuda".
func openXLA(name string) (be compute.Backend, err error) {
	kind := strings.TrimPrefix(name, "xla:")
	if kind == "cuda" && !hasGPU() {
		return nil, unavailable(name, "no /dev/nvidia*: the machine has no NVIDIA GPU, its driver is not installed, or the container was started without --gpus all")
	}
	path, err := findPlugin(kind)
	if err != nil {
		return nil, unavailable(name, "%w", err)
	}
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		// The search of go-xla panics on a file that does not load; loaded by its
		// path the same file gives the loader's message.
		if _, e := pjrt.GetPlugin(path); e != nil {
			be, err = nil, unavailable(name, "plugin %s: %w", path, e)
			return
		}
		be, err = nil, unavailable(name, "plugin %s: %v", path, p)
	}()
	xla.EnableAutoInstall(false) // nothing is fetched behind the user's back
	// By name, not by path: go-xla tells from the name what a device can share
	// with the host.
	config := name
	if kind == "cuda" {
		config += ",tf32=false" // products in full float32, as on the other backends
	}
	be, err = compute.NewWithConfig(config)
	if err != nil {
		return nil, unavailable(name, "plugin %s: %w", path, err)
	}
	return be, nil
}

// hasGPU reports whether the driver of NVIDIA GPUs is here. Without it go-xla
// does not even look at a CUDA plugin.
func hasGPU() bool {
	files, err := filepath.Glob("/dev/nvidia*")
	return err == nil && len(files) > 0
}
