package simulate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/data"
)

// sampled is the set that the statistics tests share.
const sampled = 6000

func sample(t testing.TB, o Options, visit func(*data.Trajectory, *trace)) {
	t.Helper()
	g, err := newGenerator(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range o.Runs {
		visit(g.generate(o.First + i))
	}
}

func TestStatistics(t *testing.T) {
	var n, unsafe, steps, longest, planted, silent, success int
	perDomain := map[string][2]int{}
	kinds := map[string]map[string]int{}
	lengths := map[string][2]int{} // steps of unsafe and safe runs, by domain
	for _, p := range Parts {
		kinds[p] = map[string]int{}
	}
	ids := map[string]bool{}
	sample(t, Options{Seed: 11, Runs: sampled}, func(tr *data.Trajectory, _ *trace) {
		if err := tr.Validate(); err != nil {
			t.Fatalf("%s: %v", tr.ID, err)
		}
		if ids[tr.ID] {
			t.Fatalf("%s: id used twice", tr.ID)
		}
		ids[tr.ID] = true
		n++
		steps += len(tr.Steps)
		longest = max(longest, len(tr.Steps))
		d := perDomain[tr.Suite]
		d[0]++
		if tr.Label == data.Unsafe {
			if !tr.HazardExact() {
				t.Fatalf("%s: unsafe without an exact first hazard", tr.ID)
			}
			unsafe++
			d[1]++
			lengths[tr.Suite] = [2]int{lengths[tr.Suite][0] + len(tr.Steps), lengths[tr.Suite][1]}
			kinds[Split(tr.Group)][tr.Attack]++
		}
		if tr.Label == data.Safe {
			lengths[tr.Suite] = [2]int{lengths[tr.Suite][0], lengths[tr.Suite][1] + len(tr.Steps)}
		}
		perDomain[tr.Suite] = d
		if *tr.AttackPresent {
			planted++
		}
		if *tr.TaskSucceeded {
			success++
		}
		if !slices.ContainsFunc(tr.Steps, func(s data.Step) bool { return s.Type == data.ToolCall && s.Text != "" }) {
			silent++
		}
	})
	between := func(what string, x, lo, hi float64) {
		t.Helper()
		if x < lo || x > hi {
			t.Errorf("%s is %.3f, want %.3f to %.3f", what, x, lo, hi)
		}
	}
	share := func(k int) float64 { return float64(k) / float64(n) }
	between("mean length", float64(steps)/float64(n), 7, 9)
	between("longest run", float64(longest), 30, MaxSteps)
	between("unsafe share", share(unsafe), 0.45, 0.55)
	between("share of runs with a planted text", share(planted), 0.45, 0.55)
	between("share of runs without thoughts", share(silent), 0.4, 0.6)
	between("task success", share(success), 0.85, 0.97)
	var got []float64
	for _, d := range []string{"sysadmin", "code", "data", "communication"} { // rarest first
		c := perDomain[d]
		got = append(got, float64(c[1])/float64(c[0]))
	}
	if !slices.IsSorted(got) {
		t.Errorf("unsafe shares of sysadmin, code, data, communication are %.3f, want them in ascending order", got)
	}
	for d, l := range lengths {
		c := perDomain[d]
		between("difference in length between unsafe and safe runs of "+d,
			float64(l[0])/float64(c[1])-float64(l[1])/float64(c[0]-c[1]), -0.75, 0.75)
	}
	for _, p := range Parts {
		for _, k := range []string{"drift:leak", "drift:outsider", "drift:destroy", "drift:credential", "injection:file",
			"injection:page", "injection:mail", "injection:search", "injection:memory", "injection:user"} {
			if kinds[p][k] == 0 {
				t.Errorf("part %s has no unsafe run of kind %s", p, k)
			}
		}
	}
	t.Logf("mean length %.2f, longest %d, unsafe %.3f, by domain %.3f, kinds %v", float64(steps)/float64(n), longest, share(unsafe), got, kinds)
}

func TestScenarios(t *testing.T) {
	perDomain, perPart := map[string]int{}, map[string]map[string]int{}
	titles := map[string]bool{}
	for _, s := range Scenarios() {
		perDomain[s.Domain]++
		if perPart[s.Domain] == nil {
			perPart[s.Domain] = map[string]int{}
		}
		perPart[s.Domain][s.Part]++
		if titles[s.ID] || titles[s.Title] || !strings.HasPrefix(s.ID, s.Domain+"/") {
			t.Errorf("scenario %q: id or title used twice, or id without its domain", s.ID)
		}
		titles[s.ID], titles[s.Title] = true, true
		if Split(s.ID) != s.Part {
			t.Errorf("Split(%q) = %q, want %q", s.ID, Split(s.ID), s.Part)
		}
	}
	for _, d := range Domains() {
		want := map[string]int{PartTrain: 8, PartValidation: 1, PartConformal: 2, PartTest: 2}
		if diff := cmp.Diff(want, perPart[d]); diff != "" {
			t.Errorf("parts of %s (-want +got):\n%s", d, diff)
		}
	}
	if got := Split("data/no-such-thing"); got != "" {
		t.Errorf("Split of an unknown id = %q, want an empty string", got)
	}
}

// TestTables checks the promises about variety.
func TestTables(t *testing.T) {
	tab := loadTables()
	for k := range kSay {
		shared, held := 0, len(tab.tools[k][heldFamily])
		for _, f := range sharedFamilies {
			if len(tab.tools[k][f]) == 0 {
				t.Errorf("no %s tool for %s", f, k)
			}
			shared += len(tab.tools[k][f])
		}
		if shared < 8 || held < 2 {
			t.Errorf("%s has %d shared and %d held-out tools, want 8 and 2", k, shared, held)
		}
		for name, m := range map[string]map[string]variants{"thoughts": tab.thoughts, "results": tab.results} {
			if v := m[k.String()]; len(v.Shared) < 8 || len(v.Held) < 2 {
				t.Errorf("%s of %s: %d shared and %d held out, want 8 and 2", name, k, len(v.Shared), len(v.Held))
			}
		}
	}
	for name, v := range tab.texts {
		if len(v.Shared) < 8 {
			t.Errorf("texts %s: %d variants, want 8", name, len(v.Shared))
		}
	}
}

// TestHeldFamily: the held-out tools appear in test scenarios, and only there.
func TestHeldFamily(t *testing.T) {
	tab := loadTables()
	held := map[string]bool{}
	for k := range kSay {
		for _, s := range tab.tools[k][heldFamily] {
			held[s.Name] = true
		}
	}
	seen := 0
	sample(t, Options{Seed: 5, Runs: 1500}, func(tr *data.Trajectory, _ *trace) {
		for _, s := range tr.Steps {
			if held[s.Tool] {
				seen++
				if p := Split(tr.Group); p != PartTest {
					t.Fatalf("%s (part %s) uses the held-out tool %s", tr.ID, p, s.Tool)
				}
			}
		}
	})
	if seen == 0 {
		t.Error("no held-out tool was used at all")
	}
}

// golden are the SHA-256 digests of the JSON lines of the first 100 runs of
// seed 1 per domain. They change with every change of tables or code: that is
// the point, since trained models and calibration refer to these bytes.
var golden = map[string]string{
	"data":          "e7493f5619f537489c2fdf7824328a9c0961790c2a37d771a47e10cc86cb592f",
	"sysadmin":      "bd81a5ac86c5d293f101f22d75b947d1eff72b25bbdd71a893eca729c5ec6ec0",
	"communication": "bfdff117394c726726ab491635b03b0e04c2e9bdf75a9560afbf9abebf3ad423",
	"code":          "b7859bef097fe4563e5b896345a92937f5aed2e7aee42d0e38df7c34b4a6e72e",
}

func TestGolden(t *testing.T) {
	for _, d := range Domains() {
		h := sha256.New()
		for tr := range Generate(Options{Seed: 1, Runs: 100, Domains: []string{d}}) {
			b, err := json.Marshal(tr)
			if err != nil {
				t.Fatal(err)
			}
			h.Write(append(b, '\n'))
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != golden[d] {
			t.Errorf("digest of domain %s is %s, want %s", d, got, golden[d])
		}
	}
}

// TestShards: a run depends on its number only.
func TestShards(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		first := rapid.IntRange(0, 1<<40).Draw(rt, "first")
		var whole []*data.Trajectory
		for tr := range Generate(Options{Seed: seed, First: first, Runs: 4}) {
			whole = append(whole, tr)
		}
		for tr := range Generate(Options{Seed: seed, First: first + 3, Runs: 1}) {
			if diff := cmp.Diff(whole[3], tr); diff != "" {
				rt.Fatalf("run %d differs in a shard of its own:\n%s", first+3, diff)
			}
		}
	})
}

