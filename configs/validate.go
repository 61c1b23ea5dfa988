package configs

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/embed/remote/endpoint"
	"github.com/dreamguard/dreamguard/internal/suggest"
)

// datasets are the training sets that a weight can name.
var datasets = []string{"agentdyn", "augmented", "openagentsafety", "r-judge", "simulator", "tau-bench"}

// suites of agentdyn that leave_out can name.
var suites = []string{"dailylife", "github", "shopping"}

// maxUnroll bounds the steps of one unrolled graph: its compile time and
// memory grow with every step.
const maxUnroll = 64

// maxLatent bounds the length of z.
const maxLatent = 1 << 14

// maxDrop bounds dropout: what is kept is scaled by 1/(1 - rate).
const maxDrop = 0.95

// Validate checks that every value is in its range, and returns all that are
// not, each as an [*Error] that names the key, joined.
func (c *Config) Validate() error {
	var v validator
	v.check(c.Name != "" && len(c.Name) <= 64 && !strings.ContainsAny(c.Name, "/\\\n"), "name", "want 1 to 64 characters without slashes, not %q", c.Name)
	v.oneOf("backend", c.Backend, "go", "xla:cpu", "xla:cuda")
	v.data(&c.Data)
	v.encoder(&c.Encoder)
	v.model(&c.Model)
	v.train(&c.Train)
	v.float("calibrate.alpha", c.Calib.Alpha, 0, 1, exclusive)
	v.check(c.Calib.AlphaBlock >= 0 && c.Calib.AlphaBlock < c.Calib.Alpha, "calibrate.alpha_block", "want a number from 0 to below calibrate.alpha (%v), not %v", c.Calib.Alpha, c.Calib.AlphaBlock)
	v.float("calibrate.beta", c.Calib.Beta, 0, 1, belowHigh)
	v.int("calibrate.window", c.Calib.Window, 1, calib.MaxWindow)
	v.int("eval.recalibrate", c.Eval.Recalibrate, 1, 100_000)
	v.int("eval.recalibrate_draws", c.Eval.RecalibrateDraws, 1, 1000)
	v.int("eval.bootstrap", c.Eval.Bootstrap, 0, 100_000)
	v.check(!c.Eval.LockedSmoke || c.Name == "debug", "eval.locked_smoke", "is for preset debug only: the locked test sets are for the final evaluation")
	return errors.Join(v.errs...)
}

func (v *validator) data(d *Data) {
	v.oneOf("data.protocol", d.Protocol, "p1", "p2", "simulator")
	v.int("data.fold", d.Fold, 0, 4)
	if d.LeaveOut != "" {
		v.oneOf("data.leave_out", d.LeaveOut, suites...)
		v.check(d.Protocol == "p1", "data.leave_out", "needs data.protocol p1: %s trains on no suite of agentdyn", d.Protocol)
	}
	v.int("data.max_runs", d.MaxRuns, 0, 10_000_000)
	v.int("data.simulator_runs", d.SimulatorRuns, 0, 1_000_000)
	v.check(d.Protocol != "simulator" || d.SimulatorRuns > 0, "data.simulator_runs", "want at least 1 with data.protocol simulator, which has no other data")
	for _, name := range sorted(d.Weights) {
		key := "data.weights." + name
		v.oneOf(key, name, datasets...)
		v.float(key, d.Weights[name], 0, 100, inclusive)
	}
}

