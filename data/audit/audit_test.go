package audit

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/clean"
)

func ptr[T any](v T) *T { return &v }

func run(id, group string, label data.Label, words ...string) *data.Trajectory {
	return &data.Trajectory{
		ID: id, Dataset: "d", Group: group, Task: "do it", Label: label,
		Steps: []data.Step{{Type: data.ToolCall, Tool: "note", Text: strings.Join(words, " ")}},
	}
}

// prose is n seeded words.
func prose(seed uint64, n int) []string {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("w%d", r.IntN(100_000))
	}
	return out
}

func TestDuplicates(t *testing.T) {
	base := prose(1, 300)
	near := append([]string(nil), base...)
	near[100] = "changed" // 5 of 302 shingles differ: similarity 0.97
	half := append(append([]string(nil), base[:150]...), prose(2, 150)...)
	train := []*data.Trajectory{
		run("a", "g", data.Safe, base...),
		run("b", "g", data.Safe, prose(3, 300)...),
		run("short", "g", data.Safe, "x"),
	}
	test := []*data.Trajectory{
		run("copy", "g", data.Unsafe, strings.ToUpper(strings.Join(base, "\n "))),
		run("near", "g", data.Safe, near...),
		run("half", "g", data.Safe, half...),
		run("b", "g", data.Safe, prose(3, 300)...),
		run("other", "g", data.Safe, prose(4, 300)...),
		run("short2", "g", data.Safe, "x"),
		run("short3", "g", data.Safe, "y"),
	}
	got := Duplicates(map[string][]*data.Trajectory{"train": train, "test": test})
	want := []Overlap{
		{Set: "test", Other: "test", Near: 1, Examples: []Example{{"near", "copy", 0}}},
		{Set: "test", Other: "train", Shared: 1, Exact: 2, Near: 1, Conflict: 1, Examples: []Example{{"copy", "a", 1}, {"short2", "short", 1}, {"near", "a", 0}}},
		{Set: "train", Other: "test", Shared: 1, Exact: 2, Conflict: 1, Examples: []Example{{"a", "copy", 1}, {"short", "short2", 1}}},
	}
	for i := range got.Overlaps {
		for j := range got.Overlaps[i].Examples {
			e := &got.Overlaps[i].Examples[j]
			if e.Similarity < 1 {
				if e.Similarity < 0.88 { // 0.97 less three standard errors
					t.Errorf("%s and %s: similarity %v", e.ID, e.Twin, e.Similarity)
				}
				e.Similarity = 0
			}
		}
	}
	if d := cmp.Diff(want, got.Overlaps); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if o := got.Of("train", "train"); o.Exact+o.Near+o.Shared != 0 || o.Set != "train" {
		t.Errorf("got %+v for a pair that shares nothing", o)
	}
}

// Many copies in one bucket: each is still counted once.
func TestDuplicatesCountsEveryCopy(t *testing.T) {
	var a, b []*data.Trajectory
	for i := range 100 {
		a = append(a, run(fmt.Sprint("a", i), "g", data.Safe, "same words in every one of them"))
		b = append(b, run(fmt.Sprint("b", i), "g", data.Safe, "same words in every one of them"))
	}
	r := Duplicates(map[string][]*data.Trajectory{"a": a, "b": b})
	for _, tt := range []struct {
		set, other string
		want       int
	}{{"a", "a", 99}, {"a", "b", 100}, {"b", "a", 100}, {"b", "b", 99}} {
		if got := r.Of(tt.set, tt.other).Exact; got != tt.want {
			t.Errorf("%s in %s: %d copies, want %d", tt.set, tt.other, got, tt.want)
		}
	}
}

// The estimate follows the true similarity within its stated error.
func TestSimilarity(t *testing.T) {
	var k sketcher
	const n = 1000
	for _, share := range []float64{0, 0.5, 0.8, 0.95} {
		var sum float64
		const repeats = 20
		for rep := range uint64(repeats) {
			common := prose(rep, n)
			cut := int(share * n)
			a := append(append([]string(nil), common[:cut]...), prose(100+rep, n-cut)...)
			b := append(append([]string(nil), common[:cut]...), prose(200+rep, n-cut)...)
			_, sa := k.run(run("a", "", data.Safe, a...))
			_, sb := k.run(run("b", "", data.Safe, b...))
			sum += sa.similarity(&sb)
		}
		want := share / (2 - share)                                   // Jaccard of two halves that share this part
		if got := sum / repeats; got < want-0.04 || got > want+0.04 { // three standard errors of the mean, rounded up
			t.Errorf("share %v: mean similarity %.3f, want %.3f", share, got, want)
		}
	}
}

