package features

import "sync"

// scratch is the memory that a call works in. Nothing in it outlives the call, so
// that trackers share what their concurrent calls need: kept by each, it would be
// a third of what a live session costs.
type scratch struct {
	tok       tokenizer
	buf       []byte
	leaves    []leaf
	sentences []sentence
	spans     []bool
	args      tokenSet
	tool      tokenSet
	both      tokenSet
	leafSet   tokenSet
	commands  commandReader
	messages  []message
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// maxSentences bounds the sentences whose memory is kept for the next result:
// clearing it is a part of every call.
const maxSentences = 4 << 10

// borrow gives the tracker working memory until giveBack.
func (t *Tracker) borrow() { t.scratch = scratches.Get().(*scratch) }

func (t *Tracker) giveBack() {
	s := t.scratch
	t.scratch = nil
	s.tok.emit = nil
	clear(s.leaves[:cap(s.leaves)]) // they hold texts of the run
	if cap(s.sentences) > maxSentences {
		s.sentences = nil
	}
	clear(s.sentences[:cap(s.sentences)])
	scratches.Put(s)
}

// words calls emit for each token of text: its words and its exact values.
func (s *scratch) words(text string, emit func(token)) {
	s.tok.emit = func(tk token, _ []byte) { emit(tk) }
	s.tok.words(text)
	values(text, &s.buf, func(kind valueKind, v []byte) {
		if kind != valueURL && kind != valueDomain { // their words are there already
			emit(valueToken(kind, v))
		}
	})
}

// valuesOf calls emit for each exact value in text.
func (s *scratch) valuesOf(text string, emit func(valueKind, token)) {
	values(text, &s.buf, func(kind valueKind, v []byte) { emit(kind, valueToken(kind, v)) })
}
