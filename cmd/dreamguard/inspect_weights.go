package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dreamguard/dreamguard/checkpoints"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// checkpointInfo is what inspect --json prints of a checkpoint.
type checkpointInfo struct {
	Step   uint64 `json:"step"`
	Config string `json:"config_digest"`
	Data   string `json:"data_digest"`
	State  any    `json:"state"`
	weightsInfo
}

// weightsInfo is what inspect --json prints of a file of weights.
type weightsInfo struct {
	Path    string       `json:"path"`
	Values  int          `json:"values"`
	Tensors []tensorInfo `json:"tensors"`
}

type tensorInfo struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

func (a *app) inspectCheckpoint(path string, asJSON bool) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		newest, err := newestCheckpoint(path)
		if err != nil {
			return err
		}
		path = newest
	}
	c, err := checkpoints.Open(path)
	if err != nil {
		return err
	}
	out := checkpointInfo{Step: c.Step, Config: c.Config, Data: c.Data, State: c.State, weightsInfo: describe(path, c.Tensors)}
	if asJSON {
		return a.printJSON(out)
	}
	t := a.table()
	t.row("checkpoint", path)
	t.row("step", fmt.Sprint(out.Step))
	t.row("config digest", out.Config)
	t.row("data digest", out.Data)
	t.row("state", string(c.State))
	return out.rows(t).flush()
}

func describe(path string, tensors []safetensors.Tensor) weightsInfo {
	out := weightsInfo{Path: path, Tensors: []tensorInfo{}}
	for _, t := range tensors {
		out.Values += len(t.Data)
		out.Tensors = append(out.Tensors, tensorInfo{t.Name, t.Shape})
	}
	return out
}

// rows adds one row per tensor.
func (w *weightsInfo) rows(t *table) *table {
	t.row("tensors", fmt.Sprintf("%d, %d values", len(w.Tensors), w.Values))
	for _, x := range w.Tensors {
		t.row("", fmt.Sprintf("%s %v", x.Name, x.Shape))
	}
	return t
}

func (a *app) inspectWeights(path string, asJSON bool) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, artifact.ModelFile)
	}
	b, err := boundedfile.Read(path, checkpoints.MaxBytes)
	if err != nil {
		return err
	}
	enc, err := static.Parse(b)
	if err == nil {
		return a.showEncoder(path, enc, asJSON)
	}
	if !errors.Is(err, static.ErrFormat) { // a damaged file, or a damaged encoder
		return fmt.Errorf("%s: %w", path, err)
	}
	tensors, _, err := safetensors.Read(b)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var problems []error
	for _, t := range tensors {
		problems = append(problems, safetensors.Finite(t))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	out := describe(path, tensors)
	if asJSON {
		return a.printJSON(out)
	}
	t := a.table()
	t.row("weights", path)
	return out.rows(t).flush()
}
