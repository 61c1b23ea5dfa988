package pipeline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlanTraining(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir, tiny(t), fixed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.PlanTraining(); err == nil || !strings.Contains(err.Error(), "has not been run") {
		t.Errorf("before there is data: %v", err)
	}
	if err := r.Until(t.Context(), "embed"); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	p, err := r.PlanTraining()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, contents(t, dir)); d != "" {
		t.Errorf("planning changes the folder:\n%s", d)
	}
	ts, err := r.Set("train")
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, x := range ts {
		steps += len(x.Steps)
	}
	if p.Train.Runs != len(ts) || p.Train.Steps != steps || p.Validation.Runs == 0 {
		t.Errorf("sets: %+v, %+v, want %d runs of %d steps in train", p.Train, p.Validation, len(ts), steps)
	}
	cfg := r.Config
	if p.Stages[0].Steps != cfg.Train.Stage1.Steps || p.Stages[1].Steps != cfg.Train.Stage2.Steps {
		t.Errorf("steps: %d and %d", p.Stages[0].Steps, p.Stages[1].Steps)
	}
	if first := p.Stages[0].Batch[0]; first.Name != "e" || !cmp.Equal(first.Dims, []int{cfg.Train.Batch, p.Dims.D}) {
		t.Errorf("first tensor of a batch: %+v", first)
	}
	values := 0
	for _, s := range p.Tensors {
		n := 1
		for _, d := range s.Dims {
			n *= d
		}
		values += n
	}
	m := p.Memory
	if values != p.Parameters.Total || m.Parameters < 4*int64(values) || m.Total != m.Examples+m.Parameters+m.Batch || m.Batch == 0 {
		t.Errorf("%d values in the shapes, %+v, %+v", values, p.Parameters, m)
	}
	r.Config.Train.MaxSteps++ // the last bucket does not fit any more
	if _, err := r.PlanTraining(); err == nil {
		t.Error("a configuration that training refuses")
	}
}
