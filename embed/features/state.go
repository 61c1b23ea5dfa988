package features

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
)

// ErrState is wrapped by every error about a serialised tracker.
var ErrState = errors.New("features: bad tracker state")

// maxCounter bounds what a counter can have reached.
const maxCounter = 1 << 30

const stateMagic = "dgft\x01"

// MaxState bounds what UnmarshalTracker reads and what MarshalBinary writes.
const MaxState = 256 << 10

// MarshalBinary writes the whole state, in an order that does not depend on map
// iteration: equal trackers give equal bytes.
func (t *Tracker) MarshalBinary() ([]byte, error) {
	w := &writer{b: append(make([]byte, 0, 4096), stateMagic...)}
	w.int(Version)
	w.string(t.taskText)
	w.byte(byte(t.taskVerbs))
	k := &t.counts
	for _, n := range []int{k.Steps, k.Calls, k.Directives, k.LastDirective, k.LastCount, k.LastLength, k.TaskLength, k.Sensitive, k.Errors} {
		w.int(n)
	}
	for _, x := range []float64{k.MaxScore, k.LastMax} {
		w.uint64(math.Float64bits(x))
	}
	for _, b := range []bool{k.LastOverride, k.AnyOverride, k.TailOverride, k.HasContext, k.Delegates, k.LastError} {
		w.bool(b)
	}
	w.uint64(uint64(k.LastTool))

	w.int(len(t.tools))
	for _, tk := range sorted(t.tools) {
		w.uint64(uint64(tk))
		w.int(t.tools[tk].Used)
		w.tokens(t.tools[tk].Description)
	}
	seen := sorted(t.seen.at)
	w.int(t.seen.tokens)
	for _, tk := range seen {
		if o := t.seen.origin(tk); o != fromNowhere {
			w.uint64(uint64(tk))
			w.byte(byte(o))
		}
	}
	w.tokens(t.plain)
	w.int(t.seen.values)
	for _, v := range seen {
		if p := t.seen.place(v); p != 0 {
			w.uint64(uint64(v))
			w.byte(byte(p))
		}
	}
	w.tokens(t.plainVals)
	w.tokens(sorted(t.said))
	w.tokens(sorted(t.taint))
	w.tokens(sorted(t.private))
	w.int(len(t.directives))
	for i := range t.directives {
		d := &t.directives[i]
		w.string(d.text)
		w.tokens(d.tokens)
		for _, x := range []float64{d.weight, d.offTask, d.score} {
			w.uint64(math.Float64bits(x))
		}
		w.int(d.step)
		w.byte(byte(d.verbs))
		w.bool(d.override)
		w.bool(d.context)
		w.bool(d.asked)
		w.bool(d.named)
	}
	if len(w.b) > MaxState {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrState, len(w.b), MaxState)
	}
	return w.b, nil
}

