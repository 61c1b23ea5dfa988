package split

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/dreamguard/dreamguard/configs/splits"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/simulate"
)

// Assign divides runs, given by data set, into sets. evalIDs are the ids of the
// locked rows of agentdojo and asb; see [EvalIDs]. It depends on nothing but its
// arguments; the order of the runs does not matter. The runs are not copied.
//
// AgentDyn, p1: per suite, the goals of Fold are tested, those of the next fold
// validated, the others trained; 11 user tasks train, 3 validate, 3 are for
// thresholds, 3 are tested (package configs/splits).
//
//	train       training tasks x (training goals or no attack)
//	validation  validation tasks x (training or validation goals or no attack)
//	conformal   safe runs of conformal tasks x (training goals or no attack)
//	test        test goals x (training and test tasks), and test tasks without attack
//
// The rest is unused. With LeaveOut, that suite is test-agentdyn-loso whole, and
// the sets above come from the others. In p2 all of AgentDyn is tested.
//
// tau-bench, by task: half tested, the other half in thirds for training, tuning
// and thresholds. Simulator, by scenario, about 60/10/15/15: training,
// tuning, thresholds (safe runs), test. In protocol simulator its tuning share
// is the validation set as well.
//
// OpenAgentSafety trains whole in p1. In p2, which has no other validation data
// with an attack, groups are divided 65/15/20 into training, validation, and
// thresholds, of the last only the safe runs of tier A; R-Judge 85/15 into
// training and validation.
//
// agentdojo and asb are test sets of the rows in evalIDs; dev-agentdojo and
// dev-asb hold the rows that share no group with any of these. (In the published
// agentdojo file every group has a locked row, so dev-agentdojo has no runs.)
// asse-security is a test set whole.
func Assign(o Options, all map[string][]*data.Trajectory, evalIDs map[string][]string) (*Assignment, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("split: %w", err)
	}
	a := &assigner{opts: o, sets: map[string][]*data.Trajectory{}, unused: map[string]int{}}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, t := range all[name] {
			if seen[t.ID] {
				return nil, fmt.Errorf("split: %s: %.200q: %w", name, t.ID, ErrDuplicate)
			}
			seen[t.ID] = true
		}
		place, err := a.rule(name, all[name], evalIDs[name])
		if err != nil {
			return nil, fmt.Errorf("split: %s: %w", name, err)
		}
		for _, t := range all[name] {
			if err := place(t); err != nil {
				return nil, fmt.Errorf("split: %s: %.200q: %w", name, t.ID, err)
			}
		}
	}
	return a.finish(), nil
}

type assigner struct {
	opts   Options
	sets   map[string][]*data.Trajectory
	unused map[string]int
}

// put adds a run to sets. A run without a label teaches the world model and
// nothing else, so it goes nowhere but to train.
func (a *assigner) put(t *data.Trajectory, sets ...string) {
	for _, set := range sets {
		if t.Label == data.Unknown && set != Train {
			a.skip(t, "label unknown, in a set that needs one")
			return
		}
		if set == Conformal && t.Label != data.Safe {
			a.skip(t, "unsafe, in the part for thresholds")
			return
		}
		a.sets[set] = append(a.sets[set], t)
	}
}

func (a *assigner) skip(t *data.Trajectory, reason string) { a.unused[t.Dataset+": "+reason]++ }

type rule func(*data.Trajectory) error

// rule returns the rule of one data set.
func (a *assigner) rule(name string, ts []*data.Trajectory, eval []string) (rule, error) {
	p := a.opts.Protocol
	unused := func(t *data.Trajectory) error {
		a.skip(t, "not part of protocol "+p)
		return nil
	}
	if p == Simulator && name != simulator {
		return unused, nil
	}
	switch name {
	case simulator:
		return a.simulator, nil
	case tauBench:
		return a.tauBench(), nil
	case agentDyn:
		if p == P2 {
			return a.test(name), nil
		}
		return a.agentDyn, nil
	case openAgentSafety:
		if p == P1 {
			return func(t *data.Trajectory) error { a.put(t, Train); return nil }, nil
		}
		return a.share, nil
	case rJudge:
		if p == P1 {
			return unused, nil
		}
		return a.share, nil
	case agentDojo, asb:
		return a.locked(name, ts, eval)
	case asseSecurity:
		return a.test(name), nil
	}
	return nil, fmt.Errorf("%w: unknown data set; Sources lists those of a protocol", ErrOptions)
}

func (a *assigner) test(name string) rule {
	return func(t *data.Trajectory) error {
		a.put(t, "test-"+name)
		return nil
	}
}

