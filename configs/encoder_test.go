package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEncoderValidate(t *testing.T) {
	for _, tt := range []struct{ set, want string }{
		{"", ""},
		{"kind=static dims=0", ""},
		{"kind=static dims=256", ""},
		{"kind=transformer dims=0 path=minilm", ""},
		{"kind=transformer dims=0 path=q transformer.layer=31 transformer.pooling=last transformer.max_tokens=512 transformer.overlap=-1", ""},
		{"kind=remote dims=0 remote.url=http://localhost:8000/v1 remote.model=m", ""},
		{"kind=remote dims=64 remote.url=https://x/v1 remote.model=m remote.send_dims=true remote.key_env=MY_KEY remote.retries=0", ""},
		// What is not for the kind is ignored.
		{"remote.batch=0 transformer.pooling=max", ""},

		{"kind=hasch", `encoder.kind: want hash, static, transformer or remote, not "hasch": did you mean hash?`},
		{"kind=hash dims=0", "encoder.dims: want a whole number from 8 to 4096, not 0"},
		{"kind=static dims=4", "encoder.dims: want a whole number from 8 to 4096, or 0 for what the encoder gives, not 4"},
		{"kind=transformer dims=0", "encoder.path: name the folder of the model"},
		{"kind=transformer path=x transformer.pooling=max", "encoder.transformer.pooling: want mean, last or cls"},
		{"kind=transformer path=x transformer.layer=-1", "encoder.transformer.layer: want"},
		{"kind=transformer path=x transformer.max_tokens=4", "encoder.transformer.max_tokens: want"},
		{"kind=transformer path=x transformer.max_tokens=100 transformer.overlap=51", "encoder.transformer.overlap: want at most half of"},
		{"kind=transformer path=x transformer.batch=0", "encoder.transformer.batch: want"},
		{"kind=remote remote.model=m", "encoder.remote.url: want an address such as"},
		{"kind=remote remote.url=http://u:hunter2@x/v1 remote.model=m", "encoder.remote.url: holds a user or a password"},
		{"kind=remote remote.url=http://x/v1", "encoder.remote.model: name the model"},
		{"kind=remote remote.url=http://x/v1 remote.model=m remote.key_env=sk-hunter2", "encoder.remote.key_env: want the name of an environment variable: never write the key itself"},
		{"kind=remote dims=0 remote.url=http://x/v1 remote.model=m remote.send_dims=true", "encoder.remote.send_dims: needs encoder.dims"},
		{"kind=remote remote.url=http://x/v1 remote.model=m remote.max_bytes=1", "encoder.remote.max_bytes: want"},
		{"kind=remote remote.url=http://x/v1 remote.model=m remote.batch=0", "encoder.remote.batch: want"},
		{"kind=remote remote.url=http://x/v1 remote.model=m remote.concurrency=0", "encoder.remote.concurrency: want"},
		{"kind=remote remote.url=http://x/v1 remote.model=m remote.requests_per_minute=-1", "encoder.remote.requests_per_minute: want"},
		{"kind=remote remote.url=http://x/v1 remote.model=m remote.timeout=0", "encoder.remote.timeout: want a number above 0"},
		{"kind=remote remote.url=http://x/v1 remote.model=m remote.retries=21", "encoder.remote.retries: want"},
		{"kind=static prefix=" + strings.Repeat("x", 1001), "encoder.prefix: want at most 1000 bytes"},
	} {
		c := mustLoad(t, "paper")
		for _, a := range strings.Fields(tt.set) {
			if err := c.Set("encoder." + a); err != nil {
				t.Fatal(err)
			}
		}
		err := c.Validate()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: error %v, want %q", tt.set, err, tt.want)
		}
	}
	if _, err := Parse("f.yaml", []byte("encoder:\n  remote:\n    key: sk-1\n")); err == nil || !strings.Contains(err.Error(), "f.yaml:3: encoder.remote.key: unknown key") {
		t.Errorf("an unknown key: %v", err)
	}
}

// A path in a file starts at the file, one in --set at the working folder.
func TestEncoderPath(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "conf", "mine.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("encoder: {kind: transformer, dims: 0, path: ../models/minilm}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	want := filepath.Join(dir, "models", "minilm")
	c := mustLoad(t, file)
	if c.Encoder.Path != want {
		t.Errorf("path %s, want %s", c.Encoder.Path, want)
	}
	// Saved, it is the same from wherever it is read.
	b, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse("/elsewhere/config.yaml", b)
	if err != nil || back.Encoder.Path != want {
		t.Errorf("path %s after saving, error %v", back.Encoder.Path, err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Set("encoder.path=models/bge"); err != nil || c.Encoder.Path != filepath.Join(here, "models", "bge") {
		t.Errorf("path %s after Set, error %v", c.Encoder.Path, err)
	}
	if err := c.Set("encoder.path="); err != nil || c.Encoder.Path != "" {
		t.Errorf("path %s after Set to nothing, error %v", c.Encoder.Path, err)
	}
}

// Inputs keeps what can move a vector, of the kind's own settings alone.
func TestEncoderInputs(t *testing.T) {
	full := mustLoad(t, "paper").Encoder
	full.Path, full.Prefix = "/models/x", "query: "
	full.Remote.URL, full.Remote.Model, full.Remote.KeyEnv = "http://localhost/v1", "m", "KEY"
	for _, tt := range []struct {
		kind, name string
		change     func(*Encoder)
		same       bool
	}{
		{"hash", "path", func(e *Encoder) { e.Path = "y" }, true},
		{"hash", "model", func(e *Encoder) { e.Remote.Model = "y" }, true},
		{"hash", "dims", func(e *Encoder) { e.Dims++ }, false},
		{"static", "path", func(e *Encoder) { e.Path = "y" }, false},
		{"static", "prefix", func(e *Encoder) { e.Prefix = "y" }, true},
		{"transformer", "layer", func(e *Encoder) { e.Transformer.Layer = 3 }, false},
		{"transformer", "prefix", func(e *Encoder) { e.Prefix = "y" }, false},
		{"transformer", "batch", func(e *Encoder) { e.Transformer.Batch = 3 }, true},
		{"transformer", "url", func(e *Encoder) { e.Remote.URL = "y" }, true},
		{"remote", "url", func(e *Encoder) { e.Remote.URL = "y" }, false},
		{"remote", "max_bytes", func(e *Encoder) { e.Remote.MaxBytes = 99 }, false},
		{"remote", "key", func(e *Encoder) { e.Remote.KeyEnv = "y" }, true},
		{"remote", "speed", func(e *Encoder) {
			r := &e.Remote
			r.Batch, r.Concurrency, r.RequestsPerMinute, r.Timeout, r.Retries, r.Base64 = 1, 1, 1, 1, 1, true
		}, true},
	} {
		before := full
		before.Kind = tt.kind
		after := before
		tt.change(&after)
		if same := before.Inputs() == after.Inputs(); same != tt.same {
			t.Errorf("%s, %s changed: inputs are the same: %v, want %v", tt.kind, tt.name, same, tt.same)
		}
	}
	p := Config{Encoder: full}.Portable().Encoder
	if p.Path != "" || p.Remote.URL != "" || p.Remote.KeyEnv != "" || p.Remote.Model != "m" || full.Path == "" {
		t.Errorf("portable %+v", p)
	}
}
