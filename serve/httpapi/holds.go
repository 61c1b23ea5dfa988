package httpapi

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/filelock"
	"github.com/dreamguard/dreamguard/serve"
)

// HoldState says what has become of a held call.
type HoldState string

// The states of a held call.
const (
	HoldPending   HoldState = "pending"
	HoldApproved  HoldState = "approved"
	HoldDenied    HoldState = "denied"
	HoldExpired   HoldState = "expired"   // nobody answered in time
	HoldWithdrawn HoldState = "withdrawn" // its session has ended
)

// Hold is a call that waits for a person. The file that keeps it holds the call's
// arguments in the clear: nobody can agree to what he was not shown.
type Hold struct {
	ID        string        `json:"id"`
	Session   string        `json:"session"`
	Label     string        `json:"label,omitempty"`
	Owner     string        `json:"owner"`
	Judgement int           `json:"judgement"`
	Tool      string        `json:"tool"`
	Arguments string        `json:"arguments"`
	Text      string        `json:"text,omitempty"` // the agent's words, the beginning of them
	Task      string        `json:"task,omitempty"` // the beginning of it
	Hash      string        `json:"hash"`           // of the call: an answer names it
	Reason    string        `json:"reason"`
	Verdict   guard.Verdict `json:"verdict"`
	Created   time.Time     `json:"created"`
	Expires   time.Time     `json:"expires"`
	State     HoldState     `json:"state"`
	Answered  *time.Time    `json:"answered,omitempty"`
	By        string        `json:"by,omitempty"` // who answered
}

// holdLine is a line of the file.
type holdLine struct {
	Hold   *Hold       `json:"hold,omitempty"`
	Answer *holdAnswer `json:"answer,omitempty"`
}

type holdAnswer struct {
	ID    string    `json:"id"`
	State HoldState `json:"state"`
	By    string    `json:"by,omitempty"`
	Time  time.Time `json:"time"`
}

// Bounds of the queue.
const (
	maxPending  = 1000
	maxPerRun   = 16
	maxHolds    = 2000      // that are remembered, answered ones included
	maxHoldFile = 256 << 20 // bytes
	holdSlack   = 4096      // lines beyond those that count before the file is written anew
	holdMemory  = 24 * time.Hour
)

// Errors of the queue.
var (
	errNoHold   = fail(http.StatusNotFound, "no_hold", "no such held call, or it is long answered")
	errHolds    = fail(http.StatusServiceUnavailable, "too_many_holds", "too many held calls wait for an answer")
	errAnswered = fail(http.StatusConflict, "answered", "the call was answered already, or its time is up")
	errHash     = fail(http.StatusConflict, "other_call", "the hash is not that of the held call: look at it again")
	errHoldFile = errors.New("queue of held calls")
)

// queue keeps held calls, in memory and in a file that only grows until it is
// written anew. What it has acknowledged is on disk.
type queue struct {
	path string // "" for none
	wait time.Duration
	now  func() time.Time
	// released is called with an answer before it counts; its error keeps the call
	// waiting.
	released func(h Hold) error

	mu     sync.Mutex
	holds  map[string]*held
	order  []string // oldest first
	file   *os.File
	size   int64 // of what is acknowledged
	lines  int
	broken error // of a write: nobody knows what is on disk
	unlock func()
}

// held is a call in the queue.
type held struct {
	Hold
	deadline time.Time     // of this process's clock
	done     chan struct{} // closed with the answer
}

// openQueue reads the file at path, or begins it. Calls go on waiting until the
// time that they were given; a clock that was set back gives them no more than wait.
func openQueue(path string, wait time.Duration, released func(Hold) error) (*queue, error) {
	q := &queue{path: path, wait: wait, now: time.Now, released: released, holds: map[string]*held{}}
	if path == "" {
		return q, nil
	}
	unlock, err := filelock.Lock(path+".lock", filelock.TryExclusive)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errHoldFile, path, err)
	}
	q.unlock = unlock
	if err := q.load(); err != nil {
		unlock()
		return nil, err
	}
	if err := q.compact(); err != nil {
		unlock()
		return nil, err
	}
	return q, nil
}

