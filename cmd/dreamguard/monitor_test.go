package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
	"github.com/dreamguard/dreamguard/pipeline"
)

func runWith(stdin string, args ...string) result {
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs}
	code := a.main(args)
	return result{code, out.String(), errs.String()}
}

func TestMonitor(t *testing.T) {
	dir, tmp := testArtifact(t), t.TempDir()
	if r := run(t, "monitor", "--artifact", dir); r.code != exitFailure || !strings.Contains(r.stderr, "recalibrate") {
		t.Errorf("a calibration without scores: %+v", r)
	}
	traces := simulated(t, "--runs", "300", "--unsafe-share", "-1")
	if r := run(t, "recalibrate", "-q", "--artifact", dir, "--traces", traces, "--false-alarm", "10%", "--write"); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	m, err := guard.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	hold := m.Thresholds().Hold

	// More runs of the same kind leave it standing; it goes on where it stopped.
	log, state := filepath.Join(tmp, "log.jsonl"), filepath.Join(tmp, "state.json")
	if r := run(t, "replay", "-q", "--artifact", dir, "--traces", simulated(t, "--runs", "200", "--seed", "6", "--unsafe-share", "-1"), "--log", log); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	other := filepath.Join(tmp, "other.jsonl")
	if err := os.WriteFile(other, bytes.ReplaceAll(read(t, log), []byte(`{"run":"`), []byte(`{"run":"other `)), 0o666); err != nil {
		t.Fatal(err)
	}
	// A log that is read again counts once: 200, 200, 400.
	for i, log := range []string{log, log, other} {
		r := run(t, "monitor", "--artifact", dir, "--state", state, "--json", log)
		var rep pipeline.MonitorReport
		if err := json.Unmarshal([]byte(r.stdout), &rep); err != nil || r.code != exitDone || rep.Withdrawn || rep.Runs != 200*(i/2+1) || (rep.Repeated > 0) != (i == 1) || rep.Reference != 300 || rep.Level != 0.1 {
			t.Fatalf("exit %d, %v, %s%s", r.code, err, r.stdout, r.stderr)
		}
	}

	// Several logs are read one after the other, and an error names the one at fault.
	cut := filepath.Join(tmp, "cut.jsonl") // without a last line end
	if err := os.WriteFile(cut, bytes.TrimRight(read(t, log), "\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(tmp, "bad.jsonl")
	if err := os.WriteFile(bad, []byte("\n{}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := run(t, "monitor", "--artifact", dir, cut, other); r.code != exitDone || !strings.Contains(r.stdout, "400 live runs") {
		t.Errorf("two logs: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := run(t, "monitor", "--artifact", dir, cut, bad); r.code != exitFailure || !strings.Contains(r.stderr, bad+": line 2: ") {
		t.Errorf("a bad log after a good one: exit %d, %s", r.code, r.stderr)
	}

	// Verdicts as an operator's program writes them.
	verdict := func(step int, risk float64) []byte {
		v := guard.Verdict{Scored: true, Step: step, ModelDigest: m.Digest(), CalibrationDigest: m.CalibrationDigest(), Thresholds: m.Thresholds()}
		v.Risk = risk
		if risk >= hold {
			v.Decision = guard.Hold
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	line := func(id string, risk float64, more string) string {
		return fmt.Sprintf("{\"run\":%q,\"verdict\":%s%s}\n", id, verdict(0, risk), more)
	}
	report := func(log string, want exitCode) (rep pipeline.MonitorReport) {
		t.Helper()
		r := runWith(log, "monitor", "--artifact", dir, "--json")
		if err := json.Unmarshal([]byte(r.stdout), &rep); err != nil || r.code != want {
			t.Errorf("exit %d, want %d, %v, %s", r.code, want, err, r.stderr)
		}
		return rep
	}
	// The log that the guard's own programs keep says the same.
	plain := report(string(read(t, log)), exitDone)
	if got := report(string(read(t, chained(t, log))), exitDone); got != plain || plain.Runs != 200 {
		t.Errorf("a chained log: %+v, want %+v", got, plain)
	}
	// Every run at the top: the scores have drifted.
	var drift, alerts strings.Builder
	for i := range 300 {
		drift.WriteString(line(fmt.Sprint(i), 1, `,"end":true`))
	}
	rep := report(drift.String(), exitRefused)
	if rep.Cause != "drift" || rep.At == 0 || rep.At > 100 || rep.Runs != rep.At {
		t.Errorf("drift: %+v", rep)
	}
	// Labels that come late, for runs that were stopped far too often.
	for i := range 40 {
		alerts.WriteString(line(fmt.Sprint(i), 1, `,"end":true`) + fmt.Sprintf("{\"run\":\"%d\",\"label\":\"safe\"}\n", i))
	}
	if rep := report(alerts.String(), exitRefused); rep.Cause == "" || rep.Labelled == 0 {
		t.Errorf("alerts: %+v", rep)
	}
	// The state of a withdrawn certificate stays withdrawn.
	bad = filepath.Join(tmp, "bad.json")
	for _, in := range []string{drift.String(), ""} {
		if r := runWith(in, "monitor", "--artifact", dir, "--state", bad); r.code != exitRefused {
			t.Errorf("exit %d, %s", r.code, r.stderr)
		}
	}
	// Interleaved runs, messages, an end by the log's end, a run of one call.
	mixed := line("a", 0.1, "") + line("b", 0.1, "") + line("a", 0.1, `,"end":true`) + line("m", 0.99, `,"message":true,"end":true`) + `{"run":"zzz","label":"safe"}` + "\n\n" + line("b", 0.1, "")
	if rep := report(mixed, exitDone); rep.Runs != 2 || rep.Verdicts != 5 || rep.Forgotten != 1 {
		t.Errorf("interleaved: %+v", rep)
	}
	// A kill may cut the last line short, anywhere else it is an error.
	short := mixed + line("c", 0.1, "")[:40]
	if rep := report(short, exitDone); rep.CutShort != 1 || rep.Verdicts != 5 {
		t.Errorf("cut short: %+v", rep)
	}
	if r := runWith(short+"\n"+mixed, "monitor", "--artifact", dir); r.code != exitFailure || !strings.Contains(r.stderr, "line 8: ") {
		t.Errorf("cut short in the middle: exit %d, %s", r.code, r.stderr)
	}
	if rep := report("", exitDone); !strings.Contains(rep.Why, "No verdict was read") {
		t.Errorf("an empty log: %s", rep.Why)
	}
	// With a state a run that is open goes on in the next log, and its label comes
	// once, whatever is read again.
	open := filepath.Join(tmp, "open.json")
	for i, want := range []pipeline.MonitorReport{{Open: 1}, {Repeated: 1}} {
		in := line("p", 0.1, "")
		if i == 1 {
			in = line("p", 0.1, `,"end":true`) + line("p", 0.1, "") + strings.Repeat(`{"run":"p","label":"safe"}`+"\n", 2)
		}
		r := runWith(in, "monitor", "--artifact", dir, "--state", open, "--json")
		var rep pipeline.MonitorReport
		if err := json.Unmarshal([]byte(r.stdout), &rep); err != nil || rep.Open != want.Open || rep.Repeated != want.Repeated || rep.Runs != i || rep.Labelled != i || rep.Forgotten != 0 {
			t.Errorf("log %d: %v, %+v, %s", i, err, rep, r.stderr)
		}
	}
	// Bare verdicts: a step that does not go on begins a run, a refused call does not.
	bare := string(verdict(0, 0.1)) + "\n" + string(verdict(1, 0.1)) + "\n" + string(verdict(0, 1)) + "\n" + string(verdict(0, 0.1)) + "\n" + string(verdict(0, 0.1)) + "\n"
	if rep := report(bare, exitDone); rep.Runs != 3 {
		t.Errorf("bare verdicts: %d runs, want 3", rep.Runs)
	}

	r := runWith(mixed, "monitor", "--artifact", dir, "--prometheus", "--metrics", filepath.Join(tmp, "m.prom"))
	if want := `dreamguard_monitor_runs_total{model="` + m.Digest() + `",calibration="` + m.CalibrationDigest() + "\"} 2\n"; r.code != exitDone || !strings.Contains(r.stdout, want) || r.stdout != string(read(t, filepath.Join(tmp, "m.prom"))) {
		t.Errorf("prometheus: exit %d, %s", r.code, r.stdout)
	}
	for in, want := range map[string]string{
		"x\n":                         "line 1",
		`{"run":"a"}`:                 "no verdict",
		`{"run":"a","label":"maybe"}`: "want safe or unsafe",
		`{"run":"a","verdict":{}}`:    "schema",
		string(bytes.Replace(verdict(0, 0.1), []byte(m.CalibrationDigest()), []byte(m.Digest()), 1)): "other calibrations",
		line("a", 0.1, "") + "\n\n{\n": "line 4",
	} {
		if r := runWith(in, "monitor", "--artifact", dir); r.code != exitFailure || !strings.Contains(r.stderr, want) {
			t.Errorf("%.60q: exit %d, %s; want %q", in, r.code, r.stderr, want)
		}
	}
	if err := os.WriteFile(state, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := run(t, "monitor", "--artifact", dir, "--state", state); r.code != exitFailure || !strings.Contains(r.stderr, "another file") {
		t.Errorf("foreign state: %+v", r)
	}
}

// chained writes the verdicts of a log as events of package decisionlog, amid others.
func chained(t *testing.T, log string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chained.jsonl")
	l, err := decisionlog.Open(path, decisionlog.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for text := range bytes.Lines(read(t, log)) {
		var x struct {
			Run          string
			Message, End bool
			Verdict      guard.Verdict
		}
		if err := json.Unmarshal(text, &x); err != nil {
			t.Fatal(err)
		}
		for _, r := range []decisionlog.Record{
			{Event: decisionlog.Start, Run: x.Run},
			{Event: decisionlog.Judged(x.Verdict), Run: x.Run, Verdict: &x.Verdict, Enforced: x.Verdict.Decision, Message: x.Message},
			{Event: decisionlog.Commit, Run: x.Run, RunEnds: x.End},
			{Event: decisionlog.Crash, Run: x.Run},
		} {
			if err := l.Append(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	return path
}
