package guard

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/embed/hash"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/guard/artifact"
)

// Model is a loaded artifact. It is safe for concurrent use; each run of an
// agent has a [Session] of its own.
type Model struct {
	manifest    artifact.Manifest
	digest      string
	calibration *artifact.Calibration // nil if there is none
	net         *network
	vocab       *features.Vocabulary
	encoder     embed.Encoder
	fusion      calib.Fusion
	fusionSum   [sha256.Size]byte
	hold, block float64 // grid points, calib.Off where off
	opts        options
}

// Option changes how a model is opened.
type Option func(*options)

type options struct {
	encoder     embed.Encoder
	tables      fs.FS
	calibration []byte
	layers      []Layer
	scoresOnly  bool
	maxRefusals int
	onDeadline  Decision
}

// DefaultMaxRefusals is how many refused calls a session may have before all
// further ones are held.
const DefaultMaxRefusals = 10

// WithEncoder supplies the text encoder, which must have the identity that the
// artifact names. An artifact whose encoder is of kind hash does not need it, nor
// does one of kind static that carries its table.
func WithEncoder(e embed.Encoder) Option { return func(o *options) { o.encoder = e } }

// WithEncoderFS says where the table of a static encoder is found when the
// artifact names it by digest and does not carry it: as encoder.safetensors in
// fsys, for example shipped.FS of package checkpoints/shipped. It does nothing
// for other artifacts.
func WithEncoderFS(fsys fs.FS) Option { return func(o *options) { o.tables = fsys } }

// WithCalibration uses the given calibration.json instead of the artifact's own,
// for example that of one deployment. It must belong to the model: any other is
// refused with [ErrCalibration].
func WithCalibration(b []byte) Option { return func(o *options) { o.calibration = b } }

// WithLayers adds deterministic rule sets that judge beside the model. The
// strictest decision wins. A layer with state per session implements [Starter].
func WithLayers(layers ...Layer) Option {
	return func(o *options) { o.layers = append(o.layers, layers...) }
}

// ScoresOnly switches the model's thresholds off, so that it scores and never
// stops a call, and lets an uncalibrated artifact open. It is for calibration
// and replay; without a calibration the scores are fused by [DefaultFusion].
func ScoresOnly() Option { return func(o *options) { o.scoresOnly = true } }

// WithMaxRefusals holds every call of a session once n of its calls were
// refused: an agent that is turned down again and again is looking for a way
// around. 0 is no limit.
func WithMaxRefusals(n int) Option { return func(o *options) { o.maxRefusals = n } }

// OnDeadline is the decision about a tool call when the context ends before the
// verdict is there. The default is Hold.
func OnDeadline(d Decision) Option { return func(o *options) { o.onDeadline = d } }

// DefaultFusion is what scores are fused by before calibration.
func DefaultFusion() calib.Fusion {
	return calib.Fusion{TempHazard: 1, TempPrefix: 1, WeightHazard: 1, WeightEMA: 1, WeightWindow: 1, Beta: 0.8, Window: 4}
}

// Open loads the artifact at path, a folder or an uncompressed tar of one.
func Open(path string, opts ...Option) (*Model, error) {
	a, err := artifact.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := newModel(a, opts)
	if err != nil {
		return nil, fmt.Errorf("open artifact %s: %w", path, err)
	}
	return m, nil
}

// OpenFS loads the artifact at the root of fsys, for example one embedded in
// the binary.
func OpenFS(fsys fs.FS, opts ...Option) (*Model, error) {
	a, err := artifact.OpenFS(fsys)
	if err != nil {
		return nil, fmt.Errorf("open artifact: %w", err)
	}
	m, err := newModel(a, opts)
	if err != nil {
		return nil, fmt.Errorf("open artifact: %w", err)
	}
	return m, nil
}

func newModel(a *artifact.Artifact, opts []Option) (*Model, error) {
	m := &Model{
		manifest: a.Manifest,
		digest:   a.Digest,
		fusion:   DefaultFusion(),
		hold:     calib.Off,
		block:    calib.Off,
		opts:     options{maxRefusals: DefaultMaxRefusals, onDeadline: Hold},
	}
	for _, opt := range opts {
		opt(&m.opts)
	}
	if err := m.opts.check(); err != nil {
		return nil, err
	}
	c := a.Calibration
	if m.opts.calibration != nil {
		var err error
		if c, err = artifact.ParseCalibration(m.opts.calibration, a.Digest); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCalibration, err)
		}
	}
	if c != nil {
		if l := c.Fusion.Layer; l != nil && l.Features != nil && len(l.Features) != a.Manifest.Dims.F {
			err := fmt.Errorf("%s: %w: fusion.layer has weights for %d call features, the model has %d", artifact.CalibrationFile, artifact.ErrCalibration, len(l.Features), a.Manifest.Dims.F)
			if m.opts.calibration != nil {
				err = fmt.Errorf("%w: %w", ErrCalibration, err)
			}
			return nil, err
		}
		m.calibration, m.fusion = c, c.Fusion
		if !m.opts.scoresOnly {
			m.hold, m.block = c.Thresholds.Levels()
		}
	} else if !m.opts.scoresOnly {
		return nil, fmt.Errorf("%w: run `dreamguard calibrate` on it", ErrNotCalibrated)
	}
	if err := m.useFeatures(a); err != nil {
		return nil, err
	}
	if err := m.useEncoder(a.Encoder); err != nil {
		return nil, err
	}
	b, err := json.Marshal(m.fusion)
	if err != nil {
		return nil, err
	}
	m.fusionSum = sha256.Sum256(b)
	m.net = newNetwork(a)
	return m, nil
}

