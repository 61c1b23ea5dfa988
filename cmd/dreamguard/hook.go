package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/dreamguard/dreamguard/checkpoints/shipped"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/dreamguard/dreamguard/serve"
	"github.com/dreamguard/dreamguard/verdict"
	"github.com/spf13/cobra"
)

// guardFlags are the flags of the verbs that stand in front of calls.
type guardFlags struct {
	artifact, calibration string
	mode, onError, onHold string
	contained             serve.Contained
	log                   string
	payloads              bool

	opening sync.Mutex
	opened  *decisionlog.Log
}

func (g *guardFlags) register(cmd *cobra.Command, onHold string) {
	f := cmd.Flags()
	f.StringVar(&g.artifact, "artifact", "", "artifact folder, or an uncompressed tar of it; default: the one in the program")
	f.StringVar(&g.calibration, "calibration", "", "calibration.json to use instead of the artifact's own")
	f.StringVar(&g.mode, "mode", "enforce", "enforce; or audit: all is computed and logged, and nothing is stopped")
	f.StringVar(&g.onError, "on-error", "deny", "what becomes of a call when the guard fails: deny (fail closed) or allow (fail open)")
	f.StringVar(&g.onHold, "on-hold", onHold, "what becomes of a held call: ask, deny or allow")
	f.StringVar(&g.log, "log", "", "decision log to append to; a call whose verdict cannot be logged counts as one that could not be judged")
	f.BoolVar(&g.payloads, "log-payloads", false, "keep arguments and results in the log as they are, and not only as keyed hashes")
	f.StringVar(&g.contained.Rules, "rules", "default", "rules of the containment floor: default, paper, tighten, or a YAML file")
	f.StringArrayVar(&g.contained.Sealed, "sealed", nil, "a further file that the agent may not write; may be repeated")
}

// settings reads what is done about a decision. It comes from the command line
// alone: no variable and no file changes it.
func (g *guardFlags) settings(name string) (serve.Settings, error) {
	s := serve.Settings{Mode: serve.Mode(g.mode), OnError: serve.Failure(g.onError), OnHold: serve.Held(g.onHold)}
	if err := s.Validate(); err != nil {
		return s, usagef("%s: %v", name, err)
	}
	if g.artifact == "" {
		return s, usagef("%s: name the artifact with --artifact DIR", name)
	}
	return s, nil
}

// open opens the model with the floor beside it. dir is where the agent works.
func (g *guardFlags) open(dir string, digests serve.Digests) (*guard.Model, error) {
	c := g.contained
	c.Dir = dir
	if g.artifact != pipeline.BuiltIn { // the program itself is out of the agent's reach, or nothing is
		c.SealArtifact(g.artifact)
	}
	if g.log != "" {
		c.Sealed = append(c.Sealed, g.log, g.log+".key")
	}
	l, err := c.Layer()
	if err != nil {
		return nil, err
	}
	opts := []guard.Option{guard.WithLayers(l), guard.WithEncoderFS(shipped.FS)}
	if g.calibration != "" {
		b, err := boundedfile.Read(g.calibration, artifact.MaxCalibration)
		if err != nil {
			return nil, err
		}
		opts = append(opts, guard.WithCalibration(b))
	}
	if g.artifact == pipeline.BuiltIn {
		return pipeline.OpenGuard(g.artifact, opts...)
	}
	return digests.Open(g.artifact, opts...)
}

// record appends to the decision log, which is opened for the first record.
func (g *guardFlags) record(r decisionlog.Record) (err error) {
	if g.log == "" {
		return nil
	}
	log, err := g.openLog()
	if err != nil {
		return err
	}
	return log.Append(r) // outside of the lock: records that wait together share one sync
}

func (g *guardFlags) openLog() (_ *decisionlog.Log, err error) {
	g.opening.Lock()
	defer g.opening.Unlock()
	if g.opened == nil {
		g.opened, err = decisionlog.Open(g.log, decisionlog.Options{Payloads: g.payloads})
	}
	return g.opened, err
}

