package guard

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/features"
)

// MaxState bounds a serialised session in bytes.
const MaxState = 2 << 20

const stateMagic = "dreamguard-session\x01" // the last byte is the version

// Flags of a serialised session.
const (
	flagStarted = 1 << iota
	flagJudged
	flagMessage
	flagStuck
	flagAll = 1<<iota - 1
)

// Bounds on the parts of a serialised session: bytes, or counts.
const (
	maxTaskText   = 64 << 10 // instruction, and context, as kept for layers
	maxTaskTools  = 256
	maxToolText   = 1 << 10
	maxTaskEncode = 8 << 10 // the text that e is encoded from
	maxLayerState = 64 << 10
	maxLayerName  = 256
	maxSteps      = 1 << 30
)

func clipTask(t Task) Task {
	out := Task{Instruction: embed.Clip(t.Instruction, maxTaskText), Context: embed.Clip(t.Context, maxTaskText)}
	for _, d := range t.Tools[:min(len(t.Tools), maxTaskTools)] {
		out.Tools = append(out.Tools, Tool{Name: embed.Clip(d.Name, MaxTool), Description: embed.Clip(d.Description, maxToolText)})
	}
	return out
}

// MarshalBinary writes all that the session's verdicts depend on, so that
// [Model.Resume] can go on in another process. Equal sessions give equal bytes.
// The form belongs to the model and to the fusion of its calibration; thresholds
// may change in between.
func (s *Session) MarshalBinary() ([]byte, error) {
	digest, err := hex.DecodeString(s.model.digest)
	if err != nil {
		return nil, fmt.Errorf("%w: model digest: %w", ErrState, err)
	}
	w := encoder{append(make([]byte, 0, 8<<10), stateMagic...)}
	w.b = append(w.b, digest...)
	w.b = append(w.b, s.model.fusionSum[:]...)
	var flags byte
	for _, f := range []struct {
		set bool
		bit byte
	}{{s.started, flagStarted}, {s.judged, flagJudged}, {s.message && s.judged, flagMessage}, {s.stuck, flagStuck}} {
		if f.set {
			flags |= f.bit
		}
	}
	w.b = append(w.b, flags)
	w.uint(uint64(s.steps))
	w.uint(uint64(s.refusals))
	if s.judged {
		w.b = append(w.b, s.identity[:]...)
	}
	w.text(s.task.Instruction)
	w.text(s.task.Context)
	w.uint(uint64(len(s.task.Tools)))
	for _, d := range s.task.Tools {
		w.text(d.Name)
		w.text(d.Description)
	}
	if s.started {
		for _, v := range [][]float32{s.net.h, s.net.z, s.net.task} {
			w.floats(v)
		}
		w.float(s.memory.EMA)
		for _, p := range s.memory.Last[:min(s.memory.Count, s.model.fusion.Window)] {
			w.float(p)
		}
	} else {
		w.text(s.taskText)
	}
	tracker, err := s.tracker.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("%w: call features: %w", ErrState, err)
	}
	w.text(string(tracker))
	if err := s.marshalLayers(&w); err != nil {
		return nil, err
	}
	if len(w.b) > MaxState {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrState, len(w.b), MaxState)
	}
	return w.b, nil
}

// marshalLayers writes the layers that keep state.
func (s *Session) marshalLayers(w *encoder) error {
	var states [][2]string
	for _, l := range s.layers {
		m, ok := l.(encoding.BinaryMarshaler)
		if !ok {
			continue
		}
		b, err := m.MarshalBinary()
		if err != nil {
			return fmt.Errorf("%w: layer %q: %w", ErrState, l.Name(), err)
		}
		if len(b) > maxLayerState || len(l.Name()) > maxLayerName {
			return fmt.Errorf("%w: layer %q: %d bytes, at most %d", ErrState, l.Name(), len(b), maxLayerState)
		}
		states = append(states, [2]string{l.Name(), string(b)})
	}
	w.uint(uint64(len(states)))
	for _, st := range states {
		w.text(st[0])
		w.text(st[1])
	}
	return nil
}

