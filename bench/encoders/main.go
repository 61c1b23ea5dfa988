// Command encoders answers run.py: it encodes the texts of a request again and
// again and reports how long each time took.
//
//	encoders --model DIR [--backend go|xla:cpu|xla:cuda] [--static]
//
// A request is a line of JSON, {"texts": [...], "repeats": 20}; the answer is
// {"ms": [...], "cpu_ms": [...], "vectors": [[...], ...]}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/embed/transformer"
)

type request struct {
	Texts   []string `json:"texts"`
	Repeats int      `json:"repeats"`
}

type answer struct {
	MS      []float64   `json:"ms"`     // wall clock of one call
	CPU     []float64   `json:"cpu_ms"` // of all threads
	Vectors [][]float32 `json:"vectors"`
}

func main() {
	model := flag.String("model", "", "folder of the model")
	backend := flag.String("backend", "go", "backend of the transformer")
	isStatic := flag.Bool("static", false, "the folder holds encoder.safetensors")
	flag.Parse()
	if err := serve(*model, *backend, *isStatic); err != nil {
		fmt.Fprintln(os.Stderr, "encoders:", err)
		os.Exit(1)
	}
}

func serve(model, backend string, isStatic bool) error {
	var enc embed.Encoder
	var err error
	if isStatic {
		enc, err = static.Open(os.DirFS(model))
	} else {
		enc, err = transformer.Open(model, transformer.Options{Backend: backend})
	}
	if err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return err
		}
		a, err := measure(enc, r)
		if err != nil {
			return err
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
	return in.Err()
}

func measure(enc embed.Encoder, r request) (answer, error) {
	dims := enc.ID().Dims
	dst := make([]float32, len(r.Texts)*dims)
	var a answer
	for i := range r.Repeats + 1 {
		begin, used := time.Now(), cpu()
		if err := enc.Encode(context.Background(), r.Texts, dst); err != nil {
			return a, err
		}
		if i > 0 { // the first call compiles
			a.MS = append(a.MS, float64(time.Since(begin))/1e6)
			a.CPU = append(a.CPU, float64(cpu()-used)/1e6)
		}
	}
	for i := range r.Texts {
		a.Vectors = append(a.Vectors, dst[i*dims:(i+1)*dims])
	}
	return a, nil
}

// cpu is the processor time of this process so far.
func cpu() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
