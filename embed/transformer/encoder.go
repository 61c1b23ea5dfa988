package transformer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/tokenize"
	"github.com/dreamguard/dreamguard/internal/backend"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// graphVersion enters every digest. It changes whenever the same files and
// options give other vectors than before.
const graphVersion = "dreamguard.transformer/v1"

// About the most tokens of a step of several sequences. On a CPU more make no
// token cheaper and push what is computed out of its caches; a GPU wants many.
const (
	cpuTokens = 512
	gpuTokens = 16384
)

// Encoder runs a model. It is safe for concurrent use; the steps of all callers
// run one after another, since each takes all cores.
type Encoder struct {
	id         embed.ID
	config     config
	options    Options
	tokens     *tokenize.Tokenizer
	head, tail []int32 // special tokens before and after a text
	prefix     []int32 // tokens of a text without content
	grid       grid
	backend    compute.Backend
	weights    []*tensors.Tensor
	params     []param
	pool, row  *graph.Exec
	turn       chan struct{} // holds one value; whoever has it may run a step
}

// Open loads the model in dir, a plain folder of Hugging Face: config.json,
// tokenizer.json, and model.safetensors or its shards, of F32, F16 or BF16.
// Errors wrap [ErrConfig], [ErrUnsupported], [ErrWeights], those of packages
// tokenize, safetensors and backend, or fs.ErrNotExist.
func Open(dir string, opts Options) (*Encoder, error) {
	e := &Encoder{turn: make(chan struct{}, 1)}
	if err := e.open(dir, opts); err != nil {
		e.Close()
		return nil, fmt.Errorf("open encoder %s: %w", dir, err)
	}
	return e, nil
}

func (e *Encoder) open(dir string, opts Options) error {
	b, err := readFile(filepath.Join(dir, "config.json"), maxJSON)
	if err != nil {
		return err
	}
	if e.config, err = parseConfig(b); err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	f, err := readFolder(dir)
	if err != nil {
		return err
	}
	if e.options, err = opts.resolve(dir, f, e.config); err != nil {
		return err
	}
	e.config.Norm = e.config.Model == "qwen3" && e.options.Layer == e.config.Layers
	vocabulary, err := readFile(filepath.Join(dir, "tokenizer.json"), tokenize.MaxFile)
	if err != nil {
		return err
	}
	if err := e.tokenizer(vocabulary); err != nil {
		return err
	}
	// BGE asks for what its tokenizer does anyway.
	if f.lower && !slices.Equal(e.tokens.Append(nil, "Send ÀÉ"), e.tokens.Append(nil, "send àé")) {
		return fmt.Errorf("sentence_bert_config.json: do_lower_case is %w with a tokenizer that keeps case", ErrUnsupported)
	}
	d, err := safetensors.OpenFolder(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: convert other formats to safetensors first", err)
		}
		return err
	}
	defer d.Close() // read only
	if e.backend, err = backend.Open(e.options.Backend); err != nil {
		return err
	}
	if err := e.load(d, sha256.Sum256(vocabulary)); err != nil {
		return err
	}
	tokens := cpuTokens
	if e.options.Backend == backend.XLACUDA {
		tokens = gpuTokens
	}
	e.grid = newGrid(e.options.MaxTokens, e.options.Batch, tokens)
	return e.build()
}

