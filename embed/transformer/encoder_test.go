package transformer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/tokenize"
	"github.com/dreamguard/dreamguard/internal/backend"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

var _ embed.Encoder = (*Encoder)(nil)

func TestContract(t *testing.T) {
	e := mustOpen(t, "testdata/bert-tiny", Options{})
	id := e.ID()
	if id.Kind != "transformer" || id.Name != "bert-tiny" || id.Dims != 32 || len(id.Digest) != 64 {
		t.Errorf("ID %+v", id)
	}
	in := []string{"Send the report.", "", "  \n\u200b", "Send the report.", strings.Repeat("word ", 500)}
	got := encode(t, e, in)
	for i, text := range in {
		var sum float64
		for _, x := range got[i*32 : (i+1)*32] {
			sum += float64(x) * float64(x)
		}
		want := 1.0
		if strings.Trim(text, " \n\u200b") == "" {
			want = 0
		}
		if math.Abs(math.Sqrt(sum)-want) > 1e-6 {
			t.Errorf("text %d has length %v, want %v", i, math.Sqrt(sum), want)
		}
	}
	if !slices.Equal(got[:32], got[3*32:4*32]) {
		t.Error("one text, two vectors")
	}
	if err := e.Encode(t.Context(), in, make([]float32, 1)); !errors.Is(err, ErrInput) {
		t.Errorf("short dst: %v", err)
	}
	if err := e.Encode(t.Context(), nil, nil); err != nil {
		t.Errorf("no texts: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Encode(ctx, in, got); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// A text that spells a special token is text.
	a, b := encode(t, e, []string{"a [SEP] b"}), encode(t, e, []string{"a [ SEP ] b"})
	if d := distance(t, a, b); d > 1e-6 {
		t.Errorf("[SEP] in a text is taken for the special token: %.2g", d)
	}
}

// The company of a text changes the last bits at most: other padding, another
// batch.
func TestBatchesAgree(t *testing.T) {
	for _, be := range backends(t) {
		for _, dir := range []string{"bert-tiny", "qwen3-tiny"} {
			t.Run(dir+"/"+be, func(t *testing.T) {
				in := texts(t, 12)
				e := mustOpen(t, "testdata/"+dir, Options{Backend: be, MaxTokens: 32})
				one := mustOpen(t, "testdata/"+dir, Options{Backend: be, MaxTokens: 32, Batch: 1})
				if e.ID() != one.ID() {
					t.Error("the batch changes the ID")
				}
				got := encode(t, e, in)
				for i, text := range in {
					if d := distance(t, encode(t, one, []string{text}), got[i*32:(i+1)*32]); d > 2e-6 {
						t.Errorf("text %d differs by %.2g", i, d)
					}
				}
			})
		}
	}
}

func TestConcurrent(t *testing.T) {
	for _, be := range backends(t) {
		e := mustOpen(t, "testdata/bert-tiny", Options{Backend: be, MaxTokens: 16})
		in := texts(t, 4)[:4]
		want := encode(t, e, in)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				got := make([]float32, len(want))
				for range 5 {
					if err := e.Encode(t.Context(), in, got); err != nil {
						t.Error(err)
					} else if !slices.Equal(got, want) {
						t.Error("vectors differ between goroutines")
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestIDs(t *testing.T) {
	e := mustOpen(t, "testdata/bert-tiny", Options{MaxTokens: 16, Overlap: 4})
	raw := mustOpen(t, "testdata/bert-tiny", Options{MaxTokens: 16, Overlap: 4, Unnormalised: true})
	ids := [][]int32{e.Tokenizer().AppendWithSpecial(nil, "Send the report."), {7}}
	states, err := e.TokenVectors(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	// The mean of the token vectors is the vector of the sequence.
	got, unscaled := make([]float32, 64), make([]float32, 64)
	if err := e.EncodeIDs(t.Context(), ids, got); err != nil {
		t.Fatal(err)
	}
	if err := raw.EncodeIDs(t.Context(), ids, unscaled); err != nil {
		t.Fatal(err)
	}
	for i, s := range ids {
		mean := make([]float32, 32)
		for at, x := range states[i] {
			mean[at%32] += x / float32(len(s))
		}
		if len(states[i]) != 32*len(s) {
			t.Errorf("sequence %d: %d values", i, len(states[i]))
		}
		if d := distance(t, mean, unscaled[i*32:(i+1)*32]); d > 1e-6 {
			t.Errorf("sequence %d: mean of token vectors differs by %.2g", i, d)
		}
		if err := e.finish(mean); err != nil {
			t.Fatal(err)
		}
		if d := distance(t, mean, got[i*32:(i+1)*32]); d > 1e-6 {
			t.Errorf("sequence %d: vector differs by %.2g", i, d)
		}
	}
	if d := distance(t, encode(t, e, []string{"Send the report."}), got[:32]); d != 0 {
		t.Errorf("Encode and EncodeIDs differ by %.2g", d)
	}
	for name, bad := range map[string][]int32{"empty": {}, "long": make([]int32, 17), "negative": {1, -1}, "beyond the vocabulary": {1 << 20}} {
		if err := e.EncodeIDs(t.Context(), [][]int32{bad}, make([]float32, 32)); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := e.TokenVectors(t.Context(), [][]int32{{1}, bad}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "sequence 1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := e.EncodeIDs(t.Context(), ids, nil); !errors.Is(err, ErrInput) {
		t.Errorf("short dst: %v", err)
	}
}

// Prefix is text before every text, and not content of its own.
func TestPrefix(t *testing.T) {
	e := mustOpen(t, "testdata/bert-tiny", Options{})
	p := mustOpen(t, "testdata/bert-tiny", Options{Prefix: "query: "})
	got := encode(t, p, []string{"report", ""})
	if d := distance(t, encode(t, e, []string{"query: report"}), got[:32]); d != 0 {
		t.Errorf("prefix differs from writing it by %.2g", d)
	}
	if slices.ContainsFunc(got[32:], func(x float32) bool { return x != 0 }) {
		t.Error("the prefix alone has a vector")
	}
}

// Everything that changes the vectors changes the digest, and nothing else does.
func TestDigest(t *testing.T) {
	base := copyModel(t, "bert-tiny")
	seen := map[string]string{}
	open := func(name, dir string, opts Options) string {
		t.Helper()
		return mustOpen(t, dir, opts).ID().Digest
	}
	want := open("base", base, Options{})
	seen[want] = "base"
	for name, opts := range map[string]Options{
		"layer": {Layer: 2}, "pooling": {Pooling: CLS}, "tokens": {MaxTokens: 32}, "overlap": {Overlap: 1},
		"prefix": {Prefix: "a"}, "unnormalised": {Unnormalised: true},
	} {
		d := open(name, base, opts)
		if seen[d] != "" {
			t.Errorf("%s has the digest of %s", name, seen[d])
		}
		seen[d] = name
	}
	for name, opts := range map[string]Options{"name": {Name: "x"}, "batch": {Batch: 1}, "spelled out": {Layer: 3, Pooling: Mean, MaxTokens: 64, Overlap: 8}} {
		if open(name, base, opts) != want {
			t.Errorf("%s changes the digest", name)
		}
	}
	changed := func(name string, change func(dir string)) string {
		dir := copyModel(t, "bert-tiny")
		change(dir)
		return open(name, dir, Options{})
	}
	for name, change := range map[string]func(dir string){
		"epsilon": func(dir string) { edit(t, dir, map[string]any{"layer_norm_eps": 1e-5}) },
		"tokenizer": func(dir string) {
			path := filepath.Join(dir, "tokenizer.json")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, path, append(b, '\n'))
		},
		"one weight": func(dir string) {
			raws := weightsOf(t, dir)
			at := slices.IndexFunc(raws, func(r safetensors.Raw) bool { return r.Name == "encoder.layer.2.output.dense.bias" })
			raws[at].Bytes[0] ^= 1
			writeWeights(t, dir, raws)
		},
		"another layer for pooling": func(dir string) {
			writeFile(t, filepath.Join(dir, "1_Pooling", "config.json"), []byte(`{"pooling_mode_cls_token":false,"pooling_mode_lasttoken":true}`))
		},
	} {
		d := changed(name, change)
		if seen[d] != "" {
			t.Errorf("%s has the digest of %s", name, seen[d])
		}
		seen[d] = name
	}
	for name, change := range map[string]func(dir string){
		"dropout": func(dir string) { edit(t, dir, map[string]any{"hidden_dropout_prob": 0.5}) },
		"the head that is not used": func(dir string) {
			raws := weightsOf(t, dir)
			writeWeights(t, dir, slices.DeleteFunc(raws, func(r safetensors.Raw) bool { return strings.HasPrefix(r.Name, "pooler") }))
		},
	} {
		if changed(name, change) != want {
			t.Errorf("%s changes the digest", name)
		}
	}
}

// Weights in half the width are the weights that they widen to, whatever the
// prefix of their names and however many files they lie in.
func TestHalfWidths(t *testing.T) {
	narrow := func(x float32, dtype string) (half uint16, wide float32) {
		bits := math.Float32bits(x)
		if dtype == "BF16" {
			return uint16(bits >> 16), math.Float32frombits(bits &^ 0xffff)
		}
		// Truncation to ten bits of fraction; weights below 2^-14 become zero.
		exp := int(bits>>23&255) - 112
		if exp <= 0 {
			return 0, 0
		}
		return uint16(bits>>16&0x8000) | uint16(exp)<<10 | uint16(bits>>13&0x3ff), math.Float32frombits(bits &^ 0x1fff)
	}
	for _, dtype := range []string{"BF16", "F16"} {
		half, wide := copyModel(t, "bert-tiny"), copyModel(t, "bert-tiny")
		raws := weightsOf(t, half)
		var halves, wides []safetensors.Raw
		for _, r := range raws {
			if r.DType != "F32" {
				halves, wides = append(halves, r), append(wides, r)
				continue
			}
			x, err := r.Floats()
			if err != nil {
				t.Fatal(err)
			}
			h := safetensors.Raw{Name: "bert." + r.Name, DType: dtype, Shape: r.Shape}
			w := safetensors.Raw{Name: r.Name, DType: "F32", Shape: r.Shape}
			for _, v := range x.Data {
				a, b := narrow(v, dtype)
				h.Bytes = binary.LittleEndian.AppendUint16(h.Bytes, a)
				w.Bytes = binary.LittleEndian.AppendUint32(w.Bytes, math.Float32bits(b))
			}
			halves, wides = append(halves, h), append(wides, w)
		}
		writeWeights(t, half, halves)
		writeWeights(t, wide, wides)
		in := texts(t, 5)
		a, b := mustOpen(t, half, Options{}), mustOpen(t, wide, Options{})
		if d := distance(t, encode(t, a, in), encode(t, b, in)); d != 0 {
			t.Errorf("%s differs from what it widens to by %.2g", dtype, d)
		}
		if a.ID().Digest == b.ID().Digest {
			t.Errorf("%s has the digest of other bytes", dtype)
		}
	}
	// One file instead of shards.
	dir := copyModel(t, "qwen3-tiny")
	writeWeights(t, dir, weightsOf(t, dir))
	if a, b := mustOpen(t, dir, Options{}).ID(), mustOpen(t, "testdata/qwen3-tiny", Options{}).ID(); a.Digest != b.Digest {
		t.Error("shards change the digest")
	}
}

// Loading stops at the layer: what lies behind need not even be there.
func TestStopsAtTheLayer(t *testing.T) {
	dir := copyModel(t, "qwen3-tiny")
	raws := weightsOf(t, dir)
	writeWeights(t, dir, slices.DeleteFunc(raws, func(r safetensors.Raw) bool {
		return strings.HasPrefix(r.Name, "model.layers.2.") || strings.HasPrefix(r.Name, "model.layers.3.") || r.Name == "model.norm.weight"
	}))
	in := texts(t, 3)
	got := encode(t, mustOpen(t, dir, Options{Layer: 2}), in)
	if d := distance(t, got, encode(t, mustOpen(t, "testdata/qwen3-tiny", Options{Layer: 2}), in)); d != 0 {
		t.Errorf("vectors differ by %.2g", d)
	}
	if _, err := Open(dir, Options{Layer: 3}); !errors.Is(err, safetensors.ErrMissing) || !errors.Is(err, ErrWeights) {
		t.Errorf("a layer that is not there: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	weight := func(change func(r *safetensors.Raw)) func(dir string) {
		return func(dir string) {
			raws := weightsOf(t, dir)
			for i := range raws {
				if raws[i].Name == "encoder.layer.0.intermediate.dense.weight" {
					change(&raws[i])
				}
			}
			writeWeights(t, dir, raws)
		}
	}
	put := func(name, text string) func(dir string) {
		return func(dir string) { writeFile(t, filepath.Join(dir, filepath.FromSlash(name)), []byte(text)) }
	}
	remove := func(name string) func(dir string) {
		return func(dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name   string
		change func(dir string)
		opts   Options
		want   error
		says   string
	}{
		{"no config", remove("config.json"), Options{}, fs.ErrNotExist, "config.json"},
		{"no tokenizer", remove("tokenizer.json"), Options{}, fs.ErrNotExist, "tokenizer.json"},
		{"no weights", remove("model.safetensors"), Options{}, fs.ErrNotExist, "safetensors"},
		{"huge config", put("config.json", strings.Repeat(" ", maxJSON+1)), Options{}, ErrConfig, "bytes"},
		{"config", put("config.json", `{"model_type":"mpnet"}`), Options{}, ErrUnsupported, `config.json: model_type "mpnet"`},
		{"tokenizer", put("tokenizer.json", "[]"), Options{}, tokenize.ErrFormat, "tokenizer.json"},
		{"small vocabulary", func(dir string) { edit(t, dir, map[string]any{"vocab_size": 100}) }, Options{}, ErrConfig, "vocab_size"},
		{"cut weights", func(dir string) {
			b, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, "model.safetensors"), b[:len(b)-1])
		}, Options{}, safetensors.ErrTruncated, "model.safetensors"},
		{"shape", func(dir string) { edit(t, dir, map[string]any{"intermediate_size": 81}) }, Options{}, ErrWeights, "intermediate.dense.weight has shape [80 32], want [81 32]"},
		{"layers", func(dir string) { edit(t, dir, map[string]any{"num_hidden_layers": 4}) }, Options{}, ErrWeights, "layer.3"},
		{"integers", weight(func(r *safetensors.Raw) { r.DType = "I32" }), Options{}, safetensors.ErrDType, "intermediate.dense.weight"},
		{"NaN", weight(func(r *safetensors.Raw) {
			binary.LittleEndian.PutUint32(r.Bytes[8:], math.Float32bits(float32(math.NaN())))
		}), Options{}, safetensors.ErrNotFinite, "intermediate.dense.weight"},
		{"module", put("modules.json", `[{"type":"sentence_transformers.models.Dense"}]`), Options{}, ErrUnsupported, "Dense"},
		{"model elsewhere", put("modules.json", `[{"type":"x.Transformer","path":"0_Transformer"}]`), Options{}, ErrUnsupported, "0_Transformer"},
		{"pooling elsewhere", put("modules.json", `[{"type":"x.Pooling","path":"../1_Pooling"}]`), Options{}, ErrConfig, "../1_Pooling"},
		{"modules", put("modules.json", `{}`), Options{}, ErrConfig, "modules.json"},
		{"pooling of the folder", put("1_Pooling/config.json", `{"pooling_mode_max_tokens":true}`), Options{}, ErrUnsupported, "max_tokens"},
		{"two poolings", put("1_Pooling/config.json", `{"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":true}`), Options{}, ErrUnsupported, "1_Pooling"},
		{"prompt left out of pooling", put("1_Pooling/config.json", `{"pooling_mode_mean_tokens":true,"include_prompt":false}`), Options{Prefix: "query: "}, ErrUnsupported, "include_prompt"},
		{"lower case", func(dir string) {
			put("sentence_bert_config.json", `{"do_lower_case":true}`)(dir)
			b, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
			if err != nil {
				t.Fatal(err)
			}
			put("tokenizer.json", strings.Replace(string(b), `"lowercase": true`, `"lowercase": false`, 1))(dir)
		}, Options{}, ErrUnsupported, "do_lower_case"},
		{"length of the folder", put("sentence_bert_config.json", `{"max_seq_length":512}`), Options{}, nil, "max tokens 512"},
		{"layer", nil, Options{Layer: 4}, nil, "layers 1 to 3"},
		{"negative layer", nil, Options{Layer: -1}, nil, "layer -1"},
		{"pooling", nil, Options{Pooling: "max"}, ErrUnsupported, `pooling "max"`},
		{"few tokens", nil, Options{MaxTokens: 4}, nil, "max tokens 4"},
		{"many tokens", nil, Options{MaxTokens: 65}, nil, "max tokens 65"},
		{"overlap", nil, Options{Overlap: 33}, nil, "overlap 33"},
		{"batch", nil, Options{Batch: -1}, nil, "batch -1"},
		{"long prefix", nil, Options{MaxTokens: 8, Prefix: strings.Repeat("a ", 9)}, nil, "prefix"},
		{"backend", nil, Options{Backend: "tpu"}, backend.ErrUnknown, "tpu"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := copyModel(t, "bert-tiny")
			if tt.change != nil {
				tt.change(dir)
			}
			e, err := Open(dir, tt.opts)
			if err == nil {
				e.Close()
				t.Fatal("opened")
			}
			if tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), dir) {
				t.Errorf("error %v, want %v and %q", err, tt.want, tt.says)
			}
		})
	}
	// BGE's folder asks for lower case, which its tokenizer sees to.
	dir := copyModel(t, "bert-tiny")
	put("sentence_bert_config.json", `{"max_seq_length":32,"do_lower_case":true}`)(dir)
	if got := mustOpen(t, dir, Options{}).Options().MaxTokens; got != 32 {
		t.Errorf("max tokens %d, the folder says 32", got)
	}
	// A pooling that the folder cannot state can still be set.
	dir = copyModel(t, "bert-tiny")
	put("1_Pooling/config.json", `{"pooling_mode_max_tokens":true}`)(dir)
	mustOpen(t, dir, Options{Pooling: Mean})
}

// Weights that overflow float32 give an error and no vector.
func TestOverflow(t *testing.T) {
	dir := copyModel(t, "qwen3-tiny")
	raws := weightsOf(t, dir)
	for i, r := range raws {
		if strings.HasSuffix(r.Name, "layers.0.mlp.down_proj.weight") {
			raws[i].Bytes = bytes.Repeat([]byte{0x7f, 0x7f}, len(r.Bytes)/2) // the largest bfloat16
		}
	}
	writeWeights(t, dir, raws)
	e := mustOpen(t, dir, Options{Pooling: Mean})
	if err := e.Encode(t.Context(), []string{"a b"}, make([]float32, 32)); err == nil || !strings.Contains(err.Error(), "not finite") {
		t.Errorf("error %v", err)
	}
}
