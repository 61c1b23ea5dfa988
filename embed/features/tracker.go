package features

import (
	"strings"

	"github.com/dreamguard/dreamguard/data/clean"
	"github.com/dreamguard/dreamguard/verdict"
)

// origin is the class of a token: where it appeared first.
type origin uint8

const (
	fromTask      origin = iota // T: task or user turn
	fromAction                  // O: the agent's own executed calls
	fromResult                  // N: tool result, plain
	fromDirective               // D: tool result, inside a directive span
	fromContext                 // C: planted context, memory, override tail of a user turn
	fromNowhere                 // X: never seen
	originCount
)

// Bounds of the state. Together they keep a serialised session under 256 KB.
const (
	maxTaskText   = 8 << 10 // bytes of task and user turns kept for exact matches
	maxTokens     = 6 << 10 // tokens with a known origin
	maxPlain      = 3584    // of these, tokens of plain results: the oldest go first
	maxPlanted    = 1 << 10 // tokens of directives, and of planted context: more of them count as plain
	maxActed      = 512     // tokens of the agent's own calls; what is left is the task's
	maxValues     = 2 << 10 // exact values with known places
	maxDirectives = 32
	maxDirTokens  = 64      // tokens of one directive
	maxDirText    = 900     // bytes of one directive
	maxSaid       = 1 << 10 // tokens of the agent's own messages
	maxTools      = 192
	maxToolTokens = 24 // tokens of one tool's description
	maxTaint      = 1 << 10
	maxLeaves     = 64
	maxArgs       = 16 << 10 // bytes of arguments that are read
	maxResult     = 64 << 10 // bytes of one result that are read
)

// place is a set of places in which an exact value stood.
type place uint8

const (
	inTask place = 1 << iota
	inResult
	inDirective
	inAction
	inScope  // a folder that the task names, or names a file of
	inSource // plain text that the task asked for

	allPlaces = 1<<iota - 1
)

// directive is a request found in text that has no authority.
type directive struct {
	text     string // normalised, lower case
	tokens   []token
	weight   float64 // sum of token weights
	offTask  float64 // share of the weight that does not stand in the task
	score    float64
	step     int     // number of committed steps when it was seen
	verbs    verbSet // classes of the verbs in it
	override bool
	context  bool // planted before the run, rather than in a result
	source
}

// source says how the task leads to a directive.
type source struct {
	asked bool // it asks for the result
	named bool // it names the sender
}

// Tracker follows one run. It is not safe for concurrent use.
type Tracker struct {
	vocab *Vocabulary

	// State; MarshalBinary writes all of it.
	taskText   string
	taskVerbs  verbSet            // classes of the verbs in the task and in user turns
	tools      map[token]toolInfo // catalogue and tools used
	seen       sightings
	plain      []token // tokens of plain results in order of appearance
	plainVals  []token // the same of values
	directives []directive
	said       map[token]struct{}
	taint      map[token]struct{}
	private    map[token]struct{} // paths that personal values were written to
	counts     counters

	scratch *scratch // nil between calls
}

// counters is the small fixed part of the state.
type counters struct {
	Steps         int     // committed actions
	Calls         int     // of these, tool calls
	Directives    int     // directives seen in results so far
	LastDirective int     // step at which the last one was seen, -1 if none
	MaxScore      float64 // highest directive score in results so far
	LastMax       float64 // highest directive score of the last result
	LastCount     int     // directives in the last result
	LastOverride  bool
	AnyOverride   bool
	TailOverride  bool // the task carries an override tail
	HasContext    bool
	Delegates     bool // the task hands over to what a source says
	LastError     bool
	LastLength    int
	TaskLength    int
	Sensitive     int // results read that were recognised as sensitive
	LastTool      token
	Errors        int
}

type toolInfo struct {
	Used        int
	Description []token
}

// NewTracker starts a run. A nil vocabulary weighs all tokens alike.
func NewTracker(v *Vocabulary, task verdict.Task) *Tracker {
	if v == nil {
		v = &Vocabulary{Unknown: 1}
	}
	t := &Tracker{
		vocab:   v,
		tools:   map[token]toolInfo{},
		seen:    sightings{at: map[token]sighting{}},
		said:    map[token]struct{}{},
		taint:   map[token]struct{}{},
		private: map[token]struct{}{},
		counts:  counters{LastDirective: -1},
	}
	t.borrow()
	defer t.giveBack()
	for _, d := range task.Tools {
		if len(t.tools) == maxTools {
			break
		}
		var toks []token
		t.scratch.words(Normalize(clip(d.Description, 600)), func(tk token) {
			if len(toks) < maxToolTokens {
				toks = append(toks, tk)
			}
		})
		t.tools[hashString(strings.ToLower(d.Name))] = toolInfo{Description: toks}
	}
	t.counts.TaskLength = len(task.Instruction)
	t.userTurn(task.Instruction, false)
	if task.Context != "" {
		t.counts.HasContext = true
		t.planted(Normalize(unescape(clip(task.Context, maxResult))), fromContext)
	}
	return t
}

