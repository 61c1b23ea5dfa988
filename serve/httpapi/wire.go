package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/serve"
)

// Requests. Members that are not listed are refused.

type startRequest struct {
	ID    string   `json:"id"`    // chosen by the client; one is made if empty
	Label string   `json:"label"` // for people
	Group []string `json:"group"` // whose thresholds apply, see guard.Model.InGroup
	Task  *taskIn  `json:"task"`
}

type taskIn struct {
	Instruction string   `json:"instruction"`
	Context     string   `json:"context"`
	Tools       []toolIn `json:"tools"`
}

type toolIn struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type callIn struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"` // JSON, or the text that the agent wrote
	Text      string          `json:"text"`
}

type resultIn struct {
	Output json.RawMessage `json:"output"` // text, or JSON
	Error  string          `json:"error"`
	User   bool            `json:"user"`
}

type judgeRequest struct {
	Call   *callIn `json:"call"`
	Key    string  `json:"key"`     // a repeated request with it gets the first answer
	IfStep *int    `json:"if_step"` // refuse unless so many steps are committed
	WaitMS int     `json:"wait_ms"` // how long the answer may wait for a person
}

type commitRequest struct {
	Judgement int       `json:"judgement"`
	Call      *callIn   `json:"call"`
	Result    *resultIn `json:"result"` // not of skip
	IfStep    *int      `json:"if_step"`
}

type batchRequest struct {
	Requests []batchItem `json:"requests"`
}

// batchItem is one request of a batch: the members of the request that op names.
type batchItem struct {
	Op        string    `json:"op"` // judge, commit or skip
	Session   string    `json:"session"`
	Judgement int       `json:"judgement"`
	Call      *callIn   `json:"call"`
	Result    *resultIn `json:"result"`
	Key       string    `json:"key"`
	IfStep    *int      `json:"if_step"`
}

type answerHold struct {
	Hash string `json:"hash"` // of the call that was shown
}

// Answers.

type sessionAnswer struct {
	Session     string         `json:"session"`
	Label       string         `json:"label,omitempty"`
	Owner       string         `json:"owner"`
	Group       []string       `json:"group,omitempty"`
	Instruction string         `json:"instruction"` // the beginning of it
	Step        int            `json:"step"`        // committed steps
	Refusals    int            `json:"refusals"`
	Mode        serve.Mode     `json:"mode"`
	OnError     serve.Failure  `json:"on_error"`
	OnHold      serve.Held     `json:"on_hold"`
	Model       string         `json:"model"`
	Calibration string         `json:"calibration"`
	Hold        *float64       `json:"hold_at"`  // thresholds, null where off
	Block       *float64       `json:"block_at"` //
	Created     time.Time      `json:"created"`
	Expires     time.Time      `json:"expires"` // unless it is used before
	Open        []openAnswer   `json:"open"`    // calls whose result has not come
	Scores      []scoreAnswer  `json:"scores"`  // of the last verdicts, oldest first
	Last        guard.Decision `json:"last"`    // the last verdict's decision
}

type openAnswer struct {
	Judgement int    `json:"judgement"`
	Tool      string `json:"tool"`
	State     State  `json:"state"`
	Hold      string `json:"hold,omitempty"`
}

type scoreAnswer struct {
	Judgement int            `json:"judgement"`
	Step      int            `json:"step"`
	Hazard    float64        `json:"hazard"`
	Risk      float64        `json:"risk"`
	Decision  guard.Decision `json:"decision"`
}

type sessionList struct {
	Sessions []sessionAnswer `json:"sessions"`
	Total    int             `json:"total"`
}

// judgeAnswer is the answer to judge. It is kept for repeated requests.
type judgeAnswer struct {
	Session   string         `json:"session"`
	Judgement int            `json:"judgement"`
	Step      int            `json:"step"`
	Action    serve.Action   `json:"action"`
	Cause     string         `json:"cause"` // verdict, or refusal
	Reason    string         `json:"reason,omitempty"`
	Verdict   *guard.Verdict `json:"verdict"`
	Hold      *holdBrief     `json:"hold,omitempty"`
}

