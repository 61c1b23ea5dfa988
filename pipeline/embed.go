package pipeline

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/clean"
	"github.com/dreamguard/dreamguard/data/store"
	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/cache"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/embed/remote"
	"github.com/dreamguard/dreamguard/internal/progress"
)

// trainingSets are the sets whose texts are embedded ahead: the runtime embeds
// its own.
var trainingSets = []string{"train", "validation"}

// vocabularyFile holds the word weights of the call features.
var vocabularyFile = filepath.Join("embed", "features.json")

// minDocuments is how many training results a token must stand in to have a
// weight of its own. It also keeps one-off names and ids out of the artifact.
const minDocuments = 3

// runSeq is a sequence of runs, textSeq one of texts. An error is the last
// element.
type (
	runSeq  = iter.Seq2[*data.Trajectory, error]
	textSeq = iter.Seq2[string, error]
)

// Embed fills the cache with the vectors of all texts that training reads, and
// builds the vocabulary of the call features from the training results. Runs are
// read one at a time. Another encoder than that of the last time makes the stage,
// and those after it, be done again; the vectors of the old one are put aside.
func (r *Run) Embed(ctx context.Context) error {
	if err := r.needs("data"); err != nil {
		return err
	}
	enc, err := r.encoder(ctx)
	if errors.Is(err, remote.ErrChanged) {
		r.opts.Log.Info("the encoder is not the one of the last time", "reason", err)
		enc, err = openEncoder(ctx, r.Config.Encoder, r.Config.Backend, embed.ID{})
		r.enc = enc
	}
	if err != nil {
		return err
	}
	return r.stage(ctx, "embed", r.inputs("embed"), func(ctx context.Context, rec *StageRecord) ([]string, error) {
		c, err := r.openCache(enc.ID(), true)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if err := r.takeOver(ctx, c); err != nil {
			return nil, err
		}
		stats, err := fillCache(ctx, c, enc, r.trainingTexts(), cache.Shard{}, r.opts.Progress, "embed")
		if err != nil {
			return nil, err
		}
		id := enc.ID()
		rec.Encoder = &id
		rec.Counts["texts"], rec.Counts["embedded"] = stats.Texts, stats.Embedded

		v, err := r.countVocabulary()
		if err != nil {
			return nil, err
		}
		rec.Counts["vocabulary"] = v.Len()
		raw, err := v.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if err := c.WriteFile(filepath.Base(vocabularyFile), raw); err != nil {
			return nil, err
		}
		// The segments too: should one be lost, the stage is not up to date.
		files, err := os.ReadDir(r.path("embed"))
		if err != nil {
			return nil, err
		}
		out := []string{vocabularyFile, filepath.Join("embed", "cache.json")}
		for _, f := range files {
			if isSegment(f.Name()) {
				out = append(out, filepath.Join("embed", f.Name()))
			}
		}
		return out, nil
	})
}

// isSegment tells segments of a cache by their name.
func isSegment(path string) bool { return filepath.Ext(path) == ".arrow" }

// EmbedShard embeds one shard of the texts that Embed embeds, and records nothing:
// several processes can do so in one folder at a time. When all shards are there,
// Embed finds nothing left to compute and finishes the stage.
func (r *Run) EmbedShard(ctx context.Context, shard cache.Shard) (EmbedStats, error) {
	if err := r.needs("data"); err != nil {
		return EmbedStats{}, err
	}
	enc, err := r.encoder(ctx)
	if err != nil {
		return EmbedStats{}, err
	}
	c, err := r.openCache(enc.ID(), false)
	if errors.Is(err, cache.ErrEncoder) {
		// A process that started at the same time may have been first, and have got
		// an answer from a server that differs in its last bits.
		if enc, err = r.adopt(enc, err); err == nil {
			c, err = r.openCache(enc.ID(), false)
		}
	}
	if err != nil {
		return EmbedStats{}, err
	}
	defer c.Close()
	if err := r.takeOver(ctx, c); err != nil {
		return EmbedStats{}, err
	}
	return embedShard(ctx, c, enc, r.trainingTexts(), shard, r.opts.Progress)
}

// embedShard fills a cache with a shard and says how it went.
func embedShard(ctx context.Context, c *cache.Cache, enc embed.Encoder, texts textSeq, shard cache.Shard, report *progress.Reporter) (EmbedStats, error) {
	name := "embed"
	if shard.Count > 0 {
		name += " " + shard.String()
	}
	stats, err := fillCache(ctx, c, enc, texts, shard, report, name)
	return EmbedStats{Encoder: enc.ID(), Shard: shard.String(), Stats: stats, Vectors: c.Len()}, err
}

// adopt gives a remote encoder the identity that the run's cache already has, if
// it stands for the same. Otherwise the error is cause.
func (r *Run) adopt(enc embed.Encoder, cause error) (embed.Encoder, error) {
	id, err := cache.Identity(r.path("embed"))
	if x, ok := enc.(*remote.Encoder); ok && err == nil && remote.Same(id, enc.ID()) {
		return x.As(id)
	}
	return nil, cause
}

