package guard

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data/clean"
	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/verdict"
)

// Bounds on a call. The call features read no more of the arguments, and what
// is not read must not pass.
const (
	MaxTool = 256      // bytes of a tool's name
	MaxCall = 16 << 10 // bytes of the arguments
)

// Session is one run of an agent. Judge each call before it is executed, then
// Commit it with its result, or Skip it. A Session is not safe for concurrent
// use.
type Session struct {
	model   *Model
	task    Task // clipped, for layers
	layers  []Layer
	tracker *features.Tracker
	memory  calib.Memory
	net     *state

	started  bool   // e is encoded and net is set
	taskText string // what e is encoded from
	steps    int
	refusals int
	stuck    bool // the judged call was executed but could not be recorded

	judged   bool // a call waits for Commit or Skip
	identity [sha256.Size]byte
	message  bool // the judged call is a message
	proposed bool // net and after hold the model's answer to it
	after    calib.Memory

	one [1]string // argument of Encode
}

// Start begins a run. Nothing is encoded yet: the first Judge does that, within
// its deadline.
func (m *Model) Start(task Task) *Session {
	task = validTask(task)
	s := m.newSession(clipTask(task))
	s.taskText = embed.TaskText(task)
	s.tracker = features.NewTracker(m.vocab, task)
	return s
}

func (m *Model) newSession(clipped Task) *Session {
	s := &Session{model: m, task: clipped, net: m.net.newState()}
	for _, l := range m.opts.layers {
		if st, ok := l.(Starter); ok {
			l = st.Start(clipped)
		}
		s.layers = append(s.layers, l)
	}
	return s
}

// Task returns the task, long texts clipped. It implements [SessionView].
func (s *Session) Task() Task { return s.task }

// Step returns the number of committed steps.
func (s *Session) Step() int { return s.steps }

// Refusals returns the number of tool calls that were skipped.
func (s *Session) Refusals() int { return s.refusals }

// Judge answers whether the call may be executed, given all that was committed.
// It does not move the session: judging again, or another call, gives what it
// would have given first. A message is scored and always passes.
//
// Whatever keeps the model from answering is a verdict and not an error, so
// that a caller cannot forget it: a context that ends gives the [OnDeadline]
// decision, an encoder that fails gives HOLD.
func (s *Session) Judge(ctx context.Context, c Call) Verdict { return s.judge(ctx, c, false) }

func (s *Session) judge(ctx context.Context, c Call, explain bool) Verdict {
	m := s.model
	v := Verdict{Step: s.steps, ModelDigest: m.digest, CalibrationDigest: m.CalibrationDigest(), Thresholds: m.Thresholds()}
	if s.stuck {
		// The executed call still waits for its Commit, so it stays the judged one.
		if !c.IsMessage() {
			v.raise(Hold, verdict.ReasonEncoder)
			s.askLayers(ctx, c, &v)
		}
		return v
	}
	s.judged, s.proposed = true, false
	s.identity, s.message = identify(c), c.IsMessage()
	m.net.borrow(s.net)
	defer m.net.giveBack(s.net)
	var raw []float32 // call features before they are normalised
	if explain {
		raw = make([]float32, m.net.dims.F)
	}
	logits, err := s.propose(ctx, c, raw)
	if err == nil {
		v.Scored, v.Logits = true, logits
		v.Scores = s.fuse(logits)
		if explain {
			s.evidence(&v, raw)
		}
	}
	if c.IsMessage() {
		return v
	}
	switch {
	case err != nil && ctx.Err() != nil:
		if m.opts.onDeadline != Pass {
			v.raise(m.opts.onDeadline, verdict.ReasonDeadline)
		}
	case err != nil:
		v.raise(Hold, verdict.ReasonEncoder)
	case v.Hazard >= m.block:
		v.raise(Block, verdict.ReasonHazard)
	case v.Risk >= m.hold:
		v.raise(Hold, verdict.ReasonRisk)
	}
	if len(c.Tool) > MaxTool || len(c.Arguments) > MaxCall {
		v.raise(Hold, verdict.ReasonTooLarge)
	}
	if n := m.opts.maxRefusals; n > 0 && s.refusals >= n {
		v.raise(Hold, verdict.ReasonRefusals)
	}
	s.askLayers(ctx, c, &v)
	if explain {
		s.suggest(&v, c)
	}
	return v
}

// Commit records that the call, which must be the one judged last, was executed
// and what came back. After an error nothing has moved: of kind [ErrNotJudged]
// it is the caller's, of kind [ErrEncoder] the result could not be read, and
// until the same Commit succeeds every tool call is held.
func (s *Session) Commit(c Call, r Result) error {
	if err := s.check(c); err != nil {
		return err
	}
	s.model.net.borrow(s.net)
	defer s.model.net.giveBack(s.net)
	ctx := context.Background()
	if !s.proposed {
		logits, err := s.propose(ctx, c, nil)
		if err != nil {
			s.stuck = true
			return fmt.Errorf("commit step %d: %w", s.steps, err)
		}
		s.fuse(logits)
	}
	seen := validResult(r)
	if !seen.User {
		// Folded YAML reads as it was trained on: in the vector and in the features.
		seen.Output = clean.UnfoldYAML(seen.Output)
	}
	text := embed.ResultText(seen)
	if text != "" {
		// The call's vector is no longer needed: its part is in net.next.
		if err := s.encode(ctx, text); err != nil {
			s.stuck, s.proposed = true, true
			return fmt.Errorf("commit step %d: %w", s.steps, err)
		}
	}
	s.model.net.advance(s.net, text != "")
	s.memory = s.after
	s.tracker.Commit(validCall(c), seen)
	for _, l := range s.layers {
		l.Commit(s, c, r)
	}
	s.steps++
	s.settle()
	return nil
}

