package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/dreamguard/dreamguard/internal/backend"
)

// patience is how long a probe may take: XLA compiles for seconds, for a minute on
// a crowded machine.
const patience = 3 * time.Minute

// Child probes a backend in a process of its own, which runs program with args and
// the name of the backend, and prints a [Backend] as JSON.
func Child(program string, args ...string) func(ctx context.Context, name string) Backend {
	return func(ctx context.Context, name string) Backend {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, append(args[:len(args):len(args)], name)...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		failed := func(format string, a ...any) Backend {
			return Backend{Status: backend.Status{Name: name, Reason: fmt.Sprintf(format, a...)}}
		}
		err := cmd.Run()
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return failed("it did not answer within %v", patience)
		case ctx.Err() != nil:
			return failed("interrupted")
		case err != nil:
			return failed("its process ended with %v: %s", err, lastLine(errs.String()))
		}
		var b Backend
		if err := json.Unmarshal(out.Bytes(), &b); err != nil || b.Name != name {
			return failed("its process printed %.80q instead of a report", out.String())
		}
		return b
	}
}

// lastLine returns the last line of a process's messages that says something: the
// one before a dump of a stack, if there is one.
func lastLine(text string) string {
	last := "it said nothing"
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "***") || strings.HasPrefix(line, "goroutine ") {
			break
		}
		if line != "" {
			last = line
		}
		if strings.HasPrefix(line, "SIG") || strings.HasPrefix(line, "panic: ") {
			break
		}
	}
	if len(last) > 400 {
		last = last[:400] + "..."
	}
	return last
}
