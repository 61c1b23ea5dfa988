package calib

import (
	"fmt"
	"hash"
	"hash/fnv"
	"slices"
)

// Label is what is known of a run. The zero value is [Unlabelled].
type Label int8

// The three labels.
const (
	Unlabelled Label = iota
	Safe
	Unsafe
)

func (l Label) String() string {
	switch l {
	case Safe:
		return "safe"
	case Unsafe:
		return "unsafe"
	}
	return "unlabelled"
}

// Scored is a run reduced to what thresholds are set on. Scores lie in [0, 1]
// and are compared on the grid.
type Scored struct {
	ID          string
	Group       string // runs of one task; "" is a group of its own
	Fingerprint string // digest of the contents: equal ones are one run; "" is not compared
	Label       Label
	Path        []string // values of the fields of [Request.By], coarse ones first

	Hazard float64   // largest p_haz over the judged calls, of a located unsafe run up to and including its first hazard
	Risk   float64   // largest S over the same calls
	Calls  []float64 // S of every judged call of the run, also after a hazard; read by a hold budget, nil elsewhere
}

// Score reduces a run under f: see [RunScore]. Unsafe runs are labelled so, all
// others Safe; a caller who does not know changes that. scored is false for a
// run without a judged call, which has no score and is left out of calibration.
func (f Fusion) Score(r Run) (s Scored, scored bool) {
	s = Scored{ID: r.ID, Group: r.Group, Label: Safe}
	if r.Unsafe {
		s.Label = Unsafe
	}
	s.Hazard, s.Risk, scored = RunScore(f, r)
	var m Memory
	for i := range r.Haz {
		risk := f.AdvanceWith(&m, r.Haz[i], r.Pre[i], r.at(i)).Risk
		if r.Held != nil && r.Held[i] {
			risk = 1
		}
		if r.Judged[i] {
			s.Calls = append(s.Calls, risk)
		}
	}
	return s, scored
}

// Alerted reports whether the run is held or blocked at these levels.
func (s *Scored) Alerted(hold, block float64) bool {
	return Grid(s.Risk) >= hold || Grid(s.Hazard) >= block
}

// alert is the score of the two rules together once the block level is fixed: 1
// where the run is blocked, its risk otherwise.
func (s *Scored) alert(block float64) float64 {
	if Grid(s.Hazard) >= block {
		return 1
	}
	return Grid(s.Risk)
}

// traffic is the score of the whole run, what follows a hazard included.
func (s *Scored) traffic() float64 {
	m := Grid(s.Risk)
	for _, c := range s.Calls {
		m = max(m, Grid(c))
	}
	return m
}

func (s *Scored) group() string {
	if s.Group != "" {
		return "g" + s.Group
	}
	return "r" + s.ID
}

// check refuses what is no score.
func (s *Scored) check() error {
	bad := func(name string, v float64) error {
		return fmt.Errorf("calib: %w: %s of run %q is %v", ErrScore, name, s.ID, v)
	}
	if !(s.Hazard >= 0 && s.Hazard <= 1) {
		return bad("hazard", s.Hazard)
	}
	if !(s.Risk >= 0 && s.Risk <= 1) {
		return bad("risk", s.Risk)
	}
	for _, c := range s.Calls {
		if !(c >= 0 && c <= 1) {
			return bad("risk of a call", c)
		}
	}
	return nil
}

// Split divides runs in a tuning and a conformal part. Runs of a group stay
// together. Which part a group goes to depends on its name and the seed alone,
// so more runs later move none of the old ones. share, in [0, 1], is the expected
// part of the groups that tunes. The order of the runs is kept.
func Split(runs []Scored, share float64, seed uint64) (tuning, conformal []Scored) {
	var salt [8]byte
	for i := range salt {
		salt[i] = byte(seed >> (8 * i))
	}
	for _, r := range runs {
		h := fnv.New64a()
		h.Write(salt[:])
		h.Write([]byte(r.group()))
		if float64(mixed(h))/(1<<53) < share {
			tuning = append(tuning, r)
		} else {
			conformal = append(conformal, r)
		}
	}
	return tuning, conformal
}

// mixed returns 53 bits of a sum. The low bits of FNV follow the last byte, so they
// are mixed before use.
func mixed(h hash.Hash64) uint64 {
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x >> 11
}

// Duplicates returns, for each fingerprint that several runs share, the indices
// of those runs in their order. A copy is no new evidence: it fakes n. [Request]
// keeps the first of each.
func Duplicates(runs []Scored) [][]int {
	at := map[string][]int{}
	for i := range runs {
		if f := runs[i].Fingerprint; f != "" {
			at[f] = append(at[f], i)
		}
	}
	var sets [][]int
	for _, set := range at {
		if len(set) > 1 {
			sets = append(sets, set)
		}
	}
	slices.SortFunc(sets, slices.Compare)
	return sets
}

// of returns the runs with a label.
func of(runs []Scored, label Label) []Scored {
	var out []Scored
	for _, r := range runs {
		if r.Label == label {
			out = append(out, r)
		}
	}
	return out
}

// column reads one number per run.
func column(runs []Scored, get func(*Scored) float64) []float64 {
	out := make([]float64, len(runs))
	for i := range runs {
		out[i] = get(&runs[i])
	}
	return out
}
