package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/internal/backend"
	"github.com/dreamguard/dreamguard/internal/safetensors"
	"github.com/dreamguard/dreamguard/train"
)

// childMode makes the test binary behave as a probed process.
const childMode = "DOCTOR_TEST_CHILD"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(childMode); mode {
	case "":
		os.Exit(m.Run())
	case "here":
		if err := json.NewEncoder(os.Stdout).Encode(Here(context.Background(), os.Args[len(os.Args)-1])); err != nil {
			panic(err)
		}
	case "other":
		fmt.Println(`{"name":"xla:tpu","available":true}`)
	case "text":
		fmt.Println("Go backend: parallelism set to 2")
	case "abort":
		fmt.Fprintln(os.Stderr, "I0000 starting\nF0000 Unknown flags in XLA_FLAGS: --xla_x\n*** Check failure stack trace: ***\n    @ 0x1234")
		os.Exit(134)
	case "signal":
		fmt.Fprintln(os.Stderr, "SIGSEGV: segmentation violation\nPC=0x0 m=7 sigcode=1 addr=0x0\n\ngoroutine 1 gp=0x3378943ae1e0")
		os.Exit(2)
	case "hang":
		time.Sleep(time.Minute)
	default:
		fmt.Fprintln(os.Stderr, "unknown mode", mode)
		os.Exit(1)
	}
}

func TestChild(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]string{
		"other":  "instead of a report",
		"text":   "instead of a report",
		"abort":  "exit status 134: F0000 Unknown flags in XLA_FLAGS: --xla_x",
		"signal": "exit status 2: SIGSEGV: segmentation violation",
		"hang":   "did not answer",
	} {
		t.Setenv(childMode, mode)
		ctx, cancel := context.Background(), func() {}
		if mode == "hang" {
			ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		}
		b := Child(self, "probe")(ctx, backend.Go)
		cancel()
		if b.Name != backend.Go || b.Available || b.Rate != nil || !strings.Contains(b.Reason, want) {
			t.Errorf("%s: %+v, want a reason with %q", mode, b, want)
		}
	}
	t.Setenv(childMode, "here")
	if b := Child(self)(context.Background(), backend.Go); !b.Available || b.Rate == nil || !(b.Rate.StepsPerSecond > 0) {
		t.Errorf("go: %+v", b)
	}
	if b := Child("/nowhere/dreamguard")(context.Background(), backend.Go); b.Available || !strings.Contains(b.Reason, "no such file") {
		t.Errorf("no program: %+v", b)
	}
}