// Resume continues a session from the bytes of [Session.MarshalBinary]: it gives
// the verdicts that the session would have given. It is safe on hostile input.
// Errors wrap [ErrState], or [ErrStateModel] if the bytes belong to another model
// or another fusion of scores.
func (m *Model) Resume(b []byte) (*Session, error) {
	if len(b) > MaxState {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrState, len(b), MaxState)
	}
	if !bytes.HasPrefix(b, []byte(stateMagic)) {
		return nil, fmt.Errorf("%w: not a session of this version: start the run anew", ErrState)
	}
	r := &decoder{b: b[len(stateMagic):]}
	if got := hex.EncodeToString(r.take(len(m.digest) / 2)); r.err == nil && got != m.digest {
		return nil, fmt.Errorf("%w: it belongs to model %.12s, this is %.12s", ErrStateModel, got, m.digest)
	}
	if got := r.take(len(m.fusionSum)); r.err == nil && !bytes.Equal(got, m.fusionSum[:]) {
		return nil, fmt.Errorf("%w: the calibration fuses scores in another way than when the session was saved", ErrStateModel)
	}
	flags := r.byte()
	if flags&^flagAll != 0 || flags&flagJudged == 0 && flags&(flagMessage|flagStuck) != 0 {
		r.fail("flags %#x", flags)
	}
	steps, refusals := r.count(maxSteps), r.count(maxSteps)
	var identity []byte
	if flags&flagJudged != 0 {
		identity = r.take(32)
	}
	task := Task{Instruction: r.text(maxTaskText), Context: r.text(maxTaskText)}
	for range r.count(maxTaskTools) {
		task.Tools = append(task.Tools, Tool{Name: r.text(MaxTool), Description: r.text(maxToolText)})
	}
	if r.err != nil {
		return nil, r.err
	}
	s := m.newSession(task)
	s.steps, s.refusals = steps, refusals
	s.started, s.judged = flags&flagStarted != 0, flags&flagJudged != 0
	s.message, s.stuck = flags&flagMessage != 0, flags&flagStuck != 0
	copy(s.identity[:], identity)
	if s.started {
		r.state(s)
	} else {
		if s.taskText = r.text(maxTaskEncode); steps > 0 {
			r.fail("%d steps were committed before the start", steps)
		}
	}
	tracker := r.text(features.MaxState)
	if r.err == nil {
		var err error
		if s.tracker, err = features.UnmarshalTracker(m.vocab, []byte(tracker)); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	if err := s.resumeLayers(r); err != nil {
		return nil, err
	}
	if s.started {
		m.net.derive(s.net)
	}
	return s, nil
}

// state reads the model's part of a started session.
func (r *decoder) state(s *Session) {
	for _, v := range [][]float32{s.net.h, s.net.z, s.net.task} {
		r.floats(v)
	}
	s.memory.Count = s.steps
	s.memory.EMA = r.probability()
	for i := range min(s.steps, s.model.fusion.Window) {
		s.memory.Last[i] = r.probability()
	}
}

func (s *Session) resumeLayers(r *decoder) error {
	states := map[string]string{}
	for range r.count(maxLayers) {
		name := r.text(maxLayerName)
		if _, twice := states[name]; twice {
			r.fail("layer %.40q stands twice", name)
		}
		states[name] = r.text(maxLayerState)
	}
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes too many", len(r.b))
	}
	if r.err != nil {
		return r.err
	}
	for _, l := range s.layers {
		u, ok := l.(encoding.BinaryUnmarshaler)
		if !ok {
			continue
		}
		b, ok := states[l.Name()]
		if !ok {
			return fmt.Errorf("%w: layer %q is new: it has no state in this session", ErrStateModel, l.Name())
		}
		if err := u.UnmarshalBinary([]byte(b)); err != nil {
			return fmt.Errorf("%w: layer %q: %w", ErrState, l.Name(), err)
		}
		delete(states, l.Name())
	}
	for name := range states {
		return fmt.Errorf("%w: layer %q took part in this session and is not there any more", ErrStateModel, name)
	}
	return nil
}

// encoder appends values.
type encoder struct{ b []byte }

func (w *encoder) uint(x uint64)   { w.b = binary.AppendUvarint(w.b, x) }
func (w *encoder) text(s string)   { w.uint(uint64(len(s))); w.b = append(w.b, s...) }
func (w *encoder) float(x float64) { w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(x)) }
func (w *encoder) floats(v []float32) {
	for _, x := range v {
		w.b = binary.LittleEndian.AppendUint32(w.b, math.Float32bits(x))
	}
}

// decoder reads values; after the first error everything is zero.
type decoder struct {
	b   []byte
	err error
}

func (r *decoder) fail(format string, a ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrState, fmt.Sprintf(format, a...))
	}
	r.b = nil
}

func (r *decoder) take(n int) []byte {
	if n > len(r.b) {
		r.fail("it ends early")
		return make([]byte, min(n, 64))
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *decoder) byte() byte { return r.take(1)[0] }

// count reads a number from 0 to limit. Anything else is an error.
func (r *decoder) count(limit int) int {
	x, n := binary.Uvarint(r.b)
	if n <= 0 || x > uint64(limit) {
		r.fail("a number is missing or above %d", limit)
		return 0
	}
	r.b = r.b[n:]
	return int(x)
}

func (r *decoder) text(limit int) string {
	n := r.count(limit)
	if n > len(r.b) {
		r.fail("it ends early")
		return ""
	}
	return string(r.take(n))
}

func (r *decoder) probability() float64 {
	p := math.Float64frombits(binary.LittleEndian.Uint64(r.take(8)))
	if !(p >= 0 && p <= 1) {
		r.fail("a probability is %v", p)
		return 0
	}
	return p
}

func (r *decoder) floats(v []float32) {
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(r.take(4)))
		if x := float64(v[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			r.fail("a value of the state is %v", x)
		}
	}
}

var _ encoding.BinaryMarshaler = (*Session)(nil)
