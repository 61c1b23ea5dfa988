package pipeline

import (
	"fmt"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/split"
	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/cache"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/train"
)

// maxVocabulary bounds the vocabulary in bytes, as the artifact that carries it does.
const maxVocabulary = 64 << 20

// vocabulary reads what Embed built.
func (r *Run) vocabulary() (*features.Vocabulary, error) {
	path := r.path(vocabularyFile)
	b, err := boundedfile.Read(path, maxVocabulary)
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
