package transformer

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func configOf(t testing.TB, name string) map[string]any {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + "/config.json")
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func with(c map[string]any, set map[string]any) []byte {
	c = maps.Clone(c)
	for k, v := range set {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	b, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return b
}

func TestParseConfig(t *testing.T) {
	qwen := configOf(t, "qwen3-tiny")
	want := config{Model: "qwen3", Vocab: 448, Hidden: 32, Inner: 96, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 16,
		Positions: 128, Epsilon: 1e-6, Theta: 1e6}
	// The forms in which files have the rotary base, and what is as good as absent.
	for name, set := range map[string]map[string]any{
		"as written by transformers 5": nil,
		"as written by transformers 4": {"rope_parameters": nil, "rope_theta": 1e6, "rope_scaling": json.RawMessage("null")},
		"both":                         {"rope_theta": 1e6},
		"default scaling":              {"rope_scaling": map[string]any{"type": "default"}},
		"nothing quantised":            {"quantization_config": json.RawMessage("null")},
		"no architectures":             {"architectures": nil},
		"causal":                       {"is_causal": true, "auto_map": map[string]any{}},
		"no window":                    {"use_sliding_window": false, "sliding_window": 4096},
	} {
		got, err := parseConfig(with(qwen, set))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	got, err := parseConfig(with(configOf(t, "bert-tiny"), map[string]any{"hidden_act": nil, "position_embedding_type": "absolute"}))
	if err != nil {
		t.Fatal(err)
	}
	want = config{Model: "bert", Vocab: got.Vocab, Hidden: 32, Inner: 80, Layers: 3, Heads: 4, KVHeads: 4, HeadDim: 8,
		Positions: 64, Types: 2, Epsilon: 1e-12}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseConfigRefuses(t *testing.T) {
	type set = map[string]any
	tests := []struct {
		model string
		set   set
		want  error
		says  string
	}{
		{"bert-tiny", set{"model_type": "roberta"}, ErrUnsupported, `model_type "roberta"`},
		{"bert-tiny", set{"model_type": nil}, ErrUnsupported, "model_type"},
		{"bert-tiny", set{"model_type": 7}, ErrConfig, "model_type"},
		{"bert-tiny", set{"architectures": []string{"BertLMHeadModel"}}, ErrUnsupported, `architectures "BertLMHeadModel"`},
		{"bert-tiny", set{"architectures": []string{"Qwen3Model"}}, ErrUnsupported, "architectures"},
		{"bert-tiny", set{"hidden_act": "gelu_new"}, ErrUnsupported, `hidden_act "gelu_new"`},
		{"bert-tiny", set{"position_embedding_type": "relative_key"}, ErrUnsupported, "position_embedding_type"},
		{"bert-tiny", set{"is_decoder": true}, ErrUnsupported, "is_decoder"},
		{"bert-tiny", set{"add_cross_attention": true}, ErrUnsupported, "add_cross_attention"},
		{"bert-tiny", set{"pruned_heads": set{"0": []int{1}}}, ErrUnsupported, "pruned_heads"},
		{"bert-tiny", set{"quantization_config": set{"bits": 4}}, ErrUnsupported, "quantization_config"},
		{"bert-tiny", set{"auto_map": set{"AutoModel": "modeling.MyModel"}}, ErrUnsupported, "auto_map"},
		{"bert-tiny", set{"is_causal": true}, ErrUnsupported, "is_causal true"},
		{"qwen3-tiny", set{"is_causal": false}, ErrUnsupported, "is_causal false"},
		{"qwen3-tiny", set{"use_bidirectional_attention": true}, ErrUnsupported, "use_bidirectional_attention"},
		{"bert-tiny", set{"num_attention_heads": 5}, ErrConfig, "num_attention_heads 5"},
		{"bert-tiny", set{"hidden_size": nil}, ErrConfig, "no hidden_size"},
		{"bert-tiny", set{"hidden_size": -1}, ErrConfig, "hidden_size"},
		{"bert-tiny", set{"hidden_size": 32.5}, ErrConfig, "hidden_size"},
		{"bert-tiny", set{"hidden_size": 1e9}, ErrConfig, "hidden_size"},
		{"bert-tiny", set{"vocab_size": "many"}, ErrConfig, "vocab_size"},
		{"bert-tiny", set{"layer_norm_eps": 0}, ErrConfig, "layer_norm_eps"},
		{"bert-tiny", set{"type_vocab_size": 0}, ErrConfig, "type_vocab_size"},
		{"qwen3-tiny", set{"model_type": "qwen3_moe"}, ErrUnsupported, `model_type "qwen3_moe"`},
		{"qwen3-tiny", set{"hidden_act": "gelu"}, ErrUnsupported, "hidden_act"},
		{"qwen3-tiny", set{"attention_bias": true}, ErrUnsupported, "attention_bias"},
		{"qwen3-tiny", set{"use_sliding_window": true}, ErrUnsupported, "use_sliding_window"},
		{"qwen3-tiny", set{"layer_types": []string{"full_attention", "sliding_attention"}}, ErrUnsupported, `layer_types "sliding_attention"`},
		{"qwen3-tiny", set{"head_dim": nil}, ErrConfig, "no head_dim"},
		{"qwen3-tiny", set{"head_dim": 15}, ErrConfig, "head_dim 15"},
		{"qwen3-tiny", set{"head_dim": 1 << 16}, ErrConfig, "head_dim 65536"},
		{"qwen3-tiny", set{"num_key_value_heads": 3}, ErrConfig, "num_key_value_heads 3"},
		{"qwen3-tiny", set{"rms_norm_eps": nil}, ErrConfig, "rms_norm_eps"},
		{"qwen3-tiny", set{"rope_parameters": nil}, ErrConfig, "no rope_theta"},
		{"qwen3-tiny", set{"rope_parameters": set{"rope_type": "yarn", "rope_theta": 1e6}}, ErrUnsupported, `rope_parameters: rope_type "yarn"`},
		{"qwen3-tiny", set{"rope_parameters": set{"rope_theta": 1e6, "partial_rotary_factor": 0.5}}, ErrUnsupported, "partial_rotary_factor"},
		{"qwen3-tiny", set{"rope_parameters": set{"full_attention": set{"rope_theta": 1e6}}}, ErrConfig, "rope_parameters: not a valid configuration: no rope_theta"},
		{"qwen3-tiny", set{"rope_parameters": []int{1}}, ErrConfig, "rope_parameters"},
		{"qwen3-tiny", set{"rope_theta": 5}, ErrConfig, "rope_theta"},
		{"qwen3-tiny", set{"rope_scaling": set{"type": "linear", "factor": 2}}, ErrUnsupported, `rope_scaling: type "linear"`},
	}
	for _, tt := range tests {
		_, err := parseConfig(with(configOf(t, tt.model), tt.set))
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s with %v: error %v, want %v and %q", tt.model, tt.set, err, tt.want, tt.says)
		}
	}
	for _, s := range []string{"", "null", "[]", "{", `"bert"`} {
		if _, err := parseConfig([]byte(s)); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, name := range []string{"bert-tiny", "qwen3-tiny"} {
		f.Add(with(configOf(f, name), nil))
	}
	f.Add([]byte(`{"model_type":"bert","hidden_size":1e308}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseConfig(b)
		if err != nil {
			if !errors.Is(err, ErrConfig) && !errors.Is(err, ErrUnsupported) {
				t.Fatal(err)
			}
			return
		}
		if c.Heads*c.HeadDim > maxWidth || c.Heads%c.KVHeads != 0 || c.Vocab > maxVocab || c.Epsilon <= 0 || c.Layers < 1 {
			t.Fatalf("accepted %+v", c)
		}
	})
}
