//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dreamguard/dreamguard/guard/artifact"
)

// A pipe in the place of a file that is read whole is refused: opening it would
// wait for somebody to write to it.
func TestPipesAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe := func(elem ...string) string {
		path := filepath.Join(append([]string{dir}, elem...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
		return path
	}
	alone := pipe("alone")
	for _, c := range []struct {
		line string
		code exitCode
	}{
		{"run --out " + dir + "/run --config " + alone, exitUsage},
		{"inspect " + pipe("model.safetensors"), exitFailure},
		{"inspect " + filepath.Dir(pipe("artifact", artifact.ManifestFile)), exitFailure},
		{"inspect " + filepath.Dir(pipe("run2", "config.yaml")), exitUsage},
		{"inspect " + filepath.Dir(pipe("cache", "cache.json")), exitFailure},
		{"encoder cosine --encoder " + alone + " a b", exitFailure},
		{"encoder cosine --encoder " + filepath.Dir(pipe("static", "encoder.safetensors")) + " a b", exitFailure},
		{"encoder agree --from " + filepath.Dir(pipe("model", "config.json")) + " " + alone, exitFailure},
		{"calibration log --artifact " + filepath.Join(dir, "artifact"), exitFailure},
	} {
		r := run(t, append(strings.Fields(c.line), "-q")...)
		if r.code != c.code || !strings.Contains(r.stderr+r.stdout, "regular file") {
			t.Errorf("dreamguard %s: exit %d, stderr %q, stdout %q; want exit %d and that it is not a regular file", c.line, r.code, r.stderr, r.stdout, c.code)
		}
	}
}
