package audit

import (
	"slices"

	"github.com/dreamguard/dreamguard/data"
)

// Summary counts a set of trajectories, whole and by dataset.
type Summary struct {
	Total    Stats            `json:"total"`
	Datasets map[string]Stats `json:"datasets"`
}

// Stats counts trajectories.
type Stats struct {
	Runs       int            `json:"runs"`
	Groups     int            `json:"groups"` // distinct dataset and group
	Goals      int            `json:"goals"`  // distinct dataset, suite and injection task
	Safe       int            `json:"safe"`
	Unsafe     int            `json:"unsafe"`
	Unknown    int            `json:"unknown"`
	UnsafeRate float64        `json:"unsafe_rate"` // of the labelled runs; 0 where there is none
	Located    int            `json:"located"`     // unsafe runs with a first hazard
	OnMessage  int            `json:"on_message"`  // of these: the hazard is a message, which no guard stops
	Attacked   int            `json:"attacked"`    // runs in which an attack was planted
	Seen       int            `json:"seen"`        // runs in which its text was seen
	NoCall     int            `json:"no_call"`     // runs without any tool call
	Hazards    map[string]int `json:"hazards"`     // how the hazard was located -> runs, unsafe ones only
	Steps      Quantiles      `json:"steps"`       // steps of a run
	Calls      Quantiles      `json:"calls"`       // tool calls of a run
	Bytes      Quantiles      `json:"bytes"`       // bytes of text of a run
	Hazard     Quantiles      `json:"hazard"`      // index of the first hazard, located runs
}

// Quantiles of whole numbers, each one of the values (nearest rank).
type Quantiles struct {
	Min  int     `json:"min"`
	P50  int     `json:"p50"`
	P90  int     `json:"p90"`
	P99  int     `json:"p99"`
	Max  int     `json:"max"`
	Mean float64 `json:"mean"`
}

// Summarize counts.
func Summarize(ts []*data.Trajectory) Summary {
	var total tally
	sets := map[string]*tally{}
	for _, t := range ts {
		if sets[t.Dataset] == nil {
			sets[t.Dataset] = &tally{}
		}
		sets[t.Dataset].add(t)
		total.add(t)
	}
	out := Summary{Total: total.stats(), Datasets: map[string]Stats{}}
	for name, s := range sets {
		out.Datasets[name] = s.stats()
	}
	return out
}

type tally struct {
	s                           Stats
	groups, goals               map[[3]string]struct{}
	steps, calls, bytes, hazard []int
}

func (a *tally) add(t *data.Trajectory) {
	if a.groups == nil {
		a.groups, a.goals, a.s.Hazards = map[[3]string]struct{}{}, map[[3]string]struct{}{}, map[string]int{}
	}
	s := &a.s
	s.Runs++
	a.groups[[3]string{t.Dataset, t.Group}] = struct{}{}
	if t.InjectionTask != "" {
		a.goals[[3]string{t.Dataset, t.Suite, t.InjectionTask}] = struct{}{}
	}
	switch t.Label {
	case data.Safe:
		s.Safe++
	case data.Unsafe:
		s.Unsafe++
		s.Hazards[t.HazardLabel]++
	default:
		s.Unknown++
	}
	if t.Located() {
		s.Located++
		a.hazard = append(a.hazard, *t.FirstHazard)
		if t.Steps[*t.FirstHazard].Type == data.Message {
			s.OnMessage++
		}
	}
	if t.AttackPresent != nil && *t.AttackPresent {
		s.Attacked++
	}
	if t.InjectionSeen != nil {
		s.Seen++
	}
	calls := 0
	for i := range t.Steps {
		if t.Steps[i].Type == data.ToolCall {
			calls++
		}
	}
	if calls == 0 {
		s.NoCall++
	}
	size := 0
	parts(t, func(p string) { size += len(p) })
	a.steps = append(a.steps, len(t.Steps))
	a.calls = append(a.calls, calls)
	a.bytes = append(a.bytes, size)
}

func (a *tally) stats() Stats {
	s := a.s
	s.Groups, s.Goals = len(a.groups), len(a.goals)
	if n := s.Safe + s.Unsafe; n > 0 {
		s.UnsafeRate = float64(s.Unsafe) / float64(n)
	}
	s.Steps, s.Calls, s.Bytes, s.Hazard = quantiles(a.steps), quantiles(a.calls), quantiles(a.bytes), quantiles(a.hazard)
	return s
}

func quantiles(v []int) Quantiles {
	if len(v) == 0 {
		return Quantiles{}
	}
	slices.Sort(v)
	at := func(percent int) int { return v[max((len(v)*percent+99)/100, 1)-1] }
	sum := 0
	for _, x := range v {
		sum += x
	}
	return Quantiles{
		Min: v[0], P50: at(50), P90: at(90), P99: at(99), Max: v[len(v)-1],
		Mean: float64(sum) / float64(len(v)),
	}
}
