// Command dreamguard trains, calibrates, freezes and inspects a guard for the
// tool calls of language-model agents. Each verb is one file of this package:
// flags, one call of a package, rendering.
//
//	dreamguard run --config quickstart --out runs/demo
//	dreamguard inspect runs/demo/data/train.jsonl.gz
//
// Results go to standard output, progress and messages to standard error. The
// exit codes are listed in exit.go and in "dreamguard --help".
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

func main() {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(int(a.main(os.Args[1:])))
}

// app is one run of the program, with its streams, so that tests can run it.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	quiet          bool // no progress
}

// main runs one command line.
func (a *app) main(args []string) exitCode {
	code := a.run(func(ctx context.Context) error { return a.execute(ctx, args) })
	if isHook(args) {
		return hookCode(code, args)
	}
	return code
}

// run calls f with a context that the first interrupt ends, prints its error and
// returns the exit code. No panic gets past it.
func (a *app) run(f func(context.Context) error) (code exitCode) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		code = exitFailure
		fmt.Fprintf(a.stderr, "dreamguard: internal error: %v\n", p)
		if os.Getenv("DREAMGUARD_DEBUG") == "1" {
			a.stderr.Write(debug.Stack())
			return
		}
		fmt.Fprintln(a.stderr, "This is a bug. Please report it with the output of the same command under DREAMGUARD_DEBUG=1.")
	}()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	unwatch := context.AfterFunc(ctx, func() {
		stop() // from here on a second signal ends the process at once
		fmt.Fprintln(a.stderr, "dreamguard: stopping; what is done is kept (again to stop at once)")
	})
	defer unwatch() // before stop, which ends ctx as well

	err := f(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	code = codeOf(err)
	if err != nil && code != exitHold && code != exitBlock { // a verdict was printed already
		fmt.Fprintf(a.stderr, "dreamguard: %v\n", err)
	}
	return code
}
