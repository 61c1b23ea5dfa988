package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dreamguard/dreamguard/checkpoints/shipped"
	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/cache"
	"github.com/dreamguard/dreamguard/embed/hash"
	"github.com/dreamguard/dreamguard/embed/remote"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/embed/transformer"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/progress"
)

// openEncoder opens the encoder that a configuration names. With want, it is
// opened to stand for that identity, as far as it can tell; whoever needs the
// identity to be that one compares it. The zero want is none.
func openEncoder(ctx context.Context, e configs.Encoder, backend string, want embed.ID) (enc embed.Encoder, err error) {
	switch e.Kind {
	case "hash":
		enc = hash.New(e.Dims)
	case "static":
		enc, err = OpenStatic(e.Path)
	case "transformer":
		enc, err = openTransformer(e, backend, want)
	case "remote":
		enc, err = openRemote(ctx, e, want)
	default:
		err = fmt.Errorf("%q is not an encoder of this build", e.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("encoder %s: %w", e.Kind, err)
	}
	if id := enc.ID(); e.Dims != 0 && id.Dims != e.Dims {
		return nil, fmt.Errorf("encoder.dims is %d, but %v has vectors of %d values: set encoder.dims to %d, or to 0 for whatever the encoder gives", e.Dims, id, id.Dims, id.Dims)
	}
	return enc, nil
}

// OpenStatic opens the static encoder in a file, or in the encoder.safetensors of
// a folder; the one in this build for "".
func OpenStatic(path string) (*static.Encoder, error) {
	if path == "" {
		return static.Open(shipped.FS)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, static.FileName)
	}
	b, err := boundedfile.Read(path, static.MaxBytes)
	if err != nil {
		return nil, err
	}
	enc, err := static.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return enc, nil
}

func openTransformer(e configs.Encoder, backend string, want embed.ID) (embed.Encoder, error) {
	t := e.Transformer
	return transformer.Open(e.Path, transformer.Options{
		Backend: backend, Layer: t.Layer, Pooling: transformer.Pooling(t.Pooling), MaxTokens: t.MaxTokens, Overlap: t.Overlap, Prefix: e.Prefix, Batch: t.Batch,
		Name: want.Name, // a folder can be renamed; the digest covers what is in it
	})
}

func openRemote(ctx context.Context, e configs.Encoder, want embed.ID) (embed.Encoder, error) {
	r := e.Remote
	retries := r.Retries
	if retries == 0 {
		retries = -1 // none: in a configuration nothing is left to a default
	}
	enc, err := remote.Open(ctx, remote.Options{
		URL: r.URL, Model: r.Model, KeyEnv: r.KeyEnv, Dims: e.Dims, SendDims: r.SendDims, Prefix: e.Prefix, MaxBytes: r.MaxBytes, Base64: r.Base64,
		Batch: r.Batch, Concurrency: r.Concurrency, RequestsPerMinute: r.RequestsPerMinute,
		Timeout: time.Duration(r.Timeout * float64(time.Second)), Retries: retries,
	})
	if err != nil || want == (embed.ID{}) {
		return enc, err
	}
	return enc.As(want)
}

// slow reports whether an encoder takes milliseconds for a text rather than
// microseconds, so that its vectors are worth keeping.
func slow(kind string) bool { return kind == "transformer" || kind == "remote" }

// sameEncoder says which identities other than id stand for the same encoder.
func sameEncoder(id embed.ID) func(embed.ID) bool {
	return func(other embed.ID) bool { return other == id || remote.Same(id, other) }
}

// encoder opens the run's encoder, once. If the run has been embedded, it is
// opened to stand for the encoder of that time.
func (r *Run) encoder(ctx context.Context) (embed.Encoder, error) {
	if r.enc == nil {
		want, _ := r.knownEncoder()
		enc, err := openEncoder(ctx, r.Config.Encoder, r.Config.Backend, want)
		if err != nil {
			return nil, err
		}
		r.enc = enc
	}
	return r.enc, nil
}

// knownEncoder is the encoder that the run was last embedded with, or that its
// vectors so far belong to.
func (r *Run) knownEncoder() (embed.ID, bool) {
	if rec := r.ledger.Stages["embed"]; rec != nil && rec.Encoder != nil {
		return *rec.Encoder, true
	}
	id, err := cache.Identity(r.path("embed"))
	return id, err == nil
}

// identity is what stages depend on: the encoder that is open, or else the one
// that the run was embedded with. Only embedding has to open it.
func (r *Run) identity() embed.ID {
	if r.enc != nil {
		return r.enc.ID()
	}
	id, _ := r.knownEncoder()
	return id
}

// openModel opens the run's artifact with the run's encoder. The vectors of a
// slow encoder are kept with those of the training texts: ahead embeds whole sets
// in batches, before the guard asks for one text at a time. done must be called
// when the model is not used any more.
func (r *Run) openModel(ctx context.Context, opts ...guard.Option) (m *guard.Model, ahead *ahead, done func(), err error) {
	nothing := func() {}
	if r.Config.Encoder.Kind == "hash" {
		m, err := guard.Open(r.ArtifactDir(), opts...)
		return m, nil, nothing, err
	}
	enc, err := r.encoder(ctx)
	if err != nil {
		return nil, nil, nothing, err
	}
	if !slow(enc.ID().Kind) {
		m, err := guard.Open(r.ArtifactDir(), append(opts, guard.WithEncoder(enc))...)
		return m, nil, nothing, err
	}
	folder := func() (string, error) { return r.path("embed"), nil }
	return openCached(r.ArtifactDir(), folder, enc, r.opts.Progress, opts...)
}

