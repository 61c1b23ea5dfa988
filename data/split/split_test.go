package split

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/configs/splits"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/simulate"
)

func ptr[T any](v T) *T { return &v }

func run(dataset, id, group string, label data.Label) *data.Trajectory {
	return &data.Trajectory{
		ID: dataset + "/" + id, Dataset: dataset, Group: group, Label: label,
		Steps: []data.Step{{Type: data.ToolCall, Tool: "t"}},
	}
}

// dyn makes the run of one cell of AgentDyn.
func dyn(suite string, task int, goal string, label data.Label) *data.Trajectory {
	user := fmt.Sprintf("user_task_%d", task)
	t := run(agentDyn, fmt.Sprintf("%s/%s/%s/%v", suite, user, goal, label), suite+"/"+user, label)
	t.Suite, t.UserTask, t.InjectionTask = suite, user, goal
	return t
}

// agentDynRuns is every task x goal of the real set, safe and unsafe, and every
// task without attack.
func agentDynRuns() []*data.Trajectory {
	var out []*data.Trajectory
	for name, suite := range splits.AgentDyn().Suites {
		for task := range 20 {
			out = append(out, dyn(name, task, "", data.Safe))
			for _, fold := range suite.Goals {
				for _, goal := range fold {
					out = append(out, dyn(name, task, goal, data.Safe), dyn(name, task, goal, data.Unsafe))
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b *data.Trajectory) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// place returns the sets that one run goes to.
func place(t *testing.T, o Options, tr *data.Trajectory, eval map[string][]string) []string {
	t.Helper()
	a, err := Assign(o, map[string][]*data.Trajectory{tr.Dataset: {tr}}, eval)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for name := range a.Sets {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Shopping: tasks 2 trains, 4 validates, 0 is for thresholds, 7 is tested.
// Fold 1 tests goals 1 and 6, validates 2 and 7, trains the others.
func TestAgentDynCells(t *testing.T) {
	for _, tt := range []struct {
		task  int
		goal  string
		label data.Label
		want  string
	}{
		{2, "", data.Safe, "train"},
		{2, "0", data.Unsafe, "train"},
		{2, "1", data.Unsafe, "test-agentdyn"},
		{2, "2", data.Unsafe, ""},
		{4, "", data.Safe, "tuning validation"},
		{4, "0", data.Unsafe, "tuning validation"},
		{4, "2", data.Unsafe, "tuning validation"},
		{4, "1", data.Unsafe, ""},
		{0, "", data.Safe, "conformal"},
		{0, "0", data.Safe, "conformal"},
		{0, "0", data.Unsafe, ""},
		{0, "1", data.Safe, ""},
		{0, "2", data.Safe, ""},
		{7, "", data.Safe, "test-agentdyn"},
		{7, "6", data.Safe, "test-agentdyn"},
		{7, "0", data.Unsafe, ""},
		{7, "7", data.Unsafe, ""},
		{2, "0", data.Unknown, "train"},
		{7, "1", data.Unknown, ""},
	} {
		goal := tt.goal
		if goal != "" {
			goal = "injection_task_" + goal
		}
		got := place(t, Options{Protocol: P1, Fold: 1}, dyn("shopping", tt.task, goal, tt.label), nil)
		if strings.Join(got, " ") != tt.want {
			t.Errorf("task %d, goal %q, %v: got %v, want %q", tt.task, tt.goal, tt.label, got, tt.want)
		}
	}
}

// For every fold and suite left out: what is tested is nowhere else.
func TestAgentDynSeparation(t *testing.T) {
	all := map[string][]*data.Trajectory{agentDyn: agentDynRuns()}
	covered := map[string]bool{}
	for fold := range splits.Folds {
		for _, out := range []string{"", "shopping", "github", "dailylife"} {
			a, err := Assign(Options{Protocol: P1, Fold: fold, LeaveOut: out}, all, nil)
			if err != nil {
				t.Fatal(err)
			}
			check(t, a, out)
			for _, tr := range a.Sets["test-agentdyn"] {
				if tr.InjectionTask != "" {
					covered[tr.Suite+tr.InjectionTask] = true
				}
			}
			loso := a.Sets["test-agentdyn-loso"]
			if (out != "") != (len(loso) > 0) {
				t.Errorf("left out %q: %d runs tested", out, len(loso))
			}
			n := 0
			for _, ts := range []([]*data.Trajectory){a.Sets[Train], a.Sets[Validation], a.Sets[Conformal], a.Sets["test-agentdyn"], loso} {
				n += len(ts)
			}
			for _, u := range a.Unused {
				n += u
			}
			if n != len(all[agentDyn]) {
				t.Errorf("fold %d: %d runs placed or unused, of %d", fold, n, len(all[agentDyn]))
			}
		}
	}
	if len(covered) != 10+9+9 {
		t.Errorf("the folds test %d goals, want all 28", len(covered))
	}
}

// check verifies the rules of a p1 assignment on agentdyn.
func check(t *testing.T, a *Assignment, leftOut string) {
	t.Helper()
	type key struct{ suite, name string }
	goals, tasks := map[string]map[key]bool{}, map[string]map[key]bool{}
	for set, ts := range a.Sets {
		goals[set], tasks[set] = map[key]bool{}, map[key]bool{}
		for _, tr := range ts {
			if tr.Dataset != agentDyn {
				continue
			}
			tasks[set][key{tr.Suite, tr.UserTask}] = true
			if tr.InjectionTask != "" {
				goals[set][key{tr.Suite, tr.InjectionTask}] = true
			}
			if set != "test-agentdyn-loso" && leftOut != "" && tr.Suite == leftOut {
				t.Errorf("%s holds %s of the suite left out", set, tr.ID)
			}
		}
	}
	disjoint := func(what string, x, y map[key]bool, a, b string) {
		for k := range x {
			if y[k] {
				t.Errorf("%s and %s share the %s %v", a, b, what, k)
			}
		}
	}
	learnt := []string{Train, Validation, Tuning, Conformal}
	for _, set := range learnt {
		disjoint("goal", goals[set], goals["test-agentdyn"], set, "test-agentdyn")
		if set != Train {
			disjoint("task", tasks[set], tasks["test-agentdyn"], set, "test-agentdyn")
			disjoint("task", tasks[set], tasks[Train], set, Train)
		}
	}
	disjoint("task", tasks[Conformal], tasks[Tuning], Conformal, Tuning)
	// Without attack, a tested run is of a task that nothing else has.
	for _, tr := range a.Sets["test-agentdyn"] {
		if tr.InjectionTask == "" && tasks[Train][key{tr.Suite, tr.UserTask}] {
			t.Errorf("%s has no attack and its task is trained on", tr.ID)
		}
	}
	for _, tr := range a.Sets[Conformal] {
		if tr.Label != data.Safe {
			t.Errorf("conformal holds %s, which is %v", tr.ID, tr.Label)
		}
	}
}

func TestOtherSources(t *testing.T) {
	oas := func(group string, llm, rule int) *data.Trajectory {
		label := data.Safe
		if llm == 2 {
			label = data.Unsafe
		}
		tr := run(openAgentSafety, group, group, label)
		tr.Extra = map[string]json.RawMessage{"llm_label": json.RawMessage(fmt.Sprint(llm)), "rule_score": json.RawMessage(fmt.Sprint(rule))}
		return tr
	}
	// A group of each part, found by the rule of package splits.
	group := map[string]string{}
	for i := range 100 {
		g := fmt.Sprint("g", i)
		group[splits.Shares()[openAgentSafety].Part(openAgentSafety, g)] = g
	}
	scenario := map[string]string{}
	for _, s := range simulate.Scenarios() {
		scenario[simulate.Split(s.ID)] = s.ID
	}
	eval := map[string][]string{asb: {"asb/x"}}
	for _, tt := range []struct {
		protocol string
		run      *data.Trajectory
		want     string
	}{
		{P1, run(tauBench, "a", "airline/7", data.Safe), "test-tau-bench"},
		{P2, run(tauBench, "a", "airline/1", data.Safe), "train"},
		{P1, run(tauBench, "a", "airline/0", data.Safe), "tuning"},
		{P2, run(tauBench, "a", "airline/5", data.Safe), "conformal"},
		{Simulator, run(tauBench, "a", "airline/5", data.Safe), ""},
		{P1, run(simulator, "a", scenario["train"], data.Unsafe), "train"},
		{P1, run(simulator, "a", scenario["validation"], data.Unsafe), "tuning"},
		{Simulator, run(simulator, "a", scenario["validation"], data.Unsafe), "tuning validation"},
		{P2, run(simulator, "a", scenario["conformal"], data.Safe), "conformal"},
		{P2, run(simulator, "a", scenario["conformal"], data.Unsafe), ""},
		{Simulator, run(simulator, "a", scenario["test"], data.Unsafe), "test-simulator"},
		{P1, oas(group["conformal"], 0, 0), "train"},
		{P2, oas(group["conformal"], 0, 0), "conformal"},
		{P2, oas(group["conformal"], 0, 1), ""},
		{P2, oas(group["conformal"], 2, 1), ""},
		{P2, oas(group["validation"], 2, 1), "tuning validation"},
		{P2, oas(group["train"], 2, 0), "train"},
		{P1, run(rJudge, "a", "a", data.Safe), ""},
		{P2, dyn("shopping", 2, "injection_task_0", data.Unsafe), "test-agentdyn"},
		{P2, run(asseSecurity, "a", "a", data.Safe), "test-asse-security"},
		{P1, run(asb, "x", "a", data.Safe), "test-asb"},
	} {
		if got := strings.Join(place(t, Options{Protocol: tt.protocol}, tt.run, eval), " "); got != tt.want {
			t.Errorf("%s %s (%s, %v): got %q, want %q", tt.protocol, tt.run.Dataset, tt.run.Group, tt.run.Label, got, tt.want)
		}
	}
}

func TestLocked(t *testing.T) {
	rows := []*data.Trajectory{run(asb, "a", "g", data.Safe), run(asb, "b", "g", data.Unsafe), run(asb, "c", "h", data.Safe)}
	a, err := Assign(Options{Protocol: P1}, map[string][]*data.Trajectory{asb: rows}, map[string][]string{asb: {"asb/a"}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"test-asb": {"asb/a"}, "dev-asb": {"asb/c"}}
	got := map[string][]string{}
	for name := range a.Sets {
		got[name] = a.IDs(name)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if a.Unused["asb: "+sharesLocked] != 1 {
		t.Errorf("unused: %v", a.Unused)
	}
}

func TestAssignErrors(t *testing.T) {
	one := func(tr *data.Trajectory) map[string][]*data.Trajectory {
		return map[string][]*data.Trajectory{tr.Dataset: {tr}}
	}
	same := run(tauBench, "a", "airline/0", data.Safe)
	for _, tt := range []struct {
		name string
		o    Options
		all  map[string][]*data.Trajectory
		is   error
		msg  string
	}{
		{"protocol", Options{Protocol: "p3"}, nil, ErrProtocol, `"p3"`},
		{"fold", Options{Protocol: P1, Fold: 5}, nil, ErrOptions, "want 0 to 4"},
		{"max runs", Options{Protocol: P1, MaxRuns: -1}, nil, ErrOptions, "max runs"},
		{"suite", Options{Protocol: P1, LeaveOut: "x"}, nil, ErrOptions, "[dailylife github shopping]"},
		{"suite in p2", Options{Protocol: P2, LeaveOut: "shopping"}, nil, ErrOptions, "trains on no suite"},
		{"data set", Options{Protocol: P1}, one(run("x", "a", "g", data.Safe)), ErrOptions, "x: "},
		{"task", Options{Protocol: P1}, one(dyn("shopping", 20, "", data.Safe)), ErrUnplaced, "user_task_20"},
		{"goal", Options{Protocol: P1}, one(dyn("shopping", 1, "injection_task_99", data.Safe)), ErrUnplaced, "injection_task_99"},
		{"unknown suite", Options{Protocol: P1}, one(dyn("x", 1, "", data.Safe)), ErrUnplaced, `suite "x"`},
		{"airline", Options{Protocol: P1}, one(run(tauBench, "a", "airline/99", data.Safe)), ErrUnplaced, "airline/99"},
		{"scenario", Options{Protocol: P1}, one(run(simulator, "a", "nowhere", data.Safe)), ErrUnplaced, "nowhere"},
		{"no eval ids", Options{Protocol: P1}, one(run(asb, "a", "g", data.Safe)), ErrOptions, "0 of the 0 ids"},
		{"duplicate", Options{Protocol: P1}, map[string][]*data.Trajectory{tauBench: {same, same}}, ErrDuplicate, "tau-bench/a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Assign(tt.o, tt.all, nil)
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.msg) {
				t.Errorf("got %v, want %v and %q", err, tt.is, tt.msg)
			}
		})
	}
}

// The order in which runs are given changes nothing.
func TestOrderDoesNotMatter(t *testing.T) {
	o := Options{Protocol: P1, Fold: 2, Seed: 7, MaxRuns: 60}
	runs := agentDynRuns()
	a, err := Assign(o, map[string][]*data.Trajectory{agentDyn: runs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
	b, err := Assign(o, map[string][]*data.Trajectory{agentDyn: runs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a.Digests, b.Digests); d != "" {
		t.Error(d)
	}
	o.Seed++
	c, err := Assign(o, map[string][]*data.Trajectory{agentDyn: runs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Digests[Train] == a.Digests[Train] {
		t.Error("another seed drew the same runs")
	}
	if a.Capped[Train] == 0 || len(a.Sets[Train]) != 60 {
		t.Errorf("train: %d runs, %d capped", len(a.Sets[Train]), a.Capped[Train])
	}
}

func TestDigest(t *testing.T) {
	// printf 'd/a\nd/b\n' | sha256sum
	const want = "a7cc6b89bb59ca81f23d1fd761eb0b8e6c731f4f0f7ef9ef9af2ab0632cc0284"
	ts := []*data.Trajectory{run("d", "b", "g", data.Safe), run("d", "a", "g", data.Safe)}
	if got := Digest(ts); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCapped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ts []*data.Trajectory
		for i := range rapid.IntRange(1, 120).Draw(t, "runs") {
			ts = append(ts, run(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "set"), fmt.Sprintf("%03d", i),
				fmt.Sprint(rapid.IntRange(0, 15).Draw(t, "group")), data.Label(rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "label"))))
		}
		slices.SortFunc(ts, func(a, b *data.Trajectory) int { return strings.Compare(a.ID, b.ID) })
		n := rapid.IntRange(0, 130).Draw(t, "cap")
		got := capped(ts, n, rapid.Uint64().Draw(t, "seed"))
		want := len(ts)
		if n > 0 {
			want = min(n, want)
		}
		if len(got) != want {
			t.Fatalf("%d runs of %d, want %d", len(got), len(ts), want)
		}
		if !slices.IsSortedFunc(got, func(a, b *data.Trajectory) int { return strings.Compare(a.ID, b.ID) }) {
			t.Fatal("not sorted")
		}
		for i := range got[1:] {
			if got[i] == got[i+1] {
				t.Fatalf("%s drawn twice", got[i].ID)
			}
		}
		// Four strata at most: with room for one each, none is lost.
		if has, had := Count(got), Count(ts); n >= 4 && (had.Safe > 0 && has.Safe == 0 || had.Unsafe > 0 && has.Unsafe == 0) {
			t.Fatalf("a label was lost: %+v of %+v", has, had)
		}
	})
}

// Small groups are drawn whole.
func TestCappedKeepsSmallGroupsWhole(t *testing.T) {
	var ts []*data.Trajectory
	for i := range 200 {
		ts = append(ts, run("d", fmt.Sprintf("%03d", i), fmt.Sprint("g", i/4), data.Safe))
	}
	sizes := map[string]int{}
	for _, tr := range capped(ts, 40, 3) {
		sizes[tr.Group]++
	}
	if len(sizes) != 10 {
		t.Errorf("drawn from %d groups, want 10", len(sizes))
	}
	for g, n := range sizes {
		if n != 4 {
			t.Errorf("group %s: %d of 4", g, n)
		}
	}
}

func TestTier(t *testing.T) {
	for _, tt := range []struct{ llm, rule, want string }{
		{"2", "1", "A"}, {"2", "3", "A"}, {"0", "0", "A"},
		{"2", "0", "B"}, {"0", "1", "B"}, {"2", "", "B"}, {"0", "null", "B"},
		{"1", "1", "C"}, {"-1", "0", "C"}, {"", "1", "C"}, {"", "", "C"}, {`"2"`, "1", "C"},
	} {
		tr := run(openAgentSafety, "a", "g", data.Safe)
		tr.Extra = map[string]json.RawMessage{}
		if tt.llm != "" {
			tr.Extra["llm_label"] = json.RawMessage(tt.llm)
		}
		if tt.rule != "" {
			tr.Extra["rule_score"] = json.RawMessage(tt.rule)
		}
		if got := Tier(tr); got != tt.want {
			t.Errorf("llm %q, rule %q: got %q, want %q", tt.llm, tt.rule, got, tt.want)
		}
	}
	if got := Tier(run("asb", "a", "g", data.Safe)); got != "" {
		t.Errorf("asb: got %q", got)
	}
}