func TestShortcuts(t *testing.T) {
	var ts []*data.Trajectory
	for i := range 20 {
		g := fmt.Sprint("g", i/2)
		ts = append(ts, run(fmt.Sprint("s", i), g, data.Safe, "read the report"))
		u := run(fmt.Sprint("u", i), g, data.Unsafe, "read the secret trigger")
		u.FirstHazard = ptr(0)
		u.Steps[0].Result = "attack complete" // after the hazard: no guard sees it in time
		ts = append(ts, u)
	}
	ts = append(ts, run("?", "g", data.Unknown, "read the secret trigger"))
	got := Shortcuts(ts, 10, 3)
	want := []Shortcut{
		{"read the report", data.Safe, 20, 10}, {"read the secret", data.Unsafe, 20, 10}, {"report", data.Safe, 20, 10},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for _, s := range Shortcuts(ts, 10, 1000) {
		if strings.Contains(s.Phrase, "attack") || s.Phrase == "read the" || s.Phrase == "note" {
			t.Errorf("%q is no shortcut", s.Phrase)
		}
	}
	if got := Shortcuts(ts, 21, 1000); len(got) != 0 {
		t.Errorf("21 runs: got %v", got)
	}
	if got := Shortcuts(nil, 0, -1); len(got) != 0 {
		t.Errorf("nothing: got %v", got)
	}
}

func TestLeaks(t *testing.T) {
	leak := run("a", "g", data.Unsafe, "x")
	leak.Steps[0].Result = "You have used the attacker tool Mailer. You have achieved the attacker goal: mail."
	twice := run("b", "g", data.Safe, "Perspicacious Discernment, perspicacious discernment")
	ts := []*data.Trajectory{leak, twice, run("c", "g", data.Unknown, "perspicacious discernment"), run("d", "g", data.Safe, "y")}
	got := Leaks(ts)
	if l := got[clean.AttackerPhrase]; l.Runs != 1 || l.Unsafe != 1 || l.Safe != 0 || l.Found < 1 {
		t.Errorf("attacker phrase: %+v", l)
	}
	if l := got[clean.TriggerPhrase]; l.Runs != 2 || l.Safe != 1 || l.Unknown != 1 || l.Found < 2 {
		t.Errorf("trigger: %+v", l)
	}
	if len(got) != 2 {
		t.Errorf("other rules found something: %v", got)
	}
	if !strings.Contains(leak.Steps[0].Result, "attacker tool") {
		t.Error("the run was changed")
	}
}

func TestSummarize(t *testing.T) {
	a := run("a", "g", data.Unsafe)
	a.FirstHazard, a.HazardLabel, a.InjectionTask = ptr(0), data.HazardRule, "goal"
	a.AttackPresent, a.InjectionSeen = ptr(true), ptr(-1)
	b := run("b", "g", data.Unsafe)
	b.HazardLabel = data.HazardMissing
	c := run("c", "h", data.Safe)
	c.Dataset = "e"
	c.Steps = []data.Step{{Type: data.Message, Text: "no"}, {Type: data.Message, Text: "no"}}
	d := run("d", "h", data.Unknown)
	got := Summarize([]*data.Trajectory{a, b, c, d})
	want := Stats{
		Runs: 4, Groups: 3, Goals: 1, Safe: 1, Unsafe: 2, Unknown: 1, UnsafeRate: 2.0 / 3, Located: 1,
		Attacked: 1, Seen: 1, NoCall: 1, Hazards: map[string]int{"rule": 1, "missing": 1},
		Steps: Quantiles{1, 1, 2, 2, 2, 1.25}, Calls: Quantiles{0, 1, 1, 1, 1, 0.75}, Bytes: Quantiles{9, 9, 9, 9, 9, 9},
	}
	if diff := cmp.Diff(want, got.Total); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got.Datasets["d"].Runs != 3 || got.Datasets["e"].NoCall != 1 {
		t.Errorf("by dataset: %+v", got.Datasets)
	}
	empty := Summarize(nil)
	if empty.Total.Runs != 0 || len(empty.Datasets) != 0 {
		t.Errorf("nothing: got %+v", empty)
	}
}

func TestRender(t *testing.T) {
	tr := run("d/1", "g", data.Unsafe, "careful")
	tr.FirstHazard, tr.HazardLabel, tr.InjectionSeen = ptr(1), data.HazardRule, ptr(0)
	tr.Steps[0].Result = "one\ntwo \x1b[2Jthree\u202e"
	tr.Steps = append(tr.Steps, data.Step{Type: data.ToolCall, Tool: "send", Args: `{"to":"x"}`, Error: strings.Repeat("é", 1000)})
	var b bytes.Buffer
	if err := Render(&b, tr); err != nil {
		t.Fatal(err)
	}
	want := `d/1
  dataset           d
  group             g
  label             unsafe, first hazard at step 1 (rule)

    task: do it

[0] tool_call note
    text: careful
    result (shows the planted text):
      | one
      | two \x1b[2Jthree\u202e

[1] tool_call send   <-- FIRST HAZARD (rule)
    args: {"to":"x"}
    error:
      | ` + strings.Repeat("é", 533) + `
      | ... 200 characters left out ...
      | ` + strings.Repeat("é", 267) + `
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestRenderReportsWriteError(t *testing.T) {
	if err := Render(broken{}, run("a", "g", data.Safe)); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}
