package train

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend" // registers "go"
)

// backendGo is the backend configuration behind the config value "go". Without
// an explicit parallelism the Go backend dead-locks on a machine of two cores
// once a few large matrix products are ready at the same time.
const backendGo = "go:parallelism=-1"

// ErrBackend is wrapped by the error about a config value backend that this
// build does not know.
var ErrBackend = errors.New("unknown backend")

var openBackend = sync.OnceValues(func() (compute.Backend, error) {
	// The backend announces its parallelism on standard output, where it would
	// break a verb's --json.
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	out := os.Stdout
	os.Stdout = null
	defer func() { os.Stdout = out }()
	return compute.NewWithConfig(backendGo)
})

// backendFor returns the process-wide backend of a config value.
func backendFor(name string) (compute.Backend, error) {
	if name != "" && name != "go" {
		return nil, fmt.Errorf("train: %w %q: set backend to go", ErrBackend, name)
	}
	b, err := openBackend()
	if err != nil {
		return nil, fmt.Errorf("train: open backend: %w", err)
	}
	return b, nil
}