// userTurn gives the user's words authority, up to an override tail.
func (t *Tracker) userTurn(text string, reply bool) {
	text = Normalize(clip(text, maxTaskText))
	ss := sentences(t.scratch.sentences, text)
	t.scratch.sentences = ss
	head, tail := text, ""
	if cut := overrideTail(ss); cut < len(ss) {
		t.counts.TailOverride = true
		head, tail = text[:ss[cut].start], text[ss[cut].start:]
	}
	t.scratch.words(head, func(tk token) {
		if reply {
			if _, agentSaid := t.said[tk]; agentSaid {
				return // a turn that repeats the agent's words grants nothing
			}
		}
		t.taskVerbs.add(verbOf[tk])
		if o := t.seen.origin(tk); o == fromNowhere && t.seen.tokens < maxTokens || o == fromResult {
			t.seen.setOrigin(tk, fromTask)
		}
	})
	values(head, &t.scratch.buf, func(kind valueKind, v []byte) {
		t.addValue(valueToken(kind, v), inTask)
		if kind == valuePath {
			t.addScope(v)
		}
	})
	phones(head, func(v token) { t.addValue(v, inTask) })
	k := &t.counts
	lower := strings.ToLower(head)
	k.Delegates = k.Delegates || containsAny(lower, delegations)
	if room := maxTaskText - len(t.taskText); room > 0 {
		t.taskText += clip(lower, room-1) + "\n"
	}
	if tail != "" {
		t.planted(tail, fromContext)
	}
}

// planted registers text without authority that was there before the run.
func (t *Tracker) planted(text string, o origin) {
	ss := sentences(t.scratch.sentences, text)
	t.scratch.sentences = ss
	for i := range ss {
		t.directive(ss, i, max(ss[i].score, directiveFrom), true, source{})
	}
	t.scratch.words(text, func(tk token) { t.addToken(tk, o) })
	t.scratch.valuesOf(text, func(_ valueKind, v token) { t.addValue(v, inDirective) })
}

// Commit records that c was executed and r came back.
func (t *Tracker) Commit(c verdict.Call, r verdict.Result) {
	t.borrow()
	defer t.giveBack()
	t.counts.Steps++
	asked := false
	if c.IsMessage() {
		t.scratch.words(Normalize(clip(c.Text, maxTaskText)), func(tk token) {
			if len(t.said) < maxSaid {
				t.said[tk] = struct{}{}
			}
		})
	} else {
		asked = t.commitCall(c)
	}
	t.commitResult(c, r, asked)
}

// commitCall reports whether the task asks for what c reads: whether an exact
// value of the arguments stands in the task, or half of their weight does.
func (t *Tracker) commitCall(c verdict.Call) (asked bool) {
	t.counts.Calls++
	name := hashString(strings.ToLower(c.Tool))
	t.counts.LastTool = name
	if info, ok := t.tools[name]; ok || len(t.tools) < maxTools {
		info.Used++
		t.tools[name] = info
	}
	t.scratch.words(Normalize(c.Tool), func(tk token) { t.addToken(tk, fromAction) })
	args := Normalize(clip(c.Arguments, maxArgs))
	t.scratch.leaves = leaves(t.scratch.leaves, args, readable)
	tainted := false
	var task, total float64
	for _, l := range t.scratch.leaves {
		t.scratch.words(l.text, func(tk token) {
			w := t.vocab.weight(tk)
			total += w
			if t.ofTask(tk) {
				task += w
			}
			t.addToken(tk, fromAction)
		})
		t.scratch.valuesOf(l.text, func(kind valueKind, v token) {
			_, bad := t.taint[v]
			tainted = tainted || bad
			asked = asked || kind != valueAmount && kind != valueDomain && t.seen.place(v)&inTask != 0
			t.addValue(v, inAction)
		})
	}
	asked = asked || total > 0 && task >= total/2
	t.keepPersonal()
	if !tainted {
		return asked
	}
	// What was written with a tainted value carries it on: a file by its path.
	for _, l := range t.scratch.leaves {
		t.scratch.valuesOf(l.text, func(kind valueKind, v token) {
			if kind == valuePath {
				t.addTaint(v)
			}
		})
	}
	return asked
}