func (o *options) check() error {
	if o.maxRefusals < 0 {
		return fmt.Errorf("%w: WithMaxRefusals(%d): want 0 or more", ErrOption, o.maxRefusals)
	}
	if o.onDeadline < Pass || o.onDeadline > Block {
		return fmt.Errorf("%w: OnDeadline(%v): want Pass, Hold or Block", ErrOption, o.onDeadline)
	}
	names := map[string]bool{}
	for _, l := range o.layers {
		if l == nil || names[l.Name()] {
			return fmt.Errorf("%w: WithLayers: a layer is nil or has the name of another", ErrOption)
		}
		names[l.Name()] = true
	}
	if len(names) > maxLayers {
		return fmt.Errorf("%w: WithLayers: %d layers, at most %d", ErrOption, len(names), maxLayers)
	}
	return nil
}

const maxLayers = 16

func (m *Model) useFeatures(a *artifact.Artifact) error {
	have := artifact.FeatureSet{Version: features.Version, Digest: features.Digest()}
	if want := m.manifest.Features; want != have || m.manifest.Dims.F != features.Count() {
		return fmt.Errorf("%w: the model was trained with version %d (%.12s, %d features), this build has version %d (%.12s, %d features): use the matching release or train again",
			ErrFeatures, want.Version, want.Digest, m.manifest.Dims.F, have.Version, have.Digest, features.Count())
	}
	v, err := features.ReadVocabulary(a.Features)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", artifact.FeaturesFile, ErrFeatures, err)
	}
	m.vocab = v
	return nil
}

func (m *Model) useEncoder(table []byte) error {
	want := m.manifest.Encoder
	m.encoder = m.opts.encoder
	if m.encoder == nil {
		var err error
		if m.encoder, err = m.ownEncoder(table); err != nil {
			return err
		}
	}
	if have := m.encoder.ID(); have != want {
		return fmt.Errorf("%w: the model was trained with %v (%.12s), this is %v (%.12s): use that encoder or train again", ErrEncoder, want, want.Digest, have, have.Digest)
	}
	return nil
}

// ownEncoder makes the encoder that the manifest names, if the artifact and the
// options have what it takes.
func (m *Model) ownEncoder(table []byte) (embed.Encoder, error) {
	want := m.manifest.Encoder
	switch {
	case want.Kind == "hash" && hash.Valid(want.Dims):
		return hash.New(want.Dims), nil
	case want.Kind == artifact.StaticEncoder && table != nil:
		e, err := static.Parse(table)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", artifact.EncoderFile, ErrEncoder, err)
		}
		return e, nil
	case want.Kind == artifact.StaticEncoder && m.opts.tables != nil:
		e, err := static.Open(m.opts.tables)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrEncoder, err)
		}
		return e, nil
	case want.Kind == artifact.StaticEncoder:
		return nil, fmt.Errorf("%w %v (%.12s): the artifact does not carry its table: pass guard.WithEncoderFS(shipped.FS) if it is the shipped one, or guard.WithEncoder", ErrEncoderRequired, want, want.Digest)
	}
	return nil, fmt.Errorf("%w %v: pass it with guard.WithEncoder", ErrEncoderRequired, want)
}

// Manifest says what the model is. Its maps are shared: do not change them.
func (m *Model) Manifest() artifact.Manifest { return m.manifest }

// Digest is the model digest; calibrating does not change it.
func (m *Model) Digest() string { return m.digest }

// Calibration is the calibration in use, nil if there is none. It is shared: do
// not change it.
func (m *Model) Calibration() *artifact.Calibration { return m.calibration }

// CalibrationDigest is the digest of the calibration, empty if there is none.
func (m *Model) CalibrationDigest() string {
	if m.calibration == nil {
		return ""
	}
	return m.calibration.Digest
}

// Thresholds are the levels in force, [calib.Off] where off.
func (m *Model) Thresholds() Thresholds { return Thresholds{Hold: m.hold, Block: m.block} }

// InGroup returns the model with the levels for runs of one group: values of the
// fields that the calibration's By names, in that order. Where the group has no
// levels of its own they are those of the group above, or the default ones. The
// two models share everything else, and so does the state of their sessions.
func (m *Model) InGroup(path ...string) *Model {
	if m.calibration == nil || m.opts.scoresOnly || len(path) == 0 {
		return m
	}
	g := *m
	g.hold, g.block = m.calibration.Levels(path)
	return &g
}

// Fusion is how the logits become scores.
func (m *Model) Fusion() calib.Fusion { return m.fusion }