func (a *assigner) agentDyn(t *data.Trajectory) error {
	if a.opts.LeaveOut != "" && t.Suite == a.opts.LeaveOut {
		a.put(t, "test-agentdyn-loso")
		return nil
	}
	suite, ok := splits.AgentDyn().Suites[t.Suite]
	if !ok {
		return fmt.Errorf("suite %.40q %w: the committed lists do not name it", t.Suite, ErrUnplaced)
	}
	task, ok := taskPart(suite.Tasks, t.UserTask)
	if !ok {
		return fmt.Errorf("user task %.40q of suite %s %w: the committed lists do not name it", t.UserTask, t.Suite, ErrUnplaced)
	}
	goal, ok := a.goalPart(suite, t.InjectionTask)
	if !ok {
		return fmt.Errorf("injection task %.40q of suite %s %w: the committed lists do not name it", t.InjectionTask, t.Suite, ErrUnplaced)
	}
	known := goal == noGoal || goal == partTrain
	switch {
	case task == partTrain && known:
		a.put(t, Train)
	case task == partValidation && (known || goal == partValidation):
		a.put(t, Validation, Tuning)
	case task == partConformal && known:
		a.put(t, Conformal)
	case goal == partTest && (task == partTrain || task == partTest), goal == noGoal && task == partTest:
		a.put(t, "test-agentdyn")
	default:
		a.skip(t, "task and goal of different parts")
	}
	return nil
}

// part is what a user task or an injection goal is for.
type part int

const (
	noGoal part = iota // the run was not attacked
	partTrain
	partValidation
	partConformal
	partTest
)

func taskPart(tasks splits.Tasks, task string) (part, bool) {
	switch {
	case slices.Contains(tasks.Train, task):
		return partTrain, true
	case slices.Contains(tasks.Validation, task):
		return partValidation, true
	case slices.Contains(tasks.Conformal, task):
		return partConformal, true
	case slices.Contains(tasks.Test, task):
		return partTest, true
	}
	return 0, false
}

func (a *assigner) goalPart(suite splits.Suite, goal string) (part, bool) {
	if goal == "" {
		return noGoal, true
	}
	switch slices.IndexFunc(suite.Goals[:], func(f []string) bool { return slices.Contains(f, goal) }) {
	case -1:
		return 0, false
	case a.opts.Fold:
		return partTest, true
	case (a.opts.Fold + 1) % splits.Folds:
		return partValidation, true
	}
	return partTrain, true
}

func (a *assigner) tauBench() rule {
	tasks := splits.TauBench()
	return func(t *data.Trajectory) error {
		for _, part := range []struct {
			set  string
			list []string
		}{{"test-tau-bench", tasks.Test}, {Train, tasks.Train}, {Tuning, tasks.Tuning}, {Conformal, tasks.Conformal}} {
			if slices.Contains(part.list, t.Group) {
				a.put(t, part.set)
				return nil
			}
		}
		return fmt.Errorf("group %.40q %w: the committed lists do not name it", t.Group, ErrUnplaced)
	}
}

func (a *assigner) simulator(t *data.Trajectory) error {
	switch part := simulate.Split(t.Group); part {
	case simulate.PartTrain:
		a.put(t, Train)
	case simulate.PartValidation:
		if a.opts.Protocol == Simulator {
			a.put(t, Validation)
		}
		a.put(t, Tuning)
	case simulate.PartConformal:
		a.put(t, Conformal)
	case simulate.PartTest:
		a.put(t, "test-simulator")
	default:
		return fmt.Errorf("scenario %.40q %w", t.Group, ErrUnplaced)
	}
	return nil
}

// share divides a training set of p2 by group.
func (a *assigner) share(t *data.Trajectory) error {
	switch splits.Shares()[t.Dataset].Part(t.Dataset, t.Group) {
	case "conformal":
		if Tier(t) == "A" {
			a.put(t, Conformal)
		} else {
			a.skip(t, "in the part for thresholds, not of tier A")
		}
	case "validation":
		a.put(t, Validation, Tuning)
	default:
		a.put(t, Train)
	}
	return nil
}

// locked divides a set into its locked test rows and those for development.
func (a *assigner) locked(name string, ts []*data.Trajectory, eval []string) (rule, error) {
	if len(ts) == 0 {
		return func(*data.Trajectory) error { return nil }, nil
	}
	ids := make(map[string]bool, len(eval))
	for _, id := range eval {
		ids[id] = true
	}
	groups := map[string]bool{}
	found := 0
	for _, t := range ts {
		if ids[t.ID] {
			groups[t.Group] = true
			found++
		}
	}
	if len(ids) == 0 || found != len(ids) {
		return nil, fmt.Errorf("%w: %d of the %d ids of the evaluation list are there: the file and its list do not belong together", ErrOptions, found, len(ids))
	}
	return func(t *data.Trajectory) error {
		switch {
		case ids[t.ID]:
			a.put(t, "test-"+name)
		case groups[t.Group]:
			a.skip(t, sharesLocked)
		default:
			a.put(t, "dev-"+name)
		}
		return nil
	}, nil
}

const sharesLocked = "shares a group with a locked test row"

func (a *assigner) finish() *Assignment {
	out := &Assignment{
		Sets: map[string][]*data.Trajectory{}, Counts: map[string]Counts{},
		Digests: map[string]string{}, Unused: a.unused, Capped: map[string]int{},
	}
	for name, ts := range a.sets {
		slices.SortFunc(ts, func(x, y *data.Trajectory) int { return cmp.Compare(x.ID, y.ID) })
		kept := capped(ts, a.opts.MaxRuns, a.opts.Seed)
		if n := len(ts) - len(kept); n > 0 {
			out.Capped[name] = n
		}
		out.Sets[name] = kept
		out.Counts[name] = Count(kept)
		out.Digests[name] = Digest(kept)
	}
	return out
}
