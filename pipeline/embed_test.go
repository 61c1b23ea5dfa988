package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dreamguard/dreamguard/data/store"
	"github.com/dreamguard/dreamguard/embed/cache"
)

// Shards that are embedded at the same time in one run folder leave nothing to do.
func TestEmbedShards(t *testing.T) {
	server := newEmbeddings(t)
	server.noise.Store(true) // so that every process sees another sketch
	for _, settings := range [][]string{
		{"encoder.kind=hash"},
		{"encoder.kind=remote", "encoder.dims=0", "encoder.remote.url=" + server.URL + "/v1", "encoder.remote.model=m"},
	} {
		dir := t.TempDir()
		cfg := set(t, small(t), settings...)
		stop(t, dir, cfg, "data")
		const shards = 3
		var wg sync.WaitGroup
		var embedded, texts atomic.Int64
		for i := range shards {
			r, err := Reopen(dir, fixed)
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				stats, err := r.EmbedShard(t.Context(), cache.Shard{Index: i + 1, Count: shards})
				if err != nil || stats.Shard != fmt.Sprintf("%d/%d", i+1, shards) || stats.Embedded == 0 {
					t.Errorf("shard %d: %+v, error %v", i+1, stats, err)
				}
				embedded.Add(int64(stats.Embedded))
				texts.Add(int64(stats.Texts))
			})
		}
		wg.Wait()
		r := stop(t, dir, cfg, "embed")
		rec := r.Record("embed")
		if rec.Counts["embedded"] != 0 || int64(rec.Counts["texts"]) != texts.Load() || embedded.Load() == 0 {
			t.Errorf("%v: after %d embedded of %d texts: %v", settings, embedded.Load(), texts.Load(), rec.Counts)
		}
	}
}

// A segment that was lost is noticed and made again.
func TestLostSegment(t *testing.T) {
	dir := t.TempDir()
	r := stop(t, dir, small(t), "embed")
	segments, err := filepath.Glob(filepath.Join(dir, "embed", "*.arrow"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	if err := os.Remove(segments[0]); err != nil {
		t.Fatal(err)
	}
	if err := r.Train(t.Context()); err == nil || !strings.Contains(err.Error(), filepath.Base(segments[0])) {
		t.Errorf("training without a segment: %v", err)
	}
	if err := r.Embed(t.Context()); err != nil || r.Record("embed").Counts["embedded"] == 0 {
		t.Errorf("embedding again: %v, %v", r.Record("embed").Counts, err)
	}
	if err := r.Train(t.Context()); err != nil {
		t.Error(err)
	}
}

// Files are embedded as the guard would, from either form, by shards, and a run
// takes their vectors over.
func TestEmbedFiles(t *testing.T) {
	dir := t.TempDir()
	r := stop(t, filepath.Join(dir, "run"), small(t), "data")
	train, validation := r.path("data", "train.jsonl.gz"), r.path("data", "validation.jsonl.gz")
	parquet := filepath.Join(dir, "train.parquet")
	f, err := store.Open(train)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Write(parquet, f.All()); err != nil {
		t.Fatal(err)
	}
	f.Close()

	o := EmbedOptions{Encoder: r.Config.Encoder, Files: []string{train, validation}, Out: filepath.Join(dir, "whole")}
	whole, err := EmbedFiles(t.Context(), o)
	if err != nil || whole.Vectors != whole.Embedded || whole.Shard != "all" || whole.Encoder.Kind != "hash" {
		t.Fatalf("%+v, error %v", whole, err)
	}
	o.Files[0] = parquet
	if again, err := EmbedFiles(t.Context(), o); err != nil || again.Embedded != 0 || again.Texts != whole.Texts {
		t.Errorf("from Parquet: %+v, error %v", again, err)
	}
	var parts []string
	for i := range 2 {
		part := o
		part.Out, part.Shard = filepath.Join(dir, fmt.Sprint("part", i)), cache.Shard{Index: i + 1, Count: 2}
		if _, err := EmbedFiles(t.Context(), part); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part.Out)
	}
	merged := o
	merged.Out, merged.Vectors = filepath.Join(dir, "merged"), parts
	if m, err := EmbedFiles(t.Context(), merged); err != nil || m.Embedded != 0 || m.Vectors != whole.Vectors {
		t.Errorf("merged: %+v, error %v", m, err)
	}
	opts := fixed
	opts.Vectors = []string{merged.Out}
	run, err := Reopen(r.Dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Embed(t.Context()); err != nil || run.Record("embed").Counts["embedded"] != 0 {
		t.Errorf("a run that takes vectors over: %v, error %v", run.Record("embed").Counts, err)
	}

	other := o
	other.Encoder.Dims = 64
	if _, err := EmbedFiles(t.Context(), other); !errors.Is(err, cache.ErrEncoder) {
		t.Errorf("into the cache of another encoder: %v", err)
	}
	other.Out, other.Files = filepath.Join(dir, "none"), []string{filepath.Join(dir, "none.jsonl")}
	if _, err := EmbedFiles(t.Context(), other); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.Out = filepath.Join(dir, "cancelled")
	if _, err := EmbedFiles(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
