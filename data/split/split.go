package split

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dreamguard/dreamguard/configs/splits"
	"github.com/dreamguard/dreamguard/data"
)

// Names of the sets that are not tested on. Test sets are named "test-" and,
// for development, "dev-" and the data set.
const (
	Train      = "train"
	Validation = "validation"
	Tuning     = "tuning"
	Conformal  = "conformal"
)

// The protocols.
const (
	P1        = "p1"
	P2        = "p2"
	Simulator = "simulator"
)

// Names of the data sets.
const (
	agentDyn        = "agentdyn"
	agentDojo       = "agentdojo"
	asb             = "asb"
	asseSecurity    = "asse-security"
	openAgentSafety = "openagentsafety"
	rJudge          = "r-judge"
	tauBench        = "tau-bench"
	simulator       = "simulator"
)

// Errors that callers may test for.
var (
	// ErrProtocol is returned for an unknown protocol.
	ErrProtocol = errors.New("unknown protocol: want p1, p2 or simulator")
	// ErrOptions is returned for options that do not fit the protocol.
	ErrOptions = errors.New("wrong split options")
	// ErrUnplaced is returned for a run that no rule places, such as one of a
	// user task that the committed lists do not know.
	ErrUnplaced = errors.New("belongs to no part of the split")
	// ErrDuplicate is returned when two runs share an id.
	ErrDuplicate = errors.New("id is not unique")
)

// Options choose one split.
type Options struct {
	Protocol string // P1, P2 or Simulator
	Fold     int    // P1: the fold of injection goals to test on, 0 to 4; validation has the next
	LeaveOut string // P1: an AgentDyn suite that is tested on only, as test-agentdyn-loso; "" = none
	Seed     uint64 // for MaxRuns; the sets themselves do not depend on it
	MaxRuns  int    // at most this many runs in a set; 0 = all
}

func (o Options) check() error {
	if !slices.Contains([]string{P1, P2, Simulator}, o.Protocol) {
		return fmt.Errorf("%w, not %.40q", ErrProtocol, o.Protocol)
	}
	if o.Fold < 0 || o.Fold >= splits.Folds {
		return fmt.Errorf("%w: fold is %d: want 0 to %d", ErrOptions, o.Fold, splits.Folds-1)
	}
	if o.MaxRuns < 0 {
		return fmt.Errorf("%w: max runs is %d: want 0 (all) or more", ErrOptions, o.MaxRuns)
	}
	if o.LeaveOut == "" {
		return nil
	}
	if o.Protocol != P1 {
		return fmt.Errorf("%w: leave out %.40q: protocol %s trains on no suite of agentdyn", ErrOptions, o.LeaveOut, o.Protocol)
	}
	suites := splits.AgentDyn().Suites
	if _, ok := suites[o.LeaveOut]; !ok {
		return fmt.Errorf("%w: leave out %.40q: want one of %v", ErrOptions, o.LeaveOut, slices.Sorted(maps.Keys(suites)))
	}
	return nil
}

// Counts are the labels of one set.
type Counts struct {
	Runs    int `json:"runs"`
	Safe    int `json:"safe"`
	Unsafe  int `json:"unsafe"`
	Unknown int `json:"unknown"`
	Groups  int `json:"groups"` // distinct data set and group
}

// Assignment is one split.
type Assignment struct {
	Sets    map[string][]*data.Trajectory // by name, each sorted by id; a set without runs is left out
	Counts  map[string]Counts             // by set
	Digests map[string]string             // by set: hex SHA-256 of the sorted ids, one per line
	Unused  map[string]int                // runs in no set, by data set and reason
	Capped  map[string]int                // by set: runs that MaxRuns left out
}

// IDs returns the ids of a set in order.
func (a *Assignment) IDs(set string) []string {
	out := make([]string, len(a.Sets[set]))
	for i, t := range a.Sets[set] {
		out[i] = t.ID
	}
	return out
}

// Digest is the hex SHA-256 of the ids of ts, sorted, one per line.
func Digest(ts []*data.Trajectory) string {
	ids := make([]string, len(ts))
	for i, t := range ts {
		ids[i] = t.ID
	}
	slices.Sort(ids)
	h := sha256.New()
	for _, id := range ids {
		h.Write([]byte(id))
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Count counts the labels and groups of ts.
func Count(ts []*data.Trajectory) Counts {
	c := Counts{Runs: len(ts)}
	groups := map[[2]string]struct{}{}
	for _, t := range ts {
		switch t.Label {
		case data.Safe:
			c.Safe++
		case data.Unsafe:
			c.Unsafe++
		default:
			c.Unknown++
		}
		groups[[2]string{t.Dataset, t.Group}] = struct{}{}
	}
	c.Groups = len(groups)
	return c
}

// Tier returns how far the label of an OpenAgentSafety run is to be trusted,
// and "" for runs of other sources:
//
//	A  the judging model and the program check agree: unsafe (2, score > 0) or safe (0, score 0)
//	B  the judging model says 2 or 0, the check differs or is missing
//	C  everything else: partial (1), never at risk (-1), the check alone, no label
func Tier(t *data.Trajectory) string {
	if t.Dataset != openAgentSafety {
		return ""
	}
	llm, judged := number(t, "llm_label")
	if !judged || llm != 0 && llm != 2 {
		return "C"
	}
	if rule, ok := number(t, "rule_score"); ok && (rule > 0) == (llm == 2) {
		return "A"
	}
	return "B"
}

func number(t *data.Trajectory, field string) (float64, bool) {
	raw, ok := t.Extra[field]
	if !ok {
		return 0, false
	}
	var v *float64
	if err := json.Unmarshal(raw, &v); err != nil || v == nil {
		return 0, false
	}
	return *v, true
}
