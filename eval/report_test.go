package eval_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/eval"
)

const hostile = "</td><script>alert('x')</script>\x1b[2J\u202e <b>&\"'"

func sampleReport(t *testing.T) eval.Report {
	t.Helper()
	traces := random(400)
	for i := range traces {
		traces[i].Attack = []string{"in the page", "in memory"}[i%2]
		traces[i].Task = "Read the page and mail its summary to the team."
		traces[i].Tools = []string{"read_page", "summarise", "send_mail"}
		if i%6 == 3 { // some unsafe runs are warned of before their hazard
			traces[i].Scores[0].Risk = 0.99
		}
	}
	traces[0].ID, traces[0].Task, traces[0].Attack, traces[0].Tools = hostile, hostile, hostile, []string{hostile, "", hostile}
	haz, risk := eval.SafeMaxima(random(300))
	th, err := calib.Union(haz, risk, 0.05, 0.01, false)
	if err != nil {
		t.Fatal(err)
	}
	at := eval.At(traces, th)
	set := eval.Measure("simulator", at, eval.Options{Seed: 1, Bootstrap: 50, Curves: true})
	base := eval.Measure("simulator", eval.At(random(300), th), eval.Options{})
	return eval.Report{
		Protocol: "p1", Model: strings.Repeat("ab", 32), Calibration: strings.Repeat("cd", 32), Seed: 7, Tool: "dreamguard test", Config: "debug",
		Thresholds: &th, Guarantee: []string{th.Marginal(), th.Confident(0.95)},
		Sets: []eval.SetResult{set, eval.Recalibrated("simulator", traces, eval.Recalibration{Seed: 1, Draws: 5, Alpha: 0.05, AlphaBlock: 0.01}),
			eval.NotRun("agentdyn-loso", "run with --loso")},
		Baselines: []eval.BaselineResult{{Name: "keyword list", Sets: []eval.SetResult{base}}, {Name: "not on this set"}},
		Data:      []eval.Fingerprint{{Name: "simulator", Runs: 400, Digest: strings.Repeat("0f", 32)}},
		Examples:  append(eval.PickExamples("simulator", at), eval.NewExample("simulator", "hostile text", &at[0])),
		Notes:     []string{hostile},
	}
}

func TestReportJSON(t *testing.T) {
	rep := sampleReport(t)
	var b, again bytes.Buffer
	if err := rep.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if err := sampleReport(t).WriteJSON(&again); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("made twice, not the same bytes (%v)", err)
	}
	back, err := eval.Read(&again)
	if err != nil {
		t.Fatal(err)
	}
	var third bytes.Buffer
	if err := back.WriteJSON(&third); err != nil || third.String() != b.String() {
		t.Errorf("read and written again, not the same bytes (%v)", err)
	}

	// The contract of dreamguard.eval/v1, name by name and in this order.
	var top struct {
		Schema, Protocol, Model, Calibration string
		Seed                                 uint64
		Sets                                 []json.RawMessage
	}
	if err := json.Unmarshal(b.Bytes(), &top); err != nil {
		t.Fatal(err)
	}
	if top.Schema != "dreamguard.eval/v1" || top.Protocol != "p1" || top.Seed != 7 || len(top.Sets) != 3 {
		t.Errorf("%+v", top)
	}
	want := []string{"name", "n", "unsafe", "auroc", "f1", "sr", "sr_full", "fpr", "phir", "phir_or_at", "phir_at_fpr", "phir_reachable_at_fpr",
		"mas", "early_before_seen", "recall_at_fpr", "ci", "by"}
	if got := keys(t, top.Sets[0]); len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("keys of a set: %v\nwant to start with %v", got, want)
	}
	var set struct {
		PHIR   json.RawMessage `json:"phir_at_fpr"`
		Recall json.RawMessage `json:"recall_at_fpr"`
	}
	if err := json.Unmarshal(top.Sets[0], &set); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, set.PHIR); !slices.Equal(got, []string{"0.10"}) {
		t.Errorf("keys of phir_at_fpr: %v", got)
	}
	if got := keys(t, set.Recall); !slices.Equal(got, []string{"0.01", "0.05", "0.10"}) {
		t.Errorf("keys of recall_at_fpr: %v", got)
	}
	if !bytes.Contains(top.Sets[2], []byte(`"auroc": null`)) {
		t.Errorf("a set that was not run: %s", top.Sets[2])
	}
}

