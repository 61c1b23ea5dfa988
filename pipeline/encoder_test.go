package pipeline

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/cache"
	"github.com/dreamguard/dreamguard/embed/remote"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
)

// set changes keys of a configuration.
func set(t testing.TB, cfg configs.Config, assignments ...string) configs.Config {
	t.Helper()
	for _, s := range assignments {
		if err := cfg.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}

// small is tiny with few runs, for tests that stop before calibration.
func small(t testing.TB) configs.Config { return set(t, tiny(t), "data.simulator_runs=150") }

// table writes a static encoder of few words and returns its folder.
func table(t testing.TB, seed uint64) string {
	t.Helper()
	const dims = 16
	words := strings.Fields("[PAD] [UNK] [CLS] [SEP] send read file report the to mail delete error . : a b c d e ##s ##ing")
	rng := rand.New(rand.NewPCG(seed, 1))
	tab := &static.Table{Tokens: words, Rows: make([]int8, dims*len(words)), Scale: make([]float32, len(words))}
	for i := range tab.Rows {
		tab.Rows[i] = int8(rng.IntN(255) - 127)
	}
	for i := range tab.Scale {
		tab.Scale[i] = 0.01
	}
	tab.Manifest = static.Manifest{
		Name: "test", Dims: dims, Tokens: len(words),
		Source:  static.Source{Name: "by hand", Weights: "-", Tokenizer: "-", Encoder: "-"},
		Licence: static.Licence{SPDX: "Apache-2.0", Notice: "ours"},
	}
	dir := t.TempDir()
	if err := atomicfile.Write(filepath.Join(dir, static.FileName), tab.Write); err != nil {
		t.Fatal(err)
	}
	return dir
}

// bert is a folder with a small random model.
const bert = "../embed/transformer/testdata/bert-tiny"

// embeddings is a server whose vectors follow from text and seed.
type embeddings struct {
	*httptest.Server
	seed  atomic.Uint64 // another seed is another model
	noise atomic.Bool
	asked atomic.Int64 // texts
	down  atomic.Bool
}

func newEmbeddings(t testing.TB) *embeddings {
	s := new(embeddings)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || s.down.Load() {
			http.Error(w, "down", http.StatusBadRequest)
			return
		}
		s.asked.Add(int64(len(in.Input)))
		data := []map[string]any{}
		for i, text := range in.Input {
			h := fnv.New64a()
			h.Write([]byte(text))
			rng := rand.New(rand.NewPCG(s.seed.Load(), h.Sum64()))
			v := make([]float64, 16)
			for j := range v {
				v[j] = rng.NormFloat64()
				if s.noise.Load() {
					v[j] += 1e-3 * rand.NormFloat64()
				}
			}
			data = append(data, map[string]any{"index": i, "embedding": v})
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"model": "m", "data": data})
	}))
	t.Cleanup(s.Close)
	return s
}