// holdBrief is what the agent is told of a held call.
type holdBrief struct {
	ID      string    `json:"id"`
	State   HoldState `json:"state"`
	Expires time.Time `json:"expires"`
	By      string    `json:"by,omitempty"` // who answered
}

type commitAnswer struct {
	Session   string `json:"session"`
	Judgement int    `json:"judgement"`
	Step      int    `json:"step"`
	State     State  `json:"state"`
	Duplicate bool   `json:"duplicate"` // it was recorded before
}

type errorAnswer struct {
	Error  errorBody     `json:"error"`
	Action *serve.Action `json:"action,omitempty"` // of judge: what the host must do
	Cause  string        `json:"cause,omitempty"`
}

type errorBody struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type batchAnswer struct {
	Answers []batchResult `json:"answers"`
}

// batchResult is the answer to one request of a batch; one member beside status.
type batchResult struct {
	Status int           `json:"status"`
	Judge  *judgeAnswer  `json:"judge,omitempty"`
	Commit *commitAnswer `json:"commit,omitempty"`
	Error  *errorAnswer  `json:"error,omitempty"`
}

// Bounds of requests.
const (
	maxID      = 128      // bytes of a session's id
	maxLabel   = 200      // bytes
	maxKey     = 128      // bytes
	maxGroup   = 8        // fields
	maxTools   = 512      // of a catalogue; package guard reads fewer
	maxBatch   = 256      // requests
	shownTask  = 400      // bytes of an instruction that people see
	shownText  = 4 << 10  // bytes of an agent's words that they see
	maxAnswers = 64 << 10 // bytes of an answer that is kept for repeats
)

// decode reads a request of at most limit bytes into v, strictly.
func decode(w http.ResponseWriter, r *http.Request, limit int64, v any) error {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return fail(http.StatusRequestEntityTooLarge, "too_large", "the request has more than %d bytes: shorten the result's middle", limit)
	case err != nil:
		return fail(http.StatusBadRequest, "bad_request", "the request ended early or came too slowly")
	case len(bytes.TrimSpace(b)) == 0:
		return fail(http.StatusBadRequest, "bad_request", "the request has no body: want a JSON object")
	case !utf8.Valid(b):
		return fail(http.StatusBadRequest, "bad_request", "the request is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fail(http.StatusBadRequest, "bad_request", "the request is not what was expected: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fail(http.StatusBadRequest, "bad_request", "text after the JSON value")
	}
	return nil
}

// call is the call as the agent wrote it. One that two JSON readers could read
// differently is refused: the tool may not read what was judged.
func (c *callIn) call() (guard.Call, error) {
	if c == nil {
		return guard.Call{}, fail(http.StatusBadRequest, "bad_request", "the request has no call")
	}
	arguments := string(c.Arguments)
	var s string
	if json.Unmarshal(c.Arguments, &s) == nil {
		arguments = s
	} else if err := serve.Unambiguous(c.Arguments); err != nil {
		return guard.Call{}, fail(http.StatusBadRequest, "ambiguous", "%v", err)
	}
	return guard.Call{Tool: c.Tool, Arguments: arguments, Text: c.Text}, nil
}

func (r *resultIn) result() (guard.Result, error) {
	if r == nil {
		return guard.Result{}, fail(http.StatusBadRequest, "bad_request", "the request has no result")
	}
	return guard.Result{Output: serve.ResultText(r.Output), Error: r.Error, User: r.User}, nil
}

func (t *taskIn) task() (guard.Task, error) {
	if t == nil {
		return guard.Task{}, nil
	}
	if len(t.Tools) > maxTools {
		return guard.Task{}, fail(http.StatusBadRequest, "bad_request", "the task names %d tools, at most %d", len(t.Tools), maxTools)
	}
	task := guard.Task{Instruction: t.Instruction, Context: t.Context}
	for _, tool := range t.Tools {
		task.Tools = append(task.Tools, guard.Tool(tool))
	}
	return task, nil
}

// validID reports whether s may be the id of a session: it stands in paths, logs
// and the keys of a store.
func validID(s string) bool {
	if s == "" || len(s) > maxID {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '-' || c == '_' || c == '.'):
		default:
			return false
		}
	}
	return true
}
