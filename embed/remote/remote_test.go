package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/embed"
)

// start opens an encoder that does not pause between tries, and returns the
// pauses that it would have made.
func start(t *testing.T, o Options) (*Encoder, *[]time.Duration, error) {
	t.Helper()
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	o.MaxBytes, o.Batch, o.Concurrency = or(o.MaxBytes, defaultMaxBytes), or(o.Batch, 128), or(o.Concurrency, 4)
	o.Timeout, o.Retries = or(o.Timeout, time.Minute), max(or(o.Retries, 5), 0)
	key, err := o.key()
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(o, key)
	var mu sync.Mutex
	var pauses []time.Duration
	c.sleep = func(ctx context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		pauses = append(pauses, d)
		c.mu.Lock()
		c.until = time.Time{} // the pause is over
		c.mu.Unlock()
		return ctx.Err()
	}
	e, err := open(t.Context(), o, c)
	return e, &pauses, err
}

func mustStart(t *testing.T, o Options) *Encoder {
	t.Helper()
	e, _, err := start(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func encode(e *Encoder, ctx context.Context, texts ...string) ([]float32, error) {
	dst := make([]float32, len(texts)*e.ID().Dims)
	for i := range dst {
		dst[i] = 99
	}
	return dst, e.Encode(ctx, texts, dst)
}

func TestEncode(t *testing.T) {
	for name, change := range map[string]func(*server, *Options){
		"float":  func(*server, *Options) {},
		"base64": func(_ *server, o *Options) { o.Base64 = true },
		"no padding": func(s *server, o *Options) {
			o.Base64 = true
			s.data = func(es []map[string]any) []map[string]any {
				for _, e := range es {
					e["embedding"] = strings.TrimRight(e["embedding"].(string), "=")
				}
				return es
			}
		},
		"shuffled": func(s *server, _ *Options) {
			s.data = func(es []map[string]any) []map[string]any {
				rand.Shuffle(len(es), func(i, j int) { es[i], es[j] = es[j], es[i] })
				return es
			}
		},
		"small batches":  func(_ *server, o *Options) { o.Batch = 7 },
		"watched":        func(_ *server, o *Options) { o.Batch = 20 },
		"other name":     func(s *server, _ *Options) { s.name = "test-model-v2" },
		"trailing slash": func(_ *server, o *Options) { o.URL += "/" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 24)
			o := s.options()
			change(s, &o)
			e := mustStart(t, o)
			id := e.ID()
			if id.Kind != "remote" || id.Name != "test-model" || id.Dims != 24 || len(id.Digest) != 64 {
				t.Errorf("identity %+v", id)
			}
			texts := words(50)
			texts[10], texts[49] = " \n", ""
			got, err := encode(e, t.Context(), texts...)
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range texts {
				want := make([]float32, 24)
				if strings.TrimSpace(text) != "" {
					want = s.unit(text)
				}
				if !near(got[i*24:(i+1)*24], want) {
					t.Errorf("vector of text %d, %q, is %v, want %v", i, text, got[i*24:(i+1)*24], want)
				}
			}
			for i, r := range s.requests {
				if len(r.Input) > e.opts.Batch {
					t.Errorf("request %d holds %d texts, at most %d were allowed", i, len(r.Input), e.opts.Batch)
				}
				if slices.Contains(r.Input, "") {
					t.Errorf("request %d holds a blank text", i)
				}
			}
		})
	}
}

