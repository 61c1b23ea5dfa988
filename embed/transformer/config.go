package transformer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// config is what a graph needs of config.json. Fields that an architecture does
// not have are zero.
type config struct {
	Model     string  `json:"model"`          // model_type: bert or qwen3
	Vocab     int     `json:"vocab"`          // rows of the embedding table
	Hidden    int     `json:"hidden"`         // width of the hidden states
	Inner     int     `json:"inner"`          // width of the feed-forward layer
	Layers    int     `json:"layers"`         // blocks in the file
	Heads     int     `json:"heads"`          // query heads
	KVHeads   int     `json:"kv_heads"`       // key and value heads; Heads is a multiple
	HeadDim   int     `json:"head_dim"`       // width of a head
	Positions int     `json:"positions"`      // longest sequence
	Types     int     `json:"types"`          // BERT: rows of the token type table
	Epsilon   float64 `json:"epsilon"`        // of the normalisations
	Theta     float64 `json:"theta"`          // Qwen3: base of the rotary frequencies
	Prefix    string  `json:"-"`              // of the names of the weights
	Norm      bool    `json:"norm,omitempty"` // Qwen3: the final norm belongs to the chosen layer
}

// Bounds on what config.json may ask for: every model published is far below, and
// no product of two of them overflows.
const (
	maxWidth  = 1 << 17
	maxVocab  = 1 << 22
	maxLayers = 1 << 10
	maxLength = 1 << 20
)

// architectures lists what each model type may call itself: the same blocks with
// another head, which is not used.
var architectures = map[string][]string{
	"bert": {"BertModel", "BertForMaskedLM", "BertForPreTraining", "BertForSequenceClassification",
		"BertForTokenClassification", "BertForQuestionAnswering", "BertForNextSentencePrediction"},
	"qwen3": {"Qwen3Model", "Qwen3ForCausalLM", "Qwen3ForSequenceClassification",
		"Qwen3ForTokenClassification", "Qwen3ForQuestionAnswering"},
}

// CheckConfig reports why config.json, whose content is b, describes no model that this
// package implements; nil if it does. Errors wrap [ErrConfig] or [ErrUnsupported].
func CheckConfig(b []byte) error {
	_, err := parseConfig(b)
	return err
}

