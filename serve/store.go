package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/filelock"
)

// Store keeps one file per session in a folder that only its owner can use, for
// adapters that are a process per event. A file is replaced as a whole, under a
// lock.
type Store struct {
	Dir string
}

// Errors of a store.
var (
	// ErrStore: the folder cannot be used, or others than its owner can use it.
	ErrStore = errors.New("serve: session store")
	// ErrBusy: another process held the session's lock for too long.
	ErrBusy = errors.New("serve: the session is in use")
	// ErrDamaged: the session's file is not what was written.
	ErrDamaged = errors.New("serve: damaged session file")
)

// Bounds of a session file.
const (
	maxSessionID = 4 << 10 // bytes of an id
	maxOpen      = 64      // calls whose result has not come
	maxSettled   = 64      // tool uses that are remembered as dealt with
	maxToolUseID = 256     // bytes
	maxSaid      = 64 << 10
	maxHeader    = 4 << 20
	maxSession   = maxHeader + guard.MaxState + 256
)

const sessionMagic = "dreamguard-session-file/v1"

// record is what is kept of a session.
type record struct {
	Session  string     `json:"session"`
	Settings Settings   `json:"settings"`
	Open     []openCall `json:"open,omitempty"`
	Settled  []string   `json:"settled,omitempty"` // hashes of tool use ids, oldest first
	Said     string     `json:"said,omitempty"`    // the agent's last message of its last turn

	state []byte // of guard.Session; nil before the first call
}

// openCall is a call that was judged and may be under way.
type openCall struct {
	ID        string         `json:"id"`
	Decision  guard.Decision `json:"decision"`
	Tool      string         `json:"tool"`
	Arguments string         `json:"arguments,omitempty"` // of a held call
}

func settledKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:12])
}

// settled reports whether the tool use was recorded or refused before. Without an
// id it is not known.
func (r *record) settled(id string) bool {
	for _, s := range r.Settled {
		if id != "" && s == settledKey(id) {
			return true
		}
	}
	return false
}

// settle notes that a tool use is dealt with.
func (r *record) settle(id string) {
	r.forget(id)
	if id == "" || r.settled(id) {
		return
	}
	r.Settled = append(r.Settled, settledKey(id))
	r.Settled = r.Settled[max(0, len(r.Settled)-maxSettled):]
}

// forget drops an open call.
func (r *record) forget(id string) {
	kept := r.Open[:0]
	for _, c := range r.Open {
		if c.ID != id {
			kept = append(kept, c)
		}
	}
	r.Open = kept
}

// open notes that a call may be executed now.
func (r *record) open(id string, d guard.Decision, c guard.Call) {
	r.forget(id)
	o := openCall{ID: id, Decision: d, Tool: clipTo(c.Tool, guard.MaxTool)}
	if d != guard.Pass && len(c.Arguments) <= guard.MaxCall {
		o.Arguments = c.Arguments
	}
	r.Open = append(r.Open, o)
	r.Open = r.Open[max(0, len(r.Open)-maxOpen):]
}

func clipTo(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "")
	}
	return s
}

// prepare makes the folder, or checks the one that is there.
func (s Store) prepare() error {
	if s.Dir == "" {
		return fmt.Errorf("%w: no folder is named", ErrStore)
	}
	info, err := os.Stat(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(s.Dir, 0o700); err != nil {
			return fmt.Errorf("%w: %w", ErrStore, err)
		}
		info, err = os.Stat(s.Dir)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrStore, err)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is not a folder", ErrStore, s.Dir)
	}
	if err := private(info); err != nil {
		return fmt.Errorf("%w: %s %w", ErrStore, s.Dir, err)
	}
	return nil
}

// Path is the file of a session. Nothing of the id gets into it.
func (s Store) Path(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:16])+".session")
}

// lock takes the lock of a session. There are 256 of them for all sessions, so
// that files of locks do not pile up: two sessions in a while wait for each other.
func (s Store) lock(ctx context.Context, id string) (unlock func(), err error) {
	sum := sha256.Sum256([]byte(id))
	path := filepath.Join(s.Dir, fmt.Sprintf("lock-%02x", sum[0]))
	for wait := time.Millisecond; ; wait = min(2*wait, 10*time.Millisecond) {
		unlock, err := filelock.Lock(path, filelock.TryExclusive)
		switch {
		case err == nil:
			return unlock, nil
		case !errors.Is(err, filelock.ErrHeld):
			return nil, fmt.Errorf("%w: %w", ErrStore, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %s is locked by another process", ErrBusy, path)
		case <-time.After(wait):
		}
	}
}

// load reads a session. It returns nil if there is none. Call it under the lock.
func (s Store) load(id string) (*record, error) {
	path := s.Path(id)
	b, err := boundedfile.Read(path, maxSession)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var r *record
	if err == nil {
		r, err = parseRecord(b)
	}
	if err == nil && r.Session != id {
		err = fmt.Errorf("%w: it is the session of another id", ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: remove %s to begin the session anew", err, path)
	}
	return r, nil
}

// parseRecord reads what format writes. It is safe on hostile input.
func parseRecord(b []byte) (*record, error) {
	first, rest, ok := bytes.Cut(b, []byte("\n"))
	magic, sum, two := strings.Cut(string(first), " ")
	if !ok || !two || magic != sessionMagic {
		return nil, fmt.Errorf("%w: not a session file of this version", ErrDamaged)
	}
	if got := sha256.Sum256(rest); sum != hex.EncodeToString(got[:]) {
		return nil, fmt.Errorf("%w: its content does not have the stated sha256", ErrDamaged)
	}
	header, state, ok := bytes.Cut(rest, []byte("\n"))
	if !ok {
		return nil, fmt.Errorf("%w: it ends early", ErrDamaged)
	}
	r := new(record)
	dec := json.NewDecoder(bytes.NewReader(header))
	dec.DisallowUnknownFields()
	if err := dec.Decode(r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(r.Open) > maxOpen || len(r.Settled) > maxSettled || len(r.Said) > maxSaid {
		return nil, fmt.Errorf("%w: a list or text is too long", ErrDamaged)
	}
	if len(state) > 0 {
		r.state = state
	}
	return r, nil
}

// format writes a session file: a line with its sha256, a line of JSON, and the
// state of the guard's session.
func (r *record) format() ([]byte, error) {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(r); err != nil { // ends in a newline
		return nil, err
	}
	body.Write(r.state)
	if body.Len() > maxSession-256 {
		return nil, fmt.Errorf("%w: a session of %d bytes, at most %d", ErrStore, body.Len(), maxSession-256)
	}
	sum := sha256.Sum256(body.Bytes())
	return append(fmt.Appendf(nil, "%s %x\n", sessionMagic, sum), body.Bytes()...), nil
}

// save replaces the session's file. Call it under the lock.
func (s Store) save(r *record) error {
	b, err := r.format()
	if err != nil {
		return err
	}
	err = atomicfile.WritePrivate(s.Path(r.Session), func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	return nil
}

// sweepAge is how long a session that nobody uses is kept.
const sweepAge = 30 * 24 * time.Hour

// sweep removes sessions that were not used for a month, and what kills left
// behind. Its failures are of no consequence.
func (s Store) sweep(now time.Time) {
	list, err := os.ReadDir(s.Dir)
	if err != nil {
		return
	}
	for _, e := range list {
		age := sweepAge
		switch {
		case strings.HasPrefix(e.Name(), atomicfile.TempPrefix):
			age = time.Hour // not one that is being written now
		case filepath.Ext(e.Name()) != ".session":
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > age {
			os.Remove(filepath.Join(s.Dir, e.Name()))
		}
	}
}