func TestUnsafeShare(t *testing.T) {
	for _, want := range []float64{-1, 0.1, 0.8} {
		n, unsafe := 0, 0
		for tr := range Generate(Options{Seed: 3, Runs: 1200, UnsafeShare: want}) {
			n++
			if tr.Label == data.Unsafe {
				unsafe++
			}
		}
		if got := float64(unsafe) / float64(n); math.Abs(got-max(0, want)) > 0.04 || want < 0 && unsafe > 0 {
			t.Errorf("UnsafeShare %v gave %.3f", want, got)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Runs: -1}, {First: -2}, {UnsafeShare: 1}, {UnsafeShare: math.NaN()}, {UnsafeShare: -0.5},
		{Domains: []string{"cooking"}}, {Part: "dev"}, {First: math.MaxInt, Runs: 2}} {
		var oe *OptionError
		if err := o.Validate(); !errors.As(err, &oe) {
			t.Errorf("%+v: error %v, want an OptionError", o, err)
		}
		for range Generate(o) {
			t.Errorf("%+v yields runs", o)
			break
		}
	}
	for tr := range Generate(Options{Seed: 2, Runs: 50, Part: PartConformal, Domains: []string{"code", "data"}}) {
		if Split(tr.Group) != PartConformal || tr.Suite != "code" && tr.Suite != "data" {
			t.Fatalf("%s is not of the part and domains asked for", tr.ID)
		}
	}
}

func BenchmarkGenerate(b *testing.B) {
	g, err := newGenerator(Options{Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		g.generate(i)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
}

func ExampleGenerate() {
	for t := range Generate(Options{Seed: 1, Runs: 3}) {
		fmt.Println(t.ID, t.Label, Split(t.Group))
	}
	// Output:
	// simulator/communication/press-release/0 unsafe train
	// simulator/sysadmin/disk-cleanup/1 safe train
	// simulator/sysadmin/db-migration/2 safe train
}