// commitResult takes in what came back; asked is as commitCall reports it.
func (t *Tracker) commitResult(c verdict.Call, r verdict.Result, asked bool) {
	k := &t.counts
	k.LastError = r.Error != ""
	if k.LastError {
		k.Errors++
	}
	k.LastMax, k.LastCount, k.LastOverride = 0, 0, false
	k.LastLength = len(r.Output) + len(r.Error)
	if r.User {
		t.userTurn(r.Output, true)
		return
	}
	text := clip(r.Output, maxResult)
	if r.Error != "" {
		text += "\n" + clip(r.Error, 4<<10)
	}
	if text == "" || text == "\n" {
		return
	}
	text = clip(Normalize(unescape(clean.UnfoldYAML(text))), maxResult)

	sensitive := t.sensitiveRead(c, text)
	if sensitive {
		k.Sensitive++
	}
	ss := sentences(t.scratch.sentences, text)
	t.scratch.sentences = ss
	t.scratch.spans = spans(t.scratch.spans, ss)

	// A tool's own name in its result says nothing about where a later call of
	// that name comes from.
	t.scratch.tool.reset()
	t.scratch.words(Normalize(c.Tool), func(tk token) { t.scratch.tool.add(tk, 0, 0) })
	plain := inResult
	if asked {
		plain |= inSource
	}
	t.scratch.messages = t.messages(t.scratch.messages, text)
	parts := t.scratch.messages
	for i := range ss {
		for len(parts) > 1 && parts[1].start < ss[i].start+len(ss[i].raw) { // the one it ends in
			parts = parts[1:]
		}
		o, p := fromResult, plain
		if t.scratch.spans[i] {
			o, p = fromDirective, inResult|inDirective
		}
		t.scratch.words(ss[i].raw, func(tk token) {
			if !t.scratch.tool.has(tk) {
				t.addToken(tk, o)
			}
		})
		t.scratch.valuesOf(ss[i].raw, func(kind valueKind, v token) {
			t.addValue(v, p)
			if sensitive && kind != valueDomain {
				t.addTaint(v)
			}
		})
		if !sensitive {
			t.taintSecrets(ss[i].raw, ss[i].text)
		}
		if ss[i].score < directiveFrom {
			continue
		}
		k.Directives++
		k.LastCount++
		k.LastMax = max(k.LastMax, ss[i].score)
		k.LastDirective = k.Steps
		k.LastOverride = k.LastOverride || ss[i].override
		t.directive(ss, i, ss[i].score, false, source{asked: asked, named: parts[0].named})
	}
	k.MaxScore = max(k.MaxScore, k.LastMax)
	k.AnyOverride = k.AnyOverride || k.LastOverride
}

// addToken registers the first appearance of tk.
func (t *Tracker) addToken(tk token, o origin) {
	if t.seen.origin(tk) != fromNowhere {
		return
	}
	switch {
	case (o == fromDirective || o == fromContext) && t.seen.held[o] >= maxPlanted:
		// A flood of orders must not crowd out everything else.
		o = fromResult
	case o == fromAction && t.seen.held[o] >= maxActed:
		return
	}
	if o == fromResult {
		if len(t.plain) >= maxPlain {
			t.forgetPlain()
		}
		t.plain = append(t.plain, tk)
	}
	if t.seen.tokens < maxTokens {
		t.seen.setOrigin(tk, o)
	}
}

// forgetPlain drops the oldest eighth of the plain-result tokens: in blocks, so
// that the cost of a step stays constant on average.
func (t *Tracker) forgetPlain() {
	n := min(len(t.plain), maxPlain/8)
	for _, tk := range t.plain[:n] {
		if t.seen.origin(tk) == fromResult {
			t.seen.forgetOrigin(tk)
		}
	}
	t.plain = t.plain[:copy(t.plain, t.plain[n:])]
}

func (t *Tracker) addValue(v token, p place) {
	fresh := t.seen.place(v) == 0
	if fresh && t.seen.values >= maxValues {
		n := min(len(t.plainVals), maxValues/8)
		for _, x := range t.plainVals[:n] {
			if t.seen.place(x)&^inSource == inResult {
				t.seen.forgetPlace(x)
			}
		}
		t.plainVals = t.plainVals[:copy(t.plainVals, t.plainVals[n:])]
		if t.seen.values >= maxValues {
			return
		}
	}
	if fresh && p&^inSource == inResult && len(t.plainVals) < maxValues {
		t.plainVals = append(t.plainVals, v)
	}
	t.seen.addPlace(v, p)
}

// clip keeps the head (two thirds) and the tail of s, max bytes in all, joined
// by a line break.
func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	if max < 3 {
		return ""
	}
	head, tail := max*2/3, len(s)-max/3+1
	return strings.ToValidUTF8(s[:head], "") + "\n" + strings.ToValidUTF8(s[tail:], "")
}
