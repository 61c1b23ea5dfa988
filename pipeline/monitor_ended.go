package pipeline

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// endedRuns are the runs that a monitor has counted, by a hash of their id, so that
// a log which is read again counts once, and labels that come late find their run.
// The oldest are forgotten first.
type endedRuns struct {
	most  int
	flags map[uint64]byte
	order []uint64 // oldest first, from next on
	next  int
}

const (
	endedAlerted = 1 << iota
	endedLabelled
)

const endedSize = 9 // bytes of one run in the state: hash and flags

func newEndedRuns(most int) endedRuns { return endedRuns{most: most, flags: map[uint64]byte{}} }

func endedHash(id string) uint64 {
	h := sha256.Sum256([]byte(id))
	return binary.LittleEndian.Uint64(h[:])
}

func (e *endedRuns) has(id string) bool {
	_, ok := e.flags[endedHash(id)]
	return ok
}

func (e *endedRuns) add(id string, alerted, labelled bool) {
	var f byte
	if alerted {
		f |= endedAlerted
	}
	if labelled {
		f |= endedLabelled
	}
	e.put(endedHash(id), f)
}

func (e *endedRuns) put(h uint64, flags byte) {
	if _, known := e.flags[h]; !known {
		e.order = append(e.order, h)
	}
	e.flags[h] = flags
	for len(e.flags) > e.most {
		delete(e.flags, e.order[e.next])
		e.next++
	}
	if e.next > e.most {
		e.order, e.next = append([]uint64(nil), e.order[e.next:]...), 0
	}
}

// label marks a run as labelled. first is true if it is known and was not before.
func (e *endedRuns) label(id string) (alerted, first bool) {
	h := endedHash(id)
	f, known := e.flags[h]
	if !known {
		return false, false
	}
	e.flags[h] = f | endedLabelled
	return f&endedAlerted != 0, f&endedLabelled == 0
}

// MarshalJSON writes hashes and flags as one text, oldest first.
func (e endedRuns) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, endedSize*len(e.flags))
	for _, h := range e.order[e.next:] {
		b = append(binary.LittleEndian.AppendUint64(b, h), e.flags[h])
	}
	return json.Marshal(b) // base64
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *endedRuns) UnmarshalJSON(text []byte) error {
	var b []byte // base64
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	if len(b)%endedSize != 0 || len(b)/endedSize > e.most {
		return fmt.Errorf("%w: %d bytes of ended runs, want a multiple of %d up to %d", ErrMonitor, len(b), endedSize, endedSize*e.most)
	}
	for ; len(b) > 0; b = b[endedSize:] {
		f := b[endedSize-1]
		if f > endedAlerted|endedLabelled {
			return fmt.Errorf("%w: an ended run has the flags %#x", ErrMonitor, f)
		}
		e.put(binary.LittleEndian.Uint64(b), f)
	}
	return nil
}
