package remote

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/remote/endpoint"
)

// Kind is the kind in the identity of a remote encoder.
const Kind = "remote"

// Errors. They come wrapped in a message that names the server, and says what to
// do where that is known.
var (
	// ErrOption: an option is missing or out of range.
	ErrOption = errors.New("remote: bad option")
	// ErrServer: no answer came, or the server refused.
	ErrServer = errors.New("remote: embeddings server")
	// ErrAnswer: the answer is not vectors for the texts.
	ErrAnswer = errors.New("remote: bad answer")
	// ErrDims: the vectors have another length than is wanted.
	ErrDims = errors.New("remote: vector length")
	// ErrChanged: the server's model is not the one that is wanted.
	ErrChanged = errors.New("remote: another model")
	// ErrLength: dst of Encode has the wrong length.
	ErrLength = errors.New("remote: dst does not hold one vector per text")
)

// Limits.
const (
	maxDims        = 1 << 14
	maxBatch       = 2048 // OpenAI's limit
	maxConcurrency = 256
	maxRetries     = 20
)

// Options configures an Encoder. URL and Model have no default.
type Options struct {
	URL      string // http or https, what comes before /embeddings, for example https://api.openai.com/v1
	Model    string // as the server calls it
	KeyEnv   string // name of the environment variable that holds the API key, "" for none
	Dims     int    // vector length to insist on; 0 = whatever the server gives
	SendDims bool   // ask the server for vectors of Dims values, which few models can
	Prefix   string // put before every text, for example "query: "
	MaxBytes int    // texts are clipped to so many bytes, as by embed.Clip; 0 = embed.MaxText and a tool's name
	Base64   bool   // ask for base64 instead of decimal numbers; either is understood

	Batch             int           // texts in one request, the fixed text included; 0 = 128
	Concurrency       int           // requests at a time; 0 = 4
	RequestsPerMinute int           // 0 = no limit
	Timeout           time.Duration // of one request; 0 = 60 s
	Retries           int           // further tries of a request that failed; 0 = 5, negative = none
}

// defaultMaxBytes holds every text that package embed makes of a task, a call
// with a tool's name of up to 256 bytes, or a result.
const defaultMaxBytes = embed.MaxText + 260

func (o *Options) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %w", ErrOption, fmt.Errorf(format, args...))
	}
	if err := endpoint.CheckURL(o.URL); err != nil {
		return bad("URL: %w", err)
	}
	switch {
	case o.Model == "":
		return bad("Model: name the model as the server does")
	case o.KeyEnv != "" && !endpoint.ValidKeyEnv(o.KeyEnv):
		return bad("KeyEnv: want the name of an environment variable, not the key itself")
	case o.Dims < 0 || o.Dims > maxDims:
		return bad("Dims: want 0 to %d, not %d", maxDims, o.Dims)
	case o.SendDims && o.Dims == 0:
		return bad("SendDims: needs Dims")
	case o.MaxBytes < 0 || o.MaxBytes > 0 && o.MaxBytes < 16:
		return bad("MaxBytes: want 0, or 16 or more, not %d", o.MaxBytes)
	case o.Batch < 0 || o.Batch > maxBatch:
		return bad("Batch: want 0 to %d, not %d", maxBatch, o.Batch)
	case o.Concurrency < 0 || o.Concurrency > maxConcurrency:
		return bad("Concurrency: want 0 to %d, not %d", maxConcurrency, o.Concurrency)
	case o.RequestsPerMinute < 0:
		return bad("RequestsPerMinute: want 0 or more, not %d", o.RequestsPerMinute)
	case o.Timeout < 0:
		return bad("Timeout: want 0 or more, not %v", o.Timeout)
	case o.Retries > maxRetries:
		return bad("Retries: want at most %d, not %d", maxRetries, o.Retries)
	}
	return nil
}

// or returns x, or its default.
func or[T int | time.Duration](x, otherwise T) T {
	if x == 0 {
		return otherwise
	}
	return x
}

