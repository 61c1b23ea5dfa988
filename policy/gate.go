package policy

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/dreamguard/dreamguard/embed"
)

// Thresholds of a gate with an encoder: cosines of single words. They were set on
// the development half of testdata/requests.jsonl (TestGateThresholds), the
// smallest multiples of 0.05 with no false activation there.
const (
	actionThreshold = 0.60
	objectThreshold = 0.60
)

// maxRequest bounds what is read of a request, in bytes.
const maxRequest = 64 << 10

// Gate decides which rules matter for a request: those whose trigger and scope
// both match it, in the same words, in common synonyms or, with an encoder, in
// near ones. It decides what stands in the prompt; the audit does not need it. It
// is safe for concurrent use.
type Gate struct {
	encoder embed.Encoder

	mu      sync.Mutex
	vectors map[string][]float32 // of words
}

// NewGate makes a gate. Without an encoder (nil) words and synonyms alone count.
func NewGate(e embed.Encoder) (*Gate, error) {
	if e != nil && (e.ID().Dims <= 0 || e.ID().Dims > 1<<16) {
		return nil, fmt.Errorf("policy: the encoder %v has no usable length of vectors", e.ID())
	}
	return &Gate{encoder: e, vectors: map[string][]float32{}}, nil
}

// request is a request, ready to be compared with rules.
type request struct {
	words   map[string]bool // stems
	list    []string        // words that are not generic, as they stand
	verbs   []string        // bases of verbs, and of nouns for actions
	classes []class
	values  []target
}

func readRequest(text string) request {
	r := request{words: map[string]bool{}}
	for _, k := range tokenize(clipText(text, maxRequest)) {
		if k.punct {
			continue
		}
		if k.value {
			r.values = append(r.values, newTarget(text[k.start:k.end]))
		}
		splitWords(k.w, func(w string) {
			if generic[w] {
				return
			}
			r.words[stem(w)] = true
			if !slices.Contains(r.list, w) && len(r.list) < 400 {
				r.list = append(r.list, w)
			}
		})
		for _, v := range []string{actNouns[k.w], base(k.w)} {
			if v != "" && !slices.Contains(r.verbs, v) {
				r.verbs = append(r.verbs, v)
				r.classes = append(r.classes, classOf(v))
			}
		}
	}
	return r
}

func base(w string) string {
	if v, ok := lemma(w); ok && isVerb(v) {
		return v
	}
	return ""
}

// Active returns the rules that matter for a request, in order. Its errors are
// those of the encoder.
func (g *Gate) Active(ctx context.Context, text string, rules []Rule) ([]Rule, error) {
	q := readRequest(text)
	var out []Rule
	for _, rule := range rules {
		r := compileRule(rule)
		action, err := g.action(ctx, r, q)
		if err != nil {
			return nil, err
		}
		if !action {
			continue
		}
		object, err := g.object(ctx, r, q)
		if err != nil {
			return nil, err
		}
		if object {
			out = append(out, rule)
		}
	}
	return out, nil
}

// action reports whether the request asks for something that triggers the rule.
func (g *Gate) action(ctx context.Context, r *compiled, q request) (bool, error) {
	if len(r.Trigger.Actions) == 0 {
		return slices.ContainsFunc(q.classes, func(k class) bool { return !readsOnly[k] }), nil
	}
	p := &parsedCall{tool: &tool{}, verbs: q.verbs, classes: q.classes, words: q.words}
	if r.bindsAction(p) && len(q.classes) > 0 {
		return true, nil
	}
	for _, a := range r.Trigger.Actions {
		if q.words[stem(a)] {
			return true, nil
		}
		near, err := g.near(ctx, a, q.list, actionThreshold)
		if near || err != nil {
			return near, err
		}
	}
	return false, nil
}

// object reports whether the request names the rule's object: a value, or its
// head and half of its other words.
func (g *Gate) object(ctx context.Context, r *compiled, q request) (bool, error) {
	o := r.scope
	for _, v := range o.values {
		if slices.ContainsFunc(q.values, func(t target) bool { return v.touches(t) }) {
			return true, nil
		}
		found := true
		splitWords(v.folded, func(w string) { found = found && q.words[stem(w)] })
		if found && v.folded != "" {
			return true, nil
		}
	}
	if len(o.words) == 0 {
		return len(o.values) == 0, nil
	}
	if len(o.values) > 0 {
		return false, nil
	}
	for w, group := range contrasts {
		if q.words[w] && !slices.Contains(o.words, w) && slices.ContainsFunc(o.words, func(x string) bool { return contrasts[x] == group && !q.words[x] }) {
			return false, nil
		}
	}
	head, others, found := false, 0, 0
	for _, w := range o.words {
		ok := q.words[w]
		for _, k := range q.classes {
			ok = ok || w == o.head && typical[k][w] && len(o.words) == 1
		}
		if !ok {
			var err error
			if ok, err = g.near(ctx, w, q.list, objectThreshold); err != nil {
				return false, err
			}
		}
		if w == o.head {
			head = head || ok
		} else if others++; ok {
			found++
		}
	}
	return head && 2*found >= others || !head && found > 0 && found == others, nil
}

// near reports whether one of the words lies within a threshold of w.
func (g *Gate) near(ctx context.Context, w string, list []string, threshold float32) (bool, error) {
	if g.encoder == nil || len(w) < 3 {
		return false, nil
	}
	a, err := g.vector(ctx, w)
	if err != nil {
		return false, err
	}
	for _, x := range list {
		b, err := g.vector(ctx, x)
		if err != nil {
			return false, err
		}
		var dot float32
		for i := range a {
			dot += a[i] * b[i]
		}
		if dot >= threshold {
			return true, nil
		}
	}
	return false, nil
}

func (g *Gate) vector(ctx context.Context, w string) ([]float32, error) {
	g.mu.Lock()
	v, ok := g.vectors[w]
	g.mu.Unlock()
	if ok {
		return v, nil
	}
	v = make([]float32, g.encoder.ID().Dims)
	if err := g.encoder.Encode(ctx, []string{w}, v); err != nil {
		return nil, fmt.Errorf("policy: encode a word of the request: %w", err)
	}
	g.mu.Lock()
	if len(g.vectors) >= 20_000 {
		clear(g.vectors) // words of a hostile request must not fill memory
	}
	g.vectors[w] = v
	g.mu.Unlock()
	return v, nil
}
