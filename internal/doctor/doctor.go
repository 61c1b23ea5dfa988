package doctor

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/dreamguard/dreamguard/internal/backend"
	"github.com/dreamguard/dreamguard/train"
)

// Report is what an examination finds.
type Report struct {
	Schema      string            `json:"schema"`
	Go          string            `json:"go"`
	Platform    string            `json:"platform"`
	Cores       int               `json:"cores"`                 // that this process may use
	Memory      *Memory           `json:"memory,omitempty"`      // nil where the system does not tell
	Disk        *Disk             `json:"disk,omitempty"`        // nil where the system does not tell
	SIMD        SIMD              `json:"simd"`                  //
	Backends    []Backend         `json:"backends"`              // in the order that was asked for
	Encoders    []Encoder         `json:"encoders,omitempty"`    //
	Environment map[string]string `json:"environment,omitempty"` // variables that change what is found, where set
}

// schema is the version of the JSON form of a [Report].
const schema = "dreamguard.doctor/v1"

// Memory is that of the machine, or of the container if that is less. Bytes.
type Memory struct {
	Total     int64 `json:"total"`
	Available int64 `json:"available"`
}

// Disk is the free space where files are written.
type Disk struct {
	Path string `json:"path"`
	Free int64  `json:"free"` // bytes that this user may write
}

// SIMD says whether the Go backend uses vector instructions.
type SIMD struct {
	On     bool   `json:"on"`
	Reason string `json:"reason,omitempty"` // why not, and what to do
}

// Backend is the state of one backend and how fast it trains.
type Backend struct {
	backend.Status
	Rate *train.Rate `json:"rate,omitempty"` // nil if not available, or not to be measured
}

// Options says what to examine.
type Options struct {
	Backends []string                                       // names
	Probe    func(ctx context.Context, name string) Backend // [Here] or [Child]
	BuiltIn  fs.FS                                          // with the static table of this build; nil without one
	Encoders []string                                       // folders of encoders
	Dir      string                                         // whose free space to report; "" is the working folder
}

// variables are what is worth knowing in a report of someone else's machine.
var variables = []string{"PJRT_PLUGIN_LIBRARY_PATH", "XLA_FLAGS", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "GOMAXPROCS", "GODEBUG"}

// Examine looks at everything that opts names.
func Examine(ctx context.Context, opts Options) Report {
	r := Report{
		Schema: schema, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Cores: runtime.GOMAXPROCS(0), Memory: memory(), SIMD: simd(experiment(), runtime.GOARCH),
	}
	dir := opts.Dir
	if dir == "" {
		dir = "."
	}
	if path, err := filepath.Abs(dir); err == nil {
		if free, ok := diskFree(path); ok {
			r.Disk = &Disk{Path: path, Free: free}
		}
	}
	for _, name := range opts.Backends {
		r.Backends = append(r.Backends, opts.Probe(ctx, name))
	}
	if opts.BuiltIn != nil {
		r.Encoders = append(r.Encoders, examineTable("(built in)", opts.BuiltIn))
	}
	for _, dir := range opts.Encoders {
		r.Encoders = append(r.Encoders, examineEncoder(dir))
	}
	for _, name := range variables {
		if v, ok := os.LookupEnv(name); ok {
			if r.Environment == nil {
				r.Environment = map[string]string{}
			}
			r.Environment[name] = v
		}
	}
	return r
}

// probeFor is how long a backend trains to measure its rate, after compiling.
const probeFor = time.Second

// Here probes a backend in this process.
func Here(ctx context.Context, name string) Backend {
	b := Backend{Status: backend.Check(name)}
	if !b.Available {
		return b
	}
	rate, err := train.MeasureRate(ctx, name, probeFor)
	if err != nil {
		b.Available, b.Description, b.Reason = false, "", "it opens but does not train: "+err.Error()
		return b
	}
	b.Rate = &rate
	return b
}

// experiment returns the GOEXPERIMENT of this build.
func experiment() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "GOEXPERIMENT" {
			return s.Value
		}
	}
	return ""
}

// simd says whether a build with this GOEXPERIMENT uses vector instructions.
func simd(experiment, arch string) SIMD {
	for _, e := range strings.Split(experiment, ",") {
		if e == "simd" {
			return SIMD{On: true}
		}
	}
	if arch != "amd64" {
		return SIMD{Reason: "this Go has none for " + arch}
	}
	return SIMD{Reason: "build with `make build`, which sets GOEXPERIMENT=simd: the Go backend is then about twice as fast"}
}
