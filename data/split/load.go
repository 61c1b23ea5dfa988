package split

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/store"
)

// Source is a file that a protocol needs.
type Source struct {
	Dataset string
	File    string // below the data folder, with forward slashes
	EvalIDs string // the list of its locked rows, "" where there is none
}

var sources = map[string]Source{
	agentDyn:        {agentDyn, "agentdyn/trajectories.jsonl.gz", ""},
	agentDojo:       {agentDojo, "agentdojo/trajectories.jsonl.gz", "agentdojo/eval_ids.txt"},
	asb:             {asb, "asb/trajectories.jsonl.gz", "asb/eval_ids.txt"},
	asseSecurity:    {asseSecurity, "assebench/asse-security.trajectories.jsonl.gz", ""},
	openAgentSafety: {openAgentSafety, "openagentsafety/trajectories.jsonl.gz", ""},
	rJudge:          {rJudge, "assebench/r-judge.trajectories.jsonl.gz", ""},
	tauBench:        {tauBench, "tau-bench/trajectories.jsonl.gz", ""},
}

// Sources lists what a protocol reads: what it trains on first, then what it
// only tests on. Protocol simulator reads nothing.
func Sources(protocol string) ([]Source, error) {
	var names []string
	switch protocol {
	case P1:
		names = []string{agentDyn, tauBench, openAgentSafety, agentDojo, asb, asseSecurity}
	case P2:
		names = []string{openAgentSafety, rJudge, tauBench, agentDyn, agentDojo, asb, asseSecurity}
	case Simulator:
	default:
		return nil, fmt.Errorf("split: %w, not %.40q", ErrProtocol, protocol)
	}
	out := make([]Source, len(names))
	for i, name := range names {
		out[i] = sources[name]
	}
	return out, nil
}

// Files lists the paths that Load and EvalIDs read for a protocol, sorted. A
// missing one is an error that names the data set it belongs to.
func Files(dir, protocol string) ([]string, error) {
	list, err := Sources(protocol)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range list {
		for _, name := range []string{s.File, s.EvalIDs} {
			if name == "" {
				continue
			}
			path := filepath.Join(dir, filepath.FromSlash(name))
			if _, err := os.Stat(path); err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					return nil, fmt.Errorf("protocol %s needs %s of data set %s in %s: %w", protocol, name, s.Dataset, dir, err)
				}
				return nil, err
			}
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out, nil
}

// EvalIDs reads the lists of locked rows in dir, by data set.
func EvalIDs(dir string) (map[string][]string, error) {
	out := map[string][]string{}
	for name, s := range sources {
		if s.EvalIDs == "" {
			continue
		}
		ids, err := readIDs(filepath.Join(dir, filepath.FromSlash(s.EvalIDs)))
		if err != nil {
			return nil, err
		}
		out[name] = ids
	}
	return out, nil
}

func readIDs(path string) (_ []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	var ids []string
	seen := map[string]int{}
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		id := strings.TrimSpace(sc.Text())
		if id == "" {
			continue
		}
		if first := seen[id]; first != 0 {
			return nil, fmt.Errorf("%s: line %d: %.200q stands on line %d already", path, n, id, first)
		}
		seen[id] = n
		ids = append(ids, id)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s: holds no id", path)
	}
	return ids, nil
}

// LoadOptions tune [Load].
type LoadOptions struct {
	// Progress, if not nil, is called with the number of runs read since the
	// last call.
	Progress func(n int)
}

// Report says what Load read, by data set.
type Report map[string]SourceReport

// SourceReport is about one file.
type SourceReport struct {
	File    string         `json:"file"`
	Read    int            `json:"read"`
	Kept    int            `json:"kept"`
	Dropped map[string]int `json:"dropped,omitempty"` // reason -> runs
	Noted   map[string]int `json:"noted,omitempty"`   // kept, but worth knowing -> runs
}

// Reasons of a report.
const (
	dropUnlocated = "unsafe, hazard not located: an error of the source, the run holds no tool call that realises the attack"
	noteUnlocated = "unsafe, hazard not located: no step targets"
	noteUnknown   = "label unknown: trains the world model only"
	noteFailed    = "task failed, labelled safe by the source, which has no attacker: kept as safe"
)