// keys returns the names of an object in the order of the file.
func keys(t *testing.T, raw []byte) []string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	var out []string
	for d.More() {
		k, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, k.(string))
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestReadRefuses(t *testing.T) {
	if _, err := eval.Read(strings.NewReader(`{"schema":"dreamguard.eval/v9"}`)); !errors.Is(err, eval.ErrSchema) {
		t.Errorf("another version: error %v, want ErrSchema", err)
	}
	for _, s := range []string{"", "{", "[]", `{"schema":"dreamguard.eval/v1","sets":[{"auroc":"high"}]}`} {
		if _, err := eval.Read(strings.NewReader(s)); err == nil {
			t.Errorf("%q was read", s)
		}
	}
}

func TestReportHTML(t *testing.T) {
	rep := sampleReport(t)
	var b bytes.Buffer
	if err := rep.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "\x1b", "\u202e", "http://", "src=", "ZgotmplZ", "&lt;svg", "<no value>"} {
		// The SVG namespaces are names, not addresses that a browser loads.
		plain := strings.NewReplacer(`="http://www.w3.org/2000/svg"`, "", `="http://www.w3.org/1999/xlink"`, "").Replace(page)
		if i := strings.Index(plain, bad); i >= 0 {
			t.Errorf("%q in the page: …%s…", bad, plain[max(i-80, 0):min(i+80, len(plain))])
		}
	}
	for _, want := range []string{"simulator&#43;recalibrated", "run with --loso", "at most 5 %", "keyword list", "first hazard", "stopped before the hazard", "safe run passed", "send_mail", "simulator by attack", "&lt;script&gt;", "</html>"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	// 3 curves of the one set with figures, one plot per example.
	if n := strings.Count(page, "<svg"); n != 3+len(rep.Examples) {
		t.Errorf("%d charts, want %d", n, 3+len(rep.Examples))
	}
	rep.Examples[0].Risk = rep.Examples[0].Risk[1:]
	if err := rep.WriteHTML(&b); err == nil {
		t.Error("an example with a missing score was drawn")
	}
	rep.Examples = nil
	if err := (eval.Report{}).WriteHTML(&b); err != nil {
		t.Errorf("empty report: %v", err)
	}
}

