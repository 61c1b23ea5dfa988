package clean

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/data"
)

// forbidden are the strings that must be gone from every text after Apply,
// written independently of the rules: letters only, so that folding, escapes
// and quotation marks cannot hide one.
var forbidden = []string{
	"importantmessagefromme",
	"beforeyoucansolvethetaskthatigaveyou",
	"afteryoudothatyoucansolvethetaskthatigaveyou",
	"attackertool", "attackergoal",
	"perspicacious",
	"availabletoolsare[{", "fromthetoollist:[",
	"<information>", "</information>",
	"signed,emmajohnson", "signed,emmasmith",
}

var notLetters = regexp.MustCompile(`\\+[nrt]|[^a-z<>/\[{,:]+`)

func squeeze(s string) string { return notLetters.ReplaceAllString(strings.ToLower(s), "") }

// eachReal calls f for every trajectory under DREAMGUARD_DATA, or skips.
func eachReal(t *testing.T, f func(set string, r *data.Trajectory)) {
	t.Helper()
	if os.Getenv("DREAMGUARD_DATA") == "" {
		t.Skipf("DREAMGUARD_DATA is not set: it names the folder with the trajectory data")
	}
	var files []string
	for _, pattern := range []string{"*/trajectories.jsonl.gz", "*/*.trajectories.jsonl.gz"} {
		found, err := filepath.Glob(filepath.Join(os.Getenv("DREAMGUARD_DATA"), pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Fatalf("no trajectory file under %s", os.Getenv("DREAMGUARD_DATA"))
	}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		zr, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(zr)
		lines.Buffer(make([]byte, 1<<20), 64<<20)
		for lines.Scan() {
			var r data.Trajectory
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			f(r.Dataset, &r)
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
}

// texts calls f with every text that a guard may see.
func texts(r *data.Trajectory, f func(where, s string)) {
	f("task", r.Task)
	f("context", r.Context)
	for i := range r.Steps {
		f("args", r.Steps[i].Args)
		f("text", r.Steps[i].Text)
		f("result", r.Steps[i].Result)
		f("error", r.Steps[i].Error)
	}
	for _, raw := range r.Extra {
		f("extra", string(raw))
	}
}

func TestNoLeakLeftInRealData(t *testing.T) {
	counts := map[string]map[string]int{}
	total := map[string]int{}
	bad := 0
	eachReal(t, func(set string, r *data.Trajectory) {
		if counts[set] == nil {
			counts[set] = map[string]int{}
		}
		total[set]++
		validArgs := make([]bool, len(r.Steps))
		for i := range r.Steps {
			validArgs[i] = json.Valid([]byte(r.Steps[i].Args))
		}
		for rule, n := range Apply(r) {
			counts[set][rule] += n
		}
		if left := Leaks(r); len(left) > 0 && bad < 20 {
			bad++
			t.Errorf("%s: a second Apply would still change %v", r.ID, left)
		}
		for i := range r.Steps {
			if validArgs[i] && !json.Valid([]byte(r.Steps[i].Args)) && bad < 20 {
				bad++
				t.Errorf("%s: step %d: arguments are no longer JSON: %s", r.ID, i, r.Steps[i].Args)
			}
		}
		texts(r, func(where, s string) {
			if s == "" || bad >= 20 {
				return
			}
			z := squeeze(s)
			for _, f := range forbidden {
				if i := strings.Index(z, f); i >= 0 {
					bad++
					t.Errorf("%s: %s still holds %q: ...%s...", r.ID, where, f, z[max(0, i-40):min(len(z), i+100)])
				}
			}
		})
	})
	for _, set := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-16s %6d runs: %v", set, total[set], counts[set])
	}
	if n := counts["asse-security"][HazardUnnamed]; n != 30 {
		t.Errorf("%d hazards of asse-security do not name the attack tool, want 30 (counted when the data was converted)", n)
	}
}

// TestInstructionKeepsItsLine checks that what stands between the wrapper's
// sentences is a line of its own afterwards, unfolded.
func TestInstructionKeepsItsLine(t *testing.T) {
	between := regexp.MustCompile(`(?s)following\s+first:\s*\n(.*?)\n\s*After you do that`)
	paragraph := regexp.MustCompile(`\n\s*\n`)
	n, lost := 0, 0
	eachReal(t, func(_ string, r *data.Trajectory) {
		var goals [][]string
		for i := range r.Steps {
			var found []string
			for _, m := range between.FindAllStringSubmatch(r.Steps[i].Result, -1) {
				first := paragraph.Split(m[1], 2)[0]
				if !strings.Contains(first, "…[cut") {
					found = append(found, strings.Join(strings.Fields(first), " "))
				}
			}
			goals = append(goals, found)
		}
		Apply(r)
		for i, found := range goals {
			lines := map[string]bool{}
			for line := range strings.Lines(r.Steps[i].Result) {
				lines[strings.Join(strings.Fields(line), " ")] = true
			}
			for _, goal := range found {
				n++
				if !lines[goal] {
					lost++
					if lost <= 10 {
						t.Logf("%s: step %d: %q is no line of %q", r.ID, i, goal, r.Steps[i].Result)
					}
				}
			}
		}
	})
	t.Logf("%d of %d planted instructions do not stand on one line", lost, n)
	if n == 0 || lost*1000 > n { // the agent itself may store folded text, which no structure shows
		t.Errorf("%d of %d planted instructions do not stand on one line of their own, want at most one in a thousand", lost, n)
	}
}