// key reads the API key.
func (o *Options) key() (string, error) {
	if o.KeyEnv == "" {
		return "", nil
	}
	key := strings.TrimSpace(os.Getenv(o.KeyEnv))
	if key == "" {
		return "", fmt.Errorf("%w: the environment variable %s, which should hold the API key, is not set", ErrOption, o.KeyEnv)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", fmt.Errorf("%w: the API key in the environment variable %s holds a control character", ErrOption, o.KeyEnv)
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		return "", err // checked before
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return "", fmt.Errorf("%w: the API key would go to %s unencrypted: use https, or no key", ErrOption, u.Host)
	}
	return key, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Encoder asks one server for vectors. Make one with [Open]. It is safe for
// concurrent use.
type Encoder struct {
	id     embed.ID
	opts   Options
	client *client
	canary []float32 // vector of probes[0]
}

var _ embed.Encoder = (*Encoder)(nil)

// Open asks the server for the vectors of the fixed texts and so learns the
// length and the identity of its vectors.
func Open(ctx context.Context, o Options) (*Encoder, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	key, err := o.key()
	if err != nil {
		return nil, err
	}
	o.MaxBytes = or(o.MaxBytes, defaultMaxBytes)
	o.Batch = or(o.Batch, 128)
	o.Concurrency = or(o.Concurrency, 4)
	o.Timeout = or(o.Timeout, time.Minute)
	o.Retries = max(or(o.Retries, 5), 0)
	return open(ctx, o, newClient(o, key))
}

func open(ctx context.Context, o Options, c *client) (*Encoder, error) {
	e := &Encoder{opts: o, client: c}
	var vectors []float32
	for lo := 0; lo < len(probes); lo += o.Batch {
		v, err := c.vectors(ctx, e.prepared(probes[lo:min(lo+o.Batch, len(probes))]), o.Dims)
		if err != nil {
			if o.Dims != 0 && errors.Is(err, ErrDims) && !o.SendDims {
				err = fmt.Errorf("%w: set the wanted length to that of the model", err)
			}
			return nil, err
		}
		vectors = append(vectors, v...)
		o.Dims = len(vectors) / min(lo+o.Batch, len(probes))
	}
	c.settle(o.Dims)
	e.canary = vectors[:o.Dims:o.Dims]
	e.id = embed.ID{
		Kind: Kind, Name: o.Model, Dims: o.Dims,
		Digest: hex.EncodeToString(append(o.settings(o.Dims), sketch(vectors, o.Dims)...)),
	}
	return e, nil
}

// As returns the encoder under the wanted identity, if that stands for the same
// encoder (see [Same]), and otherwise [ErrChanged]. It is how a model or a cache
// that was made with an earlier answer of the server goes on being used.
func (e *Encoder) As(want embed.ID) (*Encoder, error) {
	d, ok := distance(want, e.id)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: %s gives %v, digest %.12s, and %v, digest %.12s, is wanted: its name, dims, prefix and clipping must be the same",
			ErrChanged, e.client.where, e.id, e.id.Digest, want, want.Digest)
	case d > Tolerance:
		return nil, fmt.Errorf("%w: %s answers as %s, but its vectors of the fixed texts are others than those of the model that is wanted (%d of %d bits of the sketch differ, at most %d may)",
			ErrChanged, e.client.where, e.id.Name, d, sketchBits, Tolerance)
	}
	as := *e
	as.id = want
	return &as, nil
}

// ID returns the identity: see the package comment.
func (e *Encoder) ID() embed.ID { return e.id }

// Concurrency is how many calls of Encode are served at a time: what a caller
// with many texts should make.
func (e *Encoder) Concurrency() int { return e.opts.Concurrency }

// canaryFrom is the size of a request, in texts, from which on one of them is a
// fixed text.
const canaryFrom = 16

// minCanary is the least cosine between two vectors of a fixed text.
const minCanary = 0.99

// Encode implements [embed.Encoder]. A text of white space gets a vector of zeros
// without asking, since servers refuse it. Errors are [ErrLength], [ErrServer],
// [ErrAnswer], [ErrDims], [ErrChanged] and that of ctx.
func (e *Encoder) Encode(ctx context.Context, texts []string, dst []float32) error {
	dims := e.id.Dims
	if len(dst) != len(texts)*dims {
		return fmt.Errorf("%w: %d values for %d texts of %d dims", ErrLength, len(dst), len(texts), dims)
	}
	var asked []int
	for i, text := range texts {
		if strings.TrimSpace(text) == "" {
			clear(dst[i*dims : (i+1)*dims])
		} else {
			asked = append(asked, i)
		}
	}
	for len(asked) > 0 {
		n := min(e.opts.Batch, len(asked))
		if n >= canaryFrom && n == e.opts.Batch {
			n-- // room for the fixed text
		}
		if err := e.batch(ctx, texts, asked[:n], dst); err != nil {
			return err
		}
		asked = asked[n:]
	}
	return ctx.Err()
}

// batch embeds the texts with the given numbers in one request.
func (e *Encoder) batch(ctx context.Context, texts []string, numbers []int, dst []float32) error {
	some := make([]string, 0, len(numbers)+1)
	for _, i := range numbers {
		some = append(some, texts[i])
	}
	watched := len(some)+1 >= canaryFrom
	if watched {
		some = append(some, probes[0])
	}
	dims := e.id.Dims
	v, err := e.client.vectors(ctx, e.prepared(some), dims)
	if err != nil {
		return err
	}
	if watched {
		if c := dot(v[len(numbers)*dims:], e.canary); !(c >= minCanary) {
			return fmt.Errorf("%w: the vector that %s now gives for a fixed text has a cosine of %.3f to the one at the start: was its model replaced?", ErrChanged, e.client.where, c)
		}
	}
	for k, i := range numbers {
		copy(dst[i*dims:(i+1)*dims], v[k*dims:])
	}
	return nil
}

// prepared returns the texts as they are sent.
func (e *Encoder) prepared(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = e.opts.Prefix + strings.ToValidUTF8(embed.Clip(text, e.opts.MaxBytes), "\uFFFD")
	}
	return out
}
