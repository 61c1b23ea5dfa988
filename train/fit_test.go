package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fitFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"metrics.jsonl", "parameters.txt", "best/model.safetensors"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	return files
}

func TestFitSameSeedSameBytes(t *testing.T) {
	cfg, dims := testConfig(), testDims()
	xs := testExamples(14, dims, nil, 3, 2, 7, 4)
	val := testExamples(10, dims, nil, 5, 3)
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		if _, err := Fit(context.Background(), cfg, dims, xs, val, Options{Dir: dir}); err != nil {
			t.Fatal(err)
		}
	}
	want := fitFiles(t, a)
	if diff := cmp.Diff(want, fitFiles(t, b)); diff != "" {
		t.Errorf("two runs of one seed differ:\n%s", diff)
	}
	cfg.Seed++
	c := t.TempDir()
	if _, err := Fit(context.Background(), cfg, dims, xs, val, Options{Dir: c}); err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(want["metrics.jsonl"], fitFiles(t, c)["metrics.jsonl"]) {
		t.Error("another seed gives the same metrics")
	}
}

func TestFitInterruptedAtEveryStep(t *testing.T) {
	cfg, dims := testConfig(), testDims()
	xs := testExamples(14, dims, nil, 3, 2, 7, 4)
	val := testExamples(10, dims, nil, 5, 3)
	whole := t.TempDir()
	if _, err := Fit(context.Background(), cfg, dims, xs, val, Options{Dir: whole}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var stops int
	for done := false; !done; stops++ {
		if stops > 100 {
			t.Fatal("training does not get anywhere")
		}
		ctx, cancel := context.WithCancel(context.Background())
		events := 0
		_, err := Fit(ctx, cfg, dims, xs, val, Options{Dir: dir, Progress: func(e Event) {
			if e.Stage > 2 {
				return // trees are grown anew, which takes a moment
			}
			if events++; events == 2 {
				cancel()
			}
		}})
		done = err == nil
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
	}
	if stops < 7 {
		t.Errorf("the run was stopped %d times, want at least 7", stops)
	}
	if diff := cmp.Diff(fitFiles(t, whole), fitFiles(t, dir)); diff != "" {
		t.Errorf("interrupted run differs:\n%s", diff)
	}
}