// openCache opens the run's vectors. Those of another encoder are put aside if
// move is set, and taken up again when it is their turn.
func (r *Run) openCache(id embed.ID, move bool) (*cache.Cache, error) {
	dir := r.path("embed")
	c, err := cache.Open(dir, id)
	if !errors.Is(err, cache.ErrEncoder) || !move {
		return c, err
	}
	old, err := cache.Identity(dir)
	if err != nil {
		return nil, err
	}
	aside := func(id embed.ID) string { return fmt.Sprintf("%s-%.12s", dir, id.Digest) }
	if err := os.Rename(dir, aside(old)); err != nil {
		return nil, err
	}
	r.opts.Log.Info("another encoder: its vectors are put aside and can be deleted", "encoder", old, "folder", aside(old))
	if err := os.Rename(aside(id), dir); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return cache.Open(dir, id)
}

// takeOver merges the caches that the options name.
func (r *Run) takeOver(ctx context.Context, c *cache.Cache) error {
	for _, dir := range r.opts.Vectors {
		n, err := c.Merge(ctx, dir, sameEncoder(c.ID()))
		if err != nil {
			return err
		}
		r.opts.Log.Info("vectors taken over", "from", dir, "segments", n)
	}
	return nil
}

// trainingTexts are the texts that training reads.
func (r *Run) trainingTexts() textSeq {
	return func(yield func(string, error) bool) {
		for _, name := range trainingSets {
			for text, err := range texts(r.stream(name)) {
				if !yield(text, err) || err != nil {
					return
				}
			}
		}
	}
}

// countVocabulary counts the words of the training results.
func (r *Run) countVocabulary() (*features.Vocabulary, error) {
	rec := r.ledger.Stages["data"]
	task := r.opts.Progress.Start("vocabulary", rec.Counts["train"])
	defer task.Done()
	var b features.VocabularyBuilder
	for t, err := range r.stream("train") {
		if err != nil {
			return nil, err
		}
		for i := range t.Steps {
			b.Add(t.Steps[i].Result)
		}
		task.Add(1)
	}
	return b.Build(minDocuments), nil
}

// stream reads one set of the run folder, a run at a time.
func (r *Run) stream(name string) runSeq { return fileSeq(r.path("data", name+".jsonl.gz")) }

// fileSeq reads files of trajectories, a run at a time.
func fileSeq(paths ...string) runSeq {
	return func(yield func(*data.Trajectory, error) bool) {
		one := func(path string) bool {
			f, err := store.Open(path)
			if err != nil {
				yield(nil, err)
				return false
			}
			defer f.Close() // read only: nothing to lose
			for t, err := range f.All() {
				if !yield(t, err) || err != nil {
					return false
				}
			}
			return true
		}
		for _, path := range paths {
			if !one(path) {
				return
			}
		}
	}
}

// sliceSeq is a sequence of runs in memory.
func sliceSeq(ts []*data.Trajectory) runSeq {
	return func(yield func(*data.Trajectory, error) bool) {
		for _, t := range ts {
			if !yield(t, nil) {
				return
			}
		}
	}
}

// texts yields every text of the runs that is embedded for training, whose leaks
// are removed.
func texts(runs runSeq) textSeq { return textsOf(runs, func(s string) string { return s }) }

// guardTexts yields the texts that the guard embeds when it judges the runs as
// they are: it undoes folding itself.
func guardTexts(runs runSeq) textSeq { return textsOf(runs, clean.UnfoldYAML) }

func textsOf(runs runSeq, output func(string) string) textSeq {
	return func(yield func(string, error) bool) {
		for t, err := range runs {
			if err != nil {
				yield("", err)
				return
			}
			if !yield(embed.TaskText(t.StartTask()), nil) {
				return
			}
			for i := range t.Steps {
				if !yield(embed.CallText(t.Call(i)), nil) {
					return
				}
				result := t.Result(i)
				if !result.User {
					result.Output = output(result.Output)
				}
				if s := embed.ResultText(result); s != "" && !yield(s, nil) {
					return
				}
			}
		}
	}
}

// EmbedOptions say what EmbedFiles embeds.
type EmbedOptions struct {
	Encoder  configs.Encoder
	Backend  string   // what a transformer computes on; "" = go
	Files    []string // trajectories as JSON lines or Parquet
	Out      string   // folder of the cache
	Shard    cache.Shard
	Vectors  []string // folders of caches whose vectors are taken over first
	Progress *progress.Reporter
}

// EmbedStats says what EmbedFiles did.
type EmbedStats struct {
	Encoder embed.ID `json:"encoder"`
	Shard   string   `json:"shard"` // "all", or I/N
	cache.Stats
	Vectors int `json:"vectors"` // in the cache now
}

// EmbedFiles fills a cache with the vectors of every text of some files, as the
// guard would embed them. Files are read one run at a time, Parquet by row groups;
// what is held in memory does not grow with them, but for some bytes per text.
func EmbedFiles(ctx context.Context, o EmbedOptions) (EmbedStats, error) {
	want, _ := cache.Identity(o.Out) // a cache that is there says which encoder it wants
	enc, err := openEncoder(ctx, o.Encoder, o.Backend, want)
	if err != nil {
		return EmbedStats{}, err
	}
	c, err := cache.Open(o.Out, enc.ID())
	if err != nil {
		return EmbedStats{}, err
	}
	defer c.Close()
	for _, dir := range o.Vectors {
		if _, err := c.Merge(ctx, dir, sameEncoder(enc.ID())); err != nil {
			return EmbedStats{}, err
		}
	}
	return embedShard(ctx, c, enc, guardTexts(fileSeq(o.Files...)), o.Shard, o.Progress)
}
