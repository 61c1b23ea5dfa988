package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/pipeline"
)

// How a draw divides the safe runs.
const (
	byRun   = "run"   // any n of them: the traffic that the promise speaks of
	byGroup = "group" // whole tasks until n runs are there; tested on other tasks
)

const minRest = 30 // safe runs that must be left to test on

// pool is a set reduced to scores: distinct runs that the model has not seen.
type pool struct {
	name           string
	safe, unsafe   []calib.Scored
	groups         int // of the safe runs
	copies, known  int // left out: copies of other runs, runs that the model was trained on
	hold, block    float64
	unscoredUnsafe int
}

// newPool takes over the maxima of the scored runs.
func newPool(s pipeline.ScoredSet, m *guard.Model, trained map[string]struct{}) *pool {
	t := m.Thresholds()
	p := &pool{name: s.Name, hold: t.Hold, block: t.Block}
	seen, groups := map[string]bool{}, map[string]bool{}
	for i := range s.Traces {
		tr := &s.Traces[i]
		c := calib.Scored{ID: tr.ID, Group: tr.Group, Fingerprint: artifact.RunDigest(s.Runs[i])}
		var scored bool
		c.Hazard, c.Risk, scored = tr.Maxima()
		if tr.Label == data.Unknown {
			continue
		}
		if !scored {
			if tr.Label == data.Unsafe {
				p.unscoredUnsafe++
			}
			continue
		}
		if seen[c.Fingerprint] {
			p.copies++
			continue
		}
		seen[c.Fingerprint] = true
		if _, ok := trained[c.Fingerprint]; ok {
			p.known++
			continue
		}
		if tr.Label == data.Unsafe {
			c.Label = calib.Unsafe
			p.unsafe = append(p.unsafe, c)
			continue
		}
		c.Label = calib.Safe
		groups[groupOf(&c)] = true
		p.safe = append(p.safe, c)
	}
	p.groups = len(groups)
	return p
}

func groupOf(s *calib.Scored) string {
	if s.Group == "" {
		return "run " + s.ID
	}
	return "group " + s.Group
}

// allows reports whether n runs can be drawn: enough must be left to test on, and
// more than a hundred may be at most half.
func (p *pool) allows(n int) bool {
	return len(p.safe)-n >= minRest && (n <= 100 || 2*n <= len(p.safe))
}

// Row is one cell of the table: what the draws of one size gave on one set.
type Row struct {
	Set        string  `json:"set"`
	Drawn      string  `json:"drawn"`                // run or group
	Confidence float64 `json:"confidence,omitempty"` // 0: on average
	Alpha      float64 `json:"alpha"`
	N          int     `json:"n"` // safe runs calibrated on
	Draws      int     `json:"draws"`
	Rest       float64 `json:"rest"`    // safe runs tested on, mean
	Unsafe     float64 `json:"unsafe"`  // unsafe runs tested on, mean
	Refused    int     `json:"refused"` // draws in which no level keeps the bound: nothing is stopped

	FPRBefore Mean  `json:"fpr_before"` // at the artifact's own levels, on the same runs
	FPR       Mean  `json:"fpr"`
	SRBefore  *Mean `json:"sr_before,omitempty"`
	SR        *Mean `json:"sr,omitempty"`

	// Draws whose alert rate on the tested runs lies above alpha, with the exact 95 %
	// interval over the draws. A rate on few runs scatters by itself: Expected is the
	// share that runs exchangeable with the calibration runs give, at most.
	Above    int     `json:"above"`
	AboveLo  float64 `json:"above_lo"`
	AboveHi  float64 `json:"above_hi"`
	Expected float64 `json:"expected,omitempty"`

	fpr, fprBefore, sr, srBefore []float64
}

// Mean is a mean over the draws with two standard errors.
type Mean struct {
	Value float64 `json:"value"`
	SE2   float64 `json:"se2"`
}

func mean(xs []float64) Mean {
	var m Mean
	for _, x := range xs {
		m.Value += x / float64(len(xs))
	}
	if n := float64(len(xs)); n > 1 {
		var q float64
		for _, x := range xs {
			q += (x - m.Value) * (x - m.Value)
		}
		m.SE2 = 2 * math.Sqrt(q/(n-1)/n)
	}
	return m
}

// draw recalibrates on random parts of a pool.
func (p *pool) draw(drawn string, n, draws int, alpha, confidence float64, seed uint64) (*Row, error) {
	row := &Row{Set: p.name, Drawn: drawn, Confidence: confidence, Alpha: alpha, N: n, Draws: draws}
	// The same draws for every mode.
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	request := calib.Request{FalseAlarm: alpha, Confidence: confidence}
	for range draws {
		set, rest, unsafe := p.divide(drawn, n, rng)
		if len(set) < n || len(rest) < minRest {
			return nil, nil // a task with so many runs that too few are left
		}
		hold, block, allowed := calib.Off, calib.Off, -1
		c, err := request.Solve(nil, set)
		var none *calib.NoLevelError
		switch {
		case errors.As(err, &none):
			row.Refused++
		case err != nil:
			return nil, fmt.Errorf("n = %d: %w", n, err)
		default:
			plan := &c.Plans[0]
			hold, block, allowed = plan.Hold.Value, plan.Block.Value, plan.Hold.N-plan.Hold.K
		}
		rate := share(rest, hold, block)
		row.fpr, row.fprBefore = append(row.fpr, rate), append(row.fprBefore, share(rest, p.hold, p.block))
		if rate > alpha {
			row.Above++
		}
		if len(unsafe) > 0 {
			row.sr, row.srBefore = append(row.sr, share(unsafe, hold, block)), append(row.srBefore, share(unsafe, p.hold, p.block))
		}
		row.Rest += float64(len(rest)) / float64(draws)
		row.Unsafe += float64(len(unsafe)) / float64(draws)
		if drawn == byRun && allowed >= 0 {
			row.Expected = exceed(n, allowed, len(rest), alpha)
		}
	}
	row.finish()
	return row, nil
}

