package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"golang.org/x/time/rate"

	"github.com/dreamguard/dreamguard/internal/oneline"
)

// Pauses between tries.
const (
	firstPause = 500 * time.Millisecond
	maxPause   = 30 * time.Second
	maxAsked   = 2 * time.Minute // a server that asks for a longer pause gets none
)

// errTorn: the answer is no JSON, as when it was cut short. It is tried again.
var errTorn = errors.New("the answer is not valid JSON")

// errTooLarge: the answer is longer than that to the request can be.
var errTooLarge = errors.New("the answer is larger than so many vectors can be")

// client sends requests.
type client struct {
	opts    Options
	where   string // host and path, for messages
	key     string
	service openai.EmbeddingService
	slots   chan struct{} // one per request under way
	limiter *rate.Limiter
	limit   atomic.Int64 // bytes of an answer

	mu    sync.Mutex
	until time.Time // no request before: a server asked for a pause
	model string    // as answered, "" before the first answer

	sleep func(context.Context, time.Duration) error // replaced in tests
}

func newClient(o Options, key string) *client {
	u, err := url.Parse(o.URL)
	if err != nil {
		panic(err) // checked before
	}
	c := &client{
		opts: o, where: u.Host + strings.TrimRight(u.Path, "/"), key: key,
		slots: make(chan struct{}, o.Concurrency), limiter: rate.NewLimiter(rate.Inf, 1), sleep: sleep,
	}
	if o.RequestsPerMinute > 0 {
		c.limiter = rate.NewLimiter(rate.Limit(float64(o.RequestsPerMinute)/60), 1)
	}
	c.settle(maxDims)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = o.Concurrency
	// The service, unlike the library's client, reads nothing from the environment:
	// neither a key nor an address that was meant for other programs.
	opts := []option.RequestOption{
		option.WithBaseURL(o.URL),
		option.WithMaxRetries(0), // the library neither tries again after a timeout nor after a torn answer
		option.WithHTTPClient(&http.Client{
			Transport: bounded{transport, &c.limit},
			// The key is for the server that was named.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
		option.WithAPIKey(key),
	}
	// What machine asks is nobody's business.
	for _, h := range []string{"Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version", "Retry-Count", "Timeout"} {
		opts = append(opts, option.WithHeaderDel("X-Stainless-"+h))
	}
	if key == "" {
		opts = append(opts, option.WithHeaderDel("Authorization"))
	}
	c.service = openai.NewEmbeddingService(opts...)
	return c
}

// settle bounds answers by what vectors of dims values take as JSON: some 25
// bytes per value, and those of the fields around.
func (c *client) settle(dims int) {
	c.limit.Store(int64(c.opts.Batch)*(int64(dims)*40+4096) + 1<<16)
}

// vectors returns the unit vectors of the texts. Failures that may pass are
// tried again.
func (c *client) vectors(ctx context.Context, texts []string, dims int) ([]float32, error) {
	for try := 0; ; try++ {
		v, err := c.try(ctx, texts, dims)
		if err == nil {
			return v, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrServer, c.where, ctx.Err())
		}
		pause, again := c.pause(err, try)
		if !again {
			if !wrong(err) {
				err = fmt.Errorf("%w: %w", ErrServer, err)
			}
			tries := ""
			if try > 0 {
				tries = fmt.Sprintf(" (tried %d times)", try+1)
			}
			return nil, fmt.Errorf("%s: %w%s", c.where, err, tries)
		}
		if err := c.sleep(ctx, pause); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrServer, c.where, err)
		}
	}
}

// pause says how long to wait before the next try, if there is to be one.
func (c *client) pause(err error, try int) (time.Duration, bool) {
	if try >= c.opts.Retries {
		return 0, false
	}
	pause := min(firstPause<<min(try, 10), maxPause)
	// Those who failed together should not come back together.
	pause = pause/2 + rand.N(pause/2)
	var status *statusError
	switch {
	case errors.As(err, &status):
		if !status.passing() || status.after > maxAsked {
			return 0, false
		}
		if status.after > 0 {
			c.hold(time.Now().Add(status.after)) // the others too
		}
		return max(pause, status.after), true
	case wrong(err), errors.Is(err, errTooLarge):
		return 0, false
	}
	return pause, true // no connection, no answer in time, a torn answer
}

// wrong reports whether an answer came whole and is not what was asked for: the
// next one would be no better.
func wrong(err error) bool {
	return errors.Is(err, ErrAnswer) || errors.Is(err, ErrDims) || errors.Is(err, ErrChanged)
}

// hold lets no request start before the given time.
func (c *client) hold(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until.After(c.until) {
		c.until = until
	}
}

// held returns how long requests have to wait.
func (c *client) held() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.until)
}