func (v *validator) encoder(e *Encoder) {
	kinds := []string{"hash", "static", "transformer", "remote"}
	v.oneOf("encoder.kind", e.Kind, kinds...)
	if !slices.Contains(kinds, e.Kind) {
		return
	}
	if e.Kind == "hash" {
		v.int("encoder.dims", e.Dims, 8, 4096)
		return
	}
	v.check(e.Dims == 0 || e.Dims >= 8 && e.Dims <= 4096, "encoder.dims", "want a whole number from 8 to 4096, or 0 for what the encoder gives, not %d", e.Dims)
	v.check(len(e.Prefix) <= 1000, "encoder.prefix", "want at most 1000 bytes, not %d", len(e.Prefix))
	switch t, r := e.Transformer, e.Remote; e.Kind {
	case "transformer":
		v.check(e.Path != "", "encoder.path", "name the folder of the model, with config.json, tokenizer.json and *.safetensors")
		v.int("encoder.transformer.layer", t.Layer, 0, 1000)
		v.check(slices.Contains([]string{"", "mean", "last", "cls"}, t.Pooling), "encoder.transformer.pooling", `want mean, last or cls, or "" for what the folder says, not %q`, t.Pooling)
		v.check(t.MaxTokens == 0 || t.MaxTokens >= 8 && t.MaxTokens <= 1<<17, "encoder.transformer.max_tokens", "want a whole number from 8 to %d, or 0 for what the folder says, not %d", 1<<17, t.MaxTokens)
		v.int("encoder.transformer.overlap", t.Overlap, -1, 1<<16)
		v.check(t.MaxTokens == 0 || t.Overlap <= t.MaxTokens/2, "encoder.transformer.overlap", "want at most half of encoder.transformer.max_tokens (%d), not %d", t.MaxTokens, t.Overlap)
		v.int("encoder.transformer.batch", t.Batch, 1, 4096)
	case "remote":
		err := endpoint.CheckURL(r.URL)
		v.check(err == nil, "encoder.remote.url", "%v", err)
		v.check(r.Model != "" && len(r.Model) <= 200, "encoder.remote.model", "name the model as the server does")
		v.check(r.KeyEnv == "" || endpoint.ValidKeyEnv(r.KeyEnv), "encoder.remote.key_env", "want the name of an environment variable: never write the key itself into a file")
		v.check(!r.SendDims || e.Dims != 0, "encoder.remote.send_dims", "needs encoder.dims, the length to ask for")
		v.check(r.MaxBytes == 0 || r.MaxBytes >= 16 && r.MaxBytes <= 1<<20, "encoder.remote.max_bytes", "want a whole number from 16 to %d, or 0, not %d", 1<<20, r.MaxBytes)
		v.int("encoder.remote.batch", r.Batch, 1, 2048)
		v.int("encoder.remote.concurrency", r.Concurrency, 1, 256)
		v.int("encoder.remote.requests_per_minute", r.RequestsPerMinute, 0, 1_000_000)
		v.float("encoder.remote.timeout", r.Timeout, 0, 3600, aboveLow)
		v.int("encoder.remote.retries", r.Retries, 0, 20)
	}
}

func (v *validator) model(m *Model) {
	v.int("model.hidden", m.Hidden, 1, 4096)
	v.int("model.factors", m.Factors, 1, 256)
	v.int("model.classes", m.Classes, 2, 256)
	v.check(m.Factors*m.Classes <= maxLatent, "model.factors", "want at most %d for model.factors x model.classes, not %d x %d", maxLatent, m.Factors, m.Classes)
	v.int("model.adapter", m.Adapter, 1, 4096)
	v.int("model.head_hidden", m.HeadHidden, 1, 4096)
	v.int("model.feature_hidden", m.FeatureHidden, 0, 4096)
	v.float("model.uniform_mix", m.UniformMix, 0, 1, exclusive) // above 0: it bounds the KL
	v.oneOf("model.latent", m.Latent, "probabilities", "mode")
}

