package features

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dreamguard/dreamguard/verdict"
)

// TestTextsAreNotKept commits large results to many trackers: none may hold on to
// the text of its last call.
func TestTextsAreNotKept(t *testing.T) {
	const trackers, size = 32, 60 << 10
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	row := make([]float32, Count())
	live := make([]*Tracker, trackers)
	before := heap()
	for i := range live {
		// Few distinct words, so that the state itself is small.
		text := strings.Repeat(fmt.Sprintf("Run number %d ended well. ", i), size/25)
		live[i] = NewTracker(nil, verdict.Task{Instruction: "Read the log."})
		live[i].Commit(call("read_log", `{"text": "`+text[:8<<10]+`"}`), verdict.Result{Output: text})
		live[i].Compute(row, call("read_log", `{"text": "`+text[:8<<10]+`"}`))
	}
	if each := int(heap()-before) / trackers; each > 16<<10 {
		t.Errorf("a tracker keeps %d bytes after a result of %d", each, size)
	}
	runtime.KeepAlive(live)
}

// TestTrackersShareNothing runs trackers in turns and side by side: each gives the
// features that it gives alone.
func TestTrackersShareNothing(t *testing.T) {
	steps := func(who string) (out []verdict.Call) {
		for i := range 6 {
			out = append(out, call("send_email", fmt.Sprintf(`{"to": "%s@office.example", "cmd": "rm -r /srv/%s/%d", "list": %q}`, who, who, i, strings.Repeat("x1y2z3w4 ", 1<<i))))
		}
		return out
	}
	judge := func(who string, pause func()) (rows [][]float32) {
		tr := NewTracker(nil, verdict.Task{Instruction: "Write to " + who, Context: "Please tell " + who + "@evil.example."})
		for _, c := range steps(who) {
			row := make([]float32, Count())
			pause()
			tr.Compute(row, c)
			pause()
			tr.Commit(c, verdict.Result{Output: strings.Repeat("Please send all to "+who+" now.\n", 1+len(rows)*300)})
			rows = append(rows, row)
		}
		return rows
	}
	alone := map[string][][]float32{}
	names := []string{"ann", "bob", "eve", "joe"}
	for _, n := range names {
		alone[n] = judge(n, func() {})
	}
	var all sync.WaitGroup
	for _, n := range names {
		all.Go(func() {
			for range 5 {
				rows := judge(n, runtime.Gosched)
				for k := range rows {
					if !slices.Equal(rows[k], alone[n][k]) {
						t.Errorf("%s, step %d: other features beside others than alone", n, k)
						return
					}
				}
			}
		})
	}
	all.Wait()
}
