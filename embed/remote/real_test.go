package remote

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestRealServer runs against a server that DREAMGUARD_EMBEDDINGS names, as
// "URL MODEL"; bench/remote/infinity.sh starts one from packages. Its model has to
// be a sentence encoder.
func TestRealServer(t *testing.T) {
	url, model, ok := strings.Cut(os.Getenv("DREAMGUARD_EMBEDDINGS"), " ")
	if !ok {
		t.Skip(`DREAMGUARD_EMBEDDINGS names no server: set it to "URL MODEL"`)
	}
	o := Options{URL: url, Model: model, KeyEnv: os.Getenv("DREAMGUARD_EMBEDDINGS_KEY_ENV"), Batch: 20}
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(e.ID(), e.ID().Digest)
	dims := e.ID().Dims
	texts := append(words(30),
		"Send the quarterly report to the finance team.", "Please mail finance the report of this quarter.", "The cat sleeps on the sofa.",
		"", "naïve café ☕ 東京 \x00 \u200b", strings.Repeat("a long text of many words ", 230), probes[4])
	v, err := encode(e, t.Context(), texts...)
	if err != nil {
		t.Fatal(err)
	}
	at := func(v []float32, i int) []float32 { return v[i*dims : (i+1)*dims] }
	for i, text := range texts {
		norm := dot(at(v, i), at(v, i))
		if blank := text == ""; blank && norm != 0 || !blank && (norm < 0.9999 || norm > 1.0001) {
			t.Errorf("text %d, %.30q: squared length %v", i, text, norm)
		}
	}
	if alike, other := dot(at(v, 30), at(v, 31)), dot(at(v, 30), at(v, 32)); alike < other+0.2 {
		t.Errorf("cosine %.3f of a paraphrase, %.3f of an unrelated text", alike, other)
	}

	// In another order, in other company and in base64 the vectors are the same.
	o.Base64, o.Batch = true, 7
	again, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if again, err = again.As(e.ID()); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(texts)
	w, err := encode(again, t.Context(), texts...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range texts {
		if texts[i] == "" {
			continue
		}
		if c := dot(at(w, i), at(v, len(texts)-1-i)); c < 0.9999 {
			t.Errorf("%.30q: cosine %v to itself", texts[i], c)
		}
	}
}
