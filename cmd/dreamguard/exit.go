package main

import (
	"errors"
	"fmt"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/dreamguard/dreamguard/verdict"
)

// exitCode is what the process ends with.
type exitCode int

// The exit codes. They are part of the interface: scripts rely on them.
const (
	exitDone    exitCode = 0 // done, or the verdict PASS
	exitFailure exitCode = 1 // something failed: a file, the disk, the data
	exitUsage   exitCode = 2 // the command line or the configuration is wrong
	exitRefused exitCode = 3 // too little data for what was asked, or no guarantee can be given
	exitHold    exitCode = 4 // the verdict HOLD
	exitBlock   exitCode = 5 // the verdict BLOCK
)

const exitCodesHelp = `Exit codes:
  0  done, or the verdict PASS
  1  failure
  2  usage: the command line or the configuration is wrong
  3  refused: too little data, or no guarantee can be given
  4  the verdict HOLD
  5  the verdict BLOCK`

// errInterrupted replaces the many forms of a cancelled context.
var errInterrupted = errors.New("interrupted: run the same command again to go on from where it stopped")

// usageError is a mistake in the command line.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// errWithdrawn ends the monitor of a certificate that does not stand any more.
var errWithdrawn = errors.New("the certificate is withdrawn: recalibrate, and until then use stricter thresholds or hold every call")

// decided is not a failure: it carries a verdict to the exit code.
type decided verdict.Decision

func (d decided) Error() string { return "verdict " + verdict.Decision(d).String() }

// codeOf is the only place where an error becomes an exit code.
func codeOf(err error) exitCode {
	var (
		usage   *usageError
		config  *configs.Error
		tooFew  *calib.TooFewError
		noLevel *calib.NoLevelError
		none    *calib.InfeasibleError
		verdict decided
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &verdict):
		return verdict.code()
	case errors.As(err, &tooFew), errors.As(err, &noLevel), errors.As(err, &none),
		errors.Is(err, calib.ErrTrained), errors.Is(err, calib.ErrTuning), errors.Is(err, errWithdrawn),
		errors.Is(err, pipeline.ErrTooFewRuns):
		return exitRefused
	case errors.As(err, &usage), errors.As(err, &config),
		errors.Is(err, pipeline.ErrNoRun), errors.Is(err, pipeline.ErrOtherConfig),
		errors.Is(err, pipeline.ErrNoData), errors.Is(err, pipeline.ErrEncoderSource):
		return exitUsage
	}
	return exitFailure
}

func (d decided) code() exitCode {
	switch verdict.Decision(d) {
	case verdict.Pass:
		return exitDone
	case verdict.Hold:
		return exitHold
	}
	return exitBlock
}
