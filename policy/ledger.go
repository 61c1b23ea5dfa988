package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dreamguard/dreamguard/internal/filelock"
)

// Errors of a Ledger.
var (
	ErrLedger    = errors.New("policy: the ledger cannot be read")
	ErrNoRule    = errors.New("policy: no such rule")
	ErrAuthority = errors.New("policy: the author has no authority for this")
	ErrRule      = errors.New("policy: the rule is not valid")
)

// Bounds of a ledger.
const (
	maxLedger = 64 << 20 // bytes
	maxLine   = 1 << 20  // bytes of one entry
	maxRules  = 100_000
)

// Ledger keeps rules with their provenance. Entries are only ever added: a rule
// that is revoked or replaced stays, with the entry that ended it. In a file each
// entry is one line of JSON, on disk before a method returns; what a kill cut
// short is dropped when the ledger is next written. Several processes can write
// one file. It is safe for concurrent use.
type Ledger struct {
	mu      sync.Mutex
	path    string // "" keeps it in memory
	read    int64  // bytes of whole lines that were read
	line    int
	records []*Record
	byID    map[string]*Record
	clock   func() time.Time
}

// Record is a rule with what became of it.
type Record struct {
	Rule  Rule      `json:"rule"`
	Added time.Time `json:"added"`
	// Ended says who revoked the rule, or by what it was replaced. Of a rule of
	// the project, a session can only be freed for itself: such entries stand in
	// Lifted, by session.
	Ended  *Ending           `json:"ended,omitempty"`
	Lifted map[string]Ending `json:"lifted,omitempty"`
}

// Ending is the end of a rule.
type Ending struct {
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"` // ID of the rule that replaces it
	Source Source    `json:"source"`
}

// entry is one line of the file.
type entry struct {
	V      int       `json:"v"`
	Op     string    `json:"op"` // "rule" or "end"
	At     time.Time `json:"at"`
	Rule   *Rule     `json:"rule,omitempty"`
	ID     string    `json:"id,omitempty"` // of the rule that ends
	By     string    `json:"by,omitempty"`
	Source *Source   `json:"source,omitempty"`
}

// NewLedger returns a ledger in memory.
func NewLedger() *Ledger { return &Ledger{byID: map[string]*Record{}, clock: time.Now} }

// OpenLedger opens the ledger in a file, which is made, for its owner alone, when
// something is first written. Errors wrap [ErrLedger] and name the line.
func OpenLedger(path string) (*Ledger, error) {
	l := NewLedger()
	l.path = path
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(); err != nil {
		return nil, err
	}
	return l, nil
}

// Close lets go of the ledger. Everything is on disk already.
func (l *Ledger) Close() error { return nil }

// refresh reads what was added since.
func (l *Ledger) refresh() error {
	if l.path == "" {
		return nil
	}
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) && l.read == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is no regular file", ErrLedger, l.path)
	case info.Size() > maxLedger:
		return fmt.Errorf("%w: %s has %d bytes, at most %d are read", ErrLedger, l.path, info.Size(), maxLedger)
	case info.Size() < l.read:
		return fmt.Errorf("%w: %s became shorter: it is only ever added to", ErrLedger, l.path)
	}
	if _, err := f.Seek(l.read, io.SeekStart); err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxLedger))
	if err != nil {
		return err
	}
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			return nil // the rest, if any, is a line that a kill cut short
		}
		l.line++
		if line := bytes.TrimSpace(b[:i]); len(line) > 0 {
			if err := l.parse(line); err != nil {
				return fmt.Errorf("%w: %s: line %d: %w", ErrLedger, l.path, l.line, err)
			}
		}
		l.read += int64(i + 1)
		b = b[i+1:]
	}
}

func (l *Ledger) parse(line []byte) error {
	if len(line) > maxLine {
		return fmt.Errorf("%d bytes, at most %d", len(line), maxLine)
	}
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	if e.V != 1 {
		return fmt.Errorf("version %d: this program reads version 1", e.V)
	}
	switch e.Op {
	case "rule":
		if e.Rule == nil || e.Rule.ID == "" {
			return errors.New("an entry of a rule without rule or id")
		}
		if l.byID[e.Rule.ID] != nil {
			return fmt.Errorf("rule %s stands there twice", clipText(e.Rule.ID, 40))
		}
		if len(l.records) >= maxRules {
			return fmt.Errorf("more than %d rules", maxRules)
		}
	case "end":
		if l.byID[e.ID] == nil || e.Source == nil {
			return fmt.Errorf("the end of %q, which is no rule above, or one without source", clipText(e.ID, 40))
		}
	default:
		return fmt.Errorf("op %q: want rule or end", clipText(e.Op, 20))
	}
	l.apply(e)
	return nil
}