// Every kind of encoder runs the whole pipeline, and its artifact judges with the
// encoder named again, where it is not part of it.
func TestEncoderKinds(t *testing.T) {
	server := newEmbeddings(t)
	for _, tt := range []struct {
		kind     string
		settings []string
		source   EncoderSource // that opens the artifact elsewhere
		wrong    EncoderSource // that is another encoder
	}{
		{"static", []string{"encoder.path=" + table(t, 1)}, EncoderSource{}, EncoderSource{Location: table(t, 2)}},
		{"transformer", []string{"encoder.path=" + bert, "encoder.transformer.layer=1"}, EncoderSource{Location: bert}, EncoderSource{Location: "../embed/transformer/testdata/qwen3-tiny"}},
		{"remote", []string{"encoder.remote.url=" + server.URL + "/v1", "encoder.remote.model=m"}, EncoderSource{Location: server.URL + "/v1"}, EncoderSource{Location: newOther(t).URL + "/v1"}},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			cfg := set(t, tiny(t), append(tt.settings, "data.simulator_runs=150", "calibrate.alpha=0.3", "calibrate.alpha_block=0.1", "encoder.kind="+tt.kind, "encoder.dims=0")...)
			dir := t.TempDir()
			r := runAll(t, dir, cfg, fixed)
			asked := server.asked.Load()
			again := runAll(t, dir, cfg, fixed)
			if again.Record("eval").Finished != r.Record("eval").Finished || again.Record("embed").Finished != r.Record("embed").Finished {
				t.Error("stages were run again although nothing changed")
			}
			if n := server.asked.Load() - asked; tt.kind == "remote" && n > 8 {
				t.Errorf("a run that is up to date asked for %d texts", n)
			}
			a, err := artifact.Open(r.ArtifactDir())
			if err != nil {
				t.Fatal(err)
			}
			if id := a.Manifest.Encoder; id != *r.Record("embed").Encoder || id.Kind != tt.kind {
				t.Errorf("the artifact's encoder is %v, the run was embedded with %v", id, *r.Record("embed").Encoder)
			}
			for _, secret := range []string{server.URL, "bert-tiny/", cfg.Encoder.Path} {
				if secret != "" && strings.Contains(string(a.Manifest.Config), secret) {
					t.Errorf("the artifact names %s", secret)
				}
			}

			o := JudgeOptions{Artifact: r.ArtifactDir(), File: r.path("data", "test-simulator.jsonl.gz"), Step: -1, Encoder: tt.source}
			ts, err := r.Set("test-simulator")
			if err != nil {
				t.Fatal(err)
			}
			o.ID = ts[0].ID
			j, err := Judge(t.Context(), o)
			if err != nil || len(j.Verdicts) != lastCall(ts[0])+1 || !j.Verdicts[0].Scored {
				t.Fatalf("%d verdicts, error %v", len(j.Verdicts), err)
			}
			if tt.source.Location != "" {
				o.Encoder = EncoderSource{}
				if _, err := Judge(t.Context(), o); !errors.Is(err, ErrEncoderSource) || !strings.Contains(err.Error(), "--encoder") {
					t.Errorf("without its encoder: %v", err)
				}
			}
			o.Encoder = tt.wrong
			if _, err := Judge(t.Context(), o); !errors.Is(err, guard.ErrEncoder) && !errors.Is(err, remote.ErrChanged) {
				if err == nil || !strings.Contains(err.Error(), "encoder.dims") {
					t.Errorf("with another encoder: %v", err)
				}
			}

			out := t.TempDir()
			before := server.asked.Load()
			report, err := EvaluateTraces(t.Context(), TraceOptions{
				Artifact: r.ArtifactDir(), Encoder: tt.source, Files: []string{o.File}, Out: out, Bootstrap: 10,
			})
			if err != nil || len(report.Sets) != 1 {
				t.Fatalf("%d sets, error %v", len(report.Sets), err)
			}
			run, err := r.Report()
			if err != nil {
				t.Fatal(err)
			}
			if got, want := report.Sets[0].AUROC, run.Sets[0].AUROC; got != want {
				t.Errorf("AUROC %v with the encoder named, %v in the run", got, want)
			}
			if entries, err := os.ReadDir(out); err != nil || len(entries) != 2 {
				t.Errorf("left in the folder of the report: %v, error %v", entries, err)
			}
			// Asked in batches and once per text, not once per call of the guard.
			if n, texts := server.asked.Load()-before, int64(uniqueTexts(t, o.File)); tt.kind == "remote" && n > texts*102/100+8 {
				t.Errorf("%d texts were asked for, %d are different", n, texts)
			}
		})
	}
}

// newOther is a server with another model of the same name and dims.
func newOther(t testing.TB) *embeddings {
	s := newEmbeddings(t)
	s.seed.Store(99)
	return s
}

func uniqueTexts(t testing.TB, path string) int {
	t.Helper()
	seen := map[string]bool{}
	for text, err := range guardTexts(fileSeq(path)) {
		if err != nil {
			t.Fatal(err)
		}
		seen[text] = true
	}
	return len(seen)
}

