package backend

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/dreamguard/dreamguard/configs"
)

func TestOpenGo(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out := os.Stdout
	os.Stdout = w
	var wg sync.WaitGroup
	var bs [4]compute.Backend
	for i := range bs {
		wg.Go(func() {
			be, err := Open([]string{"", Go}[i%2])
			if err != nil {
				t.Error(err)
			}
			bs[i] = be
		})
	}
	wg.Wait()
	os.Stdout = out
	w.Close()
	if text, err := io.ReadAll(r); err != nil || len(text) > 0 {
		t.Errorf("opening writes %q to standard output, error %v", text, err)
	}
	for _, be := range bs {
		if be == nil || be != bs[0] {
			t.Fatal("Open does not always return the same backend")
		}
	}
	got, err := graph.MustNewExec(bs[0], func(x *graph.Node) *graph.Node { return graph.Mul(x, x) }).Call([]float32{3})
	if err != nil || got[0].Value().([]float32)[0] != 9 {
		t.Errorf("3 x 3 = %v, error %v", got, err)
	}
}

func TestOpenUnknown(t *testing.T) {
	for _, name := range []string{"xla", "cuda", "go:parallelism=0", "GO"} {
		if _, err := Open(name); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "want go, xla:cpu, xla:cuda") {
			t.Errorf("Open(%q): %v", name, err)
		}
	}
}

// Every backend either computes or says why not and what to do.
func TestAvailable(t *testing.T) {
	all := Available()
	if len(all) != len(Names) || !all[0].Available || all[0].Name != Go {
		t.Fatalf("got %+v", all)
	}
	for _, s := range all {
		if s.Available == (s.Reason != "") || s.Available != (s.Description != "") {
			t.Errorf("%+v: want a description or a reason", s)
		}
		if _, err := Open(s.Name); s.Available != (err == nil) || err != nil && !errors.Is(err, ErrUnavailable) {
			t.Errorf("Open(%s) after Available: %v", s.Name, err)
		}
		if IsXLA(s.Name) != strings.HasPrefix(s.Name, "xla:") {
			t.Errorf("IsXLA(%s) = %v", s.Name, IsXLA(s.Name))
		}
		if !s.Available && !strings.Contains(s.Reason, "docs/how-to/accelerators.md") {
			t.Errorf("%s: %q does not say where to read on", s.Name, s.Reason)
		}
	}
}

// A configuration accepts the names of this package and no others.
func TestConfigKnowsTheNames(t *testing.T) {
	cfg, err := configs.Load("debug")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append([]string{"xla", "tpu", ""}, Names...) {
		cfg.Backend = name
		_, known := cache[name]
		if err := cfg.Validate(); (err == nil) != known {
			t.Errorf("configuration with backend %q: %v, known here: %v", name, err, known)
		}
	}
}