// tokenizer parses tokenizer.json and finds the special tokens of a sequence.
func (e *Encoder) tokenizer(file []byte) error {
	t, err := tokenize.Parse(file)
	if err != nil {
		return err
	}
	if t.Size() > e.config.Vocab {
		return fmt.Errorf("tokenizer.json: %w: %d tokens, and vocab_size of config.json is %d", ErrConfig, t.Size(), e.config.Vocab)
	}
	e.tokens = t
	probe := t.Append(nil, "a")
	around := t.AppendWithSpecial(nil, "a")
	at := 0
	for at+len(probe) <= len(around) && !slices.Equal(around[at:at+len(probe)], probe) {
		at++
	}
	if len(probe) == 0 || at+len(probe) > len(around) {
		return fmt.Errorf("tokenizer.json: post_processor is %w: want special tokens before and after the text", ErrUnsupported)
	}
	e.head, e.tail = around[:at:at], around[at+len(probe):]
	e.prefix = t.Append(nil, e.options.Prefix)
	if room := e.options.MaxTokens - len(e.head) - len(e.tail); room <= e.options.Overlap || room <= len(e.prefix) {
		return fmt.Errorf("max tokens %d leave no room beside %d special tokens, an overlap of %d and a prefix of %d",
			e.options.MaxTokens, len(e.head)+len(e.tail), e.options.Overlap, len(e.prefix))
	}
	return nil
}

// load reads the weights of the layers that are needed and sets the ID.
func (e *Encoder) load(d *safetensors.Folder, vocabulary [sha256.Size]byte) error {
	for _, e.config.Prefix = range map[string][]string{"bert": {"bert.", ""}, "qwen3": {"model.", ""}}[e.config.Model] {
		e.params = e.config.params(e.options.Layer)
		if d.Has(e.params[0].from[0]) {
			break
		}
	}
	for _, p := range e.params {
		if err := p.check(d); err != nil {
			return err
		}
	}
	o := e.options
	what, err := json.Marshal(struct {
		Version   string
		Tokenizer string
		Config    config
		Layer     int
		Pooling   Pooling
		MaxTokens int
		Overlap   int
		Prefix    string
		Raw       bool
	}{graphVersion, hex.EncodeToString(vocabulary[:]), e.config, o.Layer, o.Pooling, o.MaxTokens, o.Overlap, o.Prefix, o.Unnormalised})
	if err != nil {
		return err
	}
	digest := sha256.New()
	digest.Write(what)
	for _, p := range e.params {
		w, err := p.load(d, e.backend, digest)
		if err != nil {
			return err
		}
		e.weights = append(e.weights, w)
	}
	e.id = embed.ID{Kind: "transformer", Name: o.Name, Dims: e.config.Hidden, Digest: hex.EncodeToString(digest.Sum(nil))}
	return nil
}

// build makes the two graphs: one vector per sequence, and one per token.
func (e *Encoder) build() error {
	hidden := func(nodes []*graph.Node) (*net, *graph.Node) {
		n := &net{config: e.config, w: map[string]*graph.Node{}}
		for i, p := range e.params {
			n.w[p.name] = nodes[i]
		}
		n.ids, n.lens = nodes[len(e.params)], nodes[len(e.params)+1]
		return n, n.hidden(e.options.Layer)
	}
	var err error
	e.pool, err = graph.NewExec(e.backend, func(nodes []*graph.Node) *graph.Node {
		n, x := hidden(nodes)
		return n.pooled(x, e.options.Pooling)
	})
	if err != nil {
		return err
	}
	e.row, err = graph.NewExec(e.backend, func(nodes []*graph.Node) *graph.Node {
		n, x := hidden(nodes)
		return graph.Reshape(x, n.batch(), n.length(), n.Hidden)
	})
	if err != nil {
		return err
	}
	e.pool.SetMaxCache(maxExecutables)
	e.row.SetMaxCache(maxExecutables)
	return nil
}

// Close frees the weights. The encoder must not be used afterwards, and no call
// may be under way.
func (e *Encoder) Close() {
	for _, exec := range []*graph.Exec{e.pool, e.row} {
		if exec != nil { // nil if opening failed
			exec.Finalize()
		}
	}
	for _, w := range e.weights {
		w.FinalizeAll() // fails for a backend that is gone, and the weights with it
	}
	e.weights = nil
}

// ID identifies the model, its files and the options.
func (e *Encoder) ID() embed.ID { return e.id }

// Options returns the options with what the folder said filled in.
func (e *Encoder) Options() Options { return e.options }