// Another encoder makes every stage be done again; the vectors of the first are
// kept for when it comes back.
func TestChangedEncoder(t *testing.T) {
	dir := t.TempDir()
	cfg := small(t)
	first := stop(t, dir, cfg, "export")
	a := contents(t, first.path("artifact"))
	other := set(t, cfg, "encoder.kind=static", "encoder.dims=0", "encoder.path="+table(t, 1))
	r := stop(t, dir, other, "export")
	if r.Record("embed").Encoder.Kind != "static" || r.Record("embed").Counts["embedded"] == 0 {
		t.Errorf("embedded %+v", r.Record("embed"))
	}
	for _, stage := range []string{"embed", "train", "export"} {
		if r.Record(stage).Inputs == first.Record(stage).Inputs {
			t.Errorf("stage %s does not depend on the encoder", stage)
		}
	}
	if r.Record("data").Finished != first.Record("data").Finished {
		t.Error("the sets were made again")
	}
	back := stop(t, dir, cfg, "export")
	if n := back.Record("embed").Counts["embedded"]; n != 0 {
		t.Errorf("%d texts were embedded again with the first encoder", n)
	}
	equalContents(t, a, contents(t, back.path("artifact")))

	// The same path with another table in it is another encoder.
	stop(t, dir, other, "embed")
	b, err := os.ReadFile(filepath.Join(table(t, 2), static.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.WriteFile(filepath.Join(other.Encoder.Path, static.FileName), b); err != nil {
		t.Fatal(err)
	}
	r, err = Reopen(dir, fixed)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Embed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.Record("embed").Counts["embedded"]; n == 0 {
		t.Error("a replaced table went unnoticed")
	}
}

// stop runs a pipeline up to a stage.
func stop(t testing.TB, dir string, cfg configs.Config, stage string) *Run {
	t.Helper()
	r, err := Open(dir, cfg, fixed)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Until(t.Context(), stage); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEncoderErrors(t *testing.T) {
	cfg := small(t)
	for _, tt := range []struct {
		settings []string
		want     string
	}{
		{[]string{"encoder.kind=static", "encoder.dims=32", "encoder.path=" + table(t, 1)}, "encoder.dims is 32, but static/test (16 dims) has vectors of 16 values: set encoder.dims to 16, or to 0"},
		{[]string{"encoder.kind=static", "encoder.dims=0", "encoder.path=nowhere"}, "nowhere"},
		{[]string{"encoder.kind=static", "encoder.dims=0", "encoder.path=" + t.TempDir()}, static.FileName},
		{[]string{"encoder.kind=static", "encoder.dims=0", "encoder.path=encoder_test.go"}, "encoder_test.go"},
		{[]string{"encoder.kind=transformer", "encoder.dims=0", "encoder.path=" + t.TempDir()}, "config.json"},
		{[]string{"encoder.kind=remote", "encoder.dims=0", "encoder.remote.url=http://127.0.0.1:1/v1", "encoder.remote.model=m", "encoder.remote.retries=0"}, "127.0.0.1:1/v1"},
	} {
		r, err := Open(t.TempDir(), set(t, cfg, tt.settings...), fixed)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Until(t.Context(), "embed"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v, want %q", tt.settings, err, tt.want)
		}
	}
	// The file itself will do as well.
	if enc, err := OpenStatic(filepath.Join(table(t, 1), static.FileName)); err != nil || enc.ID().Dims != 16 {
		t.Errorf("a table by its file name: %v", err)
	}
}

// A remote encoder that answers a little differently is the same, also when its
// server was away meanwhile; another model is not.
func TestRemoteRun(t *testing.T) {
	server := newEmbeddings(t)
	cfg := set(t, small(t), "encoder.kind=remote", "encoder.dims=0", "encoder.remote.url="+server.URL+"/v1", "encoder.remote.model=m", "encoder.remote.retries=0")
	dir := t.TempDir()
	r := stop(t, dir, cfg, "embed")
	asked := server.asked.Load()

	server.down.Store(true)
	again, err := Reopen(dir, fixed)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Train(t.Context()); err != nil {
		t.Errorf("training needs the server: %v", err)
	}
	if err := again.Export(t.Context()); err != nil {
		t.Errorf("exporting needs the server: %v", err)
	}
	if err := again.Calibrate(t.Context()); !errors.Is(err, remote.ErrServer) {
		t.Errorf("calibrating without the server: %v", err)
	}
	server.down.Store(false)

	server.noise.Store(true)
	again = stop(t, dir, cfg, "export")
	if again.Record("embed").Finished != r.Record("embed").Finished || server.asked.Load()-asked > 100 {
		t.Errorf("rounding was taken for another model, %d texts asked", server.asked.Load()-asked)
	}
	server.noise.Store(false)

	server.seed.Store(5)
	if again, err = Reopen(dir, fixed); err != nil {
		t.Fatal(err)
	}
	if err := again.Calibrate(t.Context()); !errors.Is(err, remote.ErrChanged) {
		t.Errorf("calibrating with another model: %v", err)
	}
	if _, err := again.EmbedShard(t.Context(), cache.Shard{Index: 1, Count: 2}); !errors.Is(err, remote.ErrChanged) {
		t.Errorf("a shard with another model: %v", err)
	}
	last := stop(t, dir, cfg, "embed")
	if *last.Record("embed").Encoder == *r.Record("embed").Encoder || last.Record("embed").Counts["embedded"] == 0 {
		t.Error("a replaced model went unnoticed")
	}
}

// What an artifact says of its encoder cannot make it open a folder, ask a server
// or read a secret.
func TestArtifactChoosesNothing(t *testing.T) {
	id := embed.ID{Kind: "remote", Name: "m", Dims: 16, Digest: strings.Repeat("0", 64)}
	cfg := set(t, tiny(t), "encoder.kind=remote", "encoder.remote.url=http://evil.example/v1", "encoder.remote.model=m", "encoder.remote.key_env=AWS_SECRET_ACCESS_KEY")
	b, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e, err := located(artifact.Manifest{Encoder: id, Config: b}, EncoderSource{Location: "http://localhost:1/v1"})
	if err != nil || e.Remote.URL != "http://localhost:1/v1" || e.Remote.KeyEnv != "" || e.Remote.Model != "m" || e.Dims != 16 {
		t.Errorf("%+v, error %v", e, err)
	}
	if _, err := located(artifact.Manifest{Encoder: id, Config: []byte("{}")}, EncoderSource{Location: "http://localhost:1/v1"}); err == nil {
		t.Error("a manifest without settings was accepted")
	}
	id.Kind = "hash"
	b, err = json.Marshal(tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := located(artifact.Manifest{Encoder: id, Config: b}, EncoderSource{Location: "x"}); !errors.Is(err, ErrEncoderSource) {
		t.Errorf("a place for a built-in encoder: %v", err)
	}
}

// The guard's own texts are the ones that were embedded ahead of it.
func TestGuardFindsItsTexts(t *testing.T) {
	r := stop(t, t.TempDir(), small(t), "data")
	ts, err := r.Set("train")
	if err != nil {
		t.Fatal(err)
	}
	ahead := map[string]bool{}
	for text, err := range guardTexts(sliceSeq(ts)) {
		if err != nil {
			t.Fatal(err)
		}
		ahead[text] = true
	}
	trained := map[string]bool{}
	for text, err := range texts(sliceSeq(ts)) {
		if err != nil {
			t.Fatal(err)
		}
		trained[text] = true
	}
	if !maps.Equal(ahead, trained) {
		t.Errorf("the guard reads %d texts of the training set, training %d, and they are not the same", len(ahead), len(trained))
	}
}