// openCached opens an artifact with an encoder whose vectors are kept in a folder,
// which is asked for once all else is known to be sound.
func openCached(artifactDir string, folder func() (string, error), enc embed.Encoder, report *progress.Reporter, opts ...guard.Option) (*guard.Model, *ahead, func(), error) {
	nothing := func() {}
	late := &lateEncoder{enc}
	m, err := OpenGuard(artifactDir, append(opts, guard.WithEncoder(late))...)
	if err != nil {
		return nil, nil, nothing, err
	}
	dir, err := folder()
	if err != nil {
		return nil, nil, nothing, err
	}
	c, err := cache.Open(dir, enc.ID())
	if err != nil {
		return nil, nil, nothing, err
	}
	if late.Encoder, err = c.Encoder(enc); err != nil {
		return nil, nil, nothing, errors.Join(err, c.Close())
	}
	// Unmapping cannot lose anything: what is in the cache is on disk.
	return m, &ahead{enc: enc, cache: c, report: report}, func() { c.Close() }, nil
}

// lateEncoder is an encoder that is replaced by an equal one before it is used.
type lateEncoder struct{ embed.Encoder }

// ahead embeds texts before they are needed. A nil one does nothing.
type ahead struct {
	enc    embed.Encoder
	cache  *cache.Cache
	report *progress.Reporter
}

// fill embeds what the guard will read of the runs.
func (a *ahead) fill(ctx context.Context, name string, ts []*data.Trajectory) error {
	if a == nil {
		return nil
	}
	_, err := fillCache(ctx, a.cache, a.enc, guardTexts(sliceSeq(ts)), cache.Shard{}, a.report, "embed "+name)
	return err
}

// fillCache fills a cache and shows how far it is.
func fillCache(ctx context.Context, c *cache.Cache, enc embed.Encoder, texts textSeq, shard cache.Shard, report *progress.Reporter, name string) (cache.Stats, error) {
	fresh, err := c.Count(ctx, texts, shard)
	if err != nil {
		return cache.Stats{}, err
	}
	task := report.Start(name, fresh)
	shown := 0
	o := cache.Options{Shard: shard, Progress: func(done int) { task.Add(done - shown); shown = done }}
	if x, ok := enc.(interface{ Concurrency() int }); ok {
		o.Workers = x.Concurrency()
	}
	s, err := c.Fill(ctx, enc, texts, o)
	task.End(err)
	return s, err
}

// EncoderSource says where the encoder of an artifact is found on this machine,
// which the artifact does not say: whoever wrote it must not choose what is opened
// here, nor where a key is sent. The zero value does for an artifact whose encoder
// is built in or part of it.
type EncoderSource struct {
	Location string // folder of a static or transformer encoder, URL of a remote one
	KeyEnv   string // name of the environment variable that holds the key of a remote one, "" for none
	Backend  string // what a transformer computes on; "" = go
}

// ErrEncoderSource is wrapped by the error about an artifact whose encoder has to
// be named, or must not be.
var ErrEncoderSource = errors.New("the artifact's encoder")

// artifactEncoder opens the encoder that an artifact needs, nil if it needs none.
func artifactEncoder(ctx context.Context, path string, src EncoderSource) (embed.Encoder, error) {
	m, err := openManifest(path)
	if err != nil {
		return nil, err
	}
	want := m.Encoder
	if src.Location == "" {
		switch want.Kind {
		case "transformer":
			return nil, fmt.Errorf("%s: %w is %v: name the folder of that model with --encoder DIR", path, ErrEncoderSource, want)
		case "remote":
			return nil, fmt.Errorf("%s: %w is %v: name a server that offers that model with --encoder URL", path, ErrEncoderSource, want)
		}
		return nil, nil // the guard's business
	}
	e, err := located(*m, src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return openEncoder(ctx, e, src.Backend, want)
}

// located completes the encoder's settings in a manifest with its place.
func located(m artifact.Manifest, src EncoderSource) (configs.Encoder, error) {
	var cfg configs.Config
	if err := json.Unmarshal(m.Config, &cfg); err != nil || cfg.Encoder.Kind != m.Encoder.Kind {
		return configs.Encoder{}, fmt.Errorf("its manifest does not carry the configuration it was trained with, and so no settings of its encoder %v", m.Encoder)
	}
	e := cfg.Encoder
	e.Dims = m.Encoder.Dims
	switch e.Kind {
	case "static", "transformer":
		abs, err := filepath.Abs(src.Location)
		if err != nil {
			return configs.Encoder{}, err
		}
		e.Path = abs
	case "remote":
		e.Remote.URL, e.Remote.KeyEnv = src.Location, src.KeyEnv
	default:
		return configs.Encoder{}, fmt.Errorf("%w is %v, which is built in: leave --encoder out", ErrEncoderSource, m.Encoder)
	}
	return e, nil
}
