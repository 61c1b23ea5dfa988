package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
	"github.com/dreamguard/dreamguard/internal/lines"
)

// LinesSchema names the protocol of [Lines], in its first line.
const LinesSchema = "dreamguard.lines/v1"

// Lines answers requests of any program: one JSON object a line, one answer a line
// in the same order. docs/reference/adapters.md describes them. The first line that
// is written states the settings and the model.
//
//	{"id": 1, "op": "start", "session": "run 1", "task": {"instruction": "pay the rent"}}
//	{"id": 2, "op": "judge", "session": "run 1", "call": {"tool": "send_money", "arguments": {"to": "DE00"}}}
//	{"id": 3, "op": "commit", "session": "run 1", "call": {...}, "result": {"output": "done"}}
type Lines struct {
	Settings    Settings
	Model       *guard.Model
	Record      func(decisionlog.Record) error // nil: nothing is logged
	MaxSessions int                            // that are open at once; DefaultMaxSessions if 0

	runs map[string]*run
}

// DefaultMaxSessions is how many sessions Lines keeps open at once.
const DefaultMaxSessions = 1000

// request is one line.
type request struct {
	ID      json.RawMessage `json:"id"`
	Op      string          `json:"op"`
	Session string          `json:"session"`
	Task    *taskJSON       `json:"task"`
	Call    *callJSON       `json:"call"`
	Result  *resultJSON     `json:"result"`
}

type taskJSON struct {
	Instruction string     `json:"instruction"`
	Context     string     `json:"context"`
	Tools       []toolJSON `json:"tools"`
}

type toolJSON struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type callJSON struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Text      string          `json:"text"`
}

type resultJSON struct {
	Output json.RawMessage `json:"output"`
	Error  string          `json:"error"`
	User   bool            `json:"user"`
}

// call reads the arguments as the agent wrote them: text, or JSON.
func (c callJSON) call() guard.Call {
	arguments := string(c.Arguments)
	var s string
	if json.Unmarshal(c.Arguments, &s) == nil {
		arguments = s
	}
	return guard.Call{Tool: c.Tool, Arguments: arguments, Text: c.Text}
}

// linesHello is the first line.
type linesHello struct {
	Schema      string  `json:"schema"`
	Mode        Mode    `json:"mode"`
	OnError     Failure `json:"on_error"`
	OnHold      Held    `json:"on_hold"`
	Model       string  `json:"model"`
	Calibration string  `json:"calibration"`
}

// linesAnswer is the answer to one request.
type linesAnswer struct {
	ID      json.RawMessage `json:"id"`
	Action  *Action         `json:"action,omitempty"`  // of judge, and of every failure: what the host must do
	Cause   string          `json:"cause,omitempty"`   // verdict, refusal or crash
	Reason  string          `json:"reason,omitempty"`  // for the agent
	Verdict *guard.Verdict  `json:"verdict,omitempty"` // of judge
	Step    *int            `json:"step,omitempty"`    // committed steps, of start, commit and skip
	Error   string          `json:"error,omitempty"`
}

// Serve answers the lines of in until it ends, a line is too long, or ctx is done.
func (l *Lines) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	if err := l.Settings.Validate(); err != nil {
		return err
	}
	l.runs = map[string]*run{}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(linesHello{LinesSchema, l.Settings.Mode, l.Settings.OnError, l.Settings.OnHold, l.Model.Digest(), l.Model.CalibrationDigest()})
	if err != nil {
		return err
	}
	for r := lines.NewReader(in, lines.Max); ; {
		line, err := r.Next()
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			for _, run := range l.runs {
				if err := run.log(decisionlog.Record{Event: decisionlog.End}); err != nil {
					return err
				}
			}
			return ctx.Err()
		}
		fatal := err != nil && !errors.Is(err, lines.ErrNUL) && !errors.Is(err, lines.ErrUTF8)
		if werr := enc.Encode(l.answer(ctx, line, err)); werr != nil {
			return werr
		}
		if fatal {
			return fmt.Errorf("line %d: %w", r.Line(), err)
		}
	}
}

// answer answers one line. No panic gets past it.
func (l *Lines) answer(ctx context.Context, line []byte, err error) (a linesAnswer) {
	var req request
	defer func() {
		if p := recover(); p != nil {
			delete(l.runs, req.Session) // what it has become is not known
			a, err = linesAnswer{}, fmt.Errorf("internal error: %v", p)
		}
		if err != nil {
			action := l.Settings.Failed()
			a = linesAnswer{Action: &action, Cause: "crash", Error: err.Error()}
			if l.Record != nil {
				_ = l.Record(Crash(req.Session, l.Settings, action, err))
			}
		}
		if a.ID = req.ID; a.ID == nil {
			a.ID = json.RawMessage("null")
		}
	}()
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		if err = dec.Decode(&req); err == nil && dec.More() {
			err = errors.New("text after the JSON value")
		}
		if err != nil {
			err = fmt.Errorf("not a request: %w", err)
		}
	}
	if err == nil {
		a, err = l.do(ctx, req)
	}
	return a
}

// do carries out one request.
func (l *Lines) do(ctx context.Context, req request) (linesAnswer, error) {
	var a linesAnswer
	if req.Session == "" || len(req.Session) > maxSessionID {
		return a, fmt.Errorf("session has %d bytes: want 1 to %d", len(req.Session), maxSessionID)
	}
	r, known := l.runs[req.Session]
	switch {
	case req.Op == "start" && known:
		return a, errors.New("the session is open already: end it first")
	case req.Op == "start":
		return l.start(req)
	case !known:
		return a, errors.New("unknown session: start it first")
	case req.Op == "end":
		delete(l.runs, req.Session)
		return a, r.log(decisionlog.Record{Event: decisionlog.End})
	case req.Call == nil:
		return a, fmt.Errorf("op %.20q without a call: want start, judge, commit, skip or end", req.Op)
	}
	call := req.Call.call()
	var err error
	switch req.Op {
	case "judge":
		v, action, err := r.judge(ctx, call)
		if err != nil {
			return a, err
		}
		a.Verdict, a.Action, a.Cause = &v, &action, "verdict"
		if action != Allow {
			a.Cause, a.Reason = "refusal", Explain(v)
		}
		return a, nil
	case "commit":
		if req.Result == nil {
			return a, errors.New("op commit without a result")
		}
		err = r.commit(call, guard.Result{Output: ResultText(req.Result.Output), Error: req.Result.Error, User: req.Result.User})
	case "skip":
		err = r.skip(call)
	default:
		return a, fmt.Errorf("op is %.20q: want start, judge, commit, skip or end", req.Op)
	}
	step := r.session.Step()
	a.Step = &step
	return a, err
}

func (l *Lines) start(req request) (linesAnswer, error) {
	most := l.MaxSessions
	if most <= 0 {
		most = DefaultMaxSessions
	}
	if len(l.runs) >= most {
		return linesAnswer{}, fmt.Errorf("%d sessions are open, at most %d: end some", len(l.runs), most)
	}
	var task guard.Task
	if t := req.Task; t != nil {
		task = guard.Task{Instruction: t.Instruction, Context: t.Context}
		for _, tool := range t.Tools {
			task.Tools = append(task.Tools, guard.Tool(tool))
		}
	}
	r := newRun(req.Session, l.Settings, l.Model.Start(task), l.Record)
	if err := r.log(decisionlog.Record{Event: decisionlog.Start}); err != nil {
		return linesAnswer{}, err
	}
	l.runs[req.Session] = r
	step := 0
	return linesAnswer{Step: &step}, nil
}