// Tokenizer returns the tokenizer of the model.
func (e *Encoder) Tokenizer() *tokenize.Tokenizer { return e.tokens }

// Encode implements embed.Encoder. A text of more than MaxTokens tokens is the mean
// of its windows' vectors, weighted by their tokens and taken before the scaling
// to unit length; each window has the special tokens around it, and only the first
// one the prefix. A text without tokens is a vector of zeros.
func (e *Encoder) Encode(ctx context.Context, texts []string, dst []float32) error {
	dims := e.id.Dims
	if len(dst) != len(texts)*dims {
		return fmt.Errorf("%w: dst has %d values, want %d texts times %d", ErrInput, len(dst), len(texts), dims)
	}
	clear(dst)
	var sequences [][]int32
	var of []int          // the text of a sequence
	var weights []float32 // its share of the text's vector
	size := e.options.MaxTokens - len(e.head) - len(e.tail)
	for i, text := range texts {
		ids := e.tokens.Append(nil, e.options.Prefix+text)
		if slices.Equal(ids, e.prefix) {
			continue
		}
		ws := windows(len(ids), size, e.options.Overlap)
		total := 0
		for _, w := range ws {
			total += len(e.head) + w.to - w.from + len(e.tail)
		}
		for _, w := range ws {
			s := slices.Concat(e.head, ids[w.from:w.to], e.tail)
			sequences = append(sequences, s)
			of = append(of, i)
			weights = append(weights, float32(len(s))/float32(total))
		}
	}
	err := e.run(ctx, e.pool, sequences, func(i int, v []float32) {
		at := dst[of[i]*dims:][:dims]
		for j, x := range v {
			at[j] += weights[i] * x
		}
	})
	if err != nil {
		return fmt.Errorf("encode with %s: %w", e.id.Name, err)
	}
	return e.finish(dst)
}

// EncodeIDs is Encode for sequences of token ids, which must be whole: special
// tokens are not added. Each has 1 to MaxTokens ids. The vector of ids[i] goes to
// dst[i*Dims:(i+1)*Dims].
func (e *Encoder) EncodeIDs(ctx context.Context, ids [][]int32, dst []float32) error {
	if len(dst) != len(ids)*e.id.Dims {
		return fmt.Errorf("%w: dst has %d values, want %d sequences times %d", ErrInput, len(dst), len(ids), e.id.Dims)
	}
	err := e.run(ctx, e.pool, ids, func(i int, v []float32) { copy(dst[i*e.id.Dims:], v) })
	if err != nil {
		return fmt.Errorf("encode with %s: %w", e.id.Name, err)
	}
	return e.finish(dst)
}

// TokenVectors returns the hidden state of every token of the chosen layer:
// out[i] holds the len(ids[i]) vectors of ids[i] one after another, not scaled.
// Sequences are as in EncodeIDs.
func (e *Encoder) TokenVectors(ctx context.Context, ids [][]int32) ([][]float32, error) {
	out := make([][]float32, len(ids))
	err := e.run(ctx, e.row, ids, func(i int, v []float32) {
		out[i] = slices.Clone(v[:len(ids[i])*e.id.Dims])
	})
	if err != nil {
		return nil, fmt.Errorf("encode with %s: %w", e.id.Name, err)
	}
	return out, nil
}

// finish scales the vectors in dst to unit length. Weights of a damaged model can
// overflow: better no vector than one that poisons a training run.
func (e *Encoder) finish(dst []float32) error {
	dims := e.id.Dims
	for i := 0; i < len(dst); i += dims {
		v := dst[i : i+dims]
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		if math.IsNaN(sum) || math.IsInf(sum, 0) {
			return fmt.Errorf("encode with %s: the vector of input %d is not finite: the weights overflow", e.id.Name, i/dims)
		}
		if sum == 0 || e.options.Unnormalised {
			continue
		}
		scale := 1 / math.Sqrt(sum)
		for j, x := range v {
			v[j] = float32(float64(x) * scale)
		}
	}
	return nil
}