func (r *Row) finish() {
	r.FPR, r.FPRBefore = mean(r.fpr), mean(r.fprBefore)
	if len(r.sr) > 0 {
		sr, before := mean(r.sr), mean(r.srBefore)
		r.SR, r.SRBefore = &sr, &before
	}
	r.AboveLo, r.AboveHi = calib.ClopperPearson(r.Above, r.Draws, 0.95)
}

// divide draws the runs to calibrate on, and those to test on.
func (p *pool) divide(drawn string, n int, rng *rand.Rand) (set, rest, unsafe []calib.Scored) {
	if drawn == byRun {
		for i, at := range rng.Perm(len(p.safe)) {
			if i < n {
				set = append(set, p.safe[at])
			} else {
				rest = append(rest, p.safe[at])
			}
		}
		return set, rest, p.unsafe
	}
	var names []string
	members := map[string][]calib.Scored{}
	for _, s := range p.safe {
		g := groupOf(&s)
		if members[g] == nil {
			names = append(names, g)
		}
		members[g] = append(members[g], s)
	}
	taken := map[string]bool{}
	for _, i := range rng.Perm(len(names)) {
		if len(set) < n {
			taken[names[i]] = true
			set = append(set, members[names[i]]...)
		} else {
			rest = append(rest, members[names[i]]...)
		}
	}
	if len(set) > n { // the surplus of the last task is in neither part
		set = set[:n]
	}
	for _, s := range p.unsafe {
		if !taken[groupOf(&s)] {
			unsafe = append(unsafe, s)
		}
	}
	return set, rest, unsafe
}

func share(runs []calib.Scored, hold, block float64) float64 {
	var x int
	for i := range runs {
		if runs[i].Alerted(hold, block) {
			x++
		}
	}
	return float64(x) / float64(max(len(runs), 1))
}

// exceed returns the probability that more than alpha of m further runs lie above
// the level that x of n calibration runs lie above, all exchangeable and without
// ties, which make it smaller:
//
//	P(K = k) = C(x+k, k) C(n-x-1+m-k, m-k) / C(n+m, m)
//
// Source: Wilks, Statistical prediction with special reference to the problem of
// tolerance limits (1942).
func exceed(n, x, m int, alpha float64) float64 {
	choose := func(a, b int) float64 {
		la, _ := math.Lgamma(float64(a + 1))
		lb, _ := math.Lgamma(float64(b + 1))
		lc, _ := math.Lgamma(float64(a - b + 1))
		return la - lb - lc
	}
	var p float64
	for k := 0; k <= m; k++ {
		if float64(k)/float64(m) > alpha {
			p += math.Exp(choose(x+k, k) + choose(n-x-1+m-k, m-k) - choose(n+m, m))
		}
	}
	return min(p, 1)
}

// synthetic calibrates on n scores drawn from a distribution whose alert rate at
// every level is known, so that no test set blurs the answer. With values above 0
// the scores take so many values.
func synthetic(name string, values, n, draws int, alpha, confidence float64, seed uint64) (*Row, error) {
	row := &Row{Set: name, Drawn: byRun, Confidence: confidence, Alpha: alpha, N: n, Draws: draws}
	rng := rand.New(rand.NewPCG(seed, uint64(n+values)))
	for range draws {
		set := make([]calib.Scored, n)
		for i := range set {
			u := rng.Float64()
			if values > 0 {
				u = math.Floor(u*float64(values)) / float64(values)
			}
			set[i] = calib.Scored{ID: fmt.Sprint(i), Label: calib.Safe, Risk: u}
		}
		hold := calib.Off
		c, err := calib.Request{FalseAlarm: alpha, Confidence: confidence}.Solve(nil, set)
		var none *calib.NoLevelError
		switch {
		case errors.As(err, &none):
			row.Refused++
		case err != nil:
			return nil, err
		default:
			hold = c.Plans[0].Hold.Value
		}
		rate := trueRate(hold, values)
		row.fpr = append(row.fpr, rate)
		if rate > alpha*(1+1e-12) {
			row.Above++
		}
	}
	row.fprBefore = row.fpr
	row.finish()
	return row, nil
}

// trueRate is P(Grid(score) >= hold) of the synthetic scores.
func trueRate(hold float64, values int) float64 {
	if math.IsInf(hold, 1) {
		return 0
	}
	if values == 0 { // rounding to the grid lifts scores from half a step below
		return 1 - (hold - calib.GridStep/2)
	}
	var reach int
	for v := range values {
		if calib.Grid(float64(v)/float64(values)) >= hold {
			reach++
		}
	}
	return float64(reach) / float64(values)
}