// Skip records that the call, which must be the one judged last, was not
// executed. It leaves the model's state alone and counts as a refusal, unless it
// is a message. A call whose Commit failed was executed: it cannot be skipped,
// ErrExecuted.
func (s *Session) Skip(c Call) error {
	if err := s.check(c); err != nil {
		return err
	}
	if s.stuck {
		return fmt.Errorf("%w: call Commit again with it", ErrExecuted)
	}
	if !s.message {
		s.refusals++
	}
	s.settle()
	return nil
}

// settle forgets the judged call.
func (s *Session) settle() { s.judged, s.proposed, s.stuck = false, false, false }

func (s *Session) check(c Call) error {
	if !s.judged {
		return fmt.Errorf("%w: judge the call first", ErrNotJudged)
	}
	if identify(c) != s.identity {
		return fmt.Errorf("%w: %.60q differs from it in tool, arguments or text", ErrNotJudged, c.Tool)
	}
	return nil
}

// calls are buffers in which calls are put together to be hashed: a session that
// waits for a tool must not keep the call's text.
var calls = sync.Pool{New: func() any { return new([]byte) }}

// identify hashes a call; the lengths keep its parts apart.
func identify(c Call) [sha256.Size]byte {
	buf := calls.Get().(*[]byte)
	defer calls.Put(buf)
	b := (*buf)[:0]
	for _, part := range [...]string{c.Tool, c.Arguments, c.Text} {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	if len(b) <= maxBuffer {
		*buf = b
	}
	return sha256.Sum256(b)
}

const maxBuffer = 64 << 10 // bytes of a buffer that is used again

// propose runs the model on a call. On success net.next holds h_{t+1}, and raw, if
// there is one, the call features as they are.
func (s *Session) propose(ctx context.Context, c Call, raw []float32) (Logits, error) {
	if err := ctx.Err(); err != nil {
		return Logits{}, err
	}
	if !s.started {
		if err := s.encode(ctx, s.taskText); err != nil {
			return Logits{}, err
		}
		s.model.net.begin(s.net)
		s.started, s.taskText = true, ""
	}
	c = validCall(c)
	s.tracker.Compute(s.net.feat, c)
	copy(raw, s.net.feat)
	if err := s.encode(ctx, embed.CallText(c)); err != nil {
		return Logits{}, err
	}
	haz, pre := s.model.net.propose(s.net)
	return Logits{sane(haz), sane(pre)}, nil
}

// fuse turns the logits into scores and notes the memory after the step.
func (s *Session) fuse(l Logits) calib.Scores {
	s.after = s.memory
	s.proposed = true
	return s.model.fusion.AdvanceWith(&s.after, l.Hazard, l.Prefix, s.net.feat)
}

// Features returns the call features of the call judged last as the model
// normalises them, one per feature: what a last layer of the calibration may read.
// It is nil unless that verdict was scored. The slice is a copy.
func (s *Session) Features() []float32 {
	if !s.proposed {
		return nil
	}
	return slices.Clone(s.net.feat)
}

// encode writes the vector of text to net.text.
func (s *Session) encode(ctx context.Context, text string) error {
	s.one[0] = text
	err := s.model.encoder.Encode(ctx, s.one[:], s.net.text)
	s.one[0] = ""
	if err != nil {
		return fmt.Errorf("%w: %w", ErrEncoder, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, x := range s.net.text {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 { // NaN or infinite
			return fmt.Errorf("%w: it returned a vector with a value that is not finite", ErrEncoder)
		}
	}
	return nil
}

// sane bounds a logit. Finite weights can still overflow; a model that does is
// believed to see a hazard.
func sane(x float32) float64 {
	const limit = 1e4
	if x != x {
		return limit
	}
	return float64(min(max(x, -limit), limit))
}

// valid replaces invalid UTF-8, which neither JSON nor the encoder can carry.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// validCall also clips what is beyond the bounds: such a call is held, and only
// scored so that the log shows something.
func validCall(c Call) Call {
	return Call{Tool: valid(clip(c.Tool, MaxTool)), Arguments: valid(clip(c.Arguments, MaxCall)), Text: valid(clip(c.Text, maxText))}
}

func validResult(r Result) Result {
	return Result{Output: valid(clip(r.Output, maxResult)), Error: valid(clip(r.Error, maxText)), User: r.User}
}

func validTask(t Task) Task {
	out := Task{Instruction: valid(clip(t.Instruction, maxResult)), Context: valid(clip(t.Context, maxResult))}
	for _, d := range t.Tools {
		out.Tools = append(out.Tools, Tool{Name: valid(d.Name), Description: valid(clip(d.Description, maxText))})
	}
	return out
}

// Beyond these sizes neither features nor encoder read; clipping first bounds
// the cost of checking UTF-8. Both read heads and tails, and so does Clip.
const (
	maxText   = 64 << 10
	maxResult = 1 << 20
)

func clip(s string, max int) string { return embed.Clip(s, max) }
