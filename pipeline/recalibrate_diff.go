package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
)

// LevelChange is what becomes of the levels of one group. A level is null where
// it is off.
type LevelChange struct {
	For     string              `json:"for,omitempty"` // field=value; empty is the default
	Before  artifact.Thresholds `json:"before"`        // off where there was no calibration
	After   artifact.Thresholds `json:"after"`
	Safe    int                 `json:"safe"`    // runs that the levels rest on
	Alerted int                 `json:"alerted"` // of these, held or blocked
}

// StoppedCounts counts scored runs that are held or blocked, of unsafe ones up to
// the first hazard.
type StoppedCounts struct {
	Before   ByLabel `json:"before"`
	After    ByLabel `json:"after"`
	Newly    int     `json:"newly"`
	Released int     `json:"released"`
}

// ByLabel counts runs by their label; unlabelled ones count as such, even where
// they are declared safe.
type ByLabel struct {
	Safe       int `json:"safe"`
	Unsafe     int `json:"unsafe"`
	Unlabelled int `json:"unlabelled"`
}

// All is the sum.
func (b ByLabel) All() int { return b.Safe + b.Unsafe + b.Unlabelled }

func (b *ByLabel) add(l calib.Label) {
	switch l {
	case calib.Safe:
		b.Safe++
	case calib.Unsafe:
		b.Unsafe++
	default:
		b.Unlabelled++
	}
}

// StoppedRun shows where a run is stopped for the first time.
type StoppedRun struct {
	ID       string         `json:"id"`
	Label    string         `json:"label"`
	Task     string         `json:"task"` // its beginning
	Step     int            `json:"step"`
	Tool     string         `json:"tool"`
	Call     string         `json:"call"` // beginning of the arguments
	Decision guard.Decision `json:"decision"`
	Hazard   float64        `json:"hazard"`
	Risk     float64        `json:"risk"`
	Already  bool           `json:"already"` // the calibration in force stops it too

	rank float64
}

// SuspectRun is a run that an operator should read before declaring it safe.
type SuspectRun struct {
	ID      string  `json:"id"`
	Task    string  `json:"task"`
	Tool    string  `json:"tool"` // of the call with the highest risk
	Call    string  `json:"call"`
	Risk    float64 `json:"risk"`
	Z       float64 `json:"z"` // robust z-score of its log-odds, from -999 to 999
	Outlier bool    `json:"outlier"`
}

// suspect lists the runs that are taken for safe and stand out.
func (rec *Recalibration) suspect(runs []candidate) {
	var at []int
	var scored []calib.Scored
	for i := range runs {
		if runs[i].label != calib.Unsafe {
			at, scored = append(at, i), append(scored, runs[i].before)
		}
	}
	for k, s := range calib.Suspects(scored, len(scored)) {
		if s.Outlier {
			rec.Outliers++
		}
		if k >= maxSuspects {
			continue
		}
		c := &runs[at[s.Index]]
		top, step := -1.0, 0
		n := 0
		for i, judged := range c.run.Judged {
			if judged {
				if r := c.before.Calls[n]; r > top {
					top, step = r, i
				}
				n++
			}
		}
		rec.Suspects = append(rec.Suspects, SuspectRun{ID: c.run.ID, Task: c.task, Tool: c.tools[step], Call: c.calls[step], Risk: c.before.Risk,
			Z: max(min(s.Z, 999), -999), Outlier: s.Outlier}) // JSON has no infinity
	}
}

// compare fills in which runs are stopped before and after.
func (rec *Recalibration) compare(current *artifact.Calibration, old, fusion calib.Fusion, runs []candidate) {
	for i := range runs {
		c := &runs[i]
		oldHold, oldBlock := calib.Off, calib.Off
		if current != nil {
			oldHold, oldBlock = current.Levels(c.oldPath)
		}
		hold, block := rec.Calibration.Levels(c.path)
		before, after := c.before.Alerted(oldHold, oldBlock), c.after.Alerted(hold, block)
		if before {
			rec.Stopped.Before.add(c.label)
		}
		if after {
			rec.Stopped.After.add(c.label)
		}
		switch {
		case after:
			if !before {
				rec.Stopped.Newly++
			}
			rec.Shown = append(rec.Shown, c.stoppedAt(fusion, hold, block, before, c.after.Risk))
		case before:
			rec.Stopped.Released++
			rec.Released = append(rec.Released, c.stoppedAt(old, oldHold, oldBlock, true, c.before.Risk))
		}
	}
	for _, list := range []*[]StoppedRun{&rec.Shown, &rec.Released} {
		slices.SortStableFunc(*list, func(a, b StoppedRun) int {
			if a.Already != b.Already {
				return cmp.Compare(b2i(a.Already), b2i(b.Already))
			}
			return cmp.Compare(b.rank, a.rank)
		})
		*list = (*list)[:min(len(*list), maxStopped)]
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// stoppedAt describes where a run is stopped first at the given levels.
func (c *candidate) stoppedAt(f calib.Fusion, hold, block float64, already bool, rank float64) StoppedRun {
	s := StoppedRun{ID: c.run.ID, Label: c.label.String(), Task: c.task, Already: already, rank: rank}
	var m calib.Memory
	for i := range c.run.Haz {
		var features []float32
		if i < len(c.run.X) {
			features = c.run.X[i]
		}
		scores := f.AdvanceWith(&m, c.run.Haz[i], c.run.Pre[i], features)
		held := c.run.Held != nil && c.run.Held[i]
		if held {
			scores.Risk = 1
		}
		d := eval.Decide(scores, block, hold)
		if held {
			d = max(d, guard.Hold)
		}
		if c.run.Judged[i] && d != guard.Pass {
			s.Step, s.Tool, s.Call, s.Decision, s.Hazard, s.Risk = i, c.tools[i], c.calls[i], d, scores.Hazard, scores.Risk
			return s
		}
	}
	return s
}

// String renders the levels for a person.
func (l LevelChange) String() string {
	name := l.For
	if name == "" {
		name = "all runs"
	}
	oldHold, oldBlock := l.Before.Levels()
	hold, block := l.After.Levels()
	return fmt.Sprintf("%s: HOLD %s -> %s, BLOCK %s -> %s; set on %d safe runs, %d of them alerted", name,
		calib.FormatLevel(oldHold), calib.FormatLevel(hold), calib.FormatLevel(oldBlock), calib.FormatLevel(block), l.Safe, l.Alerted)
}