// UnmarshalTracker reads what MarshalBinary wrote, for a model with vocabulary
// v. It is safe on hostile input; errors wrap ErrState.
func UnmarshalTracker(v *Vocabulary, b []byte) (*Tracker, error) {
	if len(b) > MaxState {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrState, len(b), MaxState)
	}
	if !bytes.HasPrefix(b, []byte(stateMagic)) {
		return nil, fmt.Errorf("%w: not a tracker", ErrState)
	}
	r := &reader{b: b[len(stateMagic):]}
	if got := r.int(); r.err == nil && got != Version {
		return nil, fmt.Errorf("%w: features of version %d, this build has version %d", ErrState, got, Version)
	}
	if v == nil {
		v = &Vocabulary{Unknown: 1}
	}
	t := &Tracker{vocab: v, taskText: r.string(maxTaskText + 2), taskVerbs: verbSet(r.byte())}
	k := &t.counts
	for _, n := range []*int{&k.Steps, &k.Calls, &k.Directives, &k.LastDirective, &k.LastCount, &k.LastLength, &k.TaskLength, &k.Sensitive, &k.Errors} {
		*n = r.int()
	}
	for _, x := range []*float64{&k.MaxScore, &k.LastMax} {
		*x = r.finite()
	}
	for _, x := range []*bool{&k.LastOverride, &k.AnyOverride, &k.TailOverride, &k.HasContext, &k.Delegates, &k.LastError} {
		*x = r.bool()
	}
	k.LastTool = token(r.uint64())

	n := r.count(maxTools)
	t.tools = make(map[token]toolInfo, n)
	for range n {
		tk := token(r.uint64())
		t.tools[tk] = toolInfo{Used: r.int(), Description: r.tokens(maxToolTokens)}
		if t.tools[tk].Used < 0 || t.tools[tk].Used > maxCounter {
			r.fail("a tool was used %d times", t.tools[tk].Used)
		}
	}
	n = r.count(maxTokens)
	t.seen.at = make(map[token]sighting, n)
	for range n {
		tk, o := token(r.uint64()), origin(r.byte())
		if o >= originCount-1 {
			r.fail("origin %d", o)
			break
		}
		t.seen.setOrigin(tk, o)
	}
	t.plain = r.tokens(maxPlain)
	n = r.count(maxValues)
	for range n {
		v, p := token(r.uint64()), place(r.byte())
		if p == 0 || p > allPlaces {
			r.fail("place %d", p)
			break
		}
		t.seen.addPlace(v, p)
	}
	t.plainVals = r.tokens(maxValues)
	t.said, t.taint, t.private = set(r.tokens(maxSaid)), set(r.tokens(maxTaint)), set(r.tokens(maxPersonal))
	n = r.count(maxDirectives)
	for range n {
		d := directive{text: r.string(2 * maxDirText), tokens: r.tokens(maxDirTokens)}
		d.weight, d.offTask, d.score = r.finite(), r.finite(), r.finite()
		d.step = r.int()
		d.verbs = verbSet(r.byte())
		d.override, d.context = r.bool(), r.bool()
		d.asked, d.named = r.bool(), r.bool()
		if d.weight < 1e-3 || d.weight > 1e6 || d.offTask < 0 || d.offTask > 1 || d.score < 0 || d.score > 100 || d.step < 0 || d.step > k.Steps {
			r.fail("directive of weight %v, off-task share %v, score %v, step %d", d.weight, d.offTask, d.score, d.step)
		}
		t.directives = append(t.directives, d)
	}
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes too many", len(r.b))
	}
	if r.err != nil {
		return nil, r.err
	}
	for _, n := range []int{k.Steps, k.Calls, k.Directives, k.LastDirective + 1, k.LastCount, k.LastLength, k.TaskLength, k.Sensitive, k.Errors} {
		if n < 0 || n > maxCounter {
			return nil, fmt.Errorf("%w: a counter is %d", ErrState, n)
		}
	}
	if k.LastDirective > k.Steps || k.MaxScore < 0 || k.LastMax < 0 {
		return nil, fmt.Errorf("%w: a directive was seen in the future, or a score is negative", ErrState)
	}
	return t, nil
}

func sorted[V any](m map[token]V) []token {
	return slices.SortedFunc(maps.Keys(m), cmp.Compare[token])
}

func set(ts []token) map[token]struct{} {
	m := make(map[token]struct{}, len(ts))
	for _, t := range ts {
		m[t] = struct{}{}
	}
	return m
}

type writer struct{ b []byte }

func (w *writer) byte(x byte)     { w.b = append(w.b, x) }
func (w *writer) int(n int)       { w.b = binary.AppendVarint(w.b, int64(n)) }
func (w *writer) uint64(x uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, x) }
func (w *writer) string(s string) { w.int(len(s)); w.b = append(w.b, s...) }
func (w *writer) bool(x bool) {
	if x {
		w.byte(1)
	} else {
		w.byte(0)
	}
}
func (w *writer) tokens(ts []token) {
	w.int(len(ts))
	for _, t := range ts {
		w.uint64(uint64(t))
	}
}

// reader remembers the first error and returns zeros after it.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, a ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrState, fmt.Sprintf(format, a...))
	}
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b) {
		if r.err == nil {
			r.err = fmt.Errorf("%w: %w", ErrState, io.ErrUnexpectedEOF)
		}
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) bool() bool {
	x := r.byte()
	if x > 1 {
		r.fail("%d is not a truth value", x)
	}
	return x == 1
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) finite() float64 {
	x := math.Float64frombits(r.uint64())
	if math.IsNaN(x) || math.IsInf(x, 0) {
		r.fail("%v is not a finite number", x)
		return 0
	}
	return x
}

func (r *reader) int() int {
	x, n := binary.Varint(r.b)
	if n <= 0 {
		r.take(len(r.b) + 1)
		return 0
	}
	r.take(n)
	return int(x)
}

// count reads a length that is at most limit.
func (r *reader) count(limit int) int {
	n := r.int()
	if n < 0 || n > limit {
		r.fail("%d items, at most %d are allowed", n, limit)
		return 0
	}
	if r.err != nil {
		return 0
	}
	return n
}

func (r *reader) string(limit int) string { return string(r.take(r.count(limit))) }

func (r *reader) tokens(limit int) []token {
	n := r.count(limit)
	if n*8 > len(r.b) {
		r.take(len(r.b) + 1)
		return nil
	}
	out := make([]token, n)
	for i := range out {
		out[i] = token(r.uint64())
	}
	return out
}
