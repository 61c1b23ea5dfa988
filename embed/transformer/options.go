package transformer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/dreamguard/dreamguard/internal/boundedfile"
)

// Pooling is how the vectors of a sequence's tokens become one vector.
type Pooling string

// The kinds of pooling. Special tokens that the tokenizer adds take part.
const (
	Mean Pooling = "mean" // of all tokens
	Last Pooling = "last" // the last token, the only one that has seen all others in a decoder
	CLS  Pooling = "cls"  // the first token
)

// Options choose what of a model is used. The zero value is what the folder
// says, of the last layer.
type Options struct {
	// Backend is a name of internal/backend: go, xla:cpu, xla:cuda. "" is go. It
	// does not enter the digest: backends agree to about 1e-6.
	Backend string
	// Layer n is hidden_states[n] of the reference implementation: the output of
	// the n-th block, counted from 1. 0 is the last layer. The last layer of Qwen3
	// is normed by the model's final norm, all others are the raw output of their
	// block. Later blocks are not loaded.
	Layer int
	// Pooling is "" for what 1_Pooling/config.json says and, where there is none,
	// Mean for BERT and Last for Qwen3.
	Pooling Pooling
	// MaxTokens is the longest sequence with its special tokens, at least 8. A
	// longer text is cut into windows. 0 is max_seq_length of
	// sentence_bert_config.json and, where there is none, 512 or
	// max_position_embeddings if that is less.
	MaxTokens int
	// Overlap is how many tokens neighbouring windows share. 0 is MaxTokens / 8, a
	// negative number is none.
	Overlap int
	// Prefix is put before every text: E5 wants "query: " or "passage: ". Prompts
	// that a folder lists are not applied.
	Prefix string
	// Unnormalised leaves out the scaling to unit length. The encoder then does not
	// keep the promise of embed.Encoder: for distillation and analysis.
	Unnormalised bool
	// Batch is the most sequences that are computed at a time, from 1 to 4096; of
	// long ones it is fewer. 0 is 32. It does not enter the digest.
	Batch int
	// Name is the name in the ID; "" is the base name of the folder. It does not
	// enter the digest.
	Name string
}

// Bounds on the options.
const (
	minTokens     = 8
	defaultTokens = 512
	defaultBatch  = 32
	maxBatch      = 4096
)

// resolve fills in what is zero from the folder and checks the rest.
func (o Options) resolve(dir string, f folder, c config) (Options, error) {
	if o.Layer < 0 || o.Layer > c.Layers {
		return o, fmt.Errorf("layer %d: the model has the layers 1 to %d, and 0 for the last", o.Layer, c.Layers)
	}
	if o.Layer == 0 {
		o.Layer = c.Layers
	}
	if o.Pooling == "" {
		var err error
		if o.Pooling, err = f.pooling(); err != nil {
			return o, err
		}
	}
	switch o.Pooling {
	case "":
		if o.Pooling = Mean; c.Model == "qwen3" {
			o.Pooling = Last
		}
	case Mean, Last, CLS:
	default:
		return o, fmt.Errorf("pooling %q is %w: want mean, last or cls", o.Pooling, ErrUnsupported)
	}
	if f.noPrompt && o.Prefix != "" {
		return o, fmt.Errorf("1_Pooling/config.json: include_prompt false is %w: it leaves the prefix out of the pooling; leave the prefix out", ErrUnsupported)
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = f.maxTokens
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = min(defaultTokens, c.Positions)
	}
	if o.MaxTokens < minTokens || o.MaxTokens > c.Positions {
		return o, fmt.Errorf("max tokens %d: want %d to %d, max_position_embeddings of the model", o.MaxTokens, minTokens, c.Positions)
	}
	switch {
	case o.Overlap == 0:
		o.Overlap = o.MaxTokens / 8
	case o.Overlap < 0:
		o.Overlap = 0
	}
	if o.Overlap > o.MaxTokens/2 {
		return o, fmt.Errorf("overlap %d: want at most half of max tokens %d", o.Overlap, o.MaxTokens)
	}
	if o.Batch == 0 {
		o.Batch = defaultBatch
	}
	if o.Batch < 1 || o.Batch > maxBatch {
		return o, fmt.Errorf("batch %d: want 1 to %d", o.Batch, maxBatch)
	}
	if o.Name == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return o, err
		}
		o.Name = filepath.Base(abs)
	}
	return o, nil
}

