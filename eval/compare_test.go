package eval_test

import (
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/eval"
)

func TestCompare(t *testing.T) {
	runs, features := mails(80)
	all := eval.Runs{Name: "mails", Runs: runs, Features: features}
	got, err := eval.Compare(all, all, []eval.Runs{all, {Name: "none"}}, 0.05, eval.Training{}, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 {
		t.Fatalf("%d baselines, want 4", len(got))
	}
	for _, b := range got {
		if b.Name == "" || len(b.Sets) != 2 || b.Sets[0].AUROC != 1 || b.Sets[0].SR != 1 || b.Sets[1].N != 0 {
			t.Errorf("%s: %+v", b.Name, b.Sets)
		}
	}

	// Without features one baseline less; without enough safe runs no threshold,
	// but the ranking stands.
	plain := eval.Runs{Name: "mails", Runs: runs}
	got, err = eval.Compare(plain, eval.Runs{Runs: runs[:10]}, []eval.Runs{plain}, 0.05, eval.Training{}, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 {
		t.Fatalf("%d baselines without features, want 3", len(got))
	}
	if text := got[2].Sets[0]; text.AUROC != 1 || text.SR.OK() || text.FPR.OK() || text.AllRuns.SR.OK() || text.NotRun != "" {
		t.Errorf("no threshold: %+v", text)
	}
	if flag := got[0].Sets[0]; flag.SR != 1 {
		t.Errorf("a flag needs no threshold: %+v", flag)
	}

	// Nothing to learn from.
	var safe []*data.Trajectory
	for _, r := range runs {
		if r.Label == data.Safe {
			safe = append(safe, r)
		}
	}
	got, err = eval.Compare(eval.Runs{Runs: safe}, plain, []eval.Runs{plain}, 0.05, eval.Training{}, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text := got[2].Sets[0]; !strings.Contains(text.NotRun, "cannot train") || text.AUROC.OK() {
		t.Errorf("trained on safe runs alone: %+v", text)
	}
}
