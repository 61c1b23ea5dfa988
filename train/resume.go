package train

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math"
	"path/filepath"
	"strings"

	"github.com/dreamguard/dreamguard/checkpoints"
	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// stateVersion changes whenever an old checkpoint would not continue as it
// began: another order of batches, another graph.
const stateVersion = 1

// configDigest identifies everything but the data that the result depends on.
func configDigest(cfg configs.Config, d Dims) string {
	cfg.Train.CheckpointEvery = 0 // how often is no part of what
	b, err := json.Marshal(struct {
		Version int
		Seed    uint64
		Backend string
		Dims    Dims
		Model   configs.Model
		Train   configs.Train
	}{stateVersion, cfg.Seed, cfg.Backend, d, cfg.Model, cfg.Train})
	if err != nil {
		panic(err) // plain numbers and strings; checkConfig has refused NaN
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// dataDigest identifies the examples, value by value.
func dataDigest(sets ...[]Example) string {
	h := sha256.New()
	for _, xs := range sets {
		putInts(h, len(xs))
		for i := range xs {
			x := &xs[i]
			putInts(h, len(x.ID), len(x.Dataset))
			h.Write([]byte(x.ID))
			h.Write([]byte(x.Dataset))
			putInts(h, x.Steps, int(x.Label), x.Hazard, bit(x.Exact), int(math.Float32bits(x.Weight)))
			for _, v := range [][]float32{x.Task, x.Calls, x.Features, x.Results} {
				putFloats(h, v)
			}
			for t := range x.Steps {
				putInts(h, bit(x.HasResult[t])|bit(x.Judged[t])<<1)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func putInts(h hash.Hash, vs ...int) {
	var b [8]byte
	for _, v := range vs {
		binary.LittleEndian.PutUint64(b[:], uint64(v))
		h.Write(b[:])
	}
}

func putFloats(h hash.Hash, v []float32) {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	h.Write(b)
}

// Prefixes of tensor names in a checkpoint.
const (
	inModel = "model/"
	inBest  = "best/"
	inMean  = "average/"
	inM     = "adam.m/"
	inV     = "adam.v/"
)

func (f *fitter) checkpointDir() string { return filepath.Join(f.opts.Dir, "checkpoint") }

// checkpoint saves the training, unless the last checkpoint already holds it.
func (f *fitter) checkpoint() error {
	if f.opts.Dir == "" || f.state == f.saved {
		return nil
	}
	if err := f.log.sync(); err != nil {
		return err
	}
	raw, err := json.Marshal(f.state)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	c := &checkpoints.Checkpoint{
		Step: uint64(f.state.Done[0] + f.state.Done[1] + f.state.Step), Config: f.configDigest, Data: f.dataHash, State: raw,
	}
	add := func(prefix string, i int, v []float32) {
		if v != nil {
			p := f.w.params[i]
			c.Tensors = append(c.Tensors, safetensors.Tensor{Name: prefix + p.Name, Shape: p.Shape, Data: v})
		}
	}
	for i := range f.w.params {
		add(inModel, i, f.w.values[i])
		if f.average != nil {
			add(inMean, i, f.average.values[i])
		}
		if f.best != nil {
			add(inBest, i, f.best.values[i])
		}
		if f.adam != nil {
			add(inM, i, f.adam.m[i])
			add(inV, i, f.adam.v[i])
		}
	}
	if err := checkpoints.Save(f.checkpointDir(), c); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	f.saved = f.state
	return nil
}

// resume loads the newest checkpoint, if there is one.
func (f *fitter) resume() error {
	c, skipped, err := checkpoints.Load(f.checkpointDir(), f.configDigest, f.dataHash)
	for _, s := range skipped {
		f.opts.Log.Warn("a checkpoint is unusable, the one before it is taken", "error", s)
	}
	if errors.Is(err, checkpoints.ErrNone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	var s state
	if err := json.Unmarshal(c.State, &s); err != nil {
		return fmt.Errorf("train: checkpoint of step %d: state: %w", c.Step, err)
	}
	if s.Stage != 1 && s.Stage != 2 {
		return fmt.Errorf("train: checkpoint of step %d: stage is %d", c.Step, s.Stage)
	}
	parts := map[string][]safetensors.Tensor{}
	for _, t := range c.Tensors {
		prefix, name, _ := strings.Cut(t.Name, "/")
		t.Name = name
		parts[prefix+"/"] = append(parts[prefix+"/"], t)
	}
	model, err := WeightsFrom(f.cfg.Model, f.dims, parts[inModel])
	if err != nil {
		return fmt.Errorf("train: checkpoint of step %d: %w", c.Step, err)
	}
	// Copies, since the file's memory may be shared and the optimizer writes.
	f.w = model.clone()
	if len(parts[inMean]) > 0 {
		average, err := WeightsFrom(f.cfg.Model, f.dims, parts[inMean])
		if err != nil {
			return fmt.Errorf("train: checkpoint of step %d: average: %w", c.Step, err)
		}
		f.average = average.clone()
	}
	if s.HasBest {
		if f.best, err = WeightsFrom(f.cfg.Model, f.dims, parts[inBest]); err != nil {
			return fmt.Errorf("train: checkpoint of step %d: best: %w", c.Step, err)
		}
	}
	f.adam = newAdam(s.Stage, f.cfg.Train, len(f.w.params))
	f.adam.steps = s.AdamSteps
	for _, part := range []struct {
		prefix string
		to     [][]float32
	}{{inM, f.adam.m}, {inV, f.adam.v}} {
		for _, t := range parts[part.prefix] {
			i := f.w.index(t.Name)
			if i < 0 || len(t.Data) != f.w.params[i].size() {
				return fmt.Errorf("train: checkpoint of step %d: %s%s does not belong to the model", c.Step, part.prefix, t.Name)
			}
			part.to[i] = append([]float32(nil), t.Data...)
		}
	}
	f.state, f.saved = s, s
	f.opts.Log.Info("continuing", "stage", int(s.Stage), "step", s.Step)
	return nil
}
