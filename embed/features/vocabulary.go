package features

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Vocabulary weighs tokens by how rare they are in training results: idf, the
// natural logarithm of (documents + 1) / (documents with the token + 1). It holds
// hashes only, no text. VocabularyBuilder makes it.
type Vocabulary struct {
	Unknown float64           // weight of a token that is not in the table, > 0
	idf     map[token]float64 // all finite and >= 0
}

// maxVocabulary bounds the table that is kept and the one that is read.
const maxVocabulary = 1 << 17

// ErrVocabulary is wrapped by every error about a vocabulary file.
var ErrVocabulary = errors.New("features: bad vocabulary")

// Len returns the number of tokens in the table.
func (v *Vocabulary) Len() int { return len(v.idf) }

func (v *Vocabulary) weight(t token) float64 {
	if w, ok := v.idf[t]; ok {
		return w
	}
	if t&numericBit != 0 {
		return min(1, v.Unknown)
	}
	return v.Unknown
}

// VocabularyBuilder counts in how many documents each token stands.
type VocabularyBuilder struct {
	documents int
	counts    map[token]int
	seen      map[token]struct{}
	scratch   scratch
}

// Add counts one document, normally a tool result of a training run.
func (b *VocabularyBuilder) Add(text string) {
	if text == "" {
		return
	}
	if b.counts == nil {
		b.counts, b.seen = map[token]int{}, map[token]struct{}{}
	}
	b.documents++
	clear(b.seen)
	b.scratch.words(Normalize(unescape(clip(text, maxResult))), func(t token) {
		if _, ok := b.seen[t]; !ok {
			b.seen[t] = struct{}{}
			b.counts[t]++
		}
	})
}

// unknownDocuments is the document count that an unseen token is credited with.
const unknownDocuments = 5

// Build returns the table of all tokens that stand in at least minDocuments
// documents: rarer ones weigh like unknown ones.
func (b *VocabularyBuilder) Build(minDocuments int) *Vocabulary {
	idf := func(df int) float64 { return math.Log(float64(b.documents+1) / float64(df+1)) }
	v := &Vocabulary{Unknown: max(idf(min(unknownDocuments, b.documents)), 1), idf: map[token]float64{}}
	type entry struct {
		t  token
		df int
	}
	var all []entry
	for t, df := range b.counts {
		if df >= minDocuments {
			all = append(all, entry{t, df})
		}
	}
	// Frequent tokens first, so that a cut keeps what differs most from Unknown.
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.df, a.df), cmp.Compare(a.t, b.t))
	})
	for _, e := range all[:min(len(all), maxVocabulary)] {
		// Rounded to float32 so that the JSON form is exact and short.
		v.idf[e.t] = float64(float32(max(idf(e.df), 0.05)))
	}
	v.Unknown = float64(float32(v.Unknown))
	return v
}

type vocabularyJSON struct {
	Version int       `json:"version"` // of the features
	Unknown float64   `json:"unknown"`
	Tokens  []token   `json:"tokens"`
	IDF     []float32 `json:"idf"`
}

// MarshalJSON writes the table sorted by token, so that equal tables give equal
// bytes.
func (v *Vocabulary) MarshalJSON() ([]byte, error) {
	out := vocabularyJSON{Version: Version, Unknown: v.Unknown, Tokens: make([]token, 0, len(v.idf)), IDF: make([]float32, 0, len(v.idf))}
	for t := range v.idf {
		out.Tokens = append(out.Tokens, t)
	}
	slices.Sort(out.Tokens)
	for _, t := range out.Tokens {
		out.IDF = append(out.IDF, float32(v.idf[t]))
	}
	return json.Marshal(out)
}

// ReadVocabulary reads what MarshalJSON wrote. Errors wrap ErrVocabulary.
func ReadVocabulary(b []byte) (*Vocabulary, error) {
	var in vocabularyJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrVocabulary, err)
	}
	switch {
	case in.Version != Version:
		return nil, fmt.Errorf("%w: features of version %d, this build has version %d: train again or use the matching release", ErrVocabulary, in.Version, Version)
	case len(in.Tokens) != len(in.IDF):
		return nil, fmt.Errorf("%w: %d tokens but %d weights", ErrVocabulary, len(in.Tokens), len(in.IDF))
	case len(in.Tokens) > maxVocabulary:
		return nil, fmt.Errorf("%w: %d tokens, at most %d are allowed", ErrVocabulary, len(in.Tokens), maxVocabulary)
	case !(in.Unknown > 0 && in.Unknown < 100):
		return nil, fmt.Errorf("%w: unknown is %v, want a weight above 0", ErrVocabulary, in.Unknown)
	}
	v := &Vocabulary{Unknown: in.Unknown, idf: make(map[token]float64, len(in.Tokens))}
	for i, t := range in.Tokens {
		w := float64(in.IDF[i])
		if !(w >= 0 && w < 100) {
			return nil, fmt.Errorf("%w: idf[%d] is %v, want 0 to 100", ErrVocabulary, i, w)
		}
		if _, dup := v.idf[t]; dup {
			return nil, fmt.Errorf("%w: tokens[%d] stands twice", ErrVocabulary, i)
		}
		v.idf[t] = w
	}
	return v, nil
}
