package pipeline

import (
	"github.com/dreamguard/dreamguard/train"
)

// TrainingPlan is what Train would do: nothing of it needs a training step.
type TrainingPlan struct {
	Backend    string           `json:"backend"`
	Dims       train.Dims       `json:"dims"`
	Batch      int              `json:"batch"`     // runs per step
	MaxSteps   int              `json:"max_steps"` // longest part of a run in one step
	Train      PlannedSet       `json:"train"`
	Validation PlannedSet       `json:"validation"`
	Stages     [2]PlannedStage  `json:"stages"`
	Parameters train.Parameters `json:"parameters"`
	Tensors    []train.Shape    `json:"tensors"` // of the model
	Memory     PlannedMemory    `json:"memory"`
}

// PlannedSet counts a set.
type PlannedSet struct {
	Runs  int `json:"runs"`
	Steps int `json:"steps"`
}

// PlannedStage is one stage of a training.
type PlannedStage struct {
	Steps int           `json:"steps"`
	Batch []train.Shape `json:"batch"` // at the longest padded length
}

// PlannedMemory is what is known of the memory, in bytes. What a step holds between
// input and gradient comes on top, and depends on the backend.
type PlannedMemory struct {
	Examples   int64 `json:"examples"`   // vectors and features of both sets
	Parameters int64 `json:"parameters"` // weights, gradients and moments
	Batch      int64 `json:"batch"`      // of the larger stage
	Total      int64 `json:"total"`
}

// PlanTraining says what Train would do, and changes nothing. It needs the stages
// before, which fix the sizes, and refuses a configuration that Train would refuse.
func (r *Run) PlanTraining() (TrainingPlan, error) {
	if err := r.needs("embed"); err != nil {
		return TrainingPlan{}, err
	}
	cfg, d := r.Config, r.dims()
	if err := train.Check(cfg, d); err != nil {
		return TrainingPlan{}, err
	}
	p := TrainingPlan{Backend: cfg.Backend, Dims: d, Batch: cfg.Train.Batch, MaxSteps: cfg.Train.MaxSteps, Parameters: train.Summary(cfg, d)}
	p.Tensors = p.Parameters.Tensors()
	for name, set := range map[string]*PlannedSet{"train": &p.Train, "validation": &p.Validation} {
		for t, err := range r.stream(name) {
			if err != nil {
				return TrainingPlan{}, err
			}
			set.Runs++
			set.Steps += len(t.Steps)
			p.Memory.Examples += 4 * int64(d.D+len(t.Steps)*(2*d.D+d.F))
		}
	}
	for i, steps := range []int{cfg.Train.Stage1.Steps, cfg.Train.Stage2.Steps} {
		p.Stages[i] = PlannedStage{Steps: steps, Batch: train.BatchShapes(cfg, d, i+1)}
		var bytes int64
		for _, s := range p.Stages[i].Batch {
			n := int64(4)
			for _, dim := range s.Dims {
				n *= int64(dim)
			}
			bytes += n
		}
		p.Memory.Batch = max(p.Memory.Batch, bytes)
	}
	p.Memory.Parameters = p.Parameters.Memory
	p.Memory.Total = p.Memory.Examples + p.Memory.Parameters + p.Memory.Batch
	return p, nil
}
