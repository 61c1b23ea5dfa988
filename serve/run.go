package serve

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
)

// ErrNotOpen: the call was not let go by a verdict, or is dealt with already.
var ErrNotOpen = errors.New("serve: no such call is under way: judge it first")

// maxUnderWay bounds the calls of a run that wait for their result.
const maxUnderWay = 1024

// run is one agent run in this process. Several of its calls may be under way at
// once; guard.Session knows one. It is not safe for concurrent use.
type run struct {
	id       string
	settings Settings
	session  *guard.Session
	record   func(decisionlog.Record) error
	open     map[[sha256.Size]byte]int // calls that were let go, or asked about
	count    int
}

func newRun(id string, settings Settings, s *guard.Session, record func(decisionlog.Record) error) *run {
	return &run{id: id, settings: settings, session: s, record: record, open: map[[sha256.Size]byte]int{}}
}

// HashCall is the identity of a call: the lengths keep its parts apart.
func HashCall(c guard.Call) [sha256.Size]byte {
	var b []byte
	for _, part := range [...]string{c.Tool, c.Arguments, c.Text} {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	return sha256.Sum256(b)
}

// log records an event of the run.
func (r *run) log(e decisionlog.Record) error {
	e.Run = RunID(r.id)
	return write(r.record, r.settings.Mode, e)
}

// judge answers a call. One that is denied is over with that.
func (r *run) judge(ctx context.Context, c guard.Call) (guard.Verdict, Action, error) {
	if r.count >= maxUnderWay {
		return guard.Verdict{}, 0, fmt.Errorf("serve: %d calls of this run wait for their result, at most %d", r.count, maxUnderWay)
	}
	v := r.session.Judge(ctx, c)
	action := r.settings.Action(v.Decision)
	if err := r.log(Judged(r.id, action, v, c)); err != nil {
		return v, 0, err
	}
	if action == Deny {
		return v, action, r.session.Skip(c)
	}
	r.open[HashCall(c)]++
	r.count++
	return v, action, nil
}

// reopen makes a call the one judged last, and takes it off the list of those that
// are under way. Judging moves nothing.
func (r *run) reopen(c guard.Call) {
	r.session.Judge(context.Background(), c)
	key := HashCall(c)
	switch r.open[key] {
	case 0:
		return
	case 1:
		delete(r.open, key)
	default:
		r.open[key]--
	}
	r.count--
}

// commit records what came of a call.
func (r *run) commit(c guard.Call, result guard.Result) error {
	if r.open[HashCall(c)] == 0 {
		return ErrNotOpen
	}
	return r.observe(c, result)
}

// observe is commit of a call that was made whether or not a verdict let it go:
// where the guard fails open, what comes back must be known all the same.
func (r *run) observe(c guard.Call, result guard.Result) error {
	r.reopen(c)
	if err := r.session.Commit(c, result); err != nil {
		return err
	}
	return r.log(decisionlog.Record{Event: decisionlog.Commit, Call: &c, Result: &result})
}

// skip records that a call which was asked about was not executed.
func (r *run) skip(c guard.Call) error {
	if r.open[HashCall(c)] == 0 {
		return ErrNotOpen
	}
	r.reopen(c)
	if err := r.session.Skip(c); err != nil {
		return err
	}
	return r.log(decisionlog.Record{Event: decisionlog.Skip, Call: &c})
}
