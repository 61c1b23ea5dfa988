package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/guard"
)

func TestScoreSets(t *testing.T) {
	r := runAll(t, filepath.Join(t.TempDir(), "run"), tiny(t), fixed)
	score := func(name, looks string) (scored int, err error) {
		err = r.ScoreSets(t.Context(), []string{name}, looks, true, func(m *guard.Model, s ScoredSet) error {
			if s.Name != name || len(s.Runs) != len(s.Traces) || len(s.Features) != len(s.Runs) || m.CalibrationDigest() == "" {
				t.Errorf("set %s: %d runs, %d traces", s.Name, len(s.Runs), len(s.Traces))
			}
			scored = len(s.Traces)
			return nil
		})
		return scored, err
	}
	if n, err := score("simulator", ""); err != nil || n == 0 {
		t.Errorf("open set: %d runs, %v", n, err)
	}
	if _, err := score("asb", ""); err == nil || !strings.Contains(err.Error(), `no test set "asb"`) {
		t.Errorf("a set that is not there: %v", err)
	}
	old := locked
	defer func() { locked = old }()
	locked = []string{"simulator"}
	looks := filepath.Join(t.TempDir(), "looks.jsonl")
	if n, err := score("simulator", ""); !errors.Is(err, ErrLocked) || n > 0 {
		t.Errorf("locked set without a record: %d runs, %v", n, err)
	}
	if n, err := score("simulator", looks); err != nil || n == 0 {
		t.Errorf("locked set: %d runs, %v", n, err)
	}
	if b, err := os.ReadFile(looks); err != nil || strings.Count(string(b), "\n") != 1 {
		t.Errorf("looks: %q, %v", b, err)
	}
}
