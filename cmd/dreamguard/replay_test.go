package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/pipeline"
)

func TestReplay(t *testing.T) {
	dir := testArtifact(t)
	traces := simulated(t, "--runs", "600") // more than one batch
	// Levels that stop some runs and not all.
	if r := run(t, "recalibrate", "-q", "--artifact", dir, "--traces", traces, "--false-alarm", "30%", "--block", "10%", "--write"); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	hostile := filepath.Join(t.TempDir(), "hostile.jsonl")
	line := `{"id":"<script>alert(1)</script>\u001b[2J","dataset":"x","group":"g","task":"<b>","steps":[{"type":"tool_call","tool":"<img src=x>\u202e","args":"{}","result":"r"}],"label":null,"first_hazard":null}`
	if err := os.WriteFile(hostile, []byte(line+"\n"+strings.Replace(line, "<script>", "2<script>", 1)+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	out, log := t.TempDir(), filepath.Join(t.TempDir(), "decisions.jsonl")
	r := run(t, "replay", "-q", "--artifact", dir, "--traces", traces, "--traces", hostile, "--out", out, "--log", log, "--json")
	var rep pipeline.ReplayReport
	if err := json.Unmarshal([]byte(r.stdout), &rep); err != nil || r.code != exitDone {
		t.Fatalf("exit %d, %v, %s", r.code, err, r.stderr)
	}
	alerted := rep.RunsHeld + rep.RunsBlocked
	if rep.Runs != 602 || rep.Copies != 1 || alerted == 0 || alerted == 602 || rep.Held == 0 || rep.Blocked == 0 || rep.RunsBlocked == 0 {
		t.Errorf("counts: %+v", rep)
	}
	if n := float64(rep.Runs - rep.Uncalled); rep.AlertRate != float64(alerted)/n || !(rep.AlertLower < rep.AlertRate && rep.AlertRate < rep.AlertUpper) {
		t.Errorf("rate %v in %v to %v", rep.AlertRate, rep.AlertLower, rep.AlertUpper)
	}
	calls, held, blocked := 0, 0, 0
	for _, row := range rep.Tools {
		calls, held, blocked = calls+row.Calls, held+row.Held, blocked+row.Blocked
	}
	if calls != rep.Calls || held != rep.Held || blocked != rep.Blocked || rep.Latency.P50 <= 0 || rep.Latency.P50 > rep.Latency.P99 {
		t.Errorf("tools sum to %d, %d, %d; %+v", calls, held, blocked, rep.Latency)
	}
	groups := map[string]bool{}
	for i, s := range rep.Read {
		if groups[s.Group] || i > 0 && s.Decision > rep.Read[i-1].Decision || len(s.Steps) == 0 {
			t.Errorf("runs to read are not one of each task in order: %d, %s", i, s.ID)
		}
		groups[s.Group] = true
	}
	if len(rep.Read) != 10 || rep.Read[0].Decision != guard.Block {
		t.Errorf("%d runs to read", len(rep.Read))
	}
	page := string(read(t, filepath.Join(out, "replay.html")))
	if strings.Contains(page, "<script") || strings.Contains(page, "<img") || strings.ContainsAny(page, "\x1b\u202e") {
		t.Error("the page holds markup of the traces")
	}
	if !bytes.Equal(bytes.TrimSpace(read(t, filepath.Join(out, "replay.json"))), bytes.TrimSpace([]byte(r.stdout))) {
		var saved pipeline.ReplayReport
		if err := json.Unmarshal(read(t, filepath.Join(out, "replay.json")), &saved); err != nil || saved.Calls != rep.Calls {
			t.Errorf("replay.json: %v", err)
		}
	}
	stopped, runs := 0, map[string]bool{}
	sc := bufio.NewScanner(bytes.NewReader(read(t, log)))
	for sc.Scan() {
		var l struct {
			Run     string
			Message bool
			Verdict guard.Verdict
		}
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		runs[l.Run] = true
		if !l.Message && l.Verdict.Decision != guard.Pass {
			stopped++
		}
	}
	if stopped != rep.Held+rep.Blocked || len(runs) != 602 {
		t.Errorf("log: %d stopped calls of %d runs, report %d", stopped, len(runs), rep.Held+rep.Blocked)
	}
	if r := run(t, "replay", "--artifact", dir); r.code != exitUsage {
		t.Errorf("without traces: %+v", r)
	}
	if r := run(t, "replay", "-q", "--artifact", dir, "--traces", hostile); r.code != exitDone || strings.ContainsAny(r.stdout, "\x1b\u202e") {
		t.Errorf("text: %+v", r)
	}
}
