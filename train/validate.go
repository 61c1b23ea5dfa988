package train

import (
	"context"
	"math"
)

// WorldCheck is how the world model does on validation runs.
type WorldCheck struct {
	Predict float64 `json:"predict"` // mean of 1 - cosine of predicted and real result, each centred by its training mean
	KL      float64 `json:"kl"`      // mean KL[posterior || prior] in nats per step
	Steps   int     `json:"steps"`   // steps with a result
}

// centreRuns is how many training runs the centre of [WorldCheck] is taken from.
const centreRuns = 64

// validationDue reports whether the model is to be measured now: every
// validate_every steps of a stage and after its last.
func (f *fitter) validationDue() bool {
	s := &f.state
	if s.Step == 0 || s.Step == s.Validated || len(f.validation) == 0 {
		return false
	}
	every := f.cfg.Train.ValidateEvery
	return s.Step >= f.stageSteps() || every > 0 && s.Step%every == 0
}

// validate measures the model of the current stage.
func (f *fitter) validate(ctx context.Context) error {
	if f.state.Stage == 1 {
		return f.checkWorld(ctx)
	}
	return f.checkHeads(ctx)
}

// checkHeads measures the risk heads, keeps the weights if they are the best so
// far, and ends the stage if there was no better for too long.
func (f *fitter) checkHeads(ctx context.Context) error {
	var err error
	if f.heads == nil {
		f.heads, err = newEvaluator(f.be, f.judged(), false)
	} else {
		err = f.heads.setWeights(f.judged())
	}
	if err != nil {
		return err
	}
	logits, err := f.heads.Logits(ctx, f.validation)
	if err != nil {
		return err
	}
	s := &f.state
	s.Validated = s.Step
	v := validate(f.validation, logits)
	if v == nil {
		return nil // no safe or no unsafe run among them: the last weights are taken
	}
	var former *Validation
	if s.HasBest {
		former = &s.Best
	}
	if v.better(former) {
		s.HasBest, s.Best, s.BestAt, s.Bad = true, *v, s.Step, 0
		f.best = f.judged().clone()
	} else if s.Bad++; f.cfg.Train.Patience > 0 && s.Bad >= f.cfg.Train.Patience {
		s.Early = true
	}
	f.progress(Event{Validation: v})
	return f.record(Record{Validation: v})
}

// checkWorld measures the world model. The centre of predictions moves during
// training, and no loss holds it in place, so it is taken anew from training runs.
func (f *fitter) checkWorld(ctx context.Context) error {
	var err error
	if f.world == nil {
		f.world, err = newEvaluator(f.be, f.w, true)
	} else {
		err = f.world.setWeights(f.w)
	}
	if err != nil {
		return err
	}
	d := f.dims.D
	predicted, real := make([]float64, d), make([]float64, d)
	n := 0
	sample := f.train[:min(len(f.train), centreRuns)]
	err = f.world.each(ctx, sample, func(run, t, row int, v [][]float32) {
		if sample[run].HasResult[t] {
			n++
			for k := range d {
				predicted[k] += float64(v[0][row*d+k])
				real[k] += float64(sample[run].Results[t*d+k])
			}
		}
	})
	if err != nil {
		return err
	}
	for k := range d {
		predicted[k] /= float64(max(n, 1))
		real[k] /= float64(max(n, 1))
	}
	var c WorldCheck
	all := 0
	err = f.world.each(ctx, f.validation, func(run, t, row int, v [][]float32) {
		all++
		c.KL += float64(v[1][row])
		x := &f.validation[run]
		if !x.HasResult[t] {
			return
		}
		c.Steps++
		inner, np, nr := 0.0, cosineEpsilon, cosineEpsilon
		for k := range d {
			p, r := float64(v[0][row*d+k])-predicted[k], float64(x.Results[t*d+k])-real[k]
			inner, np, nr = inner+p*r, np+p*p, nr+r*r
		}
		c.Predict += 1 - inner/math.Sqrt(np*nr)
	})
	if err != nil {
		return err
	}
	f.state.Validated = f.state.Step
	c.KL /= float64(max(all, 1))
	c.Predict /= float64(max(c.Steps, 1))
	f.progress(Event{World: &c})
	return f.record(Record{World: &c})
}
