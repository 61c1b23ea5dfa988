package backend

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend" // registers "go"
)

// The names of backends.
const (
	Go      = "go"       // plain Go, always there
	XLACPU  = "xla:cpu"  // XLA's CPU plugin
	XLACUDA = "xla:cuda" // XLA's plugin for NVIDIA GPUs
)

// Names lists all names, the default first.
var Names = []string{Go, XLACPU, XLACUDA}

// ErrUnknown is wrapped by the error about a name that is not in [Names].
var ErrUnknown = errors.New("unknown backend")

// ErrUnavailable is wrapped by the error about a backend that this build, or
// this machine, cannot run. The rest of the message says why and what to do.
var ErrUnavailable = errors.New("not available")

// Status says whether a backend can be used here.
type Status struct {
	Name        string `json:"name"`
	Available   bool   `json:"available"`
	Description string `json:"description,omitempty"` // the library behind it, if available
	Reason      string `json:"reason,omitempty"`      // why not and what to do, if not
}

// opened is one entry of the process-wide cache.
type opened struct {
	once sync.Once
	be   compute.Backend
	err  error
}

var cache = map[string]*opened{Go: {}, XLACPU: {}, XLACUDA: {}}

// Open returns the process-wide backend of a name; "" is [Go]. It is safe for
// concurrent use. The first call for a name decides: a backend that was not
// available then stays so, since the plugin's environment is read when the
// process starts. Errors wrap [ErrUnknown] or [ErrUnavailable].
func Open(name string) (compute.Backend, error) {
	if name == "" {
		name = Go
	}
	o := cache[name]
	if o == nil {
		return nil, fmt.Errorf("%w %q: want %s", ErrUnknown, name, strings.Join(Names, ", "))
	}
	o.once.Do(func() {
		if name == Go {
			o.be, o.err = openGo()
		} else {
			o.be, o.err = openXLA(name)
		}
	})
	return o.be, o.err
}

// Check opens a backend and says how that went.
func Check(name string) Status {
	be, err := Open(name)
	if err != nil {
		reason := err.Error()
		if errors.Is(err, ErrUnavailable) {
			_, reason, _ = strings.Cut(reason, ErrUnavailable.Error()+": ")
		}
		return Status{Name: name, Reason: reason}
	}
	return Status{Name: name, Available: true, Description: be.Description()}
}

// Available checks all backends, in the order of [Names].
func Available() []Status {
	all := make([]Status, len(Names))
	for i, name := range Names {
		all[i] = Check(name)
	}
	return all
}

// IsXLA reports whether a name is one of XLA's backends, which compile a graph
// for seconds where Go's takes milliseconds: callers then use few shapes.
func IsXLA(name string) bool { return name != Go && slices.Contains(Names, name) }

// unavailable is the error about a backend that cannot be used.
func unavailable(name, format string, args ...any) error {
	return fmt.Errorf("backend %s is %w: %w (docs/how-to/accelerators.md)", name, ErrUnavailable, fmt.Errorf(format, args...))
}

// goConfig sets the parallelism of the Go backend. Left out, a few large matrix
// products that are ready at the same time dead-lock on a machine of two cores.
const goConfig = "go:parallelism=-1"

func openGo() (compute.Backend, error) {
	// The backend announces its parallelism on standard output, where it would
	// break a verb's --json.
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open backend %s: %w", Go, err)
	}
	defer null.Close()
	out := os.Stdout
	os.Stdout = null
	defer func() { os.Stdout = out }()
	be, err := compute.NewWithConfig(goConfig)
	if err != nil {
		return nil, fmt.Errorf("open backend %s: %w", Go, err)
	}
	return be, nil
}
