package remote

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// request is what the server understands of a request.
type request struct {
	Model          string   `json:"model"`
	Input          []string `json:"input"`
	EncodingFormat string   `json:"encoding_format"`
	Dimensions     int      `json:"dimensions"`
	header         http.Header
}

// server is an embeddings server whose vectors follow from the text and a seed.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	dims     int
	seed     uint64  // another seed is another model
	noise    float64 // relative, new in every answer
	shift    float64 // how far the vectors are from those of the model
	name     string  // of the model in answers, "" = as asked
	requests []request

	// before answers the request itself if it returns true; n counts from 0.
	before func(w http.ResponseWriter, r *http.Request, n int) bool
	// data changes the answer before it is sent.
	data func(entries []map[string]any) []map[string]any
}

func newServer(t testing.TB, dims int) *server {
	s := &server{dims: dims, seed: 1}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// vector is not of unit length, as many servers' are not.
func (s *server) vector(text string) []float32 {
	h := fnv.New64a()
	h.Write([]byte(text))
	rng := rand.New(rand.NewPCG(s.seed, h.Sum64()))
	other := rand.New(rand.NewPCG(s.seed+1000, h.Sum64()))
	v := make([]float32, s.dims)
	for i := range v {
		x := rng.NormFloat64() + 0.5 // with a mean, as sentence vectors have
		x += s.noise*rand.NormFloat64() + s.shift*other.NormFloat64()
		v[i] = float32(3 * x)
	}
	return v
}

func (s *server) unit(text string) []float32 {
	v := s.vector(text)
	if err := normalise(v); err != nil {
		panic(err)
	}
	return v
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	n := len(s.requests)
	before := s.before
	var req request
	err := json.NewDecoder(r.Body).Decode(&req)
	req.header = r.Header.Clone()
	s.requests = append(s.requests, req)
	s.mu.Unlock()
	if before != nil && before(w, r, n) {
		return
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/embeddings" {
		http.Error(w, fmt.Sprintf(`{"error":{"message":"unknown path %s"}}`, r.URL.Path), http.StatusNotFound)
		return
	}
	s.answer(w, req)
}

func (s *server) answer(w http.ResponseWriter, req request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var entries []map[string]any
	for i, text := range req.Input {
		v := s.vector(text)
		if req.Dimensions > 0 {
			v = v[:req.Dimensions]
		}
		e := map[string]any{"object": "embedding", "index": i, "embedding": v}
		if req.EncodingFormat == "base64" {
			var buf bytes.Buffer
			binary.Write(&buf, binary.LittleEndian, v)
			e["embedding"] = base64.StdEncoding.EncodeToString(buf.Bytes())
		}
		entries = append(entries, e)
	}
	if s.data != nil {
		entries = s.data(entries)
	}
	model := s.name
	if model == "" {
		model = req.Model
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{
		"object": "list", "model": model, "data": entries, "usage": map[string]any{"prompt_tokens": 1, "total_tokens": 1},
	})
}

// count returns the number of requests so far.
func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func (s *server) last() request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[len(s.requests)-1]
}

// change lets f change the server while nothing is answered.
func (s *server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *server) options() Options { return Options{URL: s.URL + "/v1", Model: "test-model"} }

// near reports whether two vectors are equal but for rounding.
func near(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Abs(float64(a[i]-b[i])) > 1e-6 {
			return false
		}
	}
	return true
}

// words are n different texts.
func words(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("text %d %s", i, strings.Repeat("x", i%7))
	}
	return out
}
