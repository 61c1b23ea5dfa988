package features

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/verdict"
)

// Compute writes the features of c, judged against all that was committed, to
// dst, whose length must be Count. It does not change what the tracker knows:
// calling it any number of times changes nothing.
func (t *Tracker) Compute(dst []float32, c verdict.Call) {
	dst = dst[:count]
	clear(dst)
	t.borrow()
	defer t.giveBack()
	var f [count]float64

	t.state(&f, c)
	if c.IsMessage() {
		f[isMessage] = 1
	} else {
		args := Normalize(clip(c.Arguments, maxArgs))
		t.scratch.leaves = leaves(t.scratch.leaves, args, readable)
		t.collect(&f, c.Tool)
		t.shares(&f)
		verbs := t.tool(&f, c)
		t.match(&f)
		t.personal(&f, t.exact(&f, verbs))
		lower := strings.ToLower(args)
		f[argDestructive] = bit(t.marked(lower, destructiveWords))
		f[argSecret] = bit(t.marked(lower, secretMarks))
		f[effectUntrusted] = f[isEffect] * f[callUntrusted]
		f[effectProduct] = f[isEffect] * f[matchProduct]
		f[effectOrdered] = f[effectProduct] * (1 - f[matchSender])
		f[effectDelegated] = f[effectProduct] * f[taskDelegates] * max(f[matchSender], f[matchAsked])
	}
	for i := range dst {
		x := float32(f[i])
		if x != x { // a bug would show as a silent zero verdict otherwise
			panic("features: " + definitions[i].Name + " is not a number")
		}
		dst[i] = min(max(x, definitions[i].Lo), definitions[i].Hi)
	}
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// state fills the features that depend on the past alone.
func (t *Tracker) state(f *[count]float64, c verdict.Call) {
	k := &t.counts
	f[lastScore] = k.LastMax
	f[lastCount] = math.Log1p(float64(k.LastCount))
	f[maxScore] = k.MaxScore
	f[totalCount] = math.Log1p(float64(k.Directives))
	if k.LastDirective >= 0 {
		f[sinceDirective] = 1 / (1 + float64(k.Steps-k.LastDirective))
	}
	f[lastOverride] = bit(k.LastOverride)
	f[anyOverride] = bit(k.AnyOverride)
	f[tailOverride] = bit(k.TailOverride)
	f[hasContext] = bit(k.HasContext)
	f[taskLength] = math.Log1p(float64(k.TaskLength))
	f[lastLength] = math.Log1p(float64(k.LastLength))
	f[argLength] = math.Log1p(float64(len(c.Arguments)))
	f[stepCount] = math.Log1p(float64(k.Steps))
	f[lastError] = bit(k.LastError)
	f[taskDelegates] = bit(k.Delegates)
	f[sensitiveReads] = math.Log1p(float64(k.Sensitive))
}

// collect gathers the tokens of the tool's name and of the arguments.
func (t *Tracker) collect(f *[count]float64, tool string) {
	s := t.scratch
	s.tool.reset()
	s.args.reset()
	s.both.reset()
	t.scratch.words(Normalize(tool), func(tk token) {
		w, o := t.vocab.weight(tk), t.seen.origin(tk)
		s.tool.add(tk, w, o)
		s.both.add(tk, w, o)
	})
	for _, l := range s.leaves {
		s.leafSet.reset()
		t.scratch.words(l.text, func(tk token) {
			w, o := t.vocab.weight(tk), t.seen.origin(tk)
			s.args.add(tk, w, o)
			s.both.add(tk, w, o)
			s.leafSet.add(tk, w, o)
		})
		if by, total := s.leafSet.mass(); total > 0 {
			f[leafUntrusted] = max(f[leafUntrusted], (by[fromDirective]+by[fromContext])/total)
			f[leafNowhere] = max(f[leafNowhere], by[fromNowhere]/total)
		}
	}
}

// ofTask reports whether tk is a token of the task.
func (t *Tracker) ofTask(tk token) bool { return t.seen.origin(tk) == fromTask }

func (t *Tracker) shares(f *[count]float64) {
	fill := func(at int, s *tokenSet) (by [originCount]float64) {
		by, total := s.mass()
		if total == 0 {
			return by
		}
		for o := range by {
			f[at+o] = by[o] / total
		}
		f[at+int(originCount)] = (by[fromDirective] + by[fromContext]) / total
		return by
	}
	fill(argTask, &t.scratch.args)
	fill(toolTask, &t.scratch.tool)
	by := fill(callTask, &t.scratch.both)
	f[massUntrusted] = math.Log1p(by[fromDirective] + by[fromContext])
	f[massResult] = math.Log1p(by[fromResult])
}

// tool fills the features of the tool itself and returns the classes of all verbs
// in its name and of the programs it runs.
func (t *Tracker) tool(f *[count]float64, c verdict.Call) (all verbSet) {
	lower := strings.ToLower(c.Tool)
	info := t.tools[hashString(lower)]
	f[toolUsed] = math.Log1p(float64(info.Used))
	f[toolSame] = bit(t.counts.Calls > 0 && t.counts.LastTool == hashString(lower))
	f[toolNamedTask] = f[toolTask]
	f[newAfterDirective] = bit(info.Used == 0 && t.counts.LastCount > 0)

	class := verbNone
	for i := range t.scratch.tool.list {
		v := verbOf[t.scratch.tool.list[i].t]
		all.add(v)
		if v > class && (class == verbNone || class == verbRead) {
			class = v
		}
	}
	var verbs verbSet
	verbs.add(class)
	if class == verbExec {
		if of := t.commandVerbs(c.Arguments); of != 0 {
			verbs, class = of, of.strongest()
		}
	}
	for c := verbRead; c < verbCount; c++ {
		f[isRead+int(c-verbRead)] = bit(verbs.has(c))
	}
	f[isEffect] = bit(class > verbRead)

	if class != verbNone {
		f[verbInTask] = bit(t.taskVerbs.has(class))
		for i := range t.directives {
			if d := &t.directives[i]; d.verbs.has(class) {
				f[verbInDirective] = max(f[verbInDirective], 1/(1+float64(t.counts.Steps-d.step)))
			}
		}
		f[verbInNew] = f[verbInDirective] * f[isEffect] * (1 - f[verbInTask])
	}

	spoken := strings.ReplaceAll(lower, "_", " ")
	stands := func(text string) bool {
		return len(lower) >= 4 && (strings.Contains(text, lower) || strings.Contains(text, spoken))
	}
	f[toolLiteralTask] = bit(stands(t.taskText))
	_, toolTotal := t.scratch.tool.mass()
	var descriptionTotal, inTask float64
	for _, tk := range info.Description {
		w := t.vocab.weight(tk)
		descriptionTotal += w
		if t.ofTask(tk) {
			inTask += w
		}
	}
	if descriptionTotal > 0 {
		f[toolKnown] = 1
		f[toolLikeTask] = inTask / descriptionTotal
	}
	for i := range t.directives {
		d := &t.directives[i]
		if d.context {
			f[toolLiteralContext] = max(f[toolLiteralContext], bit(stands(d.text)))
		} else {
			f[toolLiteralDirective] = max(f[toolLiteralDirective], bit(stands(d.text)))
		}
		var named, fresh, like float64
		for _, tk := range d.tokens {
			if at, ok := t.scratch.tool.index[tk]; ok {
				item := &t.scratch.tool.list[at]
				named += item.weight
				if item.from != fromTask && item.from != fromAction {
					fresh += item.weight
				}
			}
			if descriptionTotal > 0 && slices.Contains(info.Description, tk) {
				like += t.vocab.weight(tk)
			}
		}
		if toolTotal > 0 {
			f[toolNamedDirective] = max(f[toolNamedDirective], named/toolTotal)
			f[toolNewDirective] = max(f[toolNewDirective], fresh/toolTotal)
		}
		if descriptionTotal > 0 {
			f[toolLikeDirective] = max(f[toolLikeDirective], like/descriptionTotal)
		}
	}
	return all | verbs
}

// match compares the call with each directive seen.
func (t *Tracker) match(f *[count]float64) {
	both := &t.scratch.both
	_, callWeight := both.mass()
	var newWeight float64
	for i := range both.list {
		if o := both.list[i].from; o != fromTask && o != fromAction {
			newWeight += both.list[i].weight
		}
	}
	if callWeight == 0 {
		return
	}
	best := -1
	for i := range t.directives {
		d := &t.directives[i]
		var shared, sharedNew float64
		for _, tk := range d.tokens {
			at, ok := both.index[tk]
			if !ok {
				continue
			}
			item := &both.list[at]
			shared += item.weight
			if item.from != fromTask && item.from != fromAction {
				sharedNew += item.weight
			}
		}
		if newWeight > 0 {
			f[matchSeen] = max(f[matchSeen], sharedNew/newWeight)
		}
		if newWeight > 0 && d.offTask > 0 {
			f[matchReach] = max(f[matchReach], sharedNew/(d.weight*d.offTask))
			f[matchNew] = max(f[matchNew], overlap(sharedNew/newWeight, sharedNew/(d.weight*d.offTask)))
		}
		ofCall, ofDirective := shared/callWeight, shared/d.weight
		if m := overlap(ofCall, ofDirective); m > f[matchBest] {
			best = i
			f[matchBest], f[matchCall], f[matchDirective] = m, ofCall, ofDirective
		}
	}
	if best < 0 {
		return
	}
	d := &t.directives[best]
	f[matchOffTask] = d.offTask
	f[matchProduct] = f[matchBest] * d.offTask
	f[matchScore] = d.score
	f[matchAge] = 1 / (1 + float64(t.counts.Steps-d.step))
	f[matchOverride] = bit(d.override)
	f[matchPlanted] = bit(d.context)
	f[matchSender], f[matchAsked] = bit(d.named), bit(d.asked)
}

// overlap is max(F1, mean) of two coverages: F1 asks for both, the mean lets a
// short call inside a long directive count.
func overlap(a, b float64) float64 {
	a, b = min(a, 1), min(b, 1)
	if a+b == 0 {
		return 0
	}
	return max(2*a*b/(a+b), (a+b)/2)
}

// exact looks up where the exact values of the arguments stand. It reports
// whether a receiver does not stand in the task: one that an argument names as
// such or, in a call without such arguments, any e-mail address.
func (t *Tracker) exact(f *[count]float64, verbs verbSet) (stranger bool) {
	var all, contacts [4]float64 // task, result, directive, nowhere
	var total, receivers, tainted float64
	var domains, domainsTask, domainsSeen, names, namesTask, namesSender, unsourced, ordered float64
	login := isLogin(verbs, t.scratch.leaves)
	named := false
	place := func(receiver bool, p int, contact, asked, sent bool) {
		all[p]++
		total++
		if login { // who logs in receives nothing
			return
		}
		if receiver {
			if !named { // addresses before it were part of the text
				named, stranger = true, false
			}
			contact = true
			stranger = stranger || p != 0
		} else if contact && !named {
			stranger = stranger || p != 0
		}
		if contact {
			contacts[p]++
			receivers++
			switch {
			case p == 1 && asked:
				f[contactSource]++
			case p != 0:
				unsourced++
			}
			if p == 2 && !sent {
				ordered++
			}
		}
	}
	for _, l := range t.scratch.leaves {
		found := false
		// Once per leaf: a key and a text may be as long as the arguments, and a
		// text may hold thousands of values.
		receiver := isContactKey(l.key)
		longURL := strings.Contains(l.text, "://") && strings.Count(l.text, "/") > 2
		values(l.text, &t.scratch.buf, func(kind valueKind, b []byte) {
			v := valueToken(kind, b)
			if kind == valueDomain {
				at := t.seen.place(v)
				domains++
				domainsTask += bit(at&inTask != 0)
				domainsSeen += bit(at&inTask != 0 || at&inResult != 0 && at&inDirective == 0)
				return
			}
			if kind == valueHost && longURL {
				// The URL that follows says more; a bare host is a value itself.
				return
			}
			found = true
			p := t.placeOf(v)
			sent := false
			if kind == valueEmail && names < maxNames {
				names++
				name := string(b[:bytes.IndexByte(b, '@')])
				sent = t.anyWord(name, t.sentBySender)
				namesSender += bit(sent)
				namesTask += bit(t.anyWord(name, t.ofTask))
			}
			place(receiver, p, kind == valueEmail, t.seen.place(v)&inSource != 0, sent)
			if _, ok := t.taint[v]; ok && p != 0 {
				tainted++
			}
		})
		if text := strings.TrimSpace(l.text); !found && len(text) >= 4 && len(text) <= 120 {
			place(receiver, t.placeOfText(text), false, false, false)
		}
	}
	f[valueCount], f[contactCount] = math.Log1p(total), math.Log1p(receivers)
	for p := range all {
		if total > 0 {
			f[valueTask+p] = all[p] / total
			f[valueAnyTask+p] = bit(all[p] > 0)
		}
		if receivers > 0 {
			f[contactTask+p] = contacts[p] / receivers
			f[contactAnyTask+p] = bit(contacts[p] > 0)
		}
	}
	if total == 0 {
		return false
	}
	f[taintShare] = tainted / total
	f[taintLeaves] = bit(tainted > 0 && f[isEffect] > 0)
	f[taintAny] = bit(tainted > 0)
	offTask := 1 - f[valueTask]
	f[deleteOffScope] = f[isDelete] * offTask
	f[authOffTask] = f[isAuth] * offTask
	if domains > 0 {
		f[domainTask], f[domainSeen] = domainsTask/domains, domainsSeen/domains
		f[contactNameTask], f[contactNameSender] = namesTask/names, namesSender/names
	}
	if receivers > 0 {
		f[contactSource] /= receivers
		f[contactOrdered] = f[isEffect] * ordered / receivers
		f[strangerUnsourced] = f[isEffect] * unsourced / receivers
		f[strangerEffect] = f[isEffect] * (1 - f[contactTask])
		f[taintToStranger] = f[taintLeaves] * bit(f[contactTask] < 1)
	}
	return stranger
}

// placeOf returns 0 if v stands in the task, 1 in plain results only, 2 in a
// directive, 3 nowhere.
func (t *Tracker) placeOf(v token) int {
	switch p := t.seen.place(v); {
	case p&inTask != 0:
		return 0
	case p&inDirective != 0:
		return 2
	case p&inResult != 0:
		return 1
	}
	return 3
}

// placeOfText is placeOf for a leaf that is no exact value, such as a title.
func (t *Tracker) placeOfText(text string) int {
	lower := strings.ToLower(text)
	if strings.Contains(t.taskText, lower) {
		return 0
	}
	for i := range t.directives {
		if strings.Contains(t.directives[i].text, lower) {
			return 2
		}
	}
	// Results are not kept as text: a leaf all of whose words came from results
	// is taken to stand there.
	words, known := 0, 0
	t.scratch.words(text, func(tk token) {
		words++
		if o := t.seen.origin(tk); o == fromResult || o == fromDirective {
			known++
		}
	})
	if words > 0 && known == words {
		return 1
	}
	return 3
}

// isLogin reports whether a call of these classes hands over a password and does
// nothing else. Whole names only: a name that merely holds such a word must not
// make a receiver invisible.
func isLogin(verbs verbSet, args []leaf) bool {
	return verbs == verbSet(0).with(verbAuth) && slices.ContainsFunc(args, func(l leaf) bool { return passwordKeys[strings.ToLower(l.key)] })
}

func isContactKey(key string) bool {
	key = strings.ToLower(key)
	for _, k := range contactKeys {
		if key == k || len(k) > 3 && strings.Contains(key, k) {
			return true
		}
	}
	return false
}

// marked reports whether s holds a phrase of the list that the task does not.
func (t *Tracker) marked(s string, list []string) bool {
	for _, p := range list {
		if strings.Contains(s, p) && !strings.Contains(t.taskText, p) {
			return true
		}
	}
	return false
}