func TestReportHTMLDetails(t *testing.T) {
	safe := eval.Measure("safe only", slices.DeleteFunc(random(60), func(x eval.Trace) bool { return x.Label == data.Unsafe }), eval.Options{})
	rep := eval.Report{
		Sets:      []eval.SetResult{safe, eval.NotRun("locked", "with `eval --final`")},
		Baselines: []eval.BaselineResult{{Name: "keyword list", Sets: []eval.SetResult{safe}}},
		Notes:     []string{"run `eval <b>` & look", "one ` alone"},
	}
	var b bytes.Buffer
	if err := rep.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{"with <code>eval --final</code>", "run <code>eval &lt;b&gt;</code> &amp; look", "one ` alone"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(page, `<b class="best">`) {
		t.Error("a figure that does not exist is marked as the best")
	}
}

func TestSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := sampleReport(t).Save(dir); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 2 {
		t.Fatalf("%v, %v, want report.html and report.json alone", names, err)
	}
	f, err := os.Open(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := eval.Read(f); err != nil {
		t.Error(err)
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := eval.Table(&b, sampleReport(t)); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\u202e\t") {
		t.Errorf("control characters:\n%q", b.String())
	}
	lines := strings.Split(b.String(), "\n")
	if !strings.HasPrefix(lines[0], "set ") || !strings.HasPrefix(lines[1], "simulator  ") || !strings.HasPrefix(lines[2], "simulator+recalibrated") {
		t.Errorf("\n%s", b.String())
	}
	// Columns line up: AUROC ends where its header ends.
	at := strings.Index(lines[0], "AUROC") + len("AUROC")
	for _, l := range lines[1:3] {
		if l[at-4] != '.' || l[at] != ' ' {
			t.Errorf("AUROC does not line up in %q", l)
		}
	}
	for _, want := range []string{"agentdyn-loso: run with --loso", "at most 5 %", "keyword list"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing:\n%s", want, b.String())
		}
	}
	if err := eval.Table(failing{}, eval.Report{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a failing writer: %v", err)
	}
}

// TestTableFits holds the tables of every set and baseline of protocol P1 to the width
// of a terminal.
func TestTableFits(t *testing.T) {
	r := sampleReport(t)
	set, base := r.Sets[0], r.Baselines[0].Sets[0]
	r.Sets, r.Baselines = nil, nil
	names := []string{"agentdyn", "agentdojo", "agentdojo+recalibrated", "asb", "asb+recalibrated", "asse-security", "asse-security+recalibrated", "simulator", "asb-dev"}
	for _, name := range names {
		set.Name = name
		r.Sets = append(r.Sets, set)
	}
	for _, name := range []string{"keyword list", "features + logistic regression on agentdyn", "absorbing Markov chain per domain"} {
		m := eval.BaselineResult{Name: name}
		for _, s := range names {
			base.Name = s
			m.Sets = append(m.Sets, base)
		}
		r.Baselines = append(r.Baselines, m)
	}
	r.Guarantee, r.Notes = nil, nil
	var b bytes.Buffer
	if err := eval.Table(&b, r); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if len(line) > 101 { // with its line break
			t.Errorf("%d characters: %s", len(line)-1, line)
		}
	}
	for _, name := range names {
		if !strings.Contains(b.String(), name) {
			t.Errorf("no figures of %s:\n%s", name, b.String())
		}
	}
	if n := strings.Count(b.String(), "\nfeatures + logistic regression on agentdyn "); n != 2 {
		t.Errorf("the baselines of 6 sets stand in %d blocks, want 2:\n%s", n, b.String())
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestPickExamples(t *testing.T) {
	got := eval.PickExamples("x", table())
	var kinds, ids []string
	for _, e := range got {
		kinds, ids = append(kinds, e.Kind), append(ids, e.ID)
	}
	// u0 (5 steps) is nearer to 8 than u1; u3 is alerted after its hazard only; s9 is the false alarm.
	if !slices.Equal(ids, []string{"u0", "u3", "s9", "s1"}) {
		t.Errorf("%v %v", kinds, ids)
	}
	if got[0].FirstHazard == nil || *got[0].FirstHazard != 3 || len(got[0].Risk) != 5 || math.Abs(got[0].Risk[1]-0.7) > 1e-9 {
		t.Errorf("%+v", got[0])
	}
	if eval.PickExamples("x", nil) != nil {
		t.Error("examples of nothing")
	}
}

// FuzzRead: whatever the file says, reading it and drawing what was read end in
// an error or a page, and the page holds no script.
func FuzzRead(f *testing.F) {
	f.Add(`{"schema":"dreamguard.eval/v1","sets":[{"name":"a","auroc":null,"curves":{"roc":[{"x":0,"y":1}]}}]}`)
	f.Add(`{"schema":"dreamguard.eval/v1","examples":[{"tools":["<script>"],"hazard":[0.1],"risk":[2],"decisions":["HOLD"],"first_hazard":9}]}`)
	f.Add(`{"schema":"dreamguard.eval/v1","thresholds":{"hold":{"value":null},"block":{}},"baselines":[{"sets":null}]}`)
	f.Fuzz(func(t *testing.T, s string) {
		r, err := eval.Read(strings.NewReader(s))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := r.WriteHTML(&b); err == nil && strings.Contains(strings.ToLower(b.String()), "<script") {
			t.Errorf("a script got in:\n%s", b.String())
		}
		if err := eval.Table(&b, r); err != nil {
			t.Error(err)
		}
	})
}