// parseConfig reads config.json. Whatever would change the vectors and is not
// implemented is an error that names the field.
func parseConfig(b []byte) (config, error) {
	var f fields
	if err := json.Unmarshal(b, &f.values); err != nil {
		return config{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	c := config{Model: f.text("model_type", "")}
	if f.err == nil && architectures[c.Model] == nil {
		f.err = fmt.Errorf("model_type %q is %w: want bert or qwen3", c.Model, ErrUnsupported)
	}
	for _, a := range f.texts("architectures") {
		if f.err == nil && !slices.Contains(architectures[c.Model], a) {
			f.err = fmt.Errorf("architectures %q is %w: want one of %s", a, ErrUnsupported, strings.Join(architectures[c.Model], ", "))
		}
	}
	f.absent("quantization_config", "save the model in float32, float16 or bfloat16")
	f.absent("auto_map", "the model brings code of its own, which may compute anything")
	c.Vocab = f.count("vocab_size", maxVocab)
	c.Hidden = f.count("hidden_size", maxWidth)
	c.Inner = f.count("intermediate_size", maxWidth)
	c.Layers = f.count("num_hidden_layers", maxLayers)
	c.Heads = f.count("num_attention_heads", maxWidth)
	c.Positions = f.count("max_position_embeddings", maxLength)
	switch c.Model {
	case "bert":
		c.bert(&f)
	case "qwen3":
		c.qwen3(&f)
	}
	if f.err != nil {
		return config{}, f.err
	}
	return c, nil
}

// bert reads the fields of BertConfig.
func (c *config) bert(f *fields) {
	f.only("hidden_act", "gelu")
	f.only("position_embedding_type", "absolute")
	f.is("is_causal", false)
	f.off("is_decoder")
	f.off("add_cross_attention")
	f.absent("pruned_heads", "")
	c.Types = f.count("type_vocab_size", maxVocab)
	c.Epsilon = f.positive("layer_norm_eps")
	c.KVHeads = c.Heads
	if f.err == nil && c.Hidden%c.Heads != 0 {
		f.err = fmt.Errorf("%w: hidden_size %d is not a multiple of num_attention_heads %d", ErrConfig, c.Hidden, c.Heads)
	}
	if f.err == nil {
		c.HeadDim = c.Hidden / c.Heads
	}
}

// qwen3 reads the fields of Qwen3Config. The reference takes 128 for a head_dim
// that is left out, older files mean hidden_size / num_attention_heads: it has to
// be stated.
func (c *config) qwen3(f *fields) {
	f.only("hidden_act", "silu")
	f.is("is_causal", true) // some embedding models see what comes after a token
	f.off("use_bidirectional_attention")
	f.off("attention_bias")
	f.off("use_sliding_window")
	for _, kind := range f.texts("layer_types") {
		if f.err == nil && kind != "full_attention" {
			f.err = fmt.Errorf("layer_types %q is %w: want full_attention", kind, ErrUnsupported)
		}
	}
	c.KVHeads = f.count("num_key_value_heads", maxWidth)
	c.HeadDim = f.count("head_dim", maxWidth)
	c.Epsilon = f.positive("rms_norm_eps")
	c.Theta = f.theta()
	if f.err == nil && c.Heads%c.KVHeads != 0 {
		f.err = fmt.Errorf("%w: num_attention_heads %d is not a multiple of num_key_value_heads %d", ErrConfig, c.Heads, c.KVHeads)
	}
	if f.err == nil && c.HeadDim%2 != 0 {
		f.err = fmt.Errorf("%w: head_dim %d is odd, rotary positions pair its halves", ErrConfig, c.HeadDim)
	}
	if f.err == nil && c.Heads*c.HeadDim > maxWidth {
		f.err = fmt.Errorf("%w: num_attention_heads %d times head_dim %d is over %d", ErrConfig, c.Heads, c.HeadDim, maxWidth)
	}
}

// theta reads the base of the rotary frequencies, from rope_parameters as current
// files have it or from the top level as older ones do.
func (f *fields) theta() float64 {
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		if !f.has(name) {
			continue
		}
		var inner fields
		if err := json.Unmarshal(f.values[name], &inner.values); err != nil {
			f.fail(fmt.Errorf("%w: %s: %w", ErrConfig, name, err))
			return 0
		}
		for _, key := range []string{"rope_type", "type"} {
			inner.only(key, "default")
		}
		if name == "rope_parameters" {
			if inner.has("partial_rotary_factor") && inner.positive("partial_rotary_factor") != 1 {
				inner.fail(fmt.Errorf("partial_rotary_factor is %w", ErrUnsupported))
			}
			theta := inner.positive("rope_theta")
			if inner.err == nil && f.has("rope_theta") && f.positive("rope_theta") != theta {
				inner.fail(fmt.Errorf("%w: rope_theta differs from that of the top level", ErrConfig))
			}
			if inner.err == nil {
				return theta
			}
		}
		if inner.err != nil {
			f.fail(fmt.Errorf("%s: %w", name, inner.err))
			return 0
		}
	}
	return f.positive("rope_theta")
}

// fields reads members of a JSON object and keeps the first error, which names
// the member.
type fields struct {
	values map[string]json.RawMessage
	err    error
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// has reports whether a member is there and not null.
func (f *fields) has(name string) bool {
	v, ok := f.values[name]
	return ok && string(v) != "null"
}

// get decodes a member that is there.
func (f *fields) get(name string, into any) bool {
	if f.err != nil || !f.has(name) {
		return false
	}
	if err := json.Unmarshal(f.values[name], into); err != nil {
		f.err = fmt.Errorf("%w: %s: %w", ErrConfig, name, err)
		return false
	}
	return true
}

func (f *fields) text(name, otherwise string) string {
	f.get(name, &otherwise)
	return otherwise
}

func (f *fields) texts(name string) (list []string) {
	f.get(name, &list)
	return list
}

// count reads an integer from 1 to most that must be there.
func (f *fields) count(name string, most int) int {
	x := f.positive(name)
	if f.err == nil && (x != math.Trunc(x) || x > float64(most)) {
		f.err = fmt.Errorf("%w: %s is %v, want an integer from 1 to %d", ErrConfig, name, x, most)
	}
	if f.err != nil {
		return 0
	}
	return int(x)
}

// positive reads a number above 0 that must be there.
func (f *fields) positive(name string) float64 {
	var x float64
	if !f.get(name, &x) {
		f.fail(fmt.Errorf("%w: no %s", ErrConfig, name))
		return 0
	}
	if x <= 0 {
		f.fail(fmt.Errorf("%w: %s is %v, want more than 0", ErrConfig, name, x))
	}
	return x
}

// only refuses any value but want, which is also the reference's default.
func (f *fields) only(name, want string) {
	if got := f.text(name, want); f.err == nil && got != want {
		f.err = fmt.Errorf("%s %q is %w: want %s", name, got, ErrUnsupported, want)
	}
}

// off refuses true.
func (f *fields) off(name string) { f.is(name, false) }

// is refuses another value than want, which is also the reference's default.
func (f *fields) is(name string, want bool) {
	got := want
	if f.get(name, &got) && got != want {
		f.err = fmt.Errorf("%s %t is %w", name, got, ErrUnsupported)
	}
}

// absent refuses a member that is neither null nor empty.
func (f *fields) absent(name, instead string) {
	if f.err != nil || !f.has(name) {
		return
	}
	if v := string(f.values[name]); v == "{}" || v == "[]" {
		return
	}
	f.err = fmt.Errorf("%s is %w", name, ErrUnsupported)
	if instead != "" {
		f.err = fmt.Errorf("%w: %s", f.err, instead)
	}
}

// Errors of this package. They come wrapped in a message that names the file and
// the field: test with errors.Is.
var (
	ErrConfig      = errors.New("not a valid configuration")
	ErrUnsupported = errors.New("not supported")
	ErrWeights     = errors.New("weights do not fit the configuration")
	ErrInput       = errors.New("not a valid input")
)
