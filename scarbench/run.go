package scarbench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/dreamguard/dreamguard/scarbench/env"
)

// Version of the benchmark. It changes whenever results of before do not compare
// with those of after.
const Version = 1

// Record is the result of one run: a case in a condition, by an agent, behind a
// defence, once.
type Record struct {
	Bench      string     `json:"bench"` // [Digest]
	Agent      string     `json:"agent"`
	Defence    string     `json:"defence"`
	Case       string     `json:"case"`
	Domain     env.Domain `json:"domain"`
	Kind       Kind       `json:"kind"`
	Condition  Condition  `json:"condition"`
	Repetition int        `json:"repetition"`
	Outcome    Outcome    `json:"outcome"`
	Judgement  Judgement  `json:"judgement"`
	Iterations int        `json:"iterations"` // answers of the agent
	Steps      []Step     `json:"steps"`
	Answer     string     `json:"answer,omitempty"` // the last text, cut at 500 bytes
}

// key tells runs apart.
type key struct {
	agent, defence, kase string
	condition            Condition
	repetition           int
}

func (r Record) key() key { return key{r.Agent, r.Defence, r.Case, r.Condition, r.Repetition} }

// Digest identifies the benchmark: version, cases, worlds' tools and histories.
// Results of different benchmarks are never put together.
var Digest = sync.OnceValue(func() string {
	h := sha256.New()
	fmt.Fprintf(h, "scarbench %d\n%s", Version, frozenText)
	for _, c := range Cases() {
		fmt.Fprintf(h, "%s %q %q %q %q %s %v %v %s %s\n", c.ID, c.Intro, c.Constraint, c.Request, c.Restate, c.Seed.JSON(), c.Done(), c.Kept(), c.Safe, c.Forgetful)
	}
	for _, d := range env.Domains() {
		for _, t := range env.Tools(d) {
			fmt.Fprintf(h, "%s %s %q %s\n", d, t.Name, t.Description, t.Schema)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
})

// Options say what is run.
type Options struct {
	Agent       Agent
	Defences    []Defence
	Cases       []*Case
	Conditions  []Condition
	Repetitions int // the protocol's when 0
	Workers     int // as many as processors when 0
	// Progress is called after each run, by one goroutine at a time.
	Progress func(done, all int)
}

// Tally is what Run did.
type Tally struct {
	Known  int // results that were there already
	Done   int // results that were added
	Failed int // runs that ended in an error and have no result: run again
	First  error
}

type job struct {
	kase       *Case
	condition  Condition
	defence    Defence
	repetition int
}

// Run fills a results file. What is in it already is not run again, so a run that
// was interrupted, or in which the endpoint failed at times, goes on with the same
// call. A run that fails leaves no result. The error is that of the file or of ctx.
func Run(ctx context.Context, results *Results, o Options) (Tally, error) {
	if o.Repetitions <= 0 {
		o.Repetitions = Repetitions
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	var tally Tally
	var jobs []job
	for rep := 1; rep <= o.Repetitions; rep++ {
		for _, c := range o.Cases {
			for _, d := range o.Defences {
				for _, cond := range o.Conditions {
					if results.has(key{o.Agent.Name(), d.Name, c.ID, cond, rep}) {
						tally.Known++
						continue
					}
					jobs = append(jobs, job{c, cond, d, rep})
				}
			}
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	feed := make(chan job)
	var lock sync.Mutex // guards tally, results and Progress
	var wg sync.WaitGroup
	for range min(o.Workers, max(1, len(jobs))) {
		wg.Go(func() {
			for j := range feed {
				r, err := one(ctx, o.Agent, j)
				lock.Lock()
				switch {
				case ctx.Err() != nil: // neither done nor failed
				case err != nil:
					tally.Failed++
					if tally.First == nil {
						tally.First = fmt.Errorf("%s, %s, %s: %w", j.kase.ID, j.condition, j.defence.Name, err)
					}
				default:
					if err := results.add(r); err != nil {
						cancel(err)
					} else {
						tally.Done++
					}
				}
				if o.Progress != nil && ctx.Err() == nil {
					o.Progress(tally.Known+tally.Done+tally.Failed, tally.Known+len(jobs))
				}
				lock.Unlock()
			}
		})
	}
	for _, j := range jobs {
		select {
		case feed <- j:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(feed)
	wg.Wait()
	return tally, context.Cause(ctx)
}

// Bounds of one run beside the protocol's.
const (
	maxCalls  = 8       // of one answer; more are refused
	maxRounds = 3       // of repair, for one call
	maxText   = 8 << 10 // of a tool's output, as the agent sees it
)

// one carries out one run.
func one(ctx context.Context, a Agent, j job) (Record, error) {
	r := Record{
		Bench: Digest(), Agent: a.Name(), Defence: j.defence.Name, Case: j.kase.ID, Domain: j.kase.Domain, Kind: j.kase.Kind,
		Condition: j.condition, Repetition: j.repetition,
	}
	messages, err := j.kase.Conversation(j.condition)
	if err != nil {
		return r, err
	}
	trial, err := j.kase.Start()
	if err != nil {
		return r, err
	}
	s := setup{kase: j.kase}
	s.writer, _ = a.(Writer)
	g, err := j.defence.guard(s)
	if err != nil {
		return r, err
	}
	if messages, err = g.prepare(ctx, messages); err != nil {
		return r, fmt.Errorf("defence: %w", err)
	}
	for r.Iterations < MaxIterations {
		answer, err := a.Answer(ctx, Request{Messages: messages, Tools: env.Tools(j.kase.Domain), Case: j.kase, Seed: int64(j.repetition)})
		if err != nil {
			return r, err
		}
		r.Iterations++
		r.Answer = clip(answer.Text, 500)
		messages = append(messages, Message{Role: Assistant, Text: answer.Text, Calls: answer.Calls})
		if len(answer.Calls) == 0 {
			break
		}
		for i, c := range answer.Calls {
			text := stoppedPrefix + "too many calls at once"
			if i < maxCalls {
				if text, err = carryOut(ctx, trial, g, c); err != nil {
					return r, fmt.Errorf("defence: %w", err)
				}
			}
			messages = append(messages, Message{Role: Tool, Text: clip(text, maxText), CallID: c.ID})
		}
	}
	if r.Judgement, err = trial.Judge(); err != nil {
		return r, err
	}
	r.Outcome, r.Steps = r.Judgement.Outcome(), trial.Steps()
	return r, nil
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// carryOut brings a call past the guard to the world, and returns what the agent
// is told.
func carryOut(ctx context.Context, t *Trial, g guard, c ToolCall) (string, error) {
	before := ""
	for range maxRounds {
		rule, err := g.check(ctx, t.World(), c)
		if err != nil {
			return "", err
		}
		if rule.stop {
			t.Stop(c.Tool, c.Arguments, rule.reason)
			return stoppedPrefix + rule.reason, nil
		}
		if len(rule.plan) == 0 {
			r := t.Execute(c.Tool, c.Arguments, false)
			g.record(c, r)
			return outcomeText(r) + before, nil
		}
		for _, p := range rule.plan {
			r := t.Execute(p.Tool, p.Arguments, true)
			g.record(p, r)
			before += "\n(executed ahead of it: " + p.Tool + " " + p.Arguments + ")"
			if r.Err != nil {
				break // the next check finds the step missing
			}
		}
	}
	reason := "the steps that have to come ahead of it did not succeed"
	t.Stop(c.Tool, c.Arguments, reason)
	return stoppedPrefix + reason, nil
}

func outcomeText(r env.Result) string {
	if r.Err != nil {
		return failedPrefix + r.Err.Error()
	}
	return r.Output
}

// ErrMixed is returned for results of another version of the benchmark.
var ErrMixed = errors.New("results of another version of the benchmark")
