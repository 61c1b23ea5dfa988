package calib

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrCalibration is returned for a stored [Calibration] that cannot be one.
var ErrCalibration = errors.New("calib: invalid calibration")

// Bounds of what is read back.
const (
	maxPlans = 10_000
	maxDepth = 16
)

// Validate checks what a reader of a stored calibration relies on: a default
// plan first, a plan for every path of the tree and no other, levels on the
// grid, promises in range. The error wraps [ErrCalibration] and names the field.
func (c *Calibration) Validate() error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", ErrCalibration, fmt.Sprintf(format, a...))
	}
	if n := len(c.Plans); n == 0 || n > maxPlans || len(c.Tree.Own) > maxPlans {
		return bad("plans: there are %d with %d own paths, want 1 to %d", n, len(c.Tree.Own), maxPlans)
	}
	if len(c.Plans[0].Path) != 0 {
		return bad("plans[0].path is %q, want the default plan, which has none", c.Plans[0].Path)
	}
	own := map[string]bool{"": true}
	for i, path := range c.Tree.Own {
		if len(path) == 0 || len(path) > maxDepth || own[key(path)] {
			return bad("tree.own[%d] is empty, deeper than %d or listed twice", i, maxDepth)
		}
		own[key(path)] = true
	}
	for i := range c.Plans {
		p := &c.Plans[i]
		if !own[key(p.Path)] {
			return bad("plans[%d].path is no path of the tree, or there is another plan for it", i)
		}
		delete(own, key(p.Path))
		for _, l := range []struct {
			name string
			t    Threshold
		}{{"hold", p.Hold}, {"block", p.Block}} {
			if v := l.t.Value; !math.IsInf(v, 1) && !(v > 0 && v <= 1 && Grid(v) == v) {
				return bad("plans[%d].%s.value is %v: want a multiple of 2^-16 above 0 and up to 1, or null for off", i, l.name, v)
			}
			if l.t.K < 0 || l.t.N < 0 || !(l.t.Alpha >= 0 && l.t.Alpha < 1) {
				return bad("plans[%d].%s has a rank, a count or a level out of range", i, l.name)
			}
		}
		for j, g := range p.Guarantees {
			if !slices.Contains([]Bound{BoundFalseAlarm, BoundBlock, BoundMiss, BoundHolds}, g.Bound) {
				return bad("plans[%d].guarantees[%d].bound is %.20q", i, j, g.Bound)
			}
			if !(g.Level > 0 && g.Level < 1 && g.Confidence >= 0 && g.Confidence < 1 && g.At95 >= 0 && g.At95 <= 1) ||
				g.Unit != ByRun && g.Unit != ByGroup || g.Runs < 0 || g.Groups < 0 || g.Spoiled < 0 || g.MaxCalls < 0 || !(g.Effective >= 0) {
				return bad("plans[%d].guarantees[%d] has a level, a unit or a count out of range", i, j)
			}
		}
		for _, n := range []int{p.Alerted, p.Blocked, p.Safe - p.Alerted, p.Safe - p.Blocked, p.Missed, p.Unsafe - p.Missed, p.Stopped, p.Runs - p.Stopped, p.Runs - p.Safe, p.Runs - p.Safe - p.Unsafe} {
			if n < 0 {
				return bad("plans[%d] has a count out of range", i)
			}
		}
	}
	return nil
}
