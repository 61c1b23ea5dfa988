package simulate

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/dreamguard/dreamguard/data"
)

// Dataset is the dataset name of every run.
const Dataset = "simulator"

// AgentModel names the policy in every run.
const AgentModel = "stochastic-policy"

// MaxSteps is the longest run.
const MaxSteps = 40

// The parts of a [Split].
const (
	PartTrain      = "train"
	PartValidation = "validation"
	PartConformal  = "conformal"
	PartTest       = "test"
)

// Parts lists the parts: about 60, 10, 15 and 15 % of the scenarios of every domain.
var Parts = []string{PartTrain, PartValidation, PartConformal, PartTest}

// Options says which runs to make. The zero value makes none.
type Options struct {
	Seed  uint64
	First int // number of the first run, so that shards can divide a set
	Runs  int // how many runs
	// Domains restricts the scenarios to these domains; empty means all.
	Domains []string
	// Part restricts the scenarios to one part of the split; empty means all.
	Part string
	// UnsafeShare is the share of unsafe runs over all four domains, in (0, 1);
	// 0 means 0.5 and -1 none. Domains differ: the log-odds of their rates keep
	// their distances. A domain's rate does not depend on Domains.
	UnsafeShare float64
}

// An OptionError names the option that is wrong and what to do.
type OptionError struct{ Option, Msg string }

func (e *OptionError) Error() string { return "simulate: option " + e.Option + ": " + e.Msg }

// Validate checks o. The error is an [*OptionError].
func (o Options) Validate() error {
	if o.First < 0 || o.Runs < 0 || o.First > math.MaxInt-o.Runs {
		return &OptionError{"Runs", fmt.Sprintf("%d runs from number %d: want numbers from 0 up", o.Runs, o.First)}
	}
	if u := o.UnsafeShare; u != -1 && !(u >= 0 && u < 1) {
		return &OptionError{"UnsafeShare", fmt.Sprintf("is %v: want a share between 0 and 1, 0 for the default 0.5, or -1 for no unsafe runs", u)}
	}
	for _, d := range o.Domains {
		if !slices.Contains(Domains(), d) {
			return &OptionError{"Domains", fmt.Sprintf("%.40q is not a domain: want some of %v", d, Domains())}
		}
	}
	if o.Part != "" && !slices.Contains(Parts, o.Part) {
		return &OptionError{"Part", fmt.Sprintf("%.40q is not a part: want one of %v", o.Part, Parts)}
	}
	return nil
}

// Domains lists the four domains.
func Domains() []string {
	out := make([]string, len(rates))
	for i, d := range rates {
		out[i] = d.domain
	}
	return out
}

// Generate streams the runs numbered First to First+Runs-1. Run i depends only
// on the options other than First and Runs, and on i: sets can be sharded and
// resumed. Wrong options (see [Options.Validate]) yield nothing.
//
// A trajectory has Group = the scenario's id, Suite = the domain, Attack = the
// kind of hazard or attack ("drift:leak", "injection:file", ...), and exact
// FirstHazard and InjectionSeen.
func Generate(o Options) iter.Seq[*data.Trajectory] {
	return func(yield func(*data.Trajectory) bool) {
		g, err := newGenerator(o)
		if err != nil {
			return
		}
		for i := range o.Runs {
			t, _ := g.generate(o.First + i)
			if !yield(t) {
				return
			}
		}
	}
}

type generator struct {
	o       Options
	tab     *tables
	domains []string
	pools   map[string][]*scenario
	rates   map[string]float64
}

func newGenerator(o Options) (*generator, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	g := &generator{o: o, tab: loadTables(), rates: map[string]float64{}, pools: map[string][]*scenario{}}
	for _, d := range Domains() { // table order, whatever the order of o.Domains
		if len(o.Domains) > 0 && !slices.Contains(o.Domains, d) {
			continue
		}
		g.domains = append(g.domains, d)
		for _, sc := range g.tab.scenarios[d] {
			if o.Part == "" || o.Part == sc.Part {
				g.pools[d] = append(g.pools[d], sc)
			}
		}
	}
	shift := logOddsShift(o.UnsafeShare)
	for _, d := range rates {
		g.rates[d.domain] = shifted(d.rate, shift)
	}
	if o.UnsafeShare < 0 {
		clear(g.rates)
	}
	return g, nil
}

func shifted(p, shift float64) float64 { return 1 / (1 + (1-p)/p*math.Exp(-shift)) }

// logOddsShift returns what to add to the log-odds of every domain's rate so
// that their mean is share.
func logOddsShift(share float64) float64 {
	if share <= 0 {
		return 0
	}
	lo, hi := -60.0, 60.0
	for range 80 {
		mid := (lo + hi) / 2
		sum := 0.0
		for _, d := range rates {
			sum += shifted(d.rate, mid)
		}
		if sum/float64(len(rates)) < share {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// trace is the ground truth of one run.
type trace struct {
	w       *world
	steps   []action
	choices []choice
	family  string
}

// generate makes run i.
func (g *generator) generate(i int) (*data.Trajectory, *trace) {
	plot := newRNG(g.o.Seed, i, 1)
	sc := pick(plot, g.pools[pick(plot, g.domains)])
	w := newWorld(g.tab, sc, plot)
	shape := w.newShape(plot)
	n := w.simulate(shape, plot, plot.chance(g.rates[sc.domain]))
	x := newWriter(n, newRNG(g.o.Seed, i, 2))
	t := x.trajectory(shape)
	t.ID = Dataset + "/" + sc.ID + "/" + strconv.Itoa(i)
	t.AgentModel = AgentModel
	return t, &trace{w, n.steps, x.choices, x.family}
}

// Scenario describes one scenario.
type Scenario struct {
	ID     string // stands in Trajectory.Group
	Domain string // stands in Trajectory.Suite
	Title  string
	Part   string // see Split
}

// Scenarios lists all scenarios, by domain.
func Scenarios() []Scenario {
	var out []Scenario
	for _, sc := range loadTables().all {
		out = append(out, Scenario{sc.ID, sc.domain, sc.Title, sc.Part})
	}
	return out
}

// Split returns the part of the data that a scenario belongs to: "train",
// "validation", "conformal" or "test"; "" for an id that is not a scenario. The
// assignment is written in the scenario tables and does not change with a seed.
// Half of the runs of test scenarios use tools and texts that no other part has.
func Split(scenario string) string {
	for _, sc := range loadTables().all {
		if sc.ID == scenario {
			return sc.Part
		}
	}
	return ""
}