// Load reads the files of a protocol from dir, laid out as the published data,
// one run at a time, and keeps what some set may use. Texts are as published:
// package clean is applied later, once copies of the planted blocks are made.
//
// Dropped are agentdojo's unsafe runs without a located hazard, and those runs
// of agentdojo and asb that share a group with a locked row. Everything else is
// kept: in particular failed tau-bench runs, which may break a rule of the
// airline but have no attacker, stay safe runs.
func Load(dir, protocol string, o LoadOptions) (map[string][]*data.Trajectory, Report, error) {
	list, err := Sources(protocol)
	if err != nil {
		return nil, nil, err
	}
	if _, err := Files(dir, protocol); err != nil {
		return nil, nil, err
	}
	all, report := map[string][]*data.Trajectory{}, Report{}
	ids := map[string]string{} // id -> data set
	for _, s := range list {
		l := loader{source: s, report: SourceReport{File: s.File, Dropped: map[string]int{}, Noted: map[string]int{}}}
		if s.EvalIDs != "" {
			if err := l.lock(filepath.Join(dir, filepath.FromSlash(s.EvalIDs))); err != nil {
				return nil, nil, err
			}
		}
		if err := l.read(filepath.Join(dir, filepath.FromSlash(s.File)), ids, o.Progress); err != nil {
			return nil, nil, err
		}
		all[s.Dataset] = l.kept()
		report[s.Dataset] = l.report
	}
	return all, report, nil
}

// loader reads one file.
type loader struct {
	source Source
	report SourceReport
	runs   []*data.Trajectory
	eval   map[string]bool // ids of the locked rows; nil where there are none
	locked map[string]bool // groups of locked rows read so far
}

func (l *loader) lock(path string) error {
	ids, err := readIDs(path)
	if err != nil {
		return err
	}
	l.eval, l.locked = map[string]bool{}, map[string]bool{}
	for _, id := range ids {
		l.eval[id] = true
	}
	return nil
}

const progressEvery = 256

func (l *loader) read(path string, ids map[string]string, progress func(int)) (err error) {
	r, err := store.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	report := func(n int) {
		if progress != nil && n > 0 {
			progress(n)
		}
	}
	for t, err := range r.All() {
		if err != nil {
			return err
		}
		if t.Dataset != l.source.Dataset {
			return fmt.Errorf("%s: %s: dataset is %.40q: want %s", path, r.At(), t.Dataset, l.source.Dataset)
		}
		if other, ok := ids[t.ID]; ok {
			return fmt.Errorf("%s: %s: id %.200q (read before, from data set %s): %w", path, r.At(), t.ID, other, ErrDuplicate)
		}
		ids[t.ID] = t.Dataset
		l.report.Read++
		if l.report.Read%progressEvery == 0 {
			report(progressEvery)
		}
		l.add(t)
	}
	report(l.report.Read % progressEvery)
	return nil
}

func (l *loader) add(t *data.Trajectory) {
	unlocated := t.Label == data.Unsafe && t.FirstHazard == nil
	if unlocated && t.Dataset == agentDojo {
		l.report.Dropped[dropUnlocated]++
		return
	}
	if l.eval != nil && !l.eval[t.ID] {
		// Most groups of a set with a locked list hold locked rows, and most of
		// their rows are not locked: let go of those as soon as that is known.
		if l.locked[t.Group] {
			l.report.Dropped[sharesLocked]++
			return
		}
	} else if l.eval != nil && !l.locked[t.Group] {
		l.locked[t.Group] = true
		before := len(l.runs)
		l.runs = slices.DeleteFunc(l.runs, func(o *data.Trajectory) bool { return o.Group == t.Group })
		if n := before - len(l.runs); n > 0 {
			l.report.Dropped[sharesLocked] += n
		}
	}
	if t.Dataset == asseSecurity {
		describeASSE(t)
	}
	l.runs = append(l.runs, t)
}

// kept returns the runs to keep and completes the report.
func (l *loader) kept() []*data.Trajectory {
	for _, t := range l.runs {
		switch {
		case t.Label == data.Unknown:
			l.report.Noted[noteUnknown]++
		case t.Label == data.Unsafe && t.FirstHazard == nil:
			l.report.Noted[noteUnlocated]++
		case t.Dataset == tauBench && t.TaskSucceeded != nil && !*t.TaskSucceeded:
			l.report.Noted[noteFailed]++
		}
	}
	l.report.Kept = len(l.runs)
	return l.runs
}