func (q *queue) load() error {
	b, err := boundedfile.Read(q.path, maxHoldFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errHoldFile, err)
	}
	for n := 1; len(b) > 0; n++ {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole {
			break // cut short by a kill: it was never acknowledged
		}
		b = rest
		if err := q.replay(line); err != nil {
			return fmt.Errorf("%w: %s: line %d: %w: move the file away to begin a new one", errHoldFile, q.path, n, err)
		}
	}
	return nil
}

// replay takes up one line of the file. It is safe on hostile input.
func (q *queue) replay(line []byte) error {
	var l holdLine
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return err
	}
	switch {
	case l.Hold != nil && l.Answer == nil:
		h := l.Hold
		if h.ID == "" || q.holds[h.ID] != nil || h.Hash != hashText(h.call()) && h.Text == "" {
			return errors.New("a held call that is there twice, or not the one of its hash")
		}
		now := q.now()
		left := min(max(h.Expires.Sub(now), 0), q.wait)
		q.put(&held{Hold: *h, deadline: now.Add(left), done: make(chan struct{})})
		if h.State != HoldPending {
			close(q.holds[h.ID].done)
		}
	case l.Answer != nil && l.Hold == nil:
		h := q.holds[l.Answer.ID]
		if h == nil || h.State != HoldPending {
			return errors.New("an answer to a call that does not wait for one")
		}
		h.settle(*l.Answer)
	default:
		return errors.New("want a held call or an answer")
	}
	return nil
}

// call is the held call; its text may be shortened.
func (h *Hold) call() guard.Call {
	return guard.Call{Tool: h.Tool, Arguments: h.Arguments, Text: h.Text}
}

func hashText(c guard.Call) string {
	sum := serve.HashCall(c)
	return hex.EncodeToString(sum[:])
}

func (h *held) settle(a holdAnswer) {
	h.State, h.By, h.Answered = a.State, a.By, &a.Time
	close(h.done)
}

func (q *queue) put(h *held) {
	q.holds[h.ID] = h
	q.order = append(q.order, h.ID)
}

// compact writes the file anew with what still counts, and opens it.
func (q *queue) compact() error {
	q.forget()
	if q.path == "" {
		return nil
	}
	if q.file != nil {
		q.file.Close() // all that counts was synced
		q.file = nil
	}
	q.lines = 0
	err := atomicfile.WritePrivate(q.path, func(w io.Writer) error {
		for _, id := range q.order {
			h := q.holds[id].Hold
			b, err := json.Marshal(holdLine{Hold: &h})
			if err != nil {
				return err
			}
			if _, err := w.Write(append(b, '\n')); err != nil {
				return err
			}
			q.lines++
		}
		return nil
	})
	if err == nil {
		q.file, err = os.OpenFile(q.path, os.O_WRONLY|os.O_APPEND, 0o600)
	}
	if err == nil {
		err = atomicfile.SyncDir(filepath.Dir(q.path))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errHoldFile, err)
	}
	info, err := q.file.Stat()
	if err != nil {
		return fmt.Errorf("%w: %w", errHoldFile, err)
	}
	q.size = info.Size()
	return nil
}

// forget drops answered calls that are old, or too many.
func (q *queue) forget() {
	extra := len(q.order) - maxHolds
	q.order = slices.DeleteFunc(q.order, func(id string) bool {
		h := q.holds[id]
		if h.State == HoldPending || extra <= 0 && (h.Answered == nil || q.now().Sub(*h.Answered) < holdMemory) {
			return false
		}
		extra--
		delete(q.holds, id)
		return true
	})
}