func TestRequest(t *testing.T) {
	// A key and an address that are meant for other programs must not be used.
	t.Setenv("OPENAI_API_KEY", "not-for-you")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
	t.Setenv("OPENAI_ORG_ID", "org")
	s := newServer(t, 8)
	e := mustStart(t, s.options())
	if _, err := encode(e, t.Context(), "a\x00b\xff", "c"); err != nil {
		t.Fatal(err)
	}
	r := s.last()
	if r.Model != "test-model" || r.EncodingFormat != "float" || r.Dimensions != 0 || !slices.Equal(r.Input, []string{"a\x00b\uFFFD", "c"}) {
		t.Errorf("request %+v", r)
	}
	for name := range r.header {
		if name == "Authorization" || strings.HasPrefix(name, "X-Stainless") || strings.HasPrefix(name, "Openai") {
			t.Errorf("header %s: %q was sent", name, r.header[name])
		}
	}

	t.Setenv("TEST_KEY", "secret\n")
	o := s.options()
	o.KeyEnv, o.Base64, o.Dims, o.SendDims, o.Prefix, o.MaxBytes = "TEST_KEY", true, 4, true, "query: ", 30
	e = mustStart(t, o)
	if e.ID().Dims != 4 {
		t.Errorf("identity %v", e.ID())
	}
	long := strings.Repeat("0123456789", 10)
	if _, err := encode(e, t.Context(), long); err != nil {
		t.Fatal(err)
	}
	r = s.last()
	if got := r.header.Get("Authorization"); got != "Bearer secret" {
		t.Errorf("Authorization %q", got)
	}
	if r.EncodingFormat != "base64" || r.Dimensions != 4 || r.Input[0] != "query: "+embed.Clip(long, 30) {
		t.Errorf("request %+v", r)
	}
}

