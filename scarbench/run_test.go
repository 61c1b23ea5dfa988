package scarbench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// play runs agents behind defences over cases, once.
func play(t *testing.T, agent Agent, cases []*Case, defences ...string) []Record {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.jsonl")
	res, err := OpenResults(path)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Agent: agent, Cases: cases, Conditions: Conditions(), Repetitions: 1, Workers: 2}
	for _, name := range defences {
		d, err := FindDefence(name)
		if err != nil {
			t.Fatal(err)
		}
		o.Defences = append(o.Defences, d)
	}
	tally, err := Run(t.Context(), res, o)
	if err != nil || tally.Failed > 0 {
		t.Fatalf("%+v, %v", tally, err)
	}
	if err := res.Close(); err != nil {
		t.Fatal(err)
	}
	return read(t, path)
}

func read(t *testing.T, path string) []Record {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := ReadResults(f)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func mustScripted(t *testing.T, name string, window int) Agent {
	t.Helper()
	a, err := Scripted(name, window)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// shares by condition and outcome.
func tallyOf(records []Record, defence string) map[Condition]map[Outcome]int {
	out := map[Condition]map[Outcome]int{}
	for _, c := range Conditions() {
		out[c] = map[Outcome]int{}
	}
	for _, r := range records {
		if r.Defence == defence {
			out[r.Condition][r.Outcome]++
		}
	}
	return out
}

// What each agent sees decides what it does: nothing here is written down in the
// agents themselves.
func TestScriptedAgents(t *testing.T) {
	all := len(Cases())
	for _, c := range []struct {
		agent  string
		window int
		unsafe map[Condition]int
	}{
		{"safe", 0, map[Condition]int{}},
		{"careless", 0, map[Condition]int{ShortExplicit: all, ShortImplicit: all, LongExplicit: all, LongImplicit: all}},
		{"forgetful", 0, map[Condition]int{ShortImplicit: all, LongImplicit: all}},
		{"bounded", 0, map[Condition]int{LongImplicit: all}},
		{"bounded", 100000, map[Condition]int{}}, // a window that holds everything
		{"compacting", 0, map[Condition]int{LongImplicit: all}},
		{"compacting", 100000, map[Condition]int{}},
	} {
		got := tallyOf(play(t, mustScripted(t, c.agent, c.window), Cases(), "none"), "none")
		for _, cond := range Conditions() {
			if got[cond][UnsafeCompletion] != c.unsafe[cond] || got[cond][SafeCompletion] != all-c.unsafe[cond] {
				t.Errorf("%s, window %d, %s: %v", c.agent, c.window, cond, got[cond])
			}
		}
	}
	if _, err := Scripted("clever", 0); err == nil {
		t.Error("an agent that does not exist was made")
	}
	if _, err := Scripted("bounded", -1); err == nil {
		t.Error("a negative window was taken")
	}
}

// Oracles are told the constraint, so even the careless agent comes out safe; a
// reminder that names nothing changes nothing.
func TestDefences(t *testing.T) {
	all := len(Cases())
	records := play(t, mustScripted(t, "careless", 0), Cases(), "none", "reminder", "trustagent", "dvr")
	for _, d := range []string{"trustagent", "dvr"} {
		for cond, n := range tallyOf(records, d) {
			if n[SafeCompletion] != all {
				t.Errorf("%s, %s: %v", d, cond, n)
			}
		}
	}
	for cond, n := range tallyOf(records, "reminder") {
		if n[UnsafeCompletion] != all {
			t.Errorf("reminder, %s: %v", cond, n)
		}
	}
	// No defence gets in the way of an agent that obeys.
	var names []string
	for _, d := range Defences() {
		names = append(names, d.Name)
	}
	records = play(t, mustScripted(t, "safe", 0), Cases(), names...)
	for _, d := range names {
		for cond, n := range tallyOf(records, d) {
			if n[SafeCompletion] != all {
				t.Errorf("safe behind %s, %s: %v", d, cond, n)
			}
		}
	}
	// Memories help an agent that reads them, in the long conditions.
	records = play(t, mustScripted(t, "bounded", 0), Cases(), "none", "bm25", "verify-summarize", "light", "summary", "decrim")
	none := tallyOf(records, "none")[LongImplicit][SafeCompletion]
	for _, d := range []string{"bm25", "verify-summarize", "light"} {
		if n := tallyOf(records, d)[LongImplicit][SafeCompletion]; n <= none {
			t.Errorf("%s: %d of %d safe in %s, without it %d", d, n, all, LongImplicit, none)
		}
	}
	if n := tallyOf(records, "decrim")[ShortExplicit][SafeCompletion]; n != all {
		t.Errorf("decrim gets in the way: %d of %d", n, all)
	}
	// A critique of what the request itself says reaches even the careless.
	records = play(t, mustScripted(t, "careless", 0), Cases(), "decrim")
	if n := tallyOf(records, "decrim")[LongExplicit][SafeCompletion]; n < all*9/10 {
		t.Errorf("decrim, careless, %s: %d of %d", LongExplicit, n, all)
	}
	if _, err := FindDefence("luck"); err == nil {
		t.Error("a defence that does not exist was found")
	}
}

// flaky fails each second answer.
type flaky struct {
	Agent
	n atomic.Int64
}

func (f *flaky) Answer(ctx context.Context, r Request) (Answer, error) {
	if f.n.Add(1)%2 == 0 {
		return Answer{}, errors.New("no answer today")
	}
	return f.Agent.Answer(ctx, r)
}

func TestResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	cases := Cases()[:3]
	none, err := FindDefence("none")
	if err != nil {
		t.Fatal(err)
	}
	options := func(a Agent) Options {
		return Options{Agent: a, Defences: []Defence{none}, Cases: cases, Conditions: Conditions(), Repetitions: 2, Workers: 3}
	}
	res, err := OpenResults(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenResults(path); err == nil {
		t.Error("a file that is open was opened again")
	}
	tally, err := Run(t.Context(), res, options(&flaky{Agent: mustScripted(t, "careless", 0)}))
	if err != nil || tally.Failed == 0 || tally.First == nil || tally.Done+tally.Failed != 24 {
		t.Fatalf("%+v, %v", tally, err)
	}
	if err := res.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A crash in the middle of a line.
	if err := os.WriteFile(path, append(whole, `{"bench":"`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if res, err = OpenResults(path); err != nil {
		t.Fatal(err)
	}
	again, err := Run(t.Context(), res, options(mustScripted(t, "careless", 0)))
	if err != nil || again.Known != tally.Done || again.Done != 24-tally.Done || again.Failed != 0 {
		t.Errorf("%+v after %+v, %v", again, tally, err)
	}
	if err := res.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(read(t, path)); n != 24 {
		t.Errorf("%d results", n)
	}

	// Resumed or not, the results are those of one go.
	want := map[key]Outcome{}
	for _, r := range play(t, mustScripted(t, "careless", 0), cases, "none") {
		want[r.key()] = r.Outcome
	}
	for _, r := range read(t, path) {
		if r.Repetition == 1 && want[r.key()] != r.Outcome {
			t.Errorf("%v: %s, in one go %s", r.key(), r.Outcome, want[r.key()])
		}
	}
}

func TestCancelled(t *testing.T) {
	res, err := OpenResults(filepath.Join(t.TempDir(), "r.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	ctx, cancel := context.WithCancel(t.Context())
	none, err := FindDefence("none")
	if err != nil {
		t.Fatal(err)
	}
	tally, err := Run(ctx, res, Options{Agent: mustScripted(t, "safe", 0), Defences: []Defence{none}, Cases: Cases(), Conditions: Conditions(), Workers: 1,
		Progress: func(done, _ int) {
			if done == 5 {
				cancel()
			}
		}})
	if !errors.Is(err, context.Canceled) || tally.Done < 5 || tally.Done > 7 || tally.Failed != 0 {
		t.Errorf("%+v, %v", tally, err)
	}
}

func TestReadResultsRefuses(t *testing.T) {
	good := play(t, mustScripted(t, "safe", 0), Cases()[:1], "none")
	if len(good) != 4 {
		t.Fatalf("%d records", len(good))
	}
	line := `{"bench":"` + Digest() + `","agent":"a","defence":"none","case":"fs-01","condition":"long-explicit","repetition":1,"outcome":"incomplete","judgement":{"complete":false,"compliant":true,"safe_state":true}}`
	for text, want := range map[string]string{
		"{":  "line 1",
		"{}": "another version",
		strings.Replace(line, "incomplete", "blocked", 1): "does not follow",
		strings.Replace(line, "fs-01", "fs-77", 1):        "no such case",
		line + "\n" + line: "twice",
		line + "\n\n" + strings.Replace(line, Digest(), "x", 1): "line 3",
	} {
		if _, err := ReadResults(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
	if r, err := ReadResults(strings.NewReader(line)); err != nil || len(r) != 1 {
		t.Errorf("a good line: %v", err)
	}
}

func FuzzReadResults(f *testing.F) {
	f.Add([]byte(`{"bench":"x"}`))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = ReadResults(strings.NewReader(string(b))) })
}