// append makes a line durable.
func (q *queue) append(l holdLine) error {
	if q.path == "" {
		return nil
	}
	if q.broken != nil {
		return q.broken
	}
	b, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("%w: %w", errHoldFile, err)
	}
	b = append(b, '\n')
	_, err = q.file.Write(b)
	if err == nil {
		err = q.file.Sync()
	}
	if err != nil {
		// A part of it may be there: take it back, and if that fails too, stop.
		if terr := q.file.Truncate(q.size); terr != nil {
			q.broken = fmt.Errorf("%w: %s: %w: start the service again once the disk is well", errHoldFile, q.path, errors.Join(err, terr))
		}
		return fmt.Errorf("%w: %w", errHoldFile, err)
	}
	q.size += int64(len(b))
	q.lines++
	if q.lines > 2*len(q.order)+holdSlack || q.size > maxHoldFile/2 {
		if err := q.compact(); err != nil {
			q.broken = err // the line itself is on disk
		}
	}
	return nil
}

// add puts a call into the queue and returns it.
func (q *queue) add(h Hold) (Hold, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forget()
	pending, same := 0, 0
	for _, o := range q.holds {
		if o.State == HoldPending {
			pending++
			if o.Session == h.Session {
				same++
			}
		}
	}
	if pending >= maxPending || same >= maxPerRun {
		return Hold{}, errHolds
	}
	now := q.now()
	h.ID, h.State = rand.Text(), HoldPending
	h.Created, h.Expires = now.UTC(), now.Add(q.wait).UTC()
	if err := q.append(holdLine{Hold: &h}); err != nil {
		return Hold{}, err
	}
	q.put(&held{Hold: h, deadline: now.Add(q.wait), done: make(chan struct{})})
	return h, nil
}

// answer answers a held call for the person by, who was shown a call of that hash.
func (q *queue) answer(id, hash, by string, state HoldState) (Hold, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.holds[id]
	switch {
	case h == nil:
		return Hold{}, errNoHold
	case subtle.ConstantTimeCompare([]byte(h.Hash), []byte(hash)) != 1:
		return h.Hold, errHash
	case h.State == state && h.By == by:
		return h.Hold, nil // the same answer again
	}
	if h.State == HoldPending && !q.now().Before(h.deadline) {
		if err := q.end(h, HoldExpired, ""); err != nil {
			return h.Hold, err
		}
	}
	if h.State != HoldPending {
		return h.Hold, errAnswered
	}
	return h.Hold, q.end(h, state, by)
}

// end settles a pending call. The answer counts once it is on disk.
func (q *queue) end(h *held, state HoldState, by string) error {
	a := holdAnswer{ID: h.ID, State: state, By: by, Time: q.now().UTC()}
	told := h.Hold
	told.State, told.By = state, by
	if err := q.released(told); err != nil {
		return err
	}
	if err := q.append(holdLine{Answer: &a}); err != nil {
		return err
	}
	h.settle(a)
	return nil
}

// withdraw ends the wait of one call, or with id "" of all calls of a session.
func (q *queue) withdraw(session, id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, h := range q.holds {
		if h.State == HoldPending && h.Session == session && (id == "" || h.ID == id) {
			_ = q.end(h, HoldWithdrawn, "") // else it expires
		}
	}
}

// expire ends the wait of calls whose time is up. A failure is tried again: until
// then nobody can approve them, and they count as pending.
func (q *queue) expire() (err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	for _, h := range q.holds {
		if h.State == HoldPending && !now.Before(h.deadline) {
			err = errors.Join(err, q.end(h, HoldExpired, ""))
		}
	}
	return err
}

// get returns a held call, and a channel that is closed with its answer.
func (q *queue) get(id string) (Hold, <-chan struct{}, time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.holds[id]
	if h == nil {
		return Hold{}, nil, time.Time{}, false
	}
	return h.Hold, h.done, h.deadline, true
}

// list returns held calls, the oldest first.
func (q *queue) list(keep func(*Hold) bool) []Hold {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := []Hold{}
	for _, id := range q.order {
		if h := q.holds[id]; keep(&h.Hold) {
			list = append(list, h.Hold)
		}
	}
	return list
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.file != nil {
		q.file.Close() // each line was synced
		q.file = nil
		q.broken = errHoldFile
	}
	if q.unlock != nil {
		q.unlock()
		q.unlock = nil
	}
}