// Failures that may pass are tried again, after a pause that grows or that the
// server asks for.
func TestRetry(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	status := func(code int, header ...string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			fmt.Fprint(w, "busy")
		}
	}
	for name, tt := range map[string]struct {
		fail  func(http.ResponseWriter, *http.Request)
		least time.Duration // of the first pause
	}{
		"500":                     {status(500), 0},
		"503":                     {status(503), 0},
		"408":                     {status(408), 0},
		"429":                     {status(429), 0},
		"429 Retry-After":         {status(429, "Retry-After", "17"), 17 * time.Second},
		"429 Retry-After-Ms":      {status(429, "Retry-After-Ms", "9500", "Retry-After", "1"), 9500 * time.Millisecond},
		"503 date":                {status(503, "Retry-After", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)), 50 * time.Second},
		"Retry-After is no pause": {status(429, "Retry-After", "soon"), 0},
		"cut short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"object":"list","data":[{"index":0,"embed`)
		}, 0},
		"half JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"object":"list","data":[{"index":0,"embed`)
		}, 0},
		"not JSON": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>starting</html>") }, 0},
		"no answer": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				c.Close()
			}
		}, 0},
		"slow": {func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}, 0},
		"slow body": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"data":`)
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 8)
			e, pauses, err := start(t, s.options())
			if err != nil {
				t.Fatal(err)
			}
			first := s.count()
			s.change(func() {
				s.before = func(w http.ResponseWriter, r *http.Request, n int) bool {
					if n >= first+3 {
						return false
					}
					tt.fail(w, r)
					return true
				}
			})
			if strings.HasPrefix(name, "slow") {
				e.client.opts.Timeout = 30 * time.Millisecond // these requests never end by themselves
				pause := e.client.sleep
				e.client.sleep = func(ctx context.Context, d time.Duration) error {
					if len(*pauses) == 2 {
						e.client.opts.Timeout = time.Minute // the fourth may take its time
					}
					return pause(ctx, d)
				}
			}
			got, err := encode(e, t.Context(), "hello")
			if err != nil {
				t.Fatal(err)
			}
			if !near(got, s.unit("hello")) || s.count() != first+4 {
				t.Errorf("after %d requests: %v", s.count()-first, got)
			}
			waits := *pauses
			if len(waits) < 3 || waits[0] < max(tt.least, firstPause/2) {
				t.Errorf("pauses %v, the first at least %v", waits, tt.least)
			}
			if tt.least == 0 && (waits[0] > firstPause || waits[2] < firstPause) {
				t.Errorf("pauses %v do not grow from %v", waits, firstPause)
			}
		})
	}
}

// What will not pass is not tried again, and the message says what to do.
func TestRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		code   int
		header http.Header
		body   string
		want   []string
	}{
		"400":          {400, nil, `{"error":{"message":"input is too long","code":"x"}}`, []string{"status 400 Bad Request: input is too long"}},
		"plain string": {400, nil, `{"error":"no such option"}`, []string{"no such option"}},
		"detail":       {422, nil, `{"detail":"unprocessable"}`, []string{"422", "unprocessable"}},
		"text":         {400, nil, "bad\x1b[31m\ninput " + strings.Repeat("x", 5000), []string{"bad [31m input xxx", "…"}},
		"empty":        {400, nil, "", []string{"status 400 Bad Request"}},
		"401":          {401, nil, `{"error":{"message":"Incorrect API key provided: very-secret"}}`, []string{"[API key]", "is the API key in TEST_KEY right?"}},
		"404":          {404, nil, "", []string{`the model "test-model" right?`}},
		"413":          {413, nil, "", []string{"send smaller batches"}},
		"quota":        {429, nil, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, []string{"exceeded your current quota"}},
		"long pause":   {429, http.Header{"Retry-After": {"3600"}}, "", []string{"come back in 1h"}},
		"301":          {301, http.Header{"Location": {"https://elsewhere.example/v1/embeddings"}}, "", []string{"points to", "elsewhere.example"}},
		"501":          {501, nil, "", []string{"501"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TEST_KEY", "very-secret")
			s := newServer(t, 8)
			s.before = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
				for k, v := range tt.header {
					w.Header()[k] = v
				}
				w.WriteHeader(tt.code)
				fmt.Fprint(w, tt.body)
				return true
			}
			o := s.options()
			o.KeyEnv = "TEST_KEY"
			_, pauses, err := start(t, o)
			if !errors.Is(err, ErrServer) || s.count() != 1 || len(*pauses) != 0 {
				t.Fatalf("%d requests, error %v, want 1 and ErrServer", s.count(), err)
			}
			for _, want := range append(tt.want, strings.TrimPrefix(s.URL, "http://")) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want %q in it", err, want)
				}
			}
			if strings.Contains(err.Error(), "very-secret") || strings.ContainsAny(err.Error(), "\x1b\n") || len(err.Error()) > 1000 {
				t.Errorf("error %q holds the key or control characters, or is long", err)
			}
		})
	}
}

func TestGivesUp(t *testing.T) {
	s := newServer(t, 8)
	s.before = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.WriteHeader(500)
		return true
	}
	o := s.options()
	o.Retries = 2
	_, pauses, err := start(t, o)
	if !errors.Is(err, ErrServer) || s.count() != 3 || len(*pauses) != 2 || !strings.Contains(err.Error(), "tried 3 times") {
		t.Errorf("%d requests, pauses %v, error %v", s.count(), *pauses, err)
	}
	o.Retries = -1
	if _, _, err := start(t, o); err == nil || s.count() != 4 {
		t.Errorf("without retries: %d requests, error %v", s.count()-3, err)
	}
	s.Close()
	o.Retries = 1
	if _, _, err := start(t, o); !errors.Is(err, ErrServer) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: %v", err)
	}
}

// Answers that are whole and wrong are refused at once.
func TestBadAnswers(t *testing.T) {
	set := func(key string, value any) func([]map[string]any) []map[string]any {
		return func(es []map[string]any) []map[string]any { es[1][key] = value; return es }
	}
	for name, tt := range map[string]struct {
		data func([]map[string]any) []map[string]any
		err  error
		want string
	}{
		"too few":        {func(es []map[string]any) []map[string]any { return es[1:] }, ErrAnswer, "2 vectors for 3 texts"},
		"too many":       {func(es []map[string]any) []map[string]any { return append(es, es[0]) }, ErrAnswer, "4 vectors for 3 texts"},
		"none":           {func([]map[string]any) []map[string]any { return nil }, ErrAnswer, "0 vectors"},
		"repeated index": {set("index", 0), ErrAnswer, "data[1].index is 0"},
		"index too high": {set("index", 3), ErrAnswer, "data[1].index is 3"},
		"negative index": {set("index", -1), ErrAnswer, "data[1].index is -1"},
		"no index":       {func(es []map[string]any) []map[string]any { delete(es[1], "index"); return es }, ErrAnswer, "missing"},
		"short":          {set("embedding", []float32{1, 2}), ErrDims, "data[1].embedding has 2 values, want 4"},
		"long":           {set("embedding", []float32{1, 2, 3, 4, 5}), ErrDims, "has 5 values"},
		"empty":          {set("embedding", []float32{}), ErrDims, "has 0 values"},
		"zeros":          {set("embedding", []float32{0, 0, 0, 0}), ErrAnswer, "a vector of zeros"},
		"tiny":           {set("embedding", []float64{1e-40, 0, 0, 0}), ErrAnswer, "a vector of zeros"},
		"null element":   {set("embedding", []any{1, nil, 3, 4}), ErrAnswer, "holds null"},
		"null":           {set("embedding", nil), ErrAnswer, "want a list of numbers"},
		"text element":   {set("embedding", []any{1, "2", 3, 4}), ErrAnswer, "not a list of numbers"},
		"overflow":       {set("embedding", []any{1, 1e300, 3, 4}), ErrAnswer, "not a list of numbers"},
		"object":         {set("embedding", map[string]int{"a": 1}), ErrAnswer, "want a list of numbers"},
		"base64 NaN":     {set("embedding", "AADAfwAAAAAAAAAAAAAAAA=="), ErrAnswer, "NaN"},
		"base64 odd":     {set("embedding", "AAAAAAA="), ErrAnswer, "5 bytes"},
		"base64 broken":  {set("embedding", "!!"), ErrAnswer, "not base64"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 4)
			e, pauses, err := start(t, s.options())
			if err != nil {
				t.Fatal(err)
			}
			s.change(func() { s.data = tt.data })
			_, err = encode(e, t.Context(), "a", "b", "c")
			if !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.want) || s.count() != 2 || len(*pauses) != 0 {
				t.Errorf("%d requests, error %v, want %v with %q", s.count()-1, err, tt.err, tt.want)
			}
		})
	}
}

func TestLargeAnswer(t *testing.T) {
	s := newServer(t, 4)
	e := mustStart(t, s.options())
	sent := 0
	s.change(func() {
		s.before = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			w.Header().Set("Content-Type", "application/json")
			for range 1 << 12 {
				n, err := w.Write(make([]byte, 1<<16)) // 256 MiB in all
				if sent += n; err != nil {
					break
				}
			}
			return true
		}
	})
	first := s.count()
	if _, err := encode(e, t.Context(), "a"); !errors.Is(err, ErrServer) || !strings.Contains(err.Error(), "larger") || s.count() != first+1 {
		t.Errorf("%d requests, error %v", s.count()-first, err)
	}
}

func TestDims(t *testing.T) {
	s := newServer(t, 8)
	o := s.options()
	o.Dims = 16
	if _, _, err := start(t, o); !errors.Is(err, ErrDims) || !strings.Contains(err.Error(), "has 8 values, want 16") {
		t.Errorf("error %v", err)
	}
	o.Dims = 8
	if e := mustStart(t, o); e.ID().Dims != 8 {
		t.Errorf("identity %v", e.ID())
	}
	if err := mustStart(t, o).Encode(t.Context(), []string{"a"}, make([]float32, 7)); !errors.Is(err, ErrLength) {
		t.Errorf("short dst: %v", err)
	}
}

func TestCancel(t *testing.T) {
	s := newServer(t, 8)
	e, pauses, err := start(t, s.options())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.change(func() {
		s.before = func(_ http.ResponseWriter, r *http.Request, _ int) bool {
			cancel()
			<-r.Context().Done()
			return true
		}
	})
	if _, err := encode(e, ctx, "a"); !errors.Is(err, context.Canceled) || len(*pauses) != 0 {
		t.Errorf("in a request: %v, pauses %v", err, *pauses)
	}
	if _, err := encode(e, ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("before a request: %v", err)
	}

	// In a pause: the server asks for one that no test would sit out.
	e, err = Open(t.Context(), withServer(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	e.client.sleep = func(ctx context.Context, d time.Duration) error {
		go cancel()
		return sleep(ctx, d)
	}
	if _, err := encode(e, ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("in a pause: %v", err)
	}
}

// withServer returns options for a server that answers the first request and
// then asks to be left alone for a minute.
func withServer(t *testing.T) Options {
	s := newServer(t, 8)
	s.before = func(w http.ResponseWriter, _ *http.Request, n int) bool {
		if n == 0 {
			return false
		}
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(429)
		return true
	}
	return s.options()
}

// With one request a minute, the second does not start before its time: a
// deadline that is nearer ends the wait at once.
func TestRateLimit(t *testing.T) {
	s := newServer(t, 8)
	o := s.options()
	o.RequestsPerMinute, o.Retries = 1, -1
	e := mustStart(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := encode(e, ctx, "a"); err == nil || s.count() != 1 {
		t.Errorf("%d requests, error %v, want 1 and an error", s.count(), err)
	}
}

func TestConcurrency(t *testing.T) {
	s := newServer(t, 8)
	var now, most atomic.Int64
	o := s.options()
	o.Concurrency = 3
	e := mustStart(t, o)
	if e.Concurrency() != 3 {
		t.Errorf("Concurrency() = %d", e.Concurrency())
	}
	full := make(chan struct{})
	s.change(func() {
		s.before = func(http.ResponseWriter, *http.Request, int) bool {
			n := now.Add(1)
			defer now.Add(-1)
			for {
				m := most.Load()
				if n <= m || most.CompareAndSwap(m, n) {
					break
				}
			}
			if n == 3 {
				select {
				case <-full:
				default:
					close(full)
				}
			}
			<-full // all slots are taken once
			return false
		}
	})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			text := fmt.Sprint("text ", i)
			got, err := encode(e, t.Context(), text)
			if err != nil || !near(got, s.unit(text)) {
				t.Errorf("%s: %v, error %v", text, got, err)
			}
		})
	}
	wg.Wait()
	if most.Load() != 3 {
		t.Errorf("%d requests at a time, want 3", most.Load())
	}
}

func TestOptions(t *testing.T) {
	t.Setenv("TEST_KEY", "k")
	t.Setenv("TEST_EMPTY", " ")
	t.Setenv("TEST_LINES", "a\nb")
	for name, tt := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no URL":         {func(o *Options) { o.URL = "" }, "want an address such as"},
		"no scheme":      {func(o *Options) { o.URL = "localhost:8000/v1" }, "want an address such as"},
		"scheme":         {func(o *Options) { o.URL = "ftp://x/v1" }, "want an address such as"},
		"not a URL":      {func(o *Options) { o.URL = "http://user:hunter2@[::1" }, "is not a URL"},
		"password":       {func(o *Options) { o.URL = "http://user:hunter2@x/v1" }, "holds a user or a password"},
		"query":          {func(o *Options) { o.URL = "http://x/v1?api-version=1" }, "has a query"},
		"whole path":     {func(o *Options) { o.URL = "http://x/v1/embeddings" }, "leave /embeddings out"},
		"no model":       {func(o *Options) { o.Model = "" }, "Model"},
		"key itself":     {func(o *Options) { o.KeyEnv = "sk-hunter2" }, "not the key itself"},
		"key not set":    {func(o *Options) { o.KeyEnv = "TEST_NOT_SET" }, "TEST_NOT_SET"},
		"key empty":      {func(o *Options) { o.KeyEnv = "TEST_EMPTY" }, "TEST_EMPTY"},
		"key with lines": {func(o *Options) { o.KeyEnv = "TEST_LINES" }, "control character"},
		"key in clear":   {func(o *Options) { o.URL, o.KeyEnv = "http://gpu.example:8000/v1", "TEST_KEY" }, "unencrypted"},
		"dims":           {func(o *Options) { o.Dims = -1 }, "Dims"},
		"send dims":      {func(o *Options) { o.SendDims = true }, "needs Dims"},
		"max bytes":      {func(o *Options) { o.MaxBytes = 3 }, "MaxBytes"},
		"batch":          {func(o *Options) { o.Batch = maxBatch + 1 }, "Batch"},
		"concurrency":    {func(o *Options) { o.Concurrency = -1 }, "Concurrency"},
		"rate":           {func(o *Options) { o.RequestsPerMinute = -1 }, "RequestsPerMinute"},
		"timeout":        {func(o *Options) { o.Timeout = -1 }, "Timeout"},
		"retries":        {func(o *Options) { o.Retries = 21 }, "Retries"},
	} {
		o := Options{URL: "http://localhost:1/v1", Model: "m"}
		tt.change(&o)
		_, err := Open(t.Context(), o)
		if !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v, want ErrOption with %q and no secret", name, err, tt.want)
		}
	}
	for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
		if !loopback(host) {
			t.Errorf("%s is not taken for this machine", host)
		}
	}
}
