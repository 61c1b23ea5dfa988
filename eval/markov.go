package eval

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dreamguard/dreamguard/data"
)

// Bounds of what [TrainMarkov] takes. A fit holds the square of the states.
const (
	maxStates  = 1024
	maxHorizon = 10_000
)

// StateBin cuts one call feature into bins: a value falls into bin k if it is at
// or above exactly k of the cuts.
type StateBin struct {
	Feature int       // index in the vector
	Cuts    []float32 // ascending
}

// Markov configures [TrainMarkov]. Zero fields take the value in brackets.
type Markov struct {
	Bins      []StateBin                     // a state is one bin of each; at most 1024 states in all
	Horizon   int                            // calls, the judged one included, within which a hazard counts, up to 10,000 [6]
	Prior     float64                        // steps that the prior of a row of transitions is worth [20]
	PerDomain bool                           // also a chain for each suite, or data set without suites
	Weight    func(*data.Trajectory) float64 // weight of a run; nil means 1 for all, 0 leaves it out
}

func (o *Markov) defaults() error {
	o.Horizon, o.Prior = cmp.Or(o.Horizon, 6), cmp.Or(o.Prior, 20)
	if o.Horizon < 1 || o.Horizon > maxHorizon {
		return fmt.Errorf("%w: a horizon of %d calls: want 1 to %d", ErrTraining, o.Horizon, maxHorizon)
	}
	if !(o.Prior > 0) || math.IsInf(o.Prior, 1) {
		return fmt.Errorf("%w: a prior worth %v steps: want more than 0", ErrTraining, o.Prior)
	}
	states := 1
	for _, b := range o.Bins {
		if b.Feature < 0 {
			return fmt.Errorf("%w: a bin of feature %d", ErrTraining, b.Feature)
		}
		for k, c := range b.Cuts {
			if math.IsNaN(float64(c)) || k > 0 && c <= b.Cuts[k-1] {
				return fmt.Errorf("%w: cuts of feature %d are %v: want them ascending", ErrTraining, b.Feature, b.Cuts)
			}
		}
		if states *= len(b.Cuts) + 1; states > maxStates {
			return fmt.Errorf("%w: more than %d states", ErrTraining, maxStates)
		}
	}
	return nil
}

// TrainMarkov fits an absorbing Markov chain: the transient states are the bins of
// the call features, each step moves to the state of the next call, or is absorbed,
// by the first hazard or by the end of the run. A call's score is the probability
// that the chain is absorbed by the hazard within Horizon steps from its state, the
// call itself being the first: sum over j < Horizon of Q^j r, with Q the transitions
// between transient states and r those into the hazard. Without a horizon it would
// be N r with the fundamental matrix N = (I - Q)^-1 (Kemeny and Snell, "Finite Markov
// Chains", 1960, chapter 3).
//
// Transitions are posterior means under Dirichlet priors that back off (MacKay and
// Peto, "A hierarchical Dirichlet language model", 1995): the prior mean of a row of
// a domain's chain is that row of the chain of all runs, and the prior mean of
// its rows is how the steps of all runs together went on, itself under a Jeffreys
// prior. A domain that was not trained on is judged by the chain of all runs.
//
// features[r][i] is the vector of step i of run r, all of one length.
func TrainMarkov(runs []*data.Trajectory, features [][][]float32, o Markov) (StepModel, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	steps, width, err := supervisedVectors(runs, features, o.Weight, -1)
	if err != nil {
		return nil, err
	}
	m := &markovModel{width: width, bins: o.Bins, domains: map[string][]float64{}}
	for _, b := range o.Bins {
		if b.Feature >= width && len(steps) > 0 {
			return nil, fmt.Errorf("%w: a bin of feature %d: the vectors have %d values", ErrTraining, b.Feature, width)
		}
	}
	states := m.states()
	hazard, end := states, states+1
	all := newChain(states)
	byDomain := map[string]*chain{}
	both := [2]float64{} // weight of the steps without and with a hazard
	for k, s := range steps {
		from, to := m.state(features[s.run][s.index]), end
		switch {
		case s.hazard:
			to = hazard
		case k+1 < len(steps) && steps[k+1].run == s.run:
			to = m.state(features[s.run][s.index+1])
		}
		all.row(from)[to] += s.weight
		both[int(b2f(s.hazard))] += s.weight
		if o.PerDomain {
			name := markovDomain(runs[s.run])
			if byDomain[name] == nil {
				byDomain[name] = newChain(states)
			}
			byDomain[name].row(from)[to] += s.weight
		}
	}
	if both[0] == 0 || both[1] == 0 {
		return nil, fmt.Errorf("%w: total weight is %v of steps with a hazard and %v of steps without: both are needed", ErrTraining, both[1], both[0])
	}
	if math.IsInf(both[0]+both[1], 1) {
		return nil, fmt.Errorf("%w: the weights of the runs are too large to be added", ErrTraining)
	}
	pooled := slices.Repeat([]float64{0.5}, states+2)
	for _, row := range all.rows {
		for to, n := range row {
			pooled[to] += n
		}
	}
	normalize(pooled)
	all.smooth(o.Prior, func(int) []float64 { return pooled })
	m.all = all.absorbed(o.Horizon)
	for name, c := range byDomain {
		c.smooth(o.Prior, all.row)
		m.domains[name] = c.absorbed(o.Horizon)
	}
	return m, nil
}

