package decisionlog

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/internal/jcs"
)

// Schema names the form of a line: the member "log".
const Schema = "dreamguard.log/v1"

// MaxLine bounds a line in bytes, its end included.
const MaxLine = 1 << 20

// Bounds on the texts of a record in bytes. Longer ones are clipped: a record that
// is too large to write would be lost.
const (
	maxRun     = 256
	maxCause   = 2 << 10
	maxPayload = 32 << 10 // escaped six times as long, and four of them fit a line
)

// Event says what happened. The list is closed.
type Event string

// The events. A refusal is a decision; a crash is the lack of one.
const (
	Start     Event = "start"     // a run, or a guard, began
	Verdict   Event = "verdict"   // a call was judged and may be executed, or a message was scored
	Refusal   Event = "refusal"   // a call was judged and was not let through
	Crash     Event = "crash"     // no verdict: the guard failed, and the configured answer was given
	Commit    Event = "commit"    // a call was executed
	Skip      Event = "skip"      // a call was not executed
	Release   Event = "release"   // a held call was answered by a person, or its time was up
	End       Event = "end"       // the run has ended
	Label     Event = "label"     // what the run turned out to be
	Recovered Event = "recovered" // a line that was cut short was removed; written by the log itself
)

func (e Event) known() bool {
	switch e {
	case Start, Verdict, Refusal, Crash, Commit, Skip, Release, End, Label, Recovered:
		return true
	}
	return false
}

// Judged is the event of a verdict that is enforced: Verdict where it lets the
// call pass, else Refusal.
func Judged(v guard.Verdict) Event {
	if v.Decision == guard.Pass {
		return Verdict
	}
	return Refusal
}

// Mode says whether verdicts are enforced.
type Mode string

// The modes.
const (
	Enforce Mode = "enforce"
	Audit   Mode = "audit" // all is computed and logged, nothing is stopped
)

// Record is one event. Only Event is required; what is empty is left out of the
// line.
type Record struct {
	Time     time.Time // the present if zero
	Run      string    // id of the agent run, never used again
	Event    Event
	Mode     Mode           // Enforce if empty
	Verdict  *guard.Verdict // what was decided
	Enforced guard.Decision // what was done; differs from the verdict in mode Audit, after a release and after a crash. Written for Verdict, Refusal, Crash and Release
	Message  bool           // the verdict is on a message
	Call     *guard.Call
	Result   *guard.Result
	Cause    string // of a crash; who or what released; free of payloads
	Label    string // "safe" or "unsafe"
	RunEnds  bool   // this is the run's last line; the same as an event End after it
}

// ErrRecord is wrapped by the errors about a record that cannot be written.
var ErrRecord = errors.New("decisionlog: bad record")

func (r *Record) check() error {
	switch {
	case !r.Event.known():
		return fmt.Errorf("%w: event %.40q is not in the list", ErrRecord, r.Event)
	case r.Mode != "" && r.Mode != Enforce && r.Mode != Audit:
		return fmt.Errorf("%w: mode %.40q: want enforce or audit", ErrRecord, r.Mode)
	case r.Label != "" && r.Label != "safe" && r.Label != "unsafe":
		return fmt.Errorf("%w: label %.40q: want safe or unsafe", ErrRecord, r.Label)
	case r.Event == Label && r.Label == "":
		return fmt.Errorf("%w: an event label without a label", ErrRecord)
	case (r.Event == Verdict || r.Event == Refusal) && r.Verdict == nil:
		return fmt.Errorf("%w: an event %s without a verdict", ErrRecord, r.Event)
	case r.Event == Crash && r.Verdict != nil:
		return fmt.Errorf("%w: an event crash with a verdict: a crash is the lack of one", ErrRecord)
	}
	return nil
}

// line is the form of a record on disk. The names run, verdict, message, end and
// label are those that pipeline.Monitor reads; "schema" would mark a bare verdict.
type line struct {
	Log       string          `json:"log"`
	Seq       uint64          `json:"seq"`
	Prev      string          `json:"prev"`
	Hash      string          `json:"hash,omitempty"` // over the line without this member
	Time      string          `json:"time"`
	Run       string          `json:"run,omitempty"`
	Event     Event           `json:"event"`
	Mode      Mode            `json:"mode"`
	Verdict   *guard.Verdict  `json:"verdict,omitempty"`
	Enforced  *guard.Decision `json:"enforced,omitempty"`
	Message   bool            `json:"message,omitempty"`
	Call      *callLine       `json:"call,omitempty"`
	Repair    []callLine      `json:"repair,omitempty"`
	Result    *resultLine     `json:"result,omitempty"`
	Cause     string          `json:"cause,omitempty"`
	Label     string          `json:"label,omitempty"`
	End       bool            `json:"end,omitempty"`
	Recovered *recoveredLine  `json:"recovered,omitempty"`
}

// callLine is a call. The name of the tool is no payload: a log without it could
// not be read by a person.
type callLine struct {
	Tool      string       `json:"tool"`
	Arguments *payloadLine `json:"arguments,omitempty"`
	Text      *payloadLine `json:"text,omitempty"`
}

type resultLine struct {
	Output *payloadLine `json:"output,omitempty"`
	Error  *payloadLine `json:"error,omitempty"`
	User   bool         `json:"user,omitempty"`
}

