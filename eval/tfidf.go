package eval

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/embed"
)

// maxTerms bounds the vocabulary of the text baseline.
const maxTerms = 50_000

// tfidf turns a text into a sparse vector of unit length: words of two letters
// or digits at least, in lower case; weight (1 + ln tf) idf with
// idf = ln((1+n)/(1+df)) + 1, as scikit-learn's TfidfVectorizer with
// sublinear_tf. Words seen in one text only are left out.
type tfidf struct {
	index map[string]int32
	idf   []float64
}

func words(text string) []string {
	w := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.DeleteFunc(w, func(s string) bool { return len(s) < 2 })
}

func newTFIDF(texts []string) *tfidf {
	df := map[string]int{}
	for _, t := range texts {
		w := words(t)
		slices.Sort(w)
		for _, s := range slices.Compact(w) {
			df[s]++
		}
	}
	type term struct {
		word string
		n    int
	}
	var terms []term
	for w, n := range df {
		if n >= 2 {
			terms = append(terms, term{w, n})
		}
	}
	// The most frequent first, then by word: never in map order.
	slices.SortFunc(terms, func(a, b term) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.word, b.word)) })
	terms = terms[:min(len(terms), maxTerms)]
	v := &tfidf{index: make(map[string]int32, len(terms)), idf: make([]float64, len(terms))}
	for i, t := range terms {
		v.index[t.word] = int32(i)
		v.idf[i] = math.Log(float64(1+len(texts))/float64(1+t.n)) + 1
	}
	return v
}

// vector returns ascending indices and their values.
func (v *tfidf) vector(text string) ([]int32, []float32) {
	var index []int32
	for _, w := range words(text) {
		if i, ok := v.index[w]; ok {
			index = append(index, i)
		}
	}
	slices.Sort(index)
	var value []float64
	var norm float64
	n := 0
	for i := 0; i < len(index); {
		j := i
		for j < len(index) && index[j] == index[i] {
			j++
		}
		x := (1 + math.Log(float64(j-i))) * v.idf[index[i]]
		index[n], value = index[i], append(value, x)
		norm += x * x
		n, i = n+1, j
	}
	out := make([]float32, n)
	for i, x := range value {
		out[i] = float32(x / math.Sqrt(norm))
	}
	return index[:n], out
}

// TrainText fits a logistic regression on the TF-IDF vector of the call's text,
// [embed.CallText]: what the call looks like, without anything that led to it.
func TrainText(runs []*data.Trajectory, o Training) (StepModel, error) {
	steps := supervised(runs, o.Weight)
	texts := make([]string, len(steps))
	for i, s := range steps {
		texts[i] = embed.CallText(runs[s.run].Call(s.index))
	}
	v := newTFIDF(texts)
	x := &sparseRows{width: len(v.idf)}
	for _, t := range texts {
		index, value := v.vector(t)
		x.index, x.value = append(x.index, index), append(x.value, value)
	}
	l, err := o.fit(x, steps)
	if err != nil {
		return nil, fmt.Errorf("text baseline: %w", err)
	}
	return &textModel{v, l}, nil
}

type textModel struct {
	*tfidf
	*logistic
}

func (m *textModel) Name() string { return "TF-IDF + logistic regression" }

func (m *textModel) Steps(t *data.Trajectory, _ [][]float32) ([]float64, error) {
	out := make([]float64, len(t.Steps))
	for i := range t.Steps {
		index, value := m.vector(embed.CallText(t.Call(i)))
		x := sparseRows{index: [][]int32{index}, value: [][]float32{value}}
		out[i] = squash(x.dot(0, m.w) + m.b)
	}
	return out, nil
}