func TestExamine(t *testing.T) {
	t.Setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
	missing := filepath.Join(t.TempDir(), "none")
	r := Examine(context.Background(), Options{
		Backends: []string{backend.XLACUDA, backend.Go},
		Probe: func(_ context.Context, name string) Backend {
			if name == backend.Go {
				return Backend{backend.Status{Name: name, Available: true, Description: "Go"}, &train.Rate{StepsPerSecond: 81, FirstSeconds: 0.1}}
			}
			return Backend{Status: backend.Status{Name: name, Reason: "no /dev/nvidia*"}}
		},
		BuiltIn:  fstest.MapFS{static.FileName: {Data: table(t)}},
		Encoders: []string{missing},
		Dir:      t.TempDir(),
	})
	if r.Cores < 1 || len(r.Backends) != 2 || r.Backends[0].Name != backend.XLACUDA || r.SIMD.On == (r.SIMD.Reason != "") {
		t.Errorf("got %+v", r)
	}
	if r.Environment["XLA_FLAGS"] != "--xla_backend_optimization_level=0" {
		t.Errorf("environment %v", r.Environment)
	}
	if runtime.GOOS == "linux" && (r.Memory == nil || r.Memory.Available > r.Memory.Total || r.Memory.Available <= 0 || r.Disk == nil || r.Disk.Free <= 0) {
		t.Errorf("memory %+v, disk %+v", r.Memory, r.Disk)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"XLA_FLAGS=--xla_backend_optimization_level=0\n", "xla:cuda  -        -           not available\n", "go        81       0.1 s       Go\n",
		"xla:cuda: no /dev/nvidia*\n", "encoder (built in): static two-words, width 2, 0 MiB\n", "encoder " + missing + ": not usable: config.json: no such file or directory\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestSIMD(t *testing.T) {
	for _, c := range []struct {
		experiment, arch string
		on               bool
		reason           string
	}{
		{"simd", "amd64", true, ""},
		{"greenteagc,simd", "amd64", true, ""},
		{"", "amd64", false, "GOEXPERIMENT=simd"},
		{"nosimd", "amd64", false, "GOEXPERIMENT=simd"},
		{"", "arm64", false, "none for arm64"},
	} {
		if got := simd(c.experiment, c.arch); got.On != c.on || !strings.Contains(got.Reason, c.reason) {
			t.Errorf("simd(%q, %s) = %+v", c.experiment, c.arch, got)
		}
	}
}

// table is a static encoder of two words.
func table(t *testing.T) []byte {
	t.Helper()
	words := static.Table{
		Manifest: static.Manifest{Name: "two-words", Dims: 2, Tokens: 3}, Tokens: []string{"[UNK]", "read", "send"},
		Rows: []int8{0, 0, 100, 0, 0, 100}, Scale: []float32{1, 0.01, 0.02},
	}
	var b bytes.Buffer
	if err := words.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestExamineEncoder(t *testing.T) {
	const config = `{"model_type": "bert", "hidden_size": 384, "vocab_size": 2, "intermediate_size": 8, "num_hidden_layers": 1,
		"num_attention_heads": 12, "max_position_embeddings": 16, "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12}`
	const tokenizer = `{
		"version": "1.0",
		"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
		"pre_tokenizer": {"type": "BertPreTokenizer"},
		"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "a": 1}}
	}`
	var weights strings.Builder
	if err := safetensors.Write(&weights, []safetensors.Tensor{{Name: "w", Shape: []int{2}, Data: []float32{1, 2}}}, nil); err != nil {
		t.Fatal(err)
	}
	const index = `{"weight_map": {"w": "model-00001-of-00002.safetensors", "v": "model-00002-of-00002.safetensors"}}`
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // part of the reason; "" is usable
		model string
		width int
	}{
		{"transformer", map[string]string{"config.json": config, "tokenizer.json": tokenizer, "model.safetensors": weights.String()}, "", "bert", 384},
		{"static", map[string]string{static.FileName: string(table(t))}, "", "two-words", 2},
		{"empty", nil, "config.json: no such file", "", 0},
		{"no tokenizer", map[string]string{"config.json": config, "model.safetensors": weights.String()}, "tokenizer.json: no such file", "bert", 384},
		{"no weights", map[string]string{"config.json": config, "tokenizer.json": tokenizer, "pytorch_model.bin": "1"}, "has neither model.safetensors nor", "bert", 384},
		{"a shard missing", map[string]string{"config.json": config, "tokenizer.json": tokenizer, "model.safetensors.index.json": index, "model-00001-of-00002.safetensors": weights.String()},
			"model-00002-of-00002.safetensors: no such file", "bert", 384},
		{"torn weights", map[string]string{"config.json": config, "tokenizer.json": tokenizer, "model.safetensors": weights.String()[:40]}, "model.safetensors", "bert", 384},
		{"another tokenizer", map[string]string{"config.json": config, "tokenizer.json": `{"version": "1.0", "model": {"type": "Unigram"}}`}, "tokenizer.json is not supported", "bert", 384},
		{"another architecture", map[string]string{"config.json": `{"model_type": "roberta", "hidden_size": 8}`, "tokenizer.json": tokenizer, "model.safetensors": weights.String()},
			`model_type "roberta" is not supported`, "roberta", 8},
		{"broken", map[string]string{"config.json": `{"model_type": 3}`}, "config.json: json: cannot unmarshal number", "", 0},
		{"torn table", map[string]string{static.FileName: string(table(t))[:40]}, static.FileName, "", 0},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		e := examineEncoder(dir)
		if e.Usable != (c.want == "") || !strings.Contains(e.Reason, c.want) || e.Usable != (e.Bytes > 0) {
			t.Errorf("%s: %+v, want %q", c.name, e, c.want)
		}
		if e.Model != c.model || e.Width != c.width {
			t.Errorf("%s: %+v, want %s with width %d", c.name, e, c.model, c.width)
		}
	}
}