// payloadLine is a text.
type payloadLine struct {
	HMAC  string  `json:"hmac"`
	Key   string  `json:"key"` // which key
	Bytes int     `json:"bytes"`
	Text  *string `json:"text,omitempty"` // if asked for, at most maxPayload bytes of it
}

type recoveredLine struct {
	Bytes  int    `json:"bytes"`  // cut off
	SHA256 string `json:"sha256"` // of them
}

// key is the secret of the payload hashes.
type key struct {
	secret []byte
	id     string
}

func newKey(secret []byte) key {
	sum := sha256.Sum256(append([]byte("dreamguard decision log key id\x00"), secret...))
	return key{secret, hex.EncodeToString(sum[:8])}
}

// payload hashes the bytes as they came.
func (k *key) payload(s string, keep bool) *payloadLine {
	if s == "" {
		return nil
	}
	h := hmac.New(sha256.New, k.secret)
	h.Write([]byte(s))
	p := &payloadLine{HMAC: hex.EncodeToString(h.Sum(nil)), Key: k.id, Bytes: len(s)}
	if keep {
		text := clip(s, maxPayload)
		p.Text = &text
	}
	return p
}

func (k *key) call(c guard.Call, keep bool) callLine {
	return callLine{clip(c.Tool, guard.MaxTool), k.payload(c.Arguments, keep), k.payload(c.Text, keep)}
}

// newLine fills all but the chain.
func newLine(r *Record, k *key, keep bool) *line {
	l := &line{
		Log: Schema, Time: r.Time.UTC().Format(time.RFC3339Nano), Run: clip(r.Run, maxRun), Event: r.Event, Mode: r.Mode,
		Message: r.Message, Cause: clip(r.Cause, maxCause), Label: r.Label, End: r.RunEnds || r.Event == End,
	}
	if l.Mode == "" {
		l.Mode = Enforce
	}
	switch r.Event {
	case Verdict, Refusal, Crash, Release:
		enforced := r.Enforced
		l.Enforced = &enforced
	}
	if r.Verdict != nil {
		v := *r.Verdict
		v.Repair = nil // its calls are payload
		if !keep {
			v.Suggestions = nil // they quote the call
		}
		l.Verdict = &v
		for _, c := range r.Verdict.Repair[:min(len(r.Verdict.Repair), 16)] {
			l.Repair = append(l.Repair, k.call(c, false))
		}
	}
	if r.Call != nil {
		c := k.call(*r.Call, keep)
		l.Call = &c
	}
	if r.Result != nil {
		l.Result = &resultLine{k.payload(r.Result.Output, keep), k.payload(r.Result.Error, keep), r.Result.User}
	}
	return l
}

// seal puts the line behind the record (seq-1, prev) and returns its bytes, line
// end included, and its hash.
func (l *line) seal(seq uint64, prev string) (b []byte, hash string, err error) {
	l.Seq, l.Prev, l.Hash = seq, prev, ""
	b, err = l.canonical()
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(b)
	l.Hash = hex.EncodeToString(sum[:])
	if b, err = l.canonical(); err != nil {
		return nil, "", err
	}
	if len(b)+1 > MaxLine {
		return nil, "", fmt.Errorf("%w: %d bytes, at most %d", ErrRecord, len(b)+1, MaxLine)
	}
	return append(b, '\n'), l.Hash, nil
}

func (l *line) canonical() ([]byte, error) {
	b, err := json.Marshal(l)
	if err == nil {
		b, err = jcs.Transform(b)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return b, nil
}

// link is what the chain needs of a line.
type link struct {
	seq        uint64
	prev, hash string
	event      Event
	torn       int // bytes that a recovery cut off
}

// errLine is the kind of a line that is not what was written.
var errLine = errors.New("decisionlog: the line was changed")

// readLine checks one line, without its end, by itself.
func readLine(b []byte) (link, error) {
	v, err := jcs.Parse(b)
	if err != nil {
		return link{}, fmt.Errorf("%w: %w", errLine, err)
	}
	m, ok := v.(map[string]any)
	if !ok || m["log"] != Schema {
		return link{}, fmt.Errorf("%w: it is no line of a decision log (%s)", errLine, Schema)
	}
	canonical, err := jcs.Append(nil, m)
	if err != nil || string(canonical) != string(b) {
		return link{}, fmt.Errorf("%w: it is not in canonical form", errLine)
	}
	seq, ok := m["seq"].(float64)
	if !ok || !(seq >= 1 && seq < 1<<53) || seq != float64(uint64(seq)) {
		return link{}, fmt.Errorf("%w: seq is not a whole number from 1", errLine)
	}
	l := link{seq: uint64(seq)}
	l.prev, _ = m["prev"].(string)
	l.hash, _ = m["hash"].(string)
	event, _ := m["event"].(string)
	l.event = Event(event)
	if r, ok := m["recovered"].(map[string]any); ok {
		n, _ := r["bytes"].(float64)
		l.torn = int(min(max(n, 0), 1<<30))
	}
	delete(m, "hash")
	if b, err = jcs.Append(nil, m); err != nil {
		return link{}, fmt.Errorf("%w: %w", errLine, err)
	}
	if sum := sha256.Sum256(b); l.hash != hex.EncodeToString(sum[:]) {
		return link{}, fmt.Errorf("%w: its hash is not that of what it says", errLine)
	}
	return l, nil
}

// noPrev is the hash before the first record.
var noPrev = strings.Repeat("0", 2*sha256.Size)

// clip keeps the first n bytes of s, whole runes of valid UTF-8.
func clip(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