func (v *validator) train(t *Train) {
	v.int("train.batch", t.Batch, 1, 1024)
	v.int("train.max_steps", t.MaxSteps, 1, maxUnroll)
	ascending := len(t.Buckets) > 0 && len(t.Buckets) <= 16 && t.Buckets[0] > 0 &&
		slices.IsSorted(t.Buckets) && len(slices.Compact(slices.Clone(t.Buckets))) == len(t.Buckets)
	v.check(ascending, "train.buckets", "want 1 to 16 lengths above 0, each larger than the one before, not %v", t.Buckets)
	v.check(!ascending || t.Buckets[len(t.Buckets)-1] == t.MaxSteps, "train.buckets", "want the last length to equal train.max_steps (%d), not %v", t.MaxSteps, t.Buckets)
	v.float("train.lr", t.LR, 0, 1, exclusive)
	v.float("train.clip", t.Clip, 0, 1e6, aboveLow)
	v.float("train.world_scale", t.WorldScale, 0, 10, inclusive)
	v.float("train.adapter_scale", t.AdapterScale, 0, 10, inclusive)
	v.int("train.checkpoint_every", t.CheckpointEvery, 1, 1_000_000)
	v.int("train.validate_every", t.ValidateEvery, 1, 1_000_000)
	v.int("train.patience", t.Patience, 0, 1_000_000)
	v.check(slices.Contains([]string{"", "features", "texts", "state", "memory"}, t.Without), "train.without", `want features, texts, state or memory, or "" to leave nothing out, not %q`, t.Without)

	v.int("train.stage1.steps", t.Stage1.Steps, 0, 10_000_000)
	v.float("train.stage1.predict", t.Stage1.Predict, 0, 1000, inclusive)
	v.float("train.stage1.prior", t.Stage1.Prior, 0, 1000, inclusive)
	v.float("train.stage1.dynamics", t.Stage1.Dynamics, 0, 1000, inclusive)
	v.float("train.stage1.represent", t.Stage1.Represent, 0, 1000, inclusive)
	v.float("train.stage1.free_bits", t.Stage1.FreeBits, 0, 1000, inclusive)

	v.int("train.stage2.steps", t.Stage2.Steps, 1, 10_000_000)
	v.int("train.stage2.horizon", t.Stage2.Horizon, 0, 1000)
	v.float("train.stage2.decay", t.Stage2.Decay, 0, 1000, aboveLow)
	v.float("train.stage2.hazard", t.Stage2.Hazard, 0, 1000, inclusive)
	v.float("train.stage2.prefix", t.Stage2.Prefix, 0, 1000, inclusive)
	v.float("train.stage2.world", t.Stage2.World, 0, 1000, inclusive)
	v.float("train.stage2.weak_hazard", t.Stage2.WeakHazard, 0, 1000, inclusive)
	v.float("train.stage2.pos_weight", t.Stage2.PosWeight, 0, 1000, aboveLow)
	v.float("train.stage2.dropout", t.Stage2.Dropout, 0, maxDrop, inclusive)
	v.float("train.stage2.drop_state", t.Stage2.DropState, 0, maxDrop, inclusive)
	v.float("train.stage2.weight_decay", t.Stage2.WeightDecay, 0, 1, inclusive)
	v.int("train.trees.count", t.Trees.Count, 0, 2000)
	v.int("train.trees.leaves", t.Trees.Leaves, 2, 256)
	v.int("train.trees.depth", t.Trees.Depth, 1, 255)
	v.int("train.trees.min_leaf", t.Trees.MinLeaf, 1, 1_000_000)
	v.float("train.trees.rate", t.Trees.Rate, 0, 1, aboveLow)
	v.float("train.trees.l2", t.Trees.L2, 0, 1e6, inclusive)
	v.float("train.trees.hazard", t.Trees.Hazard, 0, 1, inclusive)
	v.float("train.trees.prefix", t.Trees.Prefix, 0, 1, inclusive)
	v.float("train.stage2.average", t.Stage2.Average, 0, 0.99999, inclusive)
}

// bounds says which ends of a range belong to it.
type bounds int

const (
	inclusive bounds = iota // [low, high]
	aboveLow                // (low, high]
	belowHigh               // [low, high)
	exclusive               // (low, high)
)

type validator struct{ errs []error }

func (v *validator) check(ok bool, key, format string, args ...any) {
	if !ok {
		v.errs = append(v.errs, &Error{Key: key, Reason: fmt.Sprintf(format, args...)})
	}
}

func (v *validator) int(key string, x, low, high int) {
	v.check(x >= low && x <= high, key, "want a whole number from %d to %d, not %d", low, high, x)
}

func (v *validator) float(key string, x, low, high float64, b bounds) {
	ok := x >= low && x <= high // false for NaN
	from, to := "from", "to"
	if b == aboveLow || b == exclusive {
		ok, from = ok && x > low, "above"
	}
	if b == belowHigh || b == exclusive {
		ok, to = ok && x < high, "to below"
	}
	v.check(ok && !math.IsInf(x, 0), key, "want a number %s %v %s %v, not %v", from, low, to, high, x)
}

func (v *validator) oneOf(key, x string, allowed ...string) {
	hint := ""
	if near, ok := suggest.Nearest(x, allowed); ok {
		hint = fmt.Sprintf(": did you mean %s?", near)
	}
	v.check(slices.Contains(allowed, x), key, "want %s, not %q%s", either(allowed), x, hint)
}

// either joins words as in "a, b or c".
func either(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func sorted(m map[string]float64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