// close closes the decision log. Its records are on disk already.
func (g *guardFlags) close() {
	g.opening.Lock()
	defer g.opening.Unlock()
	if g.opened != nil {
		g.opened.Close()
	}
}

func (a *app) hookCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hook",
		Short: "Judge the tool calls of a running agent, as a hook of its host",
		Long: `Hook stands in front of the tool calls of a running agent. Exit codes: 0, and 2 to
deny. Every failure, of the command line as well, ends in what --on-error says.`,
		Example: `  dreamguard hook claude-code --artifact runs/p1/artifact
  dreamguard hook jsonl --artifact runs/p1/artifact --mode audit`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.hookClaudeCodeCommand(), a.hookJSONLCommand())
	return cmd
}

func (a *app) hookClaudeCodeCommand() *cobra.Command {
	var (
		g       guardFlags
		state   string
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use:   "claude-code --artifact DIR",
		Short: "Answer one hook event of Claude Code",
		Long: `Claude-code reads one hook event of Claude Code on standard input and answers it:
PreToolUse is judged, PostToolUse and PostToolUseFailure are what came of it, and
UserPromptSubmit is the task. HOLD is the decision "ask", BLOCK is "deny" and exit code
2 with the reason on standard error; PASS is no decision, so that your own permission
rules still apply. docs/how-to/claude-code.md shows the settings.`,
		Example: `  dreamguard hook claude-code --artifact runs/p1/artifact
  dreamguard hook claude-code --artifact runs/p1/artifact --mode audit --on-error allow`,
		Args: args(cobra.NoArgs),
	}
	g.register(cmd, "ask")
	cmd.Flags().StringVar(&state, "state", "", "folder of the sessions, for its owner alone (default: dreamguard/hook in the folder for state of this user)")
	cmd.Flags().DurationVar(&timeout, "timeout", serve.DefaultTimeout, "how long a verdict may take; must be less than the hook's timeout in the settings of Claude Code, which then lets the call pass")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		// A process that lives for milliseconds need not tidy up.
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(1 << 30)
		settings, err := g.settings("hook claude-code")
		if err != nil {
			return err
		}
		if state == "" {
			if state, err = stateFolder("hook"); err != nil {
				return err
			}
		}
		g.contained.Claude = true
		h := &serve.ClaudeCode{
			Settings: settings, Sessions: serve.Store{Dir: state}, Timeout: timeout, Record: g.record,
			Open: func(_ context.Context, dir string) (*guard.Model, error) {
				return g.open(dir, serve.Digests{Path: filepath.Join(state, "digests.json")})
			},
		}
		reply := h.Handle(cmd.Context(), a.stdin)
		if _, err := a.stdout.Write(reply.Stdout); err != nil {
			return err
		}
		if _, err := a.stderr.Write([]byte(reply.Stderr)); err != nil {
			return err
		}
		if reply.Exit != 0 {
			return decided(verdict.Block)
		}
		return nil
	}
	return cmd
}

// stateFolder is where this user's programs keep what must outlive them, by the
// XDG base directory specification.
func stateFolder(name string) (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) { // such paths are to be ignored
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("hook: there is no home folder: name one for the sessions with --state DIR")
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "dreamguard", name), nil
}

// hookCode turns the exit code of "hook" into one that its hosts know: any other
// than 0 and 2 lets the call pass there. What failed before the flags were read
// fails closed, unless they say otherwise in as many words.
func hookCode(code exitCode, args []string) exitCode {
	if code == exitDone || code == exitUsage && !failsOpen(args) || code == exitBlock {
		return min(code, exitUsage)
	}
	if failsOpen(args) {
		return exitDone
	}
	return exitUsage
}

// isHook reports whether a command line is one of "hook".
func isHook(args []string) bool {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			return arg == "hook"
		}
	}
	return false
}

// failsOpen reports whether a command line says --on-error allow, or audits.
func failsOpen(args []string) bool {
	onError, mode := "", ""
	for i, arg := range args {
		name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch {
		case !strings.HasPrefix(arg, "--"):
		case name == "on-error":
			onError = value
		case name == "mode":
			mode = value
		}
	}
	return onError == "allow" || mode == "audit"
}
