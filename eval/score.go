package eval

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/verdict"
)

// Score replays each run through a session of m of its own, in open loop: every
// step is judged and then committed with the result it had, whatever the
// decision, so that all steps have scores. A run is judged at the levels of its
// group, where the calibration has groups. A step without one is [ErrUnscored].
// Runs are spread over workers
// goroutines, 0 meaning one per core; the result is in the order of ts and does
// not depend on workers. progress, if not nil, is told of each finished run, by
// one goroutine at a time, with the number 1. A canceled ctx ends it with the
// context's error.
func Score(ctx context.Context, m *guard.Model, ts []*data.Trajectory, workers int, progress func(int)) ([]Trace, error) {
	out := make([]Trace, len(ts))
	err := each(ctx, len(ts), workers, progress, func(ctx context.Context, i int) error {
		var err error
		out[i], err = replay(ctx, ModelFor(m, ts[i]).Start(ts[i].StartTask()), ts[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// session is what replay needs of a [guard.Session].
type session interface {
	Judge(ctx context.Context, c verdict.Call) guard.Verdict
	Commit(c verdict.Call, r verdict.Result) error
}

func replay(ctx context.Context, s session, t *data.Trajectory) (Trace, error) {
	tr := NewTrace(t)
	n := len(t.Steps)
	tr.Scores, tr.Decisions = make([]calib.Scores, n), make([]verdict.Decision, n)
	tr.LogitHazard, tr.LogitPrefix = make([]float64, n), make([]float64, n)
	for i := range t.Steps {
		if err := ctx.Err(); err != nil {
			return Trace{}, err
		}
		c := t.Call(i)
		v := s.Judge(ctx, c)
		if err := ctx.Err(); err != nil {
			return Trace{}, err
		}
		if !v.Scored {
			return Trace{}, fmt.Errorf("eval: run %q step %d: %w: %v", t.ID, i, ErrUnscored, v.Reasons)
		}
		tr.LogitHazard[i], tr.LogitPrefix[i], tr.Scores[i] = v.Logits.Hazard, v.Logits.Prefix, v.Scores
		if tr.Judged[i] {
			tr.Decisions[i] = v.Decision
			if stopped(&v) {
				if tr.Held == nil {
					tr.Held = make([]bool, n)
				}
				tr.Held[i], tr.Scores[i].Risk = true, 1
			}
		}
		if err := s.Commit(c, t.Result(i)); err != nil {
			return Trace{}, fmt.Errorf("eval: run %q step %d: %w", t.ID, i, err)
		}
	}
	return tr, nil
}

// ErrUnscored is returned for a step on which the model did not answer: no
// figure or threshold may rest on it.
var ErrUnscored = errors.New("the guard has no score")

// stopped reports whether the call would be stopped at any thresholds.
func stopped(v *guard.Verdict) bool {
	return slices.ContainsFunc(v.Reasons, func(r guard.Reason) bool { return r != verdict.ReasonHazard && r != verdict.ReasonRisk })
}

// each calls do for 0 to n-1 on workers goroutines. The first error, by index
// among those that happened, ends it.
func each(ctx context.Context, n, workers int, progress func(int), do func(context.Context, int) error) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu    sync.Mutex
		next  int
		first = n
		fail  error
		wg    sync.WaitGroup
	)
	for range min(workers, n) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= n || ctx.Err() != nil {
					return
				}
				err := do(ctx, i)
				mu.Lock()
				switch {
				case err == nil && progress != nil:
					progress(1)
				// Runs that were only stopped because another failed say nothing new.
				case err != nil && (fail == nil || errors.Is(fail, context.Canceled) || i < first && !errors.Is(err, context.Canceled)):
					first, fail = i, err
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if fail != nil {
		return fail
	}
	return ctx.Err()
}