// markovDomain is the domain of a run: names of suites are those of tools and
// services, which copies of a data set share with it.
func markovDomain(t *data.Trajectory) string { return cmp.Or(t.Suite, t.Dataset) }

// chain holds a row of counts, then of probabilities, per transient state: of going
// on to each state, to the hazard and to the end. Rows that were never counted are
// nil until smooth.
type chain struct{ rows [][]float64 }

func newChain(states int) *chain { return &chain{make([][]float64, states)} }

func (c *chain) row(state int) []float64 {
	if c.rows[state] == nil {
		c.rows[state] = make([]float64, len(c.rows)+2)
	}
	return c.rows[state]
}

// smooth turns counts into posterior means under Dirichlet priors worth so many
// steps, whose mean for a state is mean(state).
func (c *chain) smooth(worth float64, mean func(state int) []float64) {
	for s, row := range c.rows {
		if row == nil { // the same numbers, shared
			c.rows[s] = mean(s)
			continue
		}
		for to, p := range mean(s) {
			row[to] += worth * p
		}
		normalize(row)
	}
}

// absorbed returns for each state the probability of the hazard within so many steps.
func (c *chain) absorbed(steps int) []float64 {
	n := len(c.rows)
	v, next := make([]float64, n), make([]float64, n)
	for range steps {
		for s, row := range c.rows {
			p := row[n]
			for to, q := range row[:n] {
				p += q * v[to]
			}
			next[s] = min(p, 1)
		}
		v, next = next, v
	}
	return v
}

// normalize divides p by its sum.
func normalize(p []float64) {
	var sum float64
	for _, x := range p {
		sum += x
	}
	for i := range p {
		p[i] /= sum
	}
}

type markovModel struct {
	width   int
	bins    []StateBin
	all     []float64            // risk per state
	domains map[string][]float64 // the same by domain
}

func (m *markovModel) Name() string {
	if len(m.domains) > 0 {
		return "absorbing Markov chain per domain"
	}
	return "absorbing Markov chain"
}

func (m *markovModel) states() int {
	n := 1
	for _, b := range m.bins {
		n *= len(b.Cuts) + 1
	}
	return n
}

func (m *markovModel) state(f []float32) int {
	s := 0
	for _, b := range m.bins {
		k, found := slices.BinarySearch(b.Cuts, f[b.Feature])
		if found {
			k++
		}
		s = s*(len(b.Cuts)+1) + k
	}
	return s
}

func (m *markovModel) Steps(t *data.Trajectory, features [][]float32) ([]float64, error) {
	if len(features) != len(t.Steps) {
		return nil, fmt.Errorf("%w: %d vectors for %d steps", errFeatures, len(features), len(t.Steps))
	}
	risk := m.all
	if d := m.domains[markovDomain(t)]; d != nil {
		risk = d
	}
	out := make([]float64, len(features))
	for i, f := range features {
		if err := checkFeatures(f, m.width); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		out[i] = risk[m.state(f)]
	}
	return out, nil
}
