package cache

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/internal/atomicfile"

	"github.com/dreamguard/dreamguard/internal/filelock"
)

// childEnv makes the test binary fill a cache instead of running tests: its
// value is "DIR|first text|number of texts|microseconds per text".
const childEnv = "DREAMGUARD_CACHE_TEST_CHILD"

func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		if err := child(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(spec string) error {
	parts := strings.Split(spec, "|")
	var num [3]int
	for i := range num {
		var err error
		if num[i], err = strconv.Atoi(parts[i+1]); err != nil {
			return err
		}
	}
	enc := newFake(4)
	enc.hook = func(texts []string, _ []float32, n int) error {
		fmt.Println(n) // the parent waits for signs of life
		time.Sleep(time.Duration(num[2]*len(texts)) * time.Microsecond)
		return nil
	}
	c, err := Open(parts[0], enc.ID())
	if err != nil {
		return err
	}
	if _, err := c.Fill(context.Background(), enc, Seq(numbered(num[0], num[1])), Options{}); err != nil {
		return err
	}
	return c.Close()
}

func childCommand(t *testing.T, dir string, from, n, micros int) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%d|%d", childEnv, dir, from, n, micros))
	return cmd
}

// Two processes that fill overlapping texts at the same time both succeed, and
// nothing is lost.
func TestTwoProcesses(t *testing.T) {
	dir, enc := t.TempDir(), newFake(4)
	var wg sync.WaitGroup
	for i := range 3 {
		cmd := childCommand(t, dir, i*4000, 10_000, 2)
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("child %d: %v\n%s", i, err, out)
			}
		})
	}
	wg.Wait()
	c := open(t, dir, enc.ID())
	if c.Len() != 18_000 {
		t.Errorf("%d vectors, want 18000", c.Len())
	}
	check(t, c, enc, numbered(0, 18_000))
}

// A kill at any moment leaves a cache that opens, holds only right vectors and
// is filled up by the next run.
func TestKill(t *testing.T) {
	dir, enc := t.TempDir(), newFake(4)
	const n = 5 * windowTexts
	for try := range 4 {
		cmd := childCommand(t, dir, 0, n, 20)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Wait until it works, then for a different while each time.
		buf := make([]byte, 1)
		if _, err := out.Read(buf); err != nil && try == 0 {
			t.Fatalf("the child never began: %v", err)
		}
		go func() { // keep the pipe empty, or the child blocks
			b := make([]byte, 4096)
			for {
				if _, err := out.Read(b); err != nil {
					return
				}
			}
		}()
		time.Sleep(time.Duration(37*(try+1)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait() // killed: its error is expected
		c := open(t, dir, enc.ID())
		held := c.Len()
		for text := range numbered(0, n) {
			if _, ok := c.Get(text); !ok {
				continue
			}
			held--
			check(t, c, enc, func(yield func(string) bool) { yield(text) })
		}
		if held != 0 {
			t.Fatalf("%d vectors of unknown texts", held)
		}
	}
	c := open(t, dir, enc.ID())
	before := c.Len()
	if stats := fill(t, c, enc, numbered(0, n)); stats.Embedded != n-before {
		t.Errorf("%d of %d were there, and %d were embedded", before, n, stats.Embedded)
	}
	check(t, c, enc, numbered(0, n))
}

// What a killed writer left is removed, unless somebody is writing just then.
func TestLeftoversAreCleaned(t *testing.T) {
	dir, enc := t.TempDir(), newFake(4)
	fill(t, open(t, dir, enc.ID()), enc, numbered(0, 10))
	left := filepath.Join(dir, atomicfile.TempPrefix+"999999-0")
	if err := os.WriteFile(left, []byte("half a segment"), 0o666); err != nil {
		t.Fatal(err)
	}
	unlock, err := filelock.Lock(filepath.Join(dir, lockName), filelock.Shared)
	if err != nil {
		t.Fatal(err)
	}
	open(t, dir, enc.ID())
	if _, err := os.Stat(left); err != nil {
		t.Errorf("a temporary file was removed while a writer held the lock: %v", err)
	}
	unlock()
	if c := open(t, dir, enc.ID()); c.Len() != 10 {
		t.Errorf("%d vectors, want 10", c.Len())
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the temporary file is still there: %v", err)
	}
}
