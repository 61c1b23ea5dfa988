// Command hook measures how long the hook of Claude Code takes, from the start of
// its process to its end: on a call, on a result, and on a call that is denied.
//
//	go build -o bin/dreamguard ./cmd/dreamguard
//	go run ./bench/hook -artifact runs/demo/artifact
//
// The times hold the process's start, the artifact's loading, the lock, the verdict
// and the session on disk. The first process, which takes the digests of the
// artifact's files, is reported apart.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	binary := flag.String("binary", "bin/dreamguard", "program to measure")
	artifact := flag.String("artifact", "", "artifact folder")
	n := flag.Int("n", 200, "processes of each kind")
	flag.Parse()
	if *artifact == "" || *n < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := measure(*binary, *artifact, *n); err != nil {
		fmt.Fprintln(os.Stderr, "bench/hook:", err)
		os.Exit(1)
	}
}

func measure(binary, artifact string, n int) error {
	dir, err := os.MkdirTemp("", "bench-hook-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	limits := filepath.Join(dir, "limits.yaml")
	hook := []string{"hook", "claude-code", "--artifact", artifact, "--state", filepath.Join(dir, "state"), "--sealed", limits}
	// run returns the time of one process, whose exit code must be as given.
	run := func(in string, exit int, args ...string) (time.Duration, error) {
		cmd := exec.Command(binary, args...)
		cmd.Stdin = strings.NewReader(in)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		begin := time.Now()
		err := cmd.Run()
		took := time.Since(begin)
		got := 0
		if e := (*exec.ExitError)(nil); errors.As(err, &e) {
			got = e.ExitCode()
		} else if err != nil {
			return 0, err
		}
		if got != exit {
			return 0, fmt.Errorf("%s %s ended with %d, want %d: %s", binary, strings.Join(args, " "), got, exit, errs.String())
		}
		return took, nil
	}
	first, err := run(event("UserPromptSubmit", 0, map[string]any{"prompt": "Tidy up the invoices of March and tell me what is due."}), 0, hook...)
	if err != nil {
		return err
	}
	fmt.Printf("%-28s %8.1f ms\n", "first of all", ms(first))
	fmt.Printf("%-28s %8s %8s %8s %8s %8s\n", "", "min", "p50", "p90", "p99", "max")
	for _, kind := range []struct {
		name string
		exit int
		args []string
		in   func(i int) string
	}{
		{"version (process alone)", 0, []string{"version"}, func(int) string { return "" }},
		{"PreToolUse", 0, hook, func(i int) string { return call(i, "ls -la invoices/march", nil) }},
		{"PreToolUse, denied", 2, hook, func(i int) string { return call(i, "echo x > "+limits, nil) }},
		{"PostToolUse, 3,000 chars", 0, hook, func(i int) string {
			return call(i, "cat invoices/march/1.txt", strings.Repeat("Rent for March, due on the 3rd, 950.00. ", 75))
		}},
		{"PostToolUse, 5 MB", 0, hook, func(i int) string {
			return call(i, "cat invoices/all.txt", strings.Repeat("Rent for March, due on the 3rd, 950.00. ", 125000))
		}},
	} {
		times := make([]time.Duration, n)
		for i := range times {
			if times[i], err = run(kind.in(i), kind.exit, kind.args...); err != nil {
				return err
			}
		}
		slices.Sort(times)
		at := func(q float64) float64 { return ms(times[min(n-1, int(q*float64(n)))]) }
		fmt.Printf("%-28s %8.1f %8.1f %8.1f %8.1f %8.1f\n", kind.name, at(0), at(0.5), at(0.9), at(0.99), at(1))
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// call is a PreToolUse event, or with a result a PostToolUse event.
func call(i int, command string, result any) string {
	fields := map[string]any{"tool_name": "Bash", "tool_input": map[string]string{"command": command, "description": "look at it"}}
	if result == nil {
		return event("PreToolUse", i, fields)
	}
	fields["tool_response"] = map[string]any{"stdout": result, "stderr": "", "interrupted": false}
	return event("PostToolUse", i, fields)
}

func event(name string, i int, fields map[string]any) string {
	m := map[string]any{"session_id": "bench", "cwd": "/", "hook_event_name": name, "tool_use_id": fmt.Sprint(name, i)}
	for k, v := range fields {
		m[k] = v
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}