// try sends one request.
func (c *client) try(ctx context.Context, texts []string, dims int) ([]float32, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d := c.held(); d > 0 {
		if err := c.sleep(ctx, d); err != nil {
			return nil, err
		}
	}
	if err := c.limiter.Wait(ctx); err != nil {
		return nil, err
	}
	// The limit is on one request, and starts when it does.
	tryCtx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()

	request := openai.EmbeddingNewParams{
		Input:          openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts},
		Model:          c.opts.Model,
		EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat,
	}
	if c.opts.Base64 {
		request.EncodingFormat = openai.EmbeddingNewParamsEncodingFormatBase64
	}
	if c.opts.SendDims {
		request.Dimensions = param.NewOpt(int64(c.opts.Dims))
	}
	var raw []byte
	var response *http.Response
	_, err := c.service.New(tryCtx, request, option.WithResponseBodyInto(&raw), option.WithResponseInto(&response))
	switch {
	case errors.Is(err, errTooLarge):
		return nil, err
	case response != nil && response.StatusCode/100 != 2:
		return nil, c.status(response, raw)
	case err != nil && tryCtx.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("no answer within %v", c.opts.Timeout)
	case err != nil:
		return nil, c.redacted(err)
	}
	model, v, err := parseAnswer(raw, len(texts), dims)
	if err != nil {
		return nil, err
	}
	return v, c.sameModel(model)
}

// sameModel remembers the model's name in the first answer and refuses another
// in a later one.
func (c *client) sameModel(model string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.model == "" {
		c.model = model
	}
	if model != c.model {
		return fmt.Errorf("%w: it first answered as %.100q and now as %.100q", ErrChanged, c.model, model)
	}
	return nil
}

// redacted is err without the API key, should a message repeat it.
func (c *client) redacted(err error) error {
	if c.key == "" || !strings.Contains(err.Error(), c.key) {
		return err
	}
	return errors.New(c.redact(err.Error()))
}

func (c *client) redact(s string) string {
	if c.key == "" {
		return s
	}
	return strings.ReplaceAll(s, c.key, "[API key]")
}

// statusError is an answer with a status that is not success.
type statusError struct {
	code    int
	kind    string        // error.code in the body
	message string        // of the server, one line
	after   time.Duration // pause it asks for
	advice  string
}

func (e *statusError) Error() string {
	s := fmt.Sprintf("status %d %s", e.code, http.StatusText(e.code))
	if e.message != "" {
		s += ": " + e.message
	}
	return s + e.advice
}

// passing reports whether the same request may succeed later.
func (e *statusError) passing() bool {
	switch e.code {
	case http.StatusTooManyRequests:
		return e.kind != "insufficient_quota" // OpenAI's word for an empty account
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return e.code >= 500
}

// status makes an error of an answer. Its body is in raw, or left to read.
func (c *client) status(r *http.Response, raw []byte) *statusError {
	if len(raw) == 0 && r.Body != nil {
		raw, _ = io.ReadAll(r.Body) // in memory and bounded by now; without it the message is shorter
	}
	e := &statusError{code: r.StatusCode, after: retryAfter(r.Header, time.Now())}
	e.kind, e.message = errorBody(raw)
	e.message = c.redact(e.message)
	switch {
	case e.code/100 == 3:
		e.advice = fmt.Sprintf(": it points to %.100q; name that address if it is right", r.Header.Get("Location"))
	case e.code == http.StatusUnauthorized || e.code == http.StatusForbidden:
		e.advice = ": is the API key in " + c.opts.KeyEnv + " right?"
		if c.opts.KeyEnv == "" {
			e.advice = ": name the environment variable that holds the API key"
		}
	case e.code == http.StatusNotFound:
		e.advice = fmt.Sprintf(": are the address and the model %q right?", c.opts.Model)
	case e.code == http.StatusRequestEntityTooLarge:
		e.advice = ": send smaller batches, or clip texts shorter"
	case e.after > maxAsked:
		e.advice = fmt.Sprintf(": it asks to come back in %v", e.after.Round(time.Second))
	}
	return e
}

// errorBody finds the message in the body of an error, as OpenAI and others
// write it, and otherwise takes the body itself.
func errorBody(raw []byte) (kind, message string) {
	var nested struct {
		Error struct {
			Code    any    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	var flat struct {
		Error   any `json:"error"`
		Message any `json:"message"`
		Detail  any `json:"detail"`
	}
	if json.Unmarshal(raw, &nested) == nil && nested.Error.Message != "" {
		kind, _ = nested.Error.Code.(string)
		message = nested.Error.Message
	} else if json.Unmarshal(raw, &flat) == nil {
		for _, x := range []any{flat.Error, flat.Message, flat.Detail} {
			if s, ok := x.(string); ok && message == "" {
				message = s
			}
		}
	}
	if message == "" {
		message = string(bytes.TrimSpace(raw[:min(len(raw), 1000)]))
	}
	return kind, oneline.Of(message, 200)
}

// retryAfter reads the pause that a server asks for: RFC 9110, section 10.2.3,
// and OpenAI's form in milliseconds.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return seconds(ms / 1000)
	}
	text := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		return seconds(s)
	}
	if t, err := http.ParseTime(text); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}

// seconds converts, NaN and what is negative to 0, and bounds.
func seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, 1e6) * float64(time.Second))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// bounded is a transport that fails when a body is longer than the limit.
type bounded struct {
	next  http.RoundTripper
	limit *atomic.Int64
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	res.Body = &boundedBody{res.Body, b.limit.Load()}
	return res, nil
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
