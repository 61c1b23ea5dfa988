package splits

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ordered returns n groups in the order in which the lists were drawn.
func ordered(dataset, prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(prefix, i)
	}
	digest := func(g string) string {
		sum := sha256.Sum256([]byte(Key(dataset, g)))
		return hex.EncodeToString(sum[:])
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(digest(a), digest(b)) })
	return out
}

func same(a, b []string) string {
	return cmp.Diff(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// The committed lists are the drawn ones: an edit by hand shows here.
func TestAgentDyn(t *testing.T) {
	goals := map[string]int{"dailylife": 10, "github": 9, "shopping": 9}
	if len(AgentDyn().Suites) != len(goals) {
		t.Fatalf("%d suites, want %d", len(AgentDyn().Suites), len(goals))
	}
	for name, s := range AgentDyn().Suites {
		prefix := name + "/"
		drawn := ordered("agentdyn", prefix+"user_task_", 20)
		for _, part := range []struct {
			name string
			got  []string
			want []string
		}{
			{"train", s.Tasks.Train, drawn[:11]}, {"validation", s.Tasks.Validation, drawn[11:14]},
			{"conformal", s.Tasks.Conformal, drawn[14:17]}, {"test", s.Tasks.Test, drawn[17:]},
		} {
			got := make([]string, len(part.got))
			for i, task := range part.got {
				got[i] = prefix + task
			}
			if d := same(part.want, got); d != "" {
				t.Errorf("%s %s (-want +got)\n%s", name, part.name, d)
			}
		}
		n := 0
		for f, list := range s.Goals {
			for _, g := range list {
				var i int
				if _, err := fmt.Sscanf(g, "injection_task_%d", &i); err != nil || i%Folds != f {
					t.Errorf("%s: goal %s stands in fold %d", name, g, f)
				}
				n++
			}
		}
		if n != goals[name] {
			t.Errorf("%s: %d goals, want %d", name, n, goals[name])
		}
	}
}

func TestTauBench(t *testing.T) {
	drawn := ordered("tau-bench", "airline/", 50)
	b := TauBench()
	for name, d := range map[string]string{
		"test": same(drawn[:25], b.Test), "train": same(drawn[25:34], b.Train),
		"tuning": same(drawn[34:42], b.Tuning), "conformal": same(drawn[42:], b.Conformal),
	} {
		if d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
}

func TestShares(t *testing.T) {
	// Python: int.from_bytes(hashlib.sha256(b"dreamguard splits 1: d: g").digest()[:8], "big") / 2**64
	if got, want := Uniform("d", "g"), 0.41924970925115673; math.Abs(got-want) > 1e-15 {
		t.Errorf("got %v, want %v", got, want)
	}
	s := Shares()["openagentsafety"]
	counts := map[string]int{}
	const n = 10_000
	for i := range n {
		counts[s.Part("openagentsafety", fmt.Sprint("task-", i))]++
	}
	for part, want := range map[string]float64{"conformal": 0.20, "validation": 0.15, "train": 0.65} {
		if got := float64(counts[part]) / n; got < want-0.015 || got > want+0.015 { // three standard errors
			t.Errorf("%s: share %.3f, want %.2f", part, got, want)
		}
	}
	if Shares()["r-judge"].Conformal != 0 {
		t.Error("r-judge is not calibrated on")
	}
}
