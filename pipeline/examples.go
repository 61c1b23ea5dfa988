package pipeline

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/split"
	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/cache"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/train"
)

// trainingSets are the sets whose texts are embedded ahead: the runtime embeds
// its own.
var trainingSets = []string{"train", "validation"}

// Embed fills the cache with the vectors of all texts that training reads, and
// builds the vocabulary of the call features from the training results.
func (r *Run) Embed(ctx context.Context) error {
	if err := r.needs("data"); err != nil {
		return err
	}
	enc, err := r.encoder()
	if err != nil {
		return err
	}
	return r.stage(ctx, "embed", r.inputs("embed"), func(ctx context.Context, rec *StageRecord) ([]string, error) {
		sets := map[string][]*data.Trajectory{}
		total := 0
		for _, name := range trainingSets {
			ts, err := r.Set(name)
			if err != nil {
				return nil, err
			}
			sets[name] = ts
			total += count(texts(ts))
		}
		c, err := cache.Open(r.path("embed"), enc.ID())
		if err != nil {
			return nil, err
		}
		defer c.Close()
		task := r.opts.Progress.Start("embed", total)
		defer task.Done()
		for _, name := range trainingSets {
			shown := 0
			stats, err := c.Fill(ctx, enc, cache.Seq(texts(sets[name])), cache.Options{Progress: func(done int) { task.Add(done - shown); shown = done }})
			if err != nil {
				return nil, err
			}
			rec.Counts[name+" embedded"] = stats.Embedded
		}
		var b features.VocabularyBuilder
		for _, t := range sets["train"] {
			for i := range t.Steps {
				b.Add(t.Steps[i].Result)
			}
		}
		v := b.Build(minDocuments)
		rec.Counts["vocabulary"] = v.Len()
		raw, err := v.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if err := atomicfile.WriteFile(r.path(vocabularyFile), raw); err != nil {
			return nil, err
		}
		// The segments too: should one be lost, the stage is not up to date.
		segments, err := filepath.Glob(r.path("embed", "*.arrow"))
		if err != nil {
			return nil, err
		}
		out := []string{vocabularyFile}
		for _, p := range segments {
			out = append(out, filepath.Join("embed", filepath.Base(p)))
		}
		return out, nil
	})
}

// vocabularyFile holds the word weights of the call features.
var vocabularyFile = filepath.Join("embed", "features.json")

// minDocuments is how many training results a token must stand in to have a
// weight of its own. It also keeps one-off names and ids out of the artifact.
const minDocuments = 3

// texts yields every text of the runs that is embedded.
func texts(ts []*data.Trajectory) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, t := range ts {
			if !yield(embed.TaskText(t.StartTask())) {
				return
			}
			for i := range t.Steps {
				if !yield(embed.CallText(t.Call(i))) {
					return
				}
				if s := embed.ResultText(t.Result(i)); s != "" && !yield(s) {
					return
				}
			}
		}
	}
}

func count(seq iter.Seq[string]) (n int) {
	for range seq {
		n++
	}
	return n
}

// vocabulary reads what Embed built.
func (r *Run) vocabulary() (*features.Vocabulary, error) {
	path := r.path(vocabularyFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v, err := features.ReadVocabulary(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

// examples turns runs into training examples. Vectors come from the cache; the
// features are computed by the code that the runtime uses.
func (r *Run) examples(ts []*data.Trajectory, c *cache.Cache, v *features.Vocabulary) ([]train.Example, error) {
	get := func(dst []float32, text string) ([]float32, error) {
		vec, ok := c.Get(text)
		if !ok {
			return nil, fmt.Errorf("a text has no vector in %s: run `dreamguard embed --run %s` again", r.path("embed"), r.Dir)
		}
		return append(dst, vec...), nil
	}
	out := make([]train.Example, 0, len(ts))
	d := c.ID().Dims
	for _, t := range ts {
		x := train.Example{
			ID: t.ID, Dataset: t.Dataset, Steps: len(t.Steps), Label: t.Label, Hazard: -1,
			Exact: t.HazardExact(), Weight: float32(r.weight(t)),
			HasResult: make([]bool, len(t.Steps)), Judged: make([]bool, len(t.Steps)),
			Results:  make([]float32, 0, d*len(t.Steps)),
			Features: make([]float32, features.Count()*len(t.Steps)),
		}
		if t.Located() {
			x.Hazard = *t.FirstHazard
		}
		task := t.StartTask()
		var err error
		if x.Task, err = get(nil, embed.TaskText(task)); err != nil {
			return nil, err
		}
		tracker := features.NewTracker(v, task)
		for i := range t.Steps {
			call, result := t.Call(i), t.Result(i)
			if x.Calls, err = get(x.Calls, embed.CallText(call)); err != nil {
				return nil, err
			}
			if s := embed.ResultText(result); s != "" {
				x.HasResult[i] = true
				if x.Results, err = get(x.Results, s); err != nil {
					return nil, err
				}
			} else {
				x.Results = x.Results[:d*(i+1)] // zeros
			}
			x.Judged[i] = !call.IsMessage()
			tracker.Compute(x.Features[i*features.Count():(i+1)*features.Count()], call)
			tracker.Commit(call, result)
		}
		out = append(out, x)
	}
	return out, nil
}

// weight returns the training weight of a run: that of its source, and less for
// the noisy tiers of OpenAgentSafety.
func (r *Run) weight(t *data.Trajectory) float64 {
	w, ok := r.Config.Data.Weights[t.Dataset]
	if !ok {
		w = 1
	}
	if t.Dataset == "openagentsafety" && split.Tier(t) == "C" {
		w *= 0.5
	}
	return w
}
