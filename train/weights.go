package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/checkpoints"
	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// Weights are the values of all tensors of docs/reference/model.md.
type Weights struct {
	Dims  Dims
	Model configs.Model

	params []param     // sorted by name
	values [][]float32 // values[i] belongs to params[i]
}

// ErrWeights is wrapped by the errors of [LoadWeights] and [WeightsFrom].
var ErrWeights = errors.New("not the weights of a model")

// newWeights returns initialised weights. feat.mean and feat.scale are 0 and 1.
func newWeights(m configs.Model, d Dims, seed uint64) (*Weights, error) {
	s := sizesOf(m, d)
	if err := s.check(); err != nil {
		return nil, err
	}
	w := &Weights{Dims: d, Model: m, params: paramTable(s)}
	for i := range w.params {
		w.values = append(w.values, w.params[i].initial(seed))
	}
	return w, nil
}

func (w *Weights) sizes() sizes { return sizesOf(w.Model, w.Dims) }

// follow moves the tensors at the given indices towards those of to:
// decay w + (1 - decay) to.
func (w *Weights) follow(to *Weights, at []int, decay float32) {
	for _, i := range at {
		x, y := w.values[i], to.values[i]
		for k := range x {
			x[k] = decay*x[k] + (1-decay)*y[k]
		}
	}
}

// clone copies the values.
func (w *Weights) clone() *Weights {
	c := *w
	c.values = make([][]float32, len(w.values))
	for i, v := range w.values {
		c.values[i] = slices.Clone(v)
	}
	return &c
}

// index returns the position of a tensor, -1 if there is none of that name.
func (w *Weights) index(name string) int {
	return slices.IndexFunc(w.params, func(p param) bool { return p.Name == name })
}

// Value returns the values of the named tensor in row-major order, shared with
// w, or nil if there is no such tensor.
func (w *Weights) Value(name string) []float32 {
	if i := w.index(name); i >= 0 {
		return w.values[i]
	}
	return nil
}

// Tensors returns every tensor, sorted by name. The data is shared with w.
func (w *Weights) Tensors() []safetensors.Tensor {
	t := make([]safetensors.Tensor, len(w.params))
	for i, p := range w.params {
		t[i] = safetensors.Tensor{Name: p.Name, Shape: slices.Clone(p.Shape), Data: w.values[i]}
	}
	return t
}

// RuntimeTensors returns the tensors that judging needs: all but obs.l1 and
// obs.out, the observation model, which serves training only.
func (w *Weights) RuntimeTensors() []safetensors.Tensor {
	return slices.DeleteFunc(w.Tensors(), func(t safetensors.Tensor) bool { return trainingOnly(t.Name) })
}

// trainingOnly reports whether a tensor belongs to the observation model g_obs.
func trainingOnly(name string) bool {
	return strings.HasPrefix(name, "obs.l1.") || strings.HasPrefix(name, "obs.out.")
}

// metaModel is the metadata key under which a weights file says its sizes, which
// the shapes alone do not determine.
const metaModel = "dreamguard.model"

type weightsMeta struct {
	Dims  Dims          `json:"dims"`
	Model configs.Model `json:"model"`
}

// writeTo writes w in the safetensors format, with the sizes in the metadata.
func (w *Weights) writeTo(out io.Writer) error {
	meta, err := json.Marshal(weightsMeta{w.Dims, w.Model})
	if err != nil {
		return err
	}
	return safetensors.Write(out, w.Tensors(), map[string]string{metaModel: string(meta)})
}

// Save writes w to path atomically; [LoadWeights] reads it.
func (w *Weights) Save(path string) error { return atomicfile.Write(path, w.writeTo) }

// LoadWeights reads a file that [Weights.Save] wrote. The error names the file
// and wraps [ErrWeights] if the content is at fault.
func LoadWeights(path string) (*Weights, error) {
	b, err := boundedfile.Read(path, checkpoints.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("load weights: %w", err)
	}
	tensors, meta, err := safetensors.Read(b)
	if err != nil {
		return nil, fmt.Errorf("load weights %s: %w: %w", path, ErrWeights, err)
	}
	var m weightsMeta
	if err := json.Unmarshal([]byte(meta[metaModel]), &m); err != nil {
		return nil, fmt.Errorf("load weights %s: %w: metadata %q: %w", path, ErrWeights, metaModel, err)
	}
	w, err := WeightsFrom(m.Model, m.Dims, tensors)
	if err != nil {
		return nil, fmt.Errorf("load weights %s: %w", path, err)
	}
	return w, nil
}

// WeightsFrom builds weights from tensors: exactly those of a model of these
// sizes, in any order, all finite. The data is shared. Errors wrap [ErrWeights].
func WeightsFrom(m configs.Model, d Dims, tensors []safetensors.Tensor) (*Weights, error) {
	s := sizesOf(m, d)
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWeights, err)
	}
	w := &Weights{Dims: d, Model: m, params: paramTable(s)}
	w.values = make([][]float32, len(w.params))
	for _, t := range tensors {
		i := w.index(t.Name)
		switch {
		case i < 0:
			return nil, fmt.Errorf("%w: tensor %q is unknown", ErrWeights, t.Name)
		case w.values[i] != nil:
			return nil, fmt.Errorf("%w: tensor %q comes twice", ErrWeights, t.Name)
		case !slices.Equal(t.Shape, w.params[i].Shape):
			return nil, fmt.Errorf("%w: tensor %q has shape %v, want %v", ErrWeights, t.Name, t.Shape, w.params[i].Shape)
		}
		if err := safetensors.Finite(t); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrWeights, err)
		}
		w.values[i] = t.Data
	}
	for i, v := range w.values {
		if v == nil {
			return nil, fmt.Errorf("%w: tensor %q is missing", ErrWeights, w.params[i].Name)
		}
	}
	return w, nil
}