// folder is what the files of sentence-transformers beside the model say.
type folder struct {
	modes     []string // pooling modes that are on
	pooled    bool     // there is a configuration of pooling
	maxTokens int
	noPrompt  bool // what is put before a text takes no part in pooling
	lower     bool // texts are lower-cased before the tokenizer sees them
}

// maxJSON bounds a configuration in bytes.
const maxJSON = 1 << 20

// readFolder reads modules.json, 1_Pooling/config.json and
// sentence_bert_config.json, each of which may be missing. A module that is not
// implemented would change the vectors and is refused.
func readFolder(dir string) (folder, error) {
	var f folder
	var modules []struct {
		Type string `json:"type"`
		Path string `json:"path"`
	}
	if err := readJSON(filepath.Join(dir, "modules.json"), &modules); err != nil {
		return f, err
	}
	pool := "1_Pooling"
	for _, m := range modules {
		switch kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; kind {
		case "Transformer":
			if m.Path != "" {
				return f, fmt.Errorf("modules.json: a model in the folder %q is %w: open that folder", m.Path, ErrUnsupported)
			}
		case "Normalize":
		case "Pooling":
			if !filepath.IsLocal(m.Path) {
				return f, fmt.Errorf("%w: modules.json: path %q leaves the folder", ErrConfig, m.Path)
			}
			pool = m.Path
		default:
			return f, fmt.Errorf("modules.json: type %q is %w: want Transformer, Pooling, Normalize", m.Type, ErrUnsupported)
		}
	}
	var pooling map[string]json.RawMessage
	if err := readJSON(filepath.Join(dir, pool, "config.json"), &pooling); err != nil {
		return f, err
	}
	f.pooled = pooling != nil
	for key, value := range pooling {
		if mode, ok := strings.CutPrefix(key, "pooling_mode_"); ok && string(value) == "true" {
			f.modes = append(f.modes, mode)
		}
	}
	f.noPrompt = string(pooling["include_prompt"]) == "false"
	var bert struct {
		MaxTokens *int `json:"max_seq_length"`
		Lower     bool `json:"do_lower_case"`
	}
	if err := readJSON(filepath.Join(dir, "sentence_bert_config.json"), &bert); err != nil {
		return f, err
	}
	f.lower = bert.Lower
	if bert.MaxTokens != nil {
		f.maxTokens = *bert.MaxTokens
	}
	return f, nil
}

// pooling is the one mode that is on, "" without a configuration.
func (f folder) pooling() (Pooling, error) {
	if !f.pooled {
		return "", nil
	}
	if len(f.modes) == 1 {
		switch f.modes[0] {
		case "mean_tokens":
			return Mean, nil
		case "lasttoken":
			return Last, nil
		case "cls_token":
			return CLS, nil
		}
	}
	return "", fmt.Errorf("1_Pooling/config.json: pooling modes %v are %w: want one of mean_tokens, cls_token, lasttoken, or set pooling yourself", f.modes, ErrUnsupported)
}

// readJSON decodes a file, and leaves v alone if there is none.
func readJSON(path string, v any) error {
	b, err := readFile(path, maxJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w: %w", path, ErrConfig, err)
	}
	return nil
}

// readFile reads a file of at most most bytes.
func readFile(path string, most int64) ([]byte, error) {
	b, err := boundedfile.Read(path, most)
	if errors.Is(err, boundedfile.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return b, err
}