func (l *Ledger) apply(e entry) {
	if e.Op == "rule" {
		r := &Record{Rule: *e.Rule, Added: e.At}
		l.records = append(l.records, r)
		l.byID[e.Rule.ID] = r
		return
	}
	r := l.byID[e.ID]
	end := Ending{At: e.At, By: e.By, Source: *e.Source}
	switch {
	case r.Rule.Source.Session == "" && e.Source.Session != "":
		if r.Lifted == nil {
			r.Lifted = map[string]Ending{}
		}
		r.Lifted[e.Source.Session] = end
	case r.Ended == nil:
		r.Ended = &end
	}
}

// update runs make under the lock, on the newest state, and adds the entries that
// it returns, all or none.
func (l *Ledger) update(makeEntries func() ([]entry, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path != "" {
		unlock, err := filelock.Lock(l.path+".lock", filelock.Exclusive)
		if err != nil {
			return err
		}
		defer unlock()
		if err := l.refresh(); err != nil {
			return err
		}
	}
	entries, err := makeEntries()
	if err != nil || len(entries) == 0 {
		return err
	}
	var b bytes.Buffer
	for i := range entries {
		entries[i].V, entries[i].At = 1, l.clock().UTC().Round(0)
		line, err := json.Marshal(entries[i])
		if err != nil {
			return err
		}
		if len(line) > maxLine {
			return fmt.Errorf("%w: it takes %d bytes, at most %d", ErrRule, len(line), maxLine)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	if l.path != "" {
		if err := l.write(b.Bytes()); err != nil {
			return err
		}
		l.read += int64(b.Len())
		l.line += len(entries)
	}
	for _, e := range entries {
		l.apply(e)
	}
	return nil
}

// write puts whole lines behind those that are there, in the place of a line that
// a kill cut short.
func (l *Ledger) write(b []byte) (err error) {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	if err := f.Truncate(l.read); err != nil {
		return err
	}
	if _, err := f.WriteAt(b, l.read); err != nil {
		_ = f.Truncate(l.read) // half an entry is worse than none; a kill here is what refresh drops
		return err
	}
	return f.Sync()
}

// Add adds a rule that was made by hand, and returns it with its ID. Errors wrap
// [ErrRule] or [ErrAuthority].
func (l *Ledger) Add(r Rule) (Rule, error) {
	if err := r.check(); err != nil {
		return Rule{}, err
	}
	err := l.update(func() ([]entry, error) {
		r.ID = l.nextID(0)
		out := []entry{{Op: "rule", Rule: &r}}
		for _, id := range r.Supersedes {
			if l.byID[id] == nil {
				return nil, fmt.Errorf("%w: %s, which is to be replaced", ErrNoRule, id)
			}
			if err := outranks(r.Source, l.byID[id].Rule); err != nil {
				return nil, err
			}
			out = append(out, entry{Op: "end", ID: id, By: r.ID, Source: &r.Source})
		}
		return out, nil
	})
	return r, err
}

func (l *Ledger) nextID(more int) string { return "c" + strconv.Itoa(len(l.records)+1+more) }

// Revoke ends a rule. A rule of the operator is ended by the operator alone.
// Errors wrap [ErrNoRule] or [ErrAuthority].
func (l *Ledger) Revoke(id string, by Source) error {
	if !by.Author.Authoritative() {
		return fmt.Errorf("%w: %q", ErrAuthority, by.Author)
	}
	return l.update(func() ([]entry, error) {
		r := l.byID[id]
		if r == nil {
			return nil, fmt.Errorf("%w: %s", ErrNoRule, clipText(id, 40))
		}
		if err := outranks(by, r.Rule); err != nil {
			return nil, err
		}
		return []entry{{Op: "end", ID: id, Source: &by}}, nil
	})
}

func outranks(by Source, r Rule) error {
	if r.Source.Author == Operator && by.Author != Operator {
		return fmt.Errorf("%w: rule %s is the operator's", ErrAuthority, r.ID)
	}
	return nil
}

// check says what a rule lacks.
func (r Rule) check() error {
	switch {
	case !r.Source.Author.Authoritative():
		return fmt.Errorf("%w: a rule of author %q: want user or operator", ErrAuthority, r.Source.Author)
	case r.Kind != Prohibition && r.Kind != Prerequisite && r.Kind != Provenance:
		return fmt.Errorf("%w: kind %q: want prohibition, prerequisite or provenance", ErrRule, r.Kind)
	case (r.Kind == Prerequisite) != (r.Requires.Action != ""):
		return fmt.Errorf("%w: a %s with the required action %q", ErrRule, r.Kind, r.Requires.Action)
	case !r.ValidUntil.IsZero() && !r.ValidFrom.Before(r.ValidUntil):
		return fmt.Errorf("%w: it ends before it begins", ErrRule)
	}
	return nil
}

// Ingest compiles a message and adds what it says: new rules, and the ends of
// those that it revokes, narrows or replaces. It returns the new rules. A message
// of an author without authority adds nothing and is no error.
func (l *Ledger) Ingest(ctx context.Context, c Compiler, m Message) ([]Rule, error) {
	if !m.Author.Authoritative() {
		return nil, nil
	}
	out, err := c.Compile(ctx, m)
	if err != nil {
		return nil, err
	}
	return l.Apply(out)
}

// Apply adds what a message says, as Ingest does.
func (l *Ledger) Apply(c Compiled) (added []Rule, err error) {
	for _, r := range c.Rules {
		if err := r.check(); err != nil {
			return nil, err
		}
	}
	err = l.update(func() ([]entry, error) {
		added = nil
		var out []entry
		add := func(r Rule) {
			r.ID = l.nextID(len(added))
			added = append(added, r)
			out = append(out, entry{Op: "rule", Rule: &r})
			for _, id := range r.Supersedes {
				out = append(out, entry{Op: "end", ID: id, By: r.ID, Source: &r.Source})
			}
		}
		for _, lift := range c.Lifts {
			for _, old := range l.inForce(time.Time{}, lift.Source.Session) {
				if outranks(lift.Source, old) != nil {
					continue
				}
				switch narrowed, how := lift.on(old); how {
				case lifted:
					out = append(out, entry{Op: "end", ID: old.ID, Source: &lift.Source})
				case excepted:
					add(narrowed)
				}
			}
		}
		for _, r := range c.Rules {
			known := false
			for _, old := range l.inForce(time.Time{}, r.Source.Session) {
				switch {
				case same(old, r):
					known = true
				case c.Relation != NoRelation && outranks(r.Source, old) == nil && r.replaces(old, c.Relation):
					r.Supersedes = append(slices.Clip(r.Supersedes), old.ID)
				}
			}
			if !known {
				add(r)
			}
		}
		return out, nil
	})
	return added, err
}

// InForce returns the rules that hold at a time in a session, in the order they
// were made: those of the session and those of the project. The session "" has
// the project's alone. A zero time leaves out nothing for its dates.
func (l *Ledger) InForce(now time.Time, session string) []Rule {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inForce(now, session)
}

func (l *Ledger) inForce(now time.Time, session string) []Rule {
	var out []Rule
	for _, r := range l.records {
		if r.holds(now, session) {
			out = append(out, r.Rule)
		}
	}
	return out
}

func (r *Record) holds(now time.Time, session string) bool {
	if _, free := r.Lifted[session]; free && session != "" {
		return false
	}
	if r.Ended != nil || r.Rule.Source.Session != "" && r.Rule.Source.Session != session {
		return false
	}
	return now.IsZero() || (r.Rule.ValidUntil.IsZero() || now.Before(r.Rule.ValidUntil)) && !now.Before(r.Rule.ValidFrom)
}

// Records returns every rule that was ever made, in order.
func (l *Ledger) Records() []Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Record, len(l.records))
	for i, r := range l.records {
		out[i] = *r
	}
	return out
}

// Get returns the rule with an ID.
func (l *Ledger) Get(id string) (Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.byID[id]; r != nil {
		return *r, nil
	}
	return Record{}, fmt.Errorf("%w: %s", ErrNoRule, clipText(id, 40))
}

// Refresh reads what other processes added to the file. Methods that write do it
// themselves.
func (l *Ledger) Refresh() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refresh()
}
